//! The authorities that are believed, and whether one of them signed a certificate.
//!
//! Chains are verified by webpki, as rustls has it. A certificate is signed by an authority itself: nothing in between is ever
//! believed. Several authorities of one cluster may be believed at once, so that one takes over from another while hosts run.

use crate::authority::Authority;
use crate::certificate::{Certificate, CertificateError, Subject};
use crate::fingerprint::Fingerprint;
use crate::limits::ANCHORS_MAX;
use crate::refusal::Refusal;
use crate::{pem, time};
use base::ClusterId;
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{CertificateError as TlsCertificateError, Error, RootCertStore};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The authorities of one cluster that are believed: 1 to [`ANCHORS_MAX`], no two alike.
#[derive(Clone)]
pub struct Anchors {
    cluster: ClusterId,
    anchors: Vec<Anchor>,
}

#[derive(Clone)]
struct Anchor {
    certificate: Certificate,
    roots: Arc<RootCertStore>,
    clients: Arc<dyn ClientCertVerifier>,
}

/// Which side of a connection shows a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

/// Certificates that cannot be those of authorities to believe.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnchorsError {
    /// No PEM text with certificates.
    #[error("the certificates of the authorities cannot be read: {0}")]
    Pem(String),
    /// One of them cannot be read.
    #[error("the certificate of an authority cannot be read")]
    Certificate(#[from] CertificateError),
    /// One of them is no authority's.
    #[error("{0} is not an authority: only certificates of authorities belong here")]
    NotAnAuthority(String),
    /// One of them is of another cluster.
    #[error(
        "an authority of cluster {found} is not believed in cluster {expected}: each cluster has its own"
    )]
    OtherCluster {
        /// What was found.
        found: ClusterId,
        /// The cluster.
        expected: ClusterId,
    },
    /// Too many or none.
    #[error(
        "{0} authorities cannot be believed at once: 1 to {ANCHORS_MAX} can; leave out those that are over"
    )]
    Count(usize),
    /// webpki does not take it.
    #[error("the certificate of an authority cannot be used: {0}")]
    Unusable(String),
}

impl Anchors {
    /// From certificates of authorities of a cluster; those that are there twice count once.
    ///
    /// # Errors
    /// When there are too few or too many, when one is no authority's, or of another cluster.
    pub fn new(cluster: ClusterId, certificates: Vec<Certificate>) -> Result<Anchors, AnchorsError> {
        let mut anchors: Vec<Anchor> = Vec::new();
        for certificate in certificates {
            match &certificate.subject {
                Subject::Authority(found) if *found == cluster => {}
                Subject::Authority(found) => {
                    return Err(AnchorsError::OtherCluster { found: *found, expected: cluster });
                }
                Subject::Holder(identity) => return Err(AnchorsError::NotAnAuthority(identity.to_string())),
            }
            if anchors.iter().all(|anchor| anchor.certificate.der != certificate.der) {
                anchors.push(Anchor::new(certificate)?);
            }
            if anchors.len() > ANCHORS_MAX {
                return Err(AnchorsError::Count(anchors.len()));
            }
        }
        if anchors.is_empty() {
            return Err(AnchorsError::Count(0));
        }
        Ok(Anchors { cluster, anchors })
    }

    /// From PEM: one certificate after the other.
    ///
    /// # Errors
    /// The same, and when it is not PEM.
    pub fn from_pem(cluster: ClusterId, text: &str) -> Result<Anchors, AnchorsError> {
        let found = pem::certificates(text).map_err(|error| AnchorsError::Pem(error.to_string()))?;
        let found: Result<Vec<_>, _> = found.iter().map(|der| Certificate::read(der)).collect();
        Anchors::new(cluster, found?)
    }

    /// One authority alone.
    ///
    /// # Errors
    /// When webpki does not take its certificate.
    pub fn of(authority: &Authority) -> Result<Anchors, AnchorsError> {
        Anchors::new(authority.cluster(), vec![authority.certificate().clone()])
    }

    /// These and one more.
    ///
    /// # Errors
    /// When it is of another cluster, or one too many.
    pub fn with(&self, certificate: Certificate) -> Result<Anchors, AnchorsError> {
        let mut all: Vec<_> = self.certificates().cloned().collect();
        all.push(certificate);
        Anchors::new(self.cluster, all)
    }

