//! What a process shows and whom it believes, both replaceable while it runs.
//!
//! Each handshake reads what is there at that moment; connections that are there already go on. Must never hold credentials
//! that none of its own anchors signed: nobody else would believe them.

use crate::anchors::Anchors;
use crate::certificate::{Certificate, CertificateError};
use crate::fingerprint::Fingerprint;
use crate::identity::Identity;
use crate::key::KeyPair;
use crate::name::Name;
use base::{ClusterId, HostId};
use rustls::SignatureScheme;
use rustls::client::ResolvesClientCert;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::time_provider::TimeProvider;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

/// A certificate with its key, and whose they are.
#[derive(Debug, Clone)]
pub struct Credentials {
    identity: Identity,
    certificate: Certificate,
    key: KeyPair,
}

/// A certificate and a key that cannot be used together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialsError {
    /// The certificate cannot be read.
    #[error("the certificate cannot be read")]
    Certificate(#[from] CertificateError),
    /// The certificate of an authority.
    #[error("this is the certificate of an authority: that of a host or a person is needed")]
    IsAuthority,
    /// The key is another one.
    #[error(
        "the key does not fit the certificate of {0}: give the key that its request was made with, or join again"
    )]
    KeyDoesNotFit(Identity),
}

impl Credentials {
    /// From a key and the certificate (PEM) that was issued for it.
    ///
    /// # Errors
    /// When the certificate cannot be read, is no host's or person's, or the key does not fit it.
    pub fn new(key: KeyPair, certificate: &str) -> Result<Credentials, CredentialsError> {
        let certificate = Certificate::from_pem(certificate)?;
        let Some(identity) = certificate.identity().cloned() else {
            return Err(CredentialsError::IsAuthority);
        };
        if certificate.public_key != key.public_key() {
            return Err(CredentialsError::KeyDoesNotFit(identity));
        }
        Ok(Credentials { identity, certificate, key })
    }

    /// Whose they are.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The certificate.
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// The key. **Secret**: for its file and nothing else.
    pub fn key(&self) -> &KeyPair {
        &self.key
    }

    /// Whether the next certificate should be asked for: two thirds of the lifetime are over.
    pub fn needs_renewal(&self, now: SystemTime) -> bool {
        self.certificate.needs_renewal(now)
    }
}

/// What cannot be shown or believed together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrustError {
    /// The certificate is not signed by any of the authorities.
    #[error(
        "none of the authorities believed here signed the certificate of {0}: believe the new authority first, then take a \
         certificate of it, and only then drop the old one"
    )]
    NotSigned(Identity),
    /// Another cluster.
    #[error(
        "{found} does not belong to cluster {expected}: a process belongs to one cluster as long as it runs"
    )]
    OtherCluster {
        /// What was given.
        found: String,
        /// The cluster.
        expected: ClusterId,
    },
    /// Somebody else.
    #[error(
        "this process is {expected}, and the certificate is of {found}: start anew to become somebody else"
    )]
    SomebodyElse {
        /// Whose certificate was given.
        found: String,
        /// Who the process is.
        expected: String,
    },
}

/// Whose certificates count no more although they are genuine: those that were made up to a time, in nanoseconds since 1970.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Revoked {
    /// Of hosts.
    pub hosts: BTreeMap<HostId, u64>,
    /// Of people.
    pub people: BTreeMap<Name, u64>,
}

impl Revoked {
    /// Whether a certificate of somebody that was made then counts no more.
    pub fn covers(&self, who: &Identity, issued_ns: u64) -> bool {
        let until = match who {
            Identity::Host { host, .. } => self.hosts.get(host),
            Identity::Person { name, .. } => self.people.get(name),
        };
        until.is_some_and(|until| issued_ns <= *until)
    }
}

/// What a process shows and whom it believes.
pub struct Trust {
    current: RwLock<Arc<Current>>,
    /// What was shown before the authority was changed, for clients who know the former authority alone. Nothing once that is
    /// believed no more.
    former: RwLock<Option<Arc<Current>>>,
    revoked: RwLock<Arc<Revoked>>,
}

struct Current {
    credentials: Credentials,
    anchors: Arc<Anchors>,
    /// The authority that signed the certificate.
    signer: Fingerprint,
    /// What is shown: the certificate and that of the authority that signed it, for those who know only its fingerprint.
    shown: Arc<CertifiedKey>,
}

impl Current {
    fn new(credentials: Credentials, anchors: Arc<Anchors>) -> Result<Current, TrustError> {
        if credentials.identity.cluster() != anchors.cluster() {
            let found = credentials.identity.to_string();
            return Err(TrustError::OtherCluster { found, expected: anchors.cluster() });
        }
        let signer = anchors.signer_of(&credentials.certificate);
        let signer = signer.ok_or_else(|| TrustError::NotSigned(credentials.identity.clone()))?;
        let chain = vec![credentials.certificate.der.clone(), signer.der.clone()];
        let shown = Arc::new(CertifiedKey::new(chain, credentials.key.signer()));
        let signer = signer.fingerprint();
        Ok(Current { credentials, anchors, signer, shown })
    }
}

impl Trust {
    /// Begins with these.
    ///
    /// # Errors
    /// When no anchor signed the certificate, or they are of different clusters.
    pub fn new(credentials: Credentials, anchors: Anchors) -> Result<Arc<Trust>, TrustError> {
        let current = Current::new(credentials, Arc::new(anchors))?;
        let revoked = RwLock::default();
        Ok(Arc::new(Trust { current: RwLock::new(Arc::new(current)), former: RwLock::default(), revoked }))
    }

