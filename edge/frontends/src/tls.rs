//! TLS for protocols that upgrade to it: an identity to serve with, and whether clients must use it.
//!
//! rustls with the `ring` provider, chosen here and not by a process-wide default. TLS 1.2 and 1.3. With an authority given,
//! only clients with a certificate of it get in.

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use std::fmt;
use std::sync::Arc;

/// Whether clients may or must use TLS.
#[derive(Debug, Clone, Default)]
pub enum TlsPolicy {
    /// TLS is not offered.
    #[default]
    Off,
    /// A client may ask for TLS.
    Allowed(TlsIdentity),
    /// A client that has not asked for TLS learns nothing.
    Required(TlsIdentity),
}

/// Why certificates or keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file is not PEM or holds nothing of what is needed.
    #[error("the {what} is not usable PEM: {reason}")]
    Pem {
        /// Which of the inputs.
        what: &'static str,
        /// What was found.
        reason: String,
    },
    /// They do not belong together or are of an unknown kind.
    #[error("the certificate and key cannot be used: {0}")]
    Rejected(String),
}

/// A certificate chain with its key, and which clients are let in.
#[derive(Clone)]
pub struct TlsIdentity {
    config: Arc<ServerConfig>,
}

impl fmt::Debug for TlsIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsIdentity(..)")
    }
}

impl TlsIdentity {
    /// With a configuration that was made elsewhere.
    pub fn new(config: Arc<ServerConfig>) -> TlsIdentity {
        TlsIdentity { config }
    }

    /// From PEM: the server's certificate with the chain after it, its key, and, if clients must show a certificate, the
    /// authorities that sign theirs.
    ///
    /// # Errors
    /// When one of them is malformed or they do not fit together.
    pub fn from_pem(
        chain: &[u8],
        key: &[u8],
        client_authorities: Option<&[u8]>,
    ) -> Result<TlsIdentity, TlsError> {
        let chain = certificates("certificate", chain)?;
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|error| TlsError::Pem { what: "key", reason: error.to_string() })?;
        let provider = Arc::new(ring::default_provider());
        let rejected = |error: rustls::Error| TlsError::Rejected(error.to_string());
        let builder =
            ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
        let builder = builder.map_err(rejected)?;
        let builder = match client_authorities {
            None => builder.with_no_client_auth(),
            Some(pem) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates("client authority", pem)? {
                    roots.add(certificate).map_err(rejected)?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                    .build()
                    .map_err(|error| TlsError::Rejected(error.to_string()))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let config = builder.with_single_cert(chain, key).map_err(rejected)?;
        Ok(TlsIdentity { config: Arc::new(config) })
    }

    /// The server's side of a connection that is about to be encrypted.
    pub(crate) fn connection(&self) -> ServerConnection {
        ServerConnection::new(Arc::clone(&self.config))
            .expect("a server's side needs nothing but its configuration")
    }
}

fn certificates(what: &'static str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let failed = |reason: String| TlsError::Pem { what, reason };
    let found: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| failed(error.to_string()))?;
    if found.is_empty() {
        return Err(failed("no certificate in it".to_owned()));
    }
    Ok(found)
}
