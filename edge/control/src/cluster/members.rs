//! Who gets a certificate of the cluster, and whose counts no more: join tokens, the authorities, renewal, revocation.
//!
//! Every host may make a token; only one that has an authority's key (its keeper) redeems it. A token is good once: the
//! change that marks it as used names the version that was checked, and comes before the certificate goes out. Keys never
//! travel: a second keeper makes an authority of its own, which all hosts believe beside the first.

use super::Cluster;
use super::pools::api_of;
use crate::directory::shared::record::{
    AUTHORITIES, Authorities, AuthorityRecord, Believed, ClusterHost, HostCertificate, Revocation, read,
    revoked_key, set, token_key,
};
use crate::directory::shared::{Change, Outcome, unwritten};
use crate::limits::{AUTHORITY_WAIT, DIRECTORY_RETRY, PEOPLE_KEPT, REMOVAL_WAIT, RENEWAL_PERIOD, TOKENS_MAX};
use crate::security::{self, Security};
use crate::system::blocking;
use api::client::Client;
use api::types::{CertificateAnswer, JoinAnswer, JoinRequest, JoiningHost};
use base::HostId;
use failure::{Code, Failure};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use trust::{
    Authority, Certificate, Endpoint, Grant, Identity, JoinToken, KeyPair, Kind, Purpose, Secret, TokenId,
    TokenRecord,
};

/// How often a change is tried again that another one came before.
const ATTEMPTS: usize = 5;

impl Cluster {
    /// Whether a certificate of somebody that was issued then counts no more.
    pub fn is_revoked(&self, who: &Identity, issued_ns: u64) -> bool {
        let view = self.view();
        let is_gone = who.host().is_some_and(|host| view.host(host).is_none() && host != self.me);
        let revoked = self.certified().map(|security| security.trust.revoked());
        is_gone || revoked.is_some_and(|revoked| revoked.covers(who, issued_ns))
    }

    /// Believes whom the records say.
    pub(super) fn believe(&self, believed: &Believed) {
        let (Some(security), Some((_, record))) = (self.certified(), &believed.authorities) else { return };
        security.trust.replace_revoked(believed.revoked());
        self.pools.clear();
        match security.believe(&record.pem()) {
            Ok(true) => tracing::info!("{} authorities are believed now", record.authorities.len()),
            Ok(false) => {}
            Err(failure) => tracing::error!("{failure}"),
        }
    }

    /// What this host's record tells of its certificate.
    pub(super) fn certificate(&self) -> Option<HostCertificate> {
        let security = self.certified()?;
        let trust = &security.trust;
        let shown = trust.certificate();
        let anchors = trust.anchors();
        // Where this host runs a member of etcd, that has to believe them, too. Where nobody can tell, it is not said that it does: who
        // looks after the member tells of the folder.
        let config = self.config();
        let member = blocking(|| crate::managed::believed_by_member(&config.data_dir));
        let member = member.unwrap_or_else(|_| Some(String::new()));
        let is_believed = |one: &Certificate| member.as_ref().is_none_or(|pem| pem.contains(&one.to_pem()));
        Some(HostCertificate {
            authority: trust.signer().to_string(),
            issued_ns: shown.issued_ns(),
            expires_ns: trust::nanoseconds(shown.not_after),
            believes: anchors
                .certificates()
                .filter(|one| is_believed(one))
                .map(|one| one.fingerprint().to_string())
                .collect(),
        })
    }

    /// The authorities as the directory has them now, and the version of their record.
    async fn authorities(&self) -> Result<(u64, Authorities), Failure> {
        let found = self.directory().get(AUTHORITIES).await?;
        let entry = found
            .ok_or_else(|| Failure::failed("read the cluster's authorities", "there is no record of them"))?;
        let record = read(&entry).map_err(|why| Failure::failed("read the cluster's authorities", why))?;
        Ok((entry.version, record))
    }

