//! What a certificate says, read out of its bytes.
//!
//! Reading is not believing: nothing here looks at a signature. What is read of a peer may be believed only after `anchors`
//! has verified the certificate.

use crate::fingerprint::Fingerprint;
use crate::identity::{Identity, IdentityError, SCHEME, parse_authority};
use crate::limits::CLOCK_TOLERANCE;
use crate::{pem, time};
use base::ClusterId;
use rustls::pki_types::CertificateDer;
use std::time::{Duration, SystemTime};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;

/// Whom a certificate is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A host or a person.
    Holder(Identity),
    /// The authority of a cluster.
    Authority(ClusterId),
}

/// A certificate of this program's making, taken apart. Whether it is genuine is another question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// Its bytes.
    pub der: CertificateDer<'static>,
    /// Whom it is about.
    pub subject: Subject,
    /// Valid from then on, by the second.
    pub not_before: SystemTime,
    /// Valid up to and with this second. Never before `not_before`.
    pub not_after: SystemTime,
    /// The serial number as hexadecimal digits.
    pub serial: String,
    /// The public key (DER, `SubjectPublicKeyInfo`).
    pub(crate) public_key: Vec<u8>,
}

/// Bytes that are no certificate of this program's making.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// Not a certificate at all.
    #[error("this is not a certificate: {0}")]
    Damaged(String),
    /// A certificate of something else.
    #[error("the certificate names no host or person of a Drystone cluster: it was made for something else")]
    NoIdentity,
    /// More than one.
    #[error("the certificate names {0} identities; one is expected")]
    SeveralIdentities(usize),
    /// One that cannot be read.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// What it says it is and what it may be used for do not fit together.
    #[error("the certificate says `{uri}`, but {}", if *.is_authority { "it may sign others" } else { "may not sign others" })]
    WrongKind {
        /// What it says it is.
        uri: String,
        /// Whether it may sign others.
        is_authority: bool,
    },
}

impl Certificate {
    /// Takes DER bytes apart.
    ///
    /// # Errors
    /// When they are no certificate, or none of a host, a person or an authority.
    pub fn read(der: &[u8]) -> Result<Certificate, CertificateError> {
        let damaged = |reason: &str| CertificateError::Damaged(reason.to_owned());
        let (rest, parsed) =
            X509Certificate::from_der(der).map_err(|error| CertificateError::Damaged(error.to_string()))?;
        if !rest.is_empty() {
            return Err(damaged("bytes follow it"));
        }
        let moment = |of: x509_parser::time::ASN1Time| {
            u64::try_from(of.timestamp())
                .ok()
                .and_then(time::from_seconds)
                .ok_or_else(|| damaged("no such time"))
        };
        let not_before = moment(parsed.validity().not_before)?;
        let not_after = moment(parsed.validity().not_after)?;
        if not_after < not_before {
            return Err(damaged("it ends before it begins"));
        }
        Ok(Certificate {
            der: CertificateDer::from(der.to_vec()),
            subject: subject(&parsed)?,
            not_before,
            not_after,
            serial: base::hex(parsed.raw_serial()),
            public_key: parsed.public_key().raw.to_vec(),
        })
    }

    /// Takes a PEM text with one certificate apart.
    ///
    /// # Errors
    /// The same, and when there are none or several in it.
    pub fn from_pem(text: &str) -> Result<Certificate, CertificateError> {
        let der = pem::certificate(text).map_err(|error| CertificateError::Damaged(error.to_string()))?;
        Certificate::read(&der)
    }

    /// As PEM.
    pub fn to_pem(&self) -> String {
        pem::certificate_text(&self.der)
    }

    /// SHA-256 of its bytes.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.der)
    }

    /// The host or person that it is about; an authority is neither.
    pub fn identity(&self) -> Option<&Identity> {
        match &self.subject {
            Subject::Holder(identity) => Some(identity),
            Subject::Authority(_) => None,
        }
    }

    /// Whether it is valid at a time, both ends included.
    pub fn is_valid_at(&self, now: SystemTime) -> bool {
        // The last second counts as a whole, as rustls counts it.
        now >= self.not_before && now < self.not_after + Duration::from_secs(1)
    }

    /// When it was made, in nanoseconds since 1970, by the second.
    pub fn issued_ns(&self) -> u64 {
        time::nanoseconds(self.not_before + CLOCK_TOLERANCE)
    }

    /// When it ends, as people read it: `2026-11-22 10:42:00 UTC`.
    pub fn end_text(&self) -> String {
        time::text_of(self.not_after)
    }

    /// Whether two thirds of its lifetime are over, so that the next one should be asked for. The rest is for hosts that are
    /// off and for authorities that do not answer. The time that it was made valid backwards does not count.
    pub fn needs_renewal(&self, now: SystemTime) -> bool {
        let lifetime = self.not_after.duration_since(self.not_before).unwrap_or_default();
        let forward = lifetime.saturating_sub(CLOCK_TOLERANCE);
        now >= self.not_after - forward / 3
    }
}

/// Whom a parsed certificate is about.
fn subject(parsed: &X509Certificate<'_>) -> Result<Subject, CertificateError> {
    let names = parsed.subject_alternative_name();
    let names = names.map_err(|error| CertificateError::Damaged(error.to_string()))?;
    let names = names.map(|extension| extension.value.general_names.as_slice()).unwrap_or_default();
    let ours = names.iter().filter_map(|name| match name {
        // Other spellings of the scheme are the same to other programs, so they count, and are refused when read.
        GeneralName::URI(uri) if uri.to_ascii_lowercase().starts_with(SCHEME) => Some(*uri),
        _ => None,
    });
    let ours: Vec<&str> = ours.collect();
    let uri = match ours.as_slice() {
        [] => return Err(CertificateError::NoIdentity),
        [uri] => *uri,
        several => return Err(CertificateError::SeveralIdentities(several.len())),
    };
    let constraints = parsed.basic_constraints();
    let constraints = constraints.map_err(|error| CertificateError::Damaged(error.to_string()))?;
    let is_authority = constraints.is_some_and(|extension| extension.value.ca);
    let found = match parse_authority(uri) {
        Some(cluster) => Subject::Authority(cluster),
        None => Subject::Holder(uri.parse()?),
    };
    if is_authority == matches!(found, Subject::Authority(_)) {
        return Ok(found);
    }
    Err(CertificateError::WrongKind { uri: uri.to_owned(), is_authority })
}
