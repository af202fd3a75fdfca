//! Certificates as PEM text (RFC 7468), in and out.

use crate::limits::PEM_SIZE_MAX;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// A text that is not PEM of what was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PemError {
    /// Too long to be what it should be.
    #[error("it has {bytes} bytes; {PEM_SIZE_MAX} are allowed")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// Not PEM.
    #[error("it is not PEM: {0}")]
    Malformed(String),
    /// Another number of certificates than expected.
    #[error("it has {found} PEM blocks `CERTIFICATE`; {expected} expected")]
    Count {
        /// How many there are.
        found: usize,
        /// How many there should be.
        expected: &'static str,
    },
}

/// Refuses a text that is too long to be looked at.
pub(crate) fn check_size(text: &str) -> Result<(), PemError> {
    match text.len() {
        0..=PEM_SIZE_MAX => Ok(()),
        bytes => Err(PemError::TooLong { bytes }),
    }
}

/// All certificates of a text: their DER bytes, which are not looked at. There is at least one.
pub(crate) fn certificates(text: &str) -> Result<Vec<CertificateDer<'static>>, PemError> {
    check_size(text)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    let found = found.map_err(|error| PemError::Malformed(error.to_string()))?;
    if found.is_empty() {
        return Err(PemError::Count { found: 0, expected: "one or more are" });
    }
    Ok(found)
}

/// The only certificate of a text.
pub(crate) fn certificate(text: &str) -> Result<CertificateDer<'static>, PemError> {
    let mut found = certificates(text)?;
    match (found.pop(), found.len()) {
        (Some(certificate), 0) => Ok(certificate),
        (_, more) => Err(PemError::Count { found: more + 1, expected: "one is" }),
    }
}

/// A certificate's DER bytes as PEM, with line feeds.
pub(crate) fn certificate_text(der: &[u8]) -> String {
    let block = ::pem::Pem::new("CERTIFICATE", der);
    ::pem::encode_config(&block, ::pem::EncodeConfig::new().set_line_ending(::pem::LineEnding::LF))
}

/// The DER bytes of a request for a certificate.
pub(crate) fn request(text: &str) -> Result<Vec<u8>, PemError> {
    check_size(text)?;
    let block = ::pem::parse(text).map_err(|error| PemError::Malformed(error.to_string()))?;
    match block.tag() {
        "CERTIFICATE REQUEST" => Ok(block.into_contents()),
        _ => Err(PemError::Malformed("a block `CERTIFICATE REQUEST` is expected".to_owned())),
    }
}