    /// Where hosts answer that have an authority's key.
    fn keepers(&self) -> Vec<Endpoint> {
        let view = self.view();
        let Some((_, record)) = &view.believed.authorities else { return Vec::new() };
        let keepers = record.authorities.iter().rev().filter_map(|one| one.keeper.parse::<HostId>().ok());
        let hosts = keepers.filter_map(|keeper| view.host(keeper));
        let addresses = hosts.filter_map(|host| api_of(host)?.parse().ok());
        let mut all: Vec<Endpoint> = Vec::new();
        for endpoint in addresses {
            if !all.contains(&endpoint) && all.len() < trust::ENDPOINTS_MAX {
                all.push(endpoint);
            }
        }
        all
    }

    /// Makes a token for somebody who is to have a certificate.
    ///
    /// # Errors
    /// When nobody could redeem it, the lifetime makes no sense, or the directory does not answer.
    pub async fn make_token(
        &self,
        purpose: Purpose,
        lifetime: Duration,
    ) -> Result<(JoinToken, TokenRecord), Failure> {
        let security = self.security()?;
        let endpoints = self.keepers();
        if endpoints.is_empty() {
            return Err(Failure::refused("no host that has an authority's key listens for who joins").hint(
                "set [listen] http to an address that others reach, such as \"10.0.0.1:7443\", on the host that made the cluster",
            ));
        }
        let now = SystemTime::now();
        let made = TokenRecord::create(endpoints, security.trust.signer(), purpose, lifetime, now);
        let (token, record) = made.map_err(|error| Failure::usage(error.to_string()))?;
        self.forget_tokens(trust::nanoseconds(now)).await?;
        self.change(vec![set(token_key(&record), 0, &record)?]).await?;
        Ok((token, record))
    }

    /// Removes tokens that are good for nothing any more.
    async fn forget_tokens(&self, now_ns: u64) -> Result<(), Failure> {
        let view = self.view();
        let tokens = &view.believed.tokens;
        // Those that people have used tell who has a certificate.
        let oldest_kept = kept_since(tokens.values().map(|(_, record)| record), now_ns);
        let is_over = |record: &TokenRecord| match (record.used_ns, &record.purpose) {
            (Some(used_ns), Purpose::Person { .. }) => used_ns < oldest_kept,
            (Some(_), Purpose::Host | Purpose::Again { .. }) => true,
            (None, _) => record.expires_ns <= now_ns,
        };
        for (key, (version, _)) in tokens.iter().filter(|(_, (_, record))| is_over(record)) {
            let change = Change { key: key.clone(), expected: *version, value: None };
            // Whoever was quicker has removed it.
            let _ = self.directory().commit(vec![change]).await;
        }
        let is_good = |record: &TokenRecord| record.used_ns.is_none() && record.expires_ns > now_ns;
        match tokens.values().filter(|(_, record)| is_good(record)).count() < TOKENS_MAX {
            true => Ok(()),
            false => Err(Failure::refused(format!("{TOKENS_MAX} join tokens are good at this time"))
                .hint("wait until some have expired")),
        }
    }

    /// Makes changes of records that nobody else makes at the same time.
    pub(super) async fn change(&self, changes: Vec<Change>) -> Result<(), Failure> {
        match self.directory().commit(changes).await {
            Outcome::Done { .. } => self.catch_up().await,
            Outcome::Conflict { .. } => {
                Err(Failure::new(Code::Conflict, "somebody else changed this just now").hint("try again"))
            }
            Outcome::Unwritten { why } => Err(unwritten(why)),
            Outcome::Unknown => Err(Failure::new(
                Code::Unreachable,
                "the directory does not answer: nobody knows whether it was done",
            )
            .hint("look, and try again")),
        }
    }

