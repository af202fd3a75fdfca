//! What rustls asks about the other side of a connection: is its certificate genuine and valid, and is it whom we mean?
//!
//! Every handshake reads the anchors anew, so that they can be replaced while the program runs. Addresses and DNS names do not
//! count: a host is known by its id. Must never accept a certificate before its chain is verified.

use crate::anchors::{Anchors, Side, claim};
use crate::certificate::{Certificate, CertificateError, Subject};
use crate::fingerprint::Fingerprint;
use crate::identity::Identity;
use crate::refusal::Refusal;
use crate::trust::{Revoked, Trust};
use base::{ClusterId, HostId};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError as TlsCertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme,
};
use std::sync::Arc;

/// Who the other side of a connection should be. It must be of the same cluster in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Any host or person.
    Member,
    /// Any host.
    AnyHost,
    /// This host.
    Host(HostId),
}

impl Expected {
    /// Compares who was found, verified, with who is expected.
    fn check(self, found: &Identity, cluster: ClusterId) -> Result<(), Refusal> {
        if found.cluster() != cluster {
            return Err(Refusal::OtherCluster { found: found.to_string(), expected: cluster });
        }
        match (self, found.host()) {
            (Expected::Member, _) | (Expected::AnyHost, Some(_)) => Ok(()),
            (Expected::AnyHost | Expected::Host(_), None) => {
                Err(Refusal::NotAHost { found: found.to_string() })
            }
            (Expected::Host(expected), Some(host)) if host == expected => Ok(()),
            (Expected::Host(expected), Some(_)) => {
                Err(Refusal::OtherHost { found: found.to_string(), expected })
            }
        }
    }
}

/// Verifies what a side of a connection shows: first that it is genuine, then that it still counts and is the one expected.
fn verify(
    (anchors, revoked): (&Anchors, &Revoked),
    expected: Expected,
    side: Side,
    shown: &CertificateDer<'_>,
    now: UnixTime,
) -> Result<(), Error> {
    anchors.verify(side, shown, now).map_err(|error| match error {
        Error::InvalidCertificate(
            TlsCertificateError::InvalidPurpose | TlsCertificateError::InvalidPurposeContext { .. },
        ) => Error::from(wrong_use(shown, side)),
        error => error,
    })?;
    let certificate = Certificate::read(shown).map_err(Refusal::NoIdentity)?;
    let identity = certificate.identity().ok_or(Refusal::NoIdentity(CertificateError::NoIdentity))?;
    if revoked.covers(identity, certificate.issued_ns()) {
        return Err(Refusal::Revoked { found: identity.to_string() }.into());
    }
    Ok(expected.check(identity, anchors.cluster())?)
}

/// A certificate that may not be used on this side: that of a person where a host answers, most often.
fn wrong_use(shown: &CertificateDer<'_>, side: Side) -> Refusal {
    let is_person = Certificate::read(shown).is_ok_and(|certificate| {
        certificate.identity().is_some_and(|identity| matches!(identity, Identity::Person { .. }))
    });
    match side {
        Side::Server if is_person => Refusal::NotAHost { found: claim(shown) },
        Side::Server | Side::Client => Refusal::WrongUse { found: claim(shown) },
    }
}

fn verify_signature(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signature: &DigitallySignedStruct,
) -> Result<HandshakeSignatureValid, Error> {
    let algorithms = ring::default_provider().signature_verification_algorithms;
    verify_tls13_signature(message, certificate, signature, &algorithms)
}

fn schemes() -> Vec<SignatureScheme> {
    ring::default_provider().signature_verification_algorithms.supported_schemes()
}

/// The configurations offer nothing below TLS 1.3.
fn no_tls12<T>() -> Result<T, Error> {
    Err(Error::General("TLS 1.3 is the only version that is spoken here".to_owned()))
}

/// What a server asks about its clients.
#[derive(Debug)]
pub(crate) struct ClientsVerifier {
    pub(crate) trust: Arc<Trust>,
    pub(crate) expected: Expected,
    pub(crate) is_mandatory: bool,
}

impl ClientCertVerifier for ClientsVerifier {
    fn client_auth_mandatory(&self) -> bool {
        self.is_mandatory
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        // No hints: they would be those of a moment, and a client has one certificate.
        &[]
    }

    fn verify_client_cert(
        &self,
        shown: &CertificateDer<'_>,
        _between: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let believed = (&*self.trust.anchors(), &*self.trust.revoked());
        verify(believed, self.expected, Side::Client, shown, now)?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        no_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        schemes()
    }
}

/// Whom a client believes.
#[derive(Debug)]
pub(crate) enum Believed {
    /// The anchors of a member of the cluster, as they are at each handshake.
    Known(Arc<Trust>),
    /// The authority with this fingerprint, which the server shows: all that a join token tells.
    ByFingerprint(Fingerprint),
}

/// What a client asks about its server.
#[derive(Debug)]
pub(crate) struct ServersVerifier {
    pub(crate) believed: Believed,
    pub(crate) expected: Expected,
}

impl ServerCertVerifier for ServersVerifier {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match &self.believed {
            Believed::Known(trust) => {
                let believed = (&*trust.anchors(), &*trust.revoked());
                verify(believed, self.expected, Side::Server, shown, now)?;
            }
            Believed::ByFingerprint(print) => {
                let anchors = authority_with(*print, between)?;
                verify((&anchors, &Revoked::default()), self.expected, Side::Server, shown, now)?;
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        no_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        schemes()
    }
}

/// The authority with a fingerprint among the certificates that a server shows after its own.
pub(crate) fn authority_with(print: Fingerprint, shown: &[CertificateDer<'_>]) -> Result<Anchors, Refusal> {
    let other = || Refusal::OtherAuthority { expected: print };
    let found = shown.iter().find(|der| Fingerprint::of(der) == print).ok_or_else(other)?;
    let certificate = Certificate::read(found).map_err(Refusal::NoIdentity)?;
    let Subject::Authority(cluster) = certificate.subject else { return Err(other()) };
    Anchors::new(cluster, vec![certificate]).map_err(|_| other())
}