    /// Shows another certificate from now on, of the same host or person. A person's role may be another one.
    ///
    /// # Errors
    /// When it is of somebody else, or no anchor signed it: nothing has changed then.
    pub fn replace_credentials(&self, credentials: Credentials) -> Result<(), TrustError> {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let expected = &current.credentials.identity;
        let is_same = match (expected.host(), credentials.identity.host()) {
            (Some(host), Some(found)) => host == found,
            (None, None) => expected.name() == credentials.identity.name(),
            (Some(_), None) | (None, Some(_)) => false,
        };
        if !is_same || expected.cluster() != credentials.identity.cluster() {
            let (found, expected) = (credentials.identity.to_string(), expected.to_string());
            return Err(TrustError::SomebodyElse { found, expected });
        }
        let next = Arc::new(Current::new(credentials, Arc::clone(&current.anchors))?);
        let mut former = self.former.write().unwrap_or_else(PoisonError::into_inner);
        if next.signer != current.signer && former.is_none() {
            *former = Some(Arc::clone(&current));
        }
        *current = next;
        Ok(())
    }

    /// What was shown before the authority was changed, as long as that authority is believed.
    pub fn former(&self) -> Option<Credentials> {
        self.former_now().map(|former| former.credentials.clone())
    }

    /// Takes up again what was shown before the authority was changed, after a start. What nobody would believe is left out;
    /// whether it was taken.
    pub fn restore_former(&self, credentials: Credentials) -> bool {
        let current = self.current();
        let is_same = credentials.identity.host() == current.credentials.identity.host();
        let former = Current::new(credentials, Arc::clone(&current.anchors)).ok();
        let former = former.filter(|former| is_same && former.signer != current.signer);
        let is_taken = former.is_some();
        *self.former.write().unwrap_or_else(PoisonError::into_inner) = former.map(Arc::new);
        is_taken
    }

    fn former_now(&self) -> Option<Arc<Current>> {
        self.former.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What a server shows to a client that may know an older authority alone: what the client asks for by name, or else what was
    /// shown first, since whoever came later believes both.
    fn shown_to_client(&self, asked: Option<&str>, now: Option<SystemTime>) -> Arc<CertifiedKey> {
        let (current, former) = (self.current(), self.former_now());
        let is_good = |one: &Arc<Current>| now.is_none_or(|now| now <= one.credentials.certificate.not_after);
        let former = former.filter(is_good);
        let asked_for = |one: &&Arc<Current>| asked == Some(authority_name(one.signer).as_str());
        let by_name = [Some(&current), former.as_ref()].into_iter().flatten().find(asked_for);
        let found = by_name.or(former.as_ref()).unwrap_or(&current);
        Arc::clone(&found.shown)
    }

    /// Believes other authorities of the same cluster from now on.
    ///
    /// # Errors
    /// When they are of another cluster, or none of them signed what is shown: nothing has changed then.
    pub fn replace_anchors(&self, anchors: Anchors) -> Result<(), TrustError> {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let next = Arc::new(Current::new(current.credentials.clone(), Arc::new(anchors))?);
        let mut former = self.former.write().unwrap_or_else(PoisonError::into_inner);
        let kept = former
            .take()
            .and_then(|one| Current::new(one.credentials.clone(), Arc::clone(&next.anchors)).ok());
        *former = kept.map(Arc::new);
        *current = next;
        Ok(())
    }

    /// Lets these in no more, from the next handshake on.
    pub fn replace_revoked(&self, revoked: Revoked) {
        *self.revoked.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(revoked);
    }

    /// Who is not let in although the certificate is genuine.
    pub fn revoked(&self) -> Arc<Revoked> {
        Arc::clone(&self.revoked.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Who this process is.
    pub fn identity(&self) -> Identity {
        self.current().credentials.identity.clone()
    }

    /// The authorities that are believed now.
    pub fn anchors(&self) -> Arc<Anchors> {
        Arc::clone(&self.current().anchors)
    }

    /// The certificate that is shown now.
    pub fn certificate(&self) -> Certificate {
        self.current().credentials.certificate.clone()
    }

    /// The authority that signed the certificate that is shown now.
    pub fn signer(&self) -> Fingerprint {
        self.current().signer
    }

    fn current(&self) -> Arc<Current> {
        // What is inside is replaced as a whole, so a panic elsewhere cannot have left it half done.
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Trust {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Trust({})", self.identity())
    }
}

/// The name by which a client asks a server for a certificate of an authority that it knows by fingerprint (SNI). The first half of
/// the fingerprint tells authorities apart; the certificate is verified as ever.
pub(crate) fn authority_name(print: Fingerprint) -> String {
    let text = print.to_string();
    format!("a{}.authority.drystone.internal", &text[..32])
}

/// Gives rustls what is shown at each handshake.
#[derive(Debug)]
pub(crate) struct Shown(pub(crate) Arc<Trust>);

/// The same for a server to which people come, with the clock by which certificates end.
#[derive(Debug)]
pub(crate) struct ShownToClients(pub(crate) Arc<Trust>, pub(crate) Arc<dyn TimeProvider>);

impl ResolvesServerCert for ShownToClients {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let now = self.1.current_time();
        let now = now.map(|now| SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(now.as_secs()));
        Some(self.0.shown_to_client(hello.server_name(), now))
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.current().shown))
    }
}

impl ResolvesClientCert for Shown {
    fn resolve(&self, _hints: &[&[u8]], _schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.current().shown))
    }

    fn has_certs(&self) -> bool {
        true
    }
}