    /// Gives somebody a certificate who comes with a token.
    ///
    /// # Errors
    /// When the token is not good for that, when this host has no authority's key, or the directory does not answer.
    pub async fn redeem(&self, request: &JoinRequest) -> Result<JoinAnswer, Failure> {
        let authority = self.own_authority()?;
        self.check_newest(&authority)?;
        let denied = |text: String| Failure::new(Code::Denied, text);
        let malformed = |error: trust::TokenError| Failure::usage(error.to_string());
        let id: TokenId = request.token.parse().map_err(malformed)?;
        let secret: Secret = request.secret.parse().map_err(malformed)?;
        let unknown =
            || denied("there is no such join token: it was used, or expired; have a new one made".to_owned());
        let entry =
            self.directory().get(&format!("{}{id}", crate::directory::shared::record::TOKENS)).await?;
        let entry = entry.ok_or_else(unknown)?;
        let mut record: TokenRecord =
            read(&entry).map_err(|why| Failure::failed("read a join token's record", why))?;
        let now = SystemTime::now();
        let kind = if request.host.is_some() { Kind::Host } else { Kind::Person };
        let purpose = record.check(&secret, kind, now).map_err(|why| denied(why.to_string()))?;
        let make = || self.certificate_for(&authority, purpose, request);
        let certificate = self.newer_than_a_removal(make).await?;
        let (_, authorities) = self.authorities().await?;
        record.mark_used(now);
        // Before the certificate goes out: a token is good once.
        self.change(vec![set(entry.key, entry.version, &record)?]).await?;
        let certificate_read = Certificate::from_pem(&certificate);
        if let Some(who) = certificate_read.ok().and_then(|one| one.identity().cloned()) {
            tracing::info!("{who} joined with a token");
        }
        let etcd = self.own_endpoints()?;
        Ok(JoinAnswer { certificate, authorities: authorities.pem(), etcd })
    }

    /// The certificate that a token is good for.
    fn certificate_for(
        &self,
        authority: &Authority,
        purpose: &Purpose,
        request: &JoinRequest,
    ) -> Result<String, Failure> {
        match (purpose, &request.host) {
            (Purpose::Person { name, role }, _) => {
                let identity =
                    Identity::Person { cluster: authority.cluster(), name: name.clone(), role: *role };
                let grant = Grant { identity, addresses: Vec::new(), lifetime: trust::PERSON_LIFETIME };
                security::issue(authority, &request.request, &grant)
            }
            (Purpose::Again { host: known }, Some(host)) => {
                self.certificate_again(authority, &request.request, *known, host)
            }
            (Purpose::Host, Some(host)) => self.certificate_of_new_host(authority, &request.request, host),
            (Purpose::Host | Purpose::Again { .. }, None) => {
                unreachable!("a token for a host was checked to be redeemed as one")
            }
        }
    }

    /// A certificate that counts though its holder was removed before. Certificates tell the second that they were made in, so one of
    /// the same second as the removal would count as one from before.
    async fn newer_than_a_removal(
        &self,
        make: impl Fn() -> Result<String, Failure>,
    ) -> Result<String, Failure> {
        let until = Instant::now() + REMOVAL_WAIT;
        loop {
            let made = make()?;
            let certificate = Certificate::from_pem(&made)
                .map_err(|error| Failure::failed("read the new certificate", error))?;
            let Some(who) = certificate.identity() else { return Ok(made) };
            let removed = self.directory().get(&revoked_key(who)).await?;
            let removed: Option<Revocation> = removed
                .map(|entry| read(&entry))
                .transpose()
                .map_err(|why| Failure::failed("read when somebody was removed", why))?;
            if removed.is_none_or(|removed| certificate.issued_ns() > removed.before_ns) {
                return Ok(made);
            }
            if Instant::now() >= until {
                return Err(Failure::refused(format!(
                    "{who} was removed later than it is now by this host's clock: its certificate would not count"
                ))
                .hint("compare the clocks of the hosts, and try again"));
            }
            tokio::time::sleep(DIRECTORY_RETRY).await;
        }
    }

