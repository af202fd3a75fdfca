//! TLS between driver and agent: a certificate made for one run of the agent, known by its fingerprint.

use super::invitation::FINGERPRINT_BYTES;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, ServerConfig,
    SignatureScheme,
};
use std::sync::Arc;

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// SHA-256 of some bytes.
pub fn fingerprint(bytes: &[u8]) -> [u8; FINGERPRINT_BYTES] {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// Random bytes of the kernel's.
///
/// # Errors
/// When it has none.
pub fn random<const N: usize>() -> Result<[u8; N], String> {
    use ring::rand::SecureRandom;
    let mut bytes = [0; N];
    ring::rand::SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| "the kernel returned no random bytes".to_owned())?;
    Ok(bytes)
}

/// An agent's side, and its fingerprint.
///
/// # Errors
/// When no key can be made.
pub fn server() -> Result<(Arc<ServerConfig>, [u8; FINGERPRINT_BYTES]), String> {
    let made = rcgen::generate_simple_self_signed(vec!["drystone-lab-agent".to_owned()])
        .map_err(|error| format!("make a certificate: {error}"))?;
    let certificate = made.cert.der().clone();
    let print = fingerprint(&certificate);
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(vec![certificate], key))
        .map_err(|error| format!("set up TLS: {error}"))?;
    Ok((Arc::new(config), print))
}

/// A driver's side: it takes the certificate with this fingerprint and no other.
///
/// # Errors
/// When TLS cannot be set up.
pub fn client(expected: [u8; FINGERPRINT_BYTES]) -> Result<ClientConnection, String> {
    let provider = provider();
    let verifier = Known { expected, algorithms: provider.signature_verification_algorithms };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("set up TLS: {error}"))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    let name = ServerName::try_from("drystone-lab-agent").expect("a constant name is valid");
    ClientConnection::new(Arc::new(config), name).map_err(|error| format!("set up TLS: {error}"))
}

/// Knows one certificate.
#[derive(Debug)]
struct Known {
    expected: [u8; FINGERPRINT_BYTES],
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Known {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match fingerprint(certificate) == self.expected {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure)),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