    /// These without one.
    ///
    /// # Errors
    /// When none would be left.
    pub fn without(&self, gone: Fingerprint) -> Result<Anchors, AnchorsError> {
        let rest = self.certificates().filter(|certificate| certificate.fingerprint() != gone);
        Anchors::new(self.cluster, rest.cloned().collect())
    }

    /// Whose authorities they are.
    pub fn cluster(&self) -> ClusterId {
        self.cluster
    }

    /// Their certificates, in the order given.
    pub fn certificates(&self) -> impl Iterator<Item = &Certificate> {
        self.anchors.iter().map(|anchor| &anchor.certificate)
    }

    /// All certificates as PEM.
    pub fn to_pem(&self) -> String {
        self.certificates().map(Certificate::to_pem).collect()
    }

    /// The authority among them that signed a certificate of a host or a person. Its lifetime does not count here.
    pub(crate) fn signer_of(&self, certificate: &Certificate) -> Option<&Certificate> {
        let then = unix(certificate.not_before);
        let signed = |anchor: &&Anchor| anchor.verify(Side::Client, &certificate.der, then).is_ok();
        self.anchors.iter().find(signed).map(|anchor| &anchor.certificate)
    }

    /// Whether one of them signed the certificate that a side of a connection shows, for this use, and both are valid now.
    ///
    /// # Errors
    /// rustls's own for what is wrong with the certificate itself and its time, a [`Refusal`] for the rest.
    pub(crate) fn verify(&self, side: Side, shown: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
        let mut found = None;
        for anchor in &self.anchors {
            match anchor.verify(side, shown, now) {
                Ok(()) if anchor.is_valid_at(now) => return Ok(()),
                Ok(()) => found = Some(anchor.out_of_date(shown, now).into()),
                // This one did not sign it; another may have.
                Err(Error::InvalidCertificate(
                    TlsCertificateError::UnknownIssuer | TlsCertificateError::BadSignature,
                )) => {}
                Err(error) => found = found.or(Some(error)),
            }
        }
        Err(found.unwrap_or_else(|| {
            Refusal::UnknownAuthority { found: claim(shown), cluster: self.cluster }.into()
        }))
    }
}

impl fmt::Debug for Anchors {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.certificates().map(Certificate::fingerprint)).finish()
    }
}

impl Anchor {
    fn new(certificate: Certificate) -> Result<Anchor, AnchorsError> {
        let unusable = |error: &dyn fmt::Display| AnchorsError::Unusable(error.to_string());
        let mut roots = RootCertStore::empty();
        roots.add(certificate.der.clone()).map_err(|error| unusable(&error))?;
        let roots = Arc::new(roots);
        let provider = Arc::new(ring::default_provider());
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), provider).build();
        Ok(Anchor { certificate, roots, clients: clients.map_err(|error| unusable(&error))? })
    }

    fn verify(&self, side: Side, shown: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
        match side {
            Side::Client => self.clients.verify_client_cert(shown, &[], now).map(|_| ()),
            Side::Server => verify_server_cert_signed_by_trust_anchor(
                &ParsedCertificate::try_from(shown)?,
                &self.roots,
                &[],
                now,
                ring::default_provider().signature_verification_algorithms.all,
            ),
        }
    }

    /// webpki does not look at the lifetime of those that it is told to believe.
    fn is_valid_at(&self, now: UnixTime) -> bool {
        self.certificate.is_valid_at(UNIX_EPOCH + Duration::from_secs(now.as_secs()))
    }

    fn out_of_date(&self, shown: &CertificateDer<'_>, now: UnixTime) -> Refusal {
        Refusal::AuthorityOutOfDate {
            found: claim(shown),
            from: time::text_of(self.certificate.not_before),
            to: time::text_of(self.certificate.not_after),
            now: time::text(now.as_secs()),
        }
    }
}

/// A time as rustls has it; what lies before 1970 is 1970.
pub(crate) fn unix(time: SystemTime) -> UnixTime {
    UnixTime::since_unix_epoch(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// What a certificate says it is, whether or not that is true.
pub(crate) fn claim(shown: &CertificateDer<'_>) -> String {
    match Certificate::read(shown) {
        Ok(Certificate { subject: Subject::Holder(identity), .. }) => identity.to_string(),
        Ok(Certificate { subject: Subject::Authority(cluster), .. }) => {
            format!("the authority of cluster {cluster}")
        }
        Err(_) => "nobody of a Drystone cluster".to_owned(),
    }
}