    /// Nobody becomes a host that is there already.
    fn certificate_of_new_host(
        &self,
        authority: &Authority,
        request: &str,
        host: &JoiningHost,
    ) -> Result<String, Failure> {
        let id: HostId = host.id.parse().map_err(|_| Failure::usage("the host's id is none"))?;
        let view = self.view();
        let taken = |what: &str| {
            Failure::new(Code::Conflict, format!("there is a host {what} in this cluster already"))
                .hint("give this one another `name`; if it is that host and has lost its certificate: `drystone host token --again NAME`")
        };
        if view.host(id).is_some() || id == self.me {
            return Err(taken(&format!("with the id {id}")));
        }
        if view.hosts.values().any(|known| known.host.record.name == host.name) {
            return Err(taken(&format!("`{}`", host.name)));
        }
        security::issue_for_host(authority, request, (id, &host.name), &host.addresses)
    }

    /// A host of the cluster whose certificate does not count any more gets another.
    fn certificate_again(
        &self,
        authority: &Authority,
        request: &str,
        known: HostId,
        host: &JoiningHost,
    ) -> Result<String, Failure> {
        let id: HostId = host.id.parse().map_err(|_| Failure::usage("the host's id is none"))?;
        let view = self.view();
        let found = view.host(known).filter(|_| id == known).ok_or_else(|| {
            Failure::new(
                Code::Denied,
                format!("the token is for host {}, and host {id} came with it", view.host_name(known)),
            )
            .hint(
                "have one made for this host; with a new data_dir it is another host: `drystone host token`",
            )
        })?;
        security::issue_for_host(authority, request, (id, &found.record.name), &host.addresses)
    }

    /// Who joins gets a certificate of the newest authority: what is made with an older one would end with that.
    fn check_newest(&self, own: &Authority) -> Result<(), Failure> {
        let view = self.view();
        let newest = view.believed.authorities.as_ref().and_then(|(_, record)| record.signing());
        match newest.filter(|newest| newest.certificate != own.certificate_pem()) {
            None => Ok(()),
            Some(newest) => {
                let keeper =
                    newest.keeper.parse().map_or_else(|_| newest.keeper.clone(), |id| view.host_name(id));
                Err(Failure::refused("this host keeps an older authority, which signs no new certificates")
                    .hint(format!("host {keeper} keeps the newest: ask there")))
            }
        }
    }

    /// People who have a certificate, as far as tokens that they used tell: by name, the newest last.
    pub fn people(&self) -> Vec<Person> {
        let view = self.view();
        let revoked = view.believed.revoked();
        let now_ns = trust::nanoseconds(SystemTime::now());
        let records = view.believed.tokens.values().map(|(_, record)| record);
        let oldest_kept = kept_since(records.clone(), now_ns);
        let authorities = view.believed.authorities.as_ref().map(|(_, record)| record.authorities.as_slice());
        let person = |record: &TokenRecord| {
            let (Purpose::Person { name, role }, Some(issued_ns)) = (&record.purpose, record.used_ns) else {
                return None;
            };
            let is_out = revoked.people.get(name).is_some_and(|until| issued_ns <= *until);
            let is_known = issued_ns >= oldest_kept && !is_out;
            is_known.then(|| Person {
                name: name.to_string(),
                role: *role,
                issued_ns,
                expires_ns: issued_ns.saturating_add(trust::PERSON_LIFETIME.as_nanos() as u64),
                signers: signers_at(authorities.unwrap_or_default(), issued_ns),
            })
        };
        let mut people: Vec<Person> = records.filter_map(person).collect();
        people.sort_by(|a, b| (&a.name, a.issued_ns).cmp(&(&b.name, b.issued_ns)));
        people
    }

    /// The authority whose key is here.
    fn own_authority(&self) -> Result<Authority, Failure> {
        self.security()?.authority()?.ok_or_else(|| {
            let keepers: Vec<String> = self.keepers().iter().map(Endpoint::to_string).collect();
            Failure::refused("this host has no authority's key")
                .hint(format!("ask one that has: {}", keepers.join(" ")))
        })
    }

