//! Who belongs to the cluster, as the API shows it.

use super::Control;
use crate::cluster::members::fingerprint_of;
use crate::directory::shared::record::AuthorityRecord;
use crate::http::caller::Caller;
use crate::limits::TOKEN_LIFETIME;
use crate::security;
use api::types::{
    AuthorityView, CertificateAnswer, CertificateRequest, CertificatesView, HostCertificateView, JoinAnswer,
    JoinRequest, MakeToken, TokenView,
};
use failure::{Code, Failure};
use std::time::Duration;
use trust::{Certificate, Identity, Purpose, Role};

impl Control {
    /// Whether a certificate of somebody that was issued then counts no more.
    pub fn is_revoked(&self, who: &Identity, issued_ns: u64) -> bool {
        self.cluster.is_revoked(who, issued_ns)
    }

    /// Makes a token for a host or a person.
    ///
    /// # Errors
    /// When nobody could redeem it, or something of it makes no sense.
    pub async fn make_token(&self, request: MakeToken) -> Result<TokenView, Failure> {
        let (purpose, text) = match (request.person, request.again) {
            (None, None) => (Purpose::Host, "a host".to_owned()),
            (None, Some(again)) => {
                let host = self.cluster.find_host(&again)?;
                (Purpose::Again { host: host.record.id }, format!("host {} again", host.record.name))
            }
            (Some(_), Some(_)) => return Err(Failure::usage("a token is for a host or for a person")),
            (Some(person), None) => {
                let role: Role = person
                    .role
                    .parse()
                    .map_err(|error: trust::RoleError| Failure::usage(error.to_string()))?;
                let name = security::name(&person.name)?;
                let text = format!("{role} {name}");
                (Purpose::Person { name, role }, text)
            }
        };
        let lifetime = request.seconds.map_or(TOKEN_LIFETIME, Duration::from_secs);
        let (token, record) = self.cluster.make_token(purpose, lifetime).await?;
        let expires = trust::text_of_nanoseconds(record.expires_ns);
        Ok(TokenView { token: token.to_text(), purpose: text, expires })
    }

    /// Gives somebody a certificate who comes with a token.
    ///
    /// # Errors
    /// When the token is not good for that.
    pub async fn join(&self, request: JoinRequest) -> Result<JoinAnswer, Failure> {
        self.cluster.redeem(&request).await
    }

    /// Gives the host that asks its next certificate.
    ///
    /// # Errors
    /// When no host asks, or this one has no authority's key.
    pub fn renew_host(
        &self,
        caller: &Caller,
        request: &CertificateRequest,
    ) -> Result<CertificateAnswer, Failure> {
        let Caller::Known { identity: Identity::Host { host, .. }, .. } = caller else {
            return Err(Failure::new(Code::Denied, "only a host with a certificate gets its next one here"));
        };
        self.cluster.renew(*host, &request.request, &request.addresses)
    }

    /// All certificates that the cluster knows of.
    ///
    /// # Errors
    /// When this host stands alone.
    pub fn certificates(&self) -> Result<CertificatesView, Failure> {
        let view = self.cluster.view();
        let told = || {
            view.hosts
                .values()
                .filter_map(|known| Some((&known.host.record.name, known.host.certificate.as_ref()?)))
        };
        let record = view.believed.authorities.as_ref().map(|(_, record)| record);
        let all = record.map_or(&[][..], |record| record.authorities.as_slice());
        let authority = |one: &AuthorityRecord| {
            let fingerprint = fingerprint_of(one).unwrap_or_default();
            let keeper = one.keeper.parse().map_or_else(|_| one.keeper.clone(), |id| view.host_name(id));
            let expires = Certificate::from_pem(&one.certificate)
                .map_or_else(|_| String::new(), |read| read.end_text());
            let hosts = told()
                .filter(|(_, told)| told.authority == fingerprint)
                .map(|(name, _)| name.clone())
                .collect();
            AuthorityView {
                fingerprint,
                keeper,
                expires,
                signs: record.and_then(|record| record.signing()) == Some(one),
                hosts,
            }
        };
        let host = |(name, told): (&String, &crate::directory::shared::record::HostCertificate)| {
            HostCertificateView {
                host: name.clone(),
                authority: told.authority.clone(),
                issued: trust::text_of_nanoseconds(told.issued_ns),
                expires: trust::text_of_nanoseconds(told.expires_ns),
            }
        };
        let revoked = view.believed.revoked.iter().map(|(key, record)| match key.contains("/hosts/") {
            true => format!("host {}", record.who),
            false => format!("person {}", record.who),
        });
        Ok(CertificatesView {
            authorities: all.iter().map(authority).collect(),
            hosts: told().map(host).collect(),
            revoked: revoked.collect(),
        })
    }

    /// Has all hosts take another certificate now.
    ///
    /// # Errors
    /// When they have none, or the directory does not answer.
    pub async fn renew_all(&self) -> Result<(), Failure> {
        let cluster = &self.cluster;
        cluster.security()?;
        cluster.renew_all().await
    }

    /// Makes this host the keeper of a new authority; its fingerprint.
    ///
    /// # Errors
    /// When a host does not believe it in time.
    pub async fn add_authority(&self) -> Result<String, Failure> {
        self.cluster.add_authority().await
    }

    /// Believes an authority no more.
    ///
    /// # Errors
    /// When somebody still needs it.
    pub async fn drop_authority(&self, fingerprint: &str, confirm: Option<&str>) -> Result<(), Failure> {
        self.cluster.drop_authority(fingerprint, confirm).await
    }
}
