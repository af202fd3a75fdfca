//! The TLS configurations of a cluster, and who is on the other side of a connection.
//!
//! TLS 1.3 with `ring`, given explicitly and not by a process-wide default. Sessions are never resumed: a resumed session
//! verifies no certificate, so it would outlive the certificate, the authority, and the comparison with whom we mean. Must
//! never have a way to connect without verifying the other side.

use crate::anchors::Anchors;
use crate::certificate::{Certificate, CertificateError};
use crate::fingerprint::Fingerprint;
use crate::identity::Identity;
use crate::refusal::Refusal;
use crate::trust::{Shown, ShownToClients, Trust, authority_name};
use crate::verify::{Believed, ClientsVerifier, Expected, ServersVerifier, authority_with};
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::{NoServerSessionStorage, ResolvesServerCert};
use rustls::time_provider::{DefaultTimeProvider, TimeProvider};
use rustls::version::TLS13;
use rustls::{ClientConfig, ServerConfig};
use std::sync::Arc;

/// Where TLS has the time from: [`system_clock`] in a program, a fixed time in a test.
pub type Clock = Arc<dyn TimeProvider>;

/// The clock of the system.
pub fn system_clock() -> Clock {
    Arc::new(DefaultTimeProvider)
}

/// Which clients a server lets in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clients {
    /// Those with a certificate of whom is expected.
    Demanded(Expected),
    /// Those too that show none, because they come to get one; what they may do is up to the server. A certificate that is
    /// shown must be as expected all the same.
    Optional(Expected),
}

/// Why there is no TLS configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// A server is a host.
    #[error("{0} cannot serve: only a host's certificate may be used for that")]
    NotAHost(Identity),
    /// rustls does not accept what it was given.
    #[error("set up TLS: {0}")]
    Rejected(String),
}

pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// For a host that serves. The caller may add protocols (ALPN).
///
/// # Errors
/// When `trust` is a person's.
pub fn server_config(trust: &Arc<Trust>, clients: Clients, clock: Clock) -> Result<ServerConfig, TlsError> {
    let identity = trust.identity();
    if identity.host().is_none() {
        return Err(TlsError::NotAHost(identity));
    }
    let (expected, is_mandatory) = match clients {
        Clients::Demanded(expected) => (expected, true),
        Clients::Optional(expected) => (expected, false),
    };
    // Hosts believe all authorities; people may know the one that was there when they came.
    let resolver: Arc<dyn ResolvesServerCert> = match expected {
        Expected::Member => Arc::new(ShownToClients(Arc::clone(trust), Arc::clone(&clock))),
        Expected::AnyHost | Expected::Host(_) => Arc::new(Shown(Arc::clone(trust))),
    };
    let verifier = ClientsVerifier { trust: Arc::clone(trust), expected, is_mandatory };
    let builder = ServerConfig::builder_with_details(provider(), clock)
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| TlsError::Rejected(error.to_string()))?;
    let mut config = builder.with_client_cert_verifier(Arc::new(verifier)).with_cert_resolver(resolver);
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// For a host or person that connects to a host: the server must be as expected. The caller may add protocols (ALPN).
///
/// # Errors
/// When rustls does not accept the configuration.
pub fn client_config(trust: &Arc<Trust>, expected: Expected, clock: Clock) -> Result<ClientConfig, TlsError> {
    let believed = Believed::Known(Arc::clone(trust));
    let builder = client_builder(ServersVerifier { believed, expected }, clock)?;
    Ok(careful(builder.with_client_cert_resolver(Arc::new(Shown(Arc::clone(trust))))))
}

/// For somebody who has nothing yet but a join token: any host whose certificate is signed by the authority with this
/// fingerprint. No certificate is shown. [`authority_shown`] gives the authority afterwards.
///
/// # Errors
/// When rustls does not accept the configuration.
pub fn joining_client_config(authority: Fingerprint, clock: Clock) -> Result<ClientConfig, TlsError> {
    let believed = Believed::ByFingerprint(authority);
    let builder = client_builder(ServersVerifier { believed, expected: Expected::AnyHost }, clock)?;
    let mut config = careful(builder.with_no_client_auth());
    // The server may have certificates of several authorities: it is asked for this one by name.
    config.enable_sni = true;
    Ok(config)
}

/// The name for a connection with [`joining_client_config`]: it is sent, so that the server shows a certificate of this authority.
pub fn joining_server_name(authority: Fingerprint) -> ServerName<'static> {
    ServerName::try_from(authority_name(authority)).expect("hexadecimal digits and constant words are valid")
}

fn client_builder(
    verifier: ServersVerifier,
    clock: Clock,
) -> Result<rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert>, TlsError> {
    let builder = ClientConfig::builder_with_details(provider(), clock)
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| TlsError::Rejected(error.to_string()))?;
    Ok(builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)))
}

fn careful(mut config: ClientConfig) -> ClientConfig {
    config.resumption = Resumption::disabled();
    // The name of the server says nothing here, so it is not sent in the clear either.
    config.enable_sni = false;
    config
}

/// The name that every host of a cluster has, in its certificate. Programs that know nothing of identities (QEMU, libvirt) are
/// told to expect it where they may come to any of several hosts.
pub const SHARED_NAME: &str = "host.drystone.internal";

/// The name that rustls wants for every connection. It is neither sent nor compared: identities are.
pub fn server_name() -> ServerName<'static> {
    ServerName::try_from(SHARED_NAME).expect("a constant name is valid")
}

/// Who is on the other side of a connection whose handshake is over, by what `peer_certificates` of it gives; nobody known
/// if it showed no certificate, which only [`Clients::Optional`] allows. The certificate was verified in the handshake:
/// that of another connection, or of one without our configuration, must not be given here.
///
/// # Errors
/// When the certificate is no host's or person's, which our configurations do not let through.
pub fn peer_identity(shown: Option<&[CertificateDer<'_>]>) -> Result<Option<Identity>, CertificateError> {
    let Some(first) = shown.and_then(<[_]>::first) else { return Ok(None) };
    let certificate = Certificate::read(first)?;
    match certificate.identity() {
        Some(identity) => Ok(Some(identity.clone())),
        None => Err(CertificateError::NoIdentity),
    }
}

/// The authority that a server showed to somebody who joins, by what `peer_certificates` gives after a handshake with
/// [`joining_client_config`].
///
/// # Errors
/// When no authority with this fingerprint was shown.
pub fn authority_shown(
    fingerprint: Fingerprint,
    shown: Option<&[CertificateDer<'_>]>,
) -> Result<Anchors, Refusal> {
    authority_with(fingerprint, shown.and_then(|all| all.get(1..)).unwrap_or_default())
}