    /// Gives a host of the cluster another certificate.
    ///
    /// # Errors
    /// When this host has no authority's key, or the request makes no sense.
    pub fn renew(
        &self,
        host: HostId,
        request: &str,
        addresses: &[String],
    ) -> Result<CertificateAnswer, Failure> {
        let authority = self.own_authority()?;
        let view = self.view();
        let found = view.host(host);
        let found =
            found.ok_or_else(|| Failure::new(Code::Denied, "this is no host of the cluster any more"))?;
        let certificate =
            security::issue_for_host(&authority, request, (host, &found.record.name), addresses)?;
        Ok(CertificateAnswer { certificate })
    }

    /// All certificates of somebody that were issued up to now count no more.
    ///
    /// # Errors
    /// When the directory does not answer.
    pub async fn revoke(&self, who: &Identity) -> Result<(), Failure> {
        let key = revoked_key(who);
        let record =
            Revocation { before_ns: trust::nanoseconds(SystemTime::now()), who: who.name().to_string() };
        for _ in 0..ATTEMPTS {
            let expected = self.directory().get(&key).await?.map_or(0, |entry| entry.version);
            match self.change(vec![set(key.clone(), expected, &record)?]).await {
                Err(failure) if failure.code == Code::Conflict => {}
                ended => return ended,
            }
        }
        Err(Failure::new(Code::Conflict, "the record changes all the time").hint("try again"))
    }

    /// Makes this host the keeper of another authority, which signs from now on.
    ///
    /// # Errors
    /// When a host does not believe it in time: then all is as before.
    pub async fn add_authority(&self) -> Result<String, Failure> {
        let security = self.security()?;
        let name = security::name("drystone")?;
        let now = SystemTime::now();
        let made = Authority::create(security.cluster(), &name, now)
            .map_err(|error| Failure::because("make an authority", &error))?;
        let fingerprint = made.fingerprint().to_string();
        let (version, mut record) = self.authorities().await?;
        if record.authorities.len() >= trust::ANCHORS_MAX {
            return Err(Failure::refused(format!(
                "{} authorities are believed already, as many as can be",
                record.authorities.len()
            ))
            .hint("drop one that nobody needs: `drystone cluster authority drop FINGERPRINT`"));
        }
        record.authorities.push(AuthorityRecord {
            certificate: made.certificate_pem(),
            keeper: self.me.to_string(),
            created_ns: trust::nanoseconds(now),
            signs: false,
        });
        self.change(vec![record.change(version)?]).await?;
        match self.wait_until_believed(&fingerprint).await {
            Ok(()) => {
                security.keep_authority(&made)?;
                // Only now: who asks for a certificate of it gets one.
                let (version, mut record) = self.authorities().await?;
                let certificate = made.certificate_pem();
                let own = record.authorities.iter_mut().filter(|one| one.certificate == certificate);
                own.for_each(|one| one.signs = true);
                self.change(vec![record.change(version)?]).await.map(|()| fingerprint)
            }
            Err(failure) => {
                let (version, mut record) = self.authorities().await?;
                record.authorities.retain(|one| one.certificate != made.certificate_pem());
                self.change(vec![record.change(version)?]).await?;
                Err(failure)
            }
        }
    }

    /// Waits until all hosts that are there believe an authority; the others read of it when they start.
    async fn wait_until_believed(&self, fingerprint: &str) -> Result<(), Failure> {
        let until = Instant::now() + AUTHORITY_WAIT;
        loop {
            let state = self.state().await?;
            let view = self.view();
            let there =
                view.hosts.values().map(|known| &known.host).filter(|host| self.reaches(&state, host));
            let believes = |host: &ClusterHost| {
                host.certificate
                    .as_ref()
                    .is_some_and(|told| told.believes.iter().any(|one| one == fingerprint))
            };
            let doubting = there.filter(|host| !believes(host)).map(|host| host.record.name.clone());
            let doubting: Vec<String> = doubting.collect();
            if doubting.is_empty() {
                return Ok(());
            }
            if Instant::now() >= until {
                return Err(Failure::refused(format!(
                    "host {} does not believe the new authority yet",
                    doubting.join(", ")
                ))
                .hint("see `drystone health`, and try again"));
            }
            tokio::time::sleep(DIRECTORY_RETRY).await;
        }
    }

    /// Believes an authority no more.
    ///
    /// # Errors
    /// When a host still shows a certificate of it, it is the last one, or people would be locked out and that is not confirmed.
    pub async fn drop_authority(&self, fingerprint: &str, confirm: Option<&str>) -> Result<(), Failure> {
        let (version, mut record) = self.authorities().await?;
        let is_it = |one: &AuthorityRecord| fingerprint_of(one).as_deref() == Some(fingerprint);
        if !record.authorities.iter().any(is_it) {
            return Err(Failure::new(Code::NotFound, format!("there is no authority {fingerprint}"))
                .hint("see `drystone cluster authority list`"));
        }
        // As the directory has it now: who took another certificate, or another host's.
        self.catch_up().await?;
        let view = self.view();
        let shows = |host: &&Arc<ClusterHost>| {
            host.certificate.as_ref().is_some_and(|told| told.authority == fingerprint)
        };
        let showing = view.hosts.values().map(|known| &known.host).filter(shows);
        let showing: Vec<String> = showing.map(|host| host.record.name.clone()).collect();
        if !showing.is_empty() {
            return Err(Failure::refused(format!("host {} still shows a certificate of it", showing.join(", ")))
                .hint("hosts take one of the newest authority by themselves within seconds; one that is away must be back first, or be removed"));
        }
        record.authorities.retain(|one| !is_it(one));
        if record.authorities.is_empty() {
            return Err(Failure::refused("it is the only authority: nobody would be believed"));
        }
        let is_of = |person: &Person| person.signers.iter().any(|signer| signer == fingerprint);
        let mut locked_out: Vec<String> =
            self.people().iter().filter(|person| is_of(person)).map(|person| person.name.clone()).collect();
        locked_out.dedup();
        if !locked_out.is_empty() && confirm != Some(fingerprint) {
            return Err(Failure::refused(format!(
                "these people would be locked out, since their certificates are of this authority: {}",
                locked_out.join(", ")
            ))
            .hint(format!(
                "have them log in again first (`drystone person token NAME --role ROLE`, then `drystone login --replace TOKEN`), or add \
                 `--confirm {fingerprint}`"
            )));
        }
        self.change(vec![record.change(version)?]).await
    }

    /// Has all hosts take another certificate now.
    ///
    /// # Errors
    /// When the directory does not answer.
    pub async fn renew_all(&self) -> Result<(), Failure> {
        let (version, mut record) = self.authorities().await?;
        record.renew_before_ns = trust::nanoseconds(SystemTime::now());
        self.change(vec![record.change(version)?]).await
    }

    /// Takes another certificate whenever this host needs one.
    pub(super) async fn keep_certificate(self: Arc<Cluster>) {
        let Some(security) = self.certified() else { return };
        let mut told = None;
        let mut revision = self.revision.subscribe();
        loop {
            if self.needs_certificate(&security) {
                let taken = self.take_certificate(&security).await;
                match &taken {
                    Ok(()) => {
                        tracing::info!(
                            "a new certificate is shown, to {}",
                            security.trust.certificate().end_text()
                        );
                    }
                    Err(failure) if told.as_ref() != Some(&failure.error) => tracing::warn!("{failure}"),
                    Err(_) => {}
                }
                told = taken.err().map(|failure| failure.error);
            }
            // As soon as records change, and now and then.
            let _ = tokio::time::timeout(RENEWAL_PERIOD, revision.changed()).await;
            if told.is_some() {
                tokio::time::sleep(RENEWAL_PERIOD).await;
            }
        }
    }

    fn needs_certificate(&self, security: &Security) -> bool {
        let shown = security.trust.certificate();
        let view = self.view();
        let Some((_, record)) = &view.believed.authorities else { return false };
        let newest = record.signing().and_then(fingerprint_of);
        let is_of_older = newest.is_some_and(|newest| newest != security.trust.signer().to_string());
        // Certificates tell their second only, so one made in the second of the order is of before it.
        shown.needs_renewal(SystemTime::now())
            || is_of_older
            || shown.issued_ns() < floor(record.renew_before_ns)
    }

    /// Asks the keepers for another certificate, the newest authority's first.
    async fn take_certificate(&self, security: &Arc<Security>) -> Result<(), Failure> {
        let key = KeyPair::generate().map_err(|error| Failure::because("make a key", &error))?;
        let request = key.signing_request().map_err(|error| Failure::because("make a key", &error))?;
        let body =
            api::types::CertificateRequest { request, addresses: security::addresses_of(&self.config()) };
        let view = self.view();
        let Some((_, record)) = &view.believed.authorities else { return Ok(()) };
        let mut last = Failure::new(Code::Unreachable, "no host is known that has an authority's key");
        for authority in record.authorities.iter().rev().filter(|one| one.signs) {
            let Ok(keeper) = authority.keeper.parse::<HostId>() else { continue };
            let answer = match keeper == self.me {
                true => self.renew(self.me, &body.request, &body.addresses),
                false => match view.host(keeper).and_then(|host| api_of(host)) {
                    Some(address) => {
                        let client: Client = security.client(address.to_owned(), keeper);
                        client.post("/api/v1/certificates/host", &body).await
                    }
                    None => continue,
                },
            };
            match answer.and_then(|answer: CertificateAnswer| security.show(key.clone(), &answer.certificate))
            {
                Ok(()) => return Ok(()),
                Err(failure) => last = failure,
            }
        }
        Err(Failure { error: format!("get a new certificate: {}", last.error), ..last })
    }
}

/// Somebody who has a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// What they are called.
    pub name: String,
    /// What they may do.
    pub role: trust::Role,
    /// When the certificate was made, in nanoseconds since 1970.
    pub issued_ns: u64,
    /// When it ends.
    pub expires_ns: u64,
    /// The authority that signed it; two where it was made while the authority changed.
    pub signers: Vec<String>,
}

/// From when on used tokens of people are kept: as long as their certificates last, and not too many.
fn kept_since<'a>(records: impl Iterator<Item = &'a TokenRecord>, now_ns: u64) -> u64 {
    let of_person = |record: &&TokenRecord| matches!(record.purpose, Purpose::Person { .. });
    let mut used: Vec<u64> = records.filter(of_person).filter_map(|record| record.used_ns).collect();
    used.sort_unstable_by(|a, b| b.cmp(a));
    let newest = used.get(PEOPLE_KEPT).map_or(0, |used_ns| used_ns + 1);
    newest.max(now_ns.saturating_sub(trust::PERSON_LIFETIME.as_nanos() as u64))
}

/// The authorities that may have signed a certificate at a time: the newest one of then. One that had just been made may not have
/// signed yet.
fn signers_at(authorities: &[AuthorityRecord], issued_ns: u64) -> Vec<String> {
    let settled_ns = (AUTHORITY_WAIT * 3).as_nanos() as u64;
    let before = authorities.iter().filter(|one| one.created_ns <= issued_ns);
    let mut found = Vec::new();
    for one in before.rev() {
        found.extend(fingerprint_of(one));
        if issued_ns.saturating_sub(one.created_ns) >= settled_ns {
            break;
        }
    }
    found
}

/// To the second.
fn floor(nanoseconds: u64) -> u64 {
    nanoseconds / 1_000_000_000 * 1_000_000_000
}

/// What people call an authority.
pub fn fingerprint_of(record: &AuthorityRecord) -> Option<String> {
    Certificate::from_pem(&record.certificate).ok().map(|one| one.fingerprint().to_string())
}
