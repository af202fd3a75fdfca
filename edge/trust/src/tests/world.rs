//! What the tests share: authorities, certificates right and wrong, a clock, and handshakes in memory.

use crate::authority::{params, requested_key};
use crate::{
    Anchors, Authority, Clients, Clock, Credentials, Expected, Grant, HOST_LIFETIME, Identity, KeyPair,
};
use crate::{Refusal, Role, Trust, client_config, server_config, server_name};
use base::{ClusterId, HostId};
use rcgen::{ExtendedKeyUsagePurpose, SanType};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, Error, ServerConfig, ServerConnection};
use rustls::{SignatureScheme, SupportedProtocolVersion};
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub const CLUSTER: ClusterId = ClusterId(0xc1);
pub const OTHER_CLUSTER: ClusterId = ClusterId(0xc2);
pub const DAY: Duration = Duration::from_secs(86_400);

pub fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_795_344_120)
}

#[derive(Debug)]
struct Fixed(SystemTime);

impl TimeProvider for Fixed {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(self.0.duration_since(UNIX_EPOCH).expect("after 1970")))
    }
}

pub fn clock(at: SystemTime) -> Clock {
    Arc::new(Fixed(at))
}

pub fn authority(cluster: ClusterId) -> Authority {
    authority_since(cluster, now())
}

pub fn authority_since(cluster: ClusterId, at: SystemTime) -> Authority {
    Authority::create(cluster, &"lab".parse().expect("a name"), at).expect("an authority")
}

pub fn host(cluster: ClusterId, host: u128) -> Identity {
    Identity::Host { cluster, host: HostId(host), name: format!("h{host:x}").parse().expect("a name") }
}

pub fn person(cluster: ClusterId, role: Role) -> Identity {
    Identity::Person { cluster, name: "ann".parse().expect("a name"), role }
}

pub fn grant(identity: Identity) -> Grant {
    Grant { identity, addresses: Vec::new(), lifetime: HOST_LIFETIME }
}

/// A certificate as the authority issues it.
pub fn issued(authority: &Authority, grant: &Grant, at: SystemTime) -> Credentials {
    let key = KeyPair::generate().expect("a key");
    let request = key.signing_request().expect("a request");
    Credentials::new(key, &authority.issue(&request, grant, at).expect("a certificate")).expect("they fit")
}

pub fn credentials(authority: &Authority, identity: Identity) -> Credentials {
    issued(authority, &grant(identity), now())
}

/// What a member of the cluster has.
pub fn member(authority: &Authority, identity: Identity) -> Arc<Trust> {
    let anchors = Anchors::of(authority).expect("an authority");
    Trust::new(credentials(authority, identity), anchors).expect("they fit")
}

/// A chain and a key that need not fit any rule.
pub struct Rogue {
    pub chain: Vec<CertificateDer<'static>>,
    pub key: KeyPair,
}

impl Rogue {
    pub fn of(credentials: &Credentials) -> Rogue {
        Rogue { chain: vec![credentials.certificate().der.clone()], key: credentials.key().clone() }
    }

    /// Signed by the authority, which looked at nothing.
    pub fn signed(authority: &Authority, uris: &[String], uses: &[ExtendedKeyUsagePurpose]) -> Rogue {
        Rogue::signed_for(authority, uris, uses, HOST_LIFETIME)
    }

    pub fn signed_for(
        authority: &Authority,
        uris: &[String],
        uses: &[ExtendedKeyUsagePurpose],
        lifetime: Duration,
    ) -> Rogue {
        let key = KeyPair::generate().expect("a key");
        let mut asked = params(now(), lifetime).expect("a time");
        asked.subject_alt_names =
            uris.iter().map(|uri| SanType::URI(uri.as_str().try_into().expect("ASCII"))).collect();
        asked.extended_key_usages = uses.to_vec();
        let public_key = requested_key(&key.signing_request().expect("a request")).expect("a key");
        let made = authority.sign(asked, &public_key).expect("a certificate");
        Rogue { chain: crate::pem::certificates(&made).expect("PEM"), key }
    }

    fn resolver(&self) -> Arc<rustls::sign::SingleCertAndKey> {
        Arc::new(CertifiedKey::new(self.chain.clone(), self.key.signer()).into())
    }

    /// A client that shows this and believes everything.
    pub fn client(&self, version: &'static SupportedProtocolVersion) -> ClientConfig {
        ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[version])
            .expect("a version")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Credulous))
            .with_client_cert_resolver(self.resolver())
    }

    /// A server that shows this and asks for nothing.
    pub fn server(&self) -> ServerConfig {
        ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_cert_resolver(self.resolver())
    }
}

#[derive(Debug)]
struct Credulous;

impl ServerCertVerifier for Credulous {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

/// Two ends of one connection after their handshake, and what each made of it.
pub struct Shaken {
    pub client: ClientConnection,
    pub server: ServerConnection,
    pub client_error: Option<Error>,
    pub server_error: Option<Error>,
}

impl Shaken {
    #[track_caller]
    pub fn expect_good(self) -> Shaken {
        assert_eq!((&self.client_error, &self.server_error), (&None, &None));
        self
    }

    /// The server refused, and the client learned no more than an alert.
    #[track_caller]
    pub fn refused_by_server(&self) -> Refusal {
        let error = self.server_error.as_ref().expect("the server refuses");
        assert!(matches!(self.client_error, Some(Error::AlertReceived(_))), "{:?}", self.client_error);
        Refusal::of(error).unwrap_or_else(|| panic!("no refusal: {error}"))
    }

    #[track_caller]
    pub fn refused_by_client(&self) -> Refusal {
        let error = self.client_error.as_ref().expect("the client refuses");
        assert!(matches!(self.server_error, Some(Error::AlertReceived(_))), "{:?}", self.server_error);
        Refusal::of(error).unwrap_or_else(|| panic!("no refusal: {error}"))
    }

    /// Sends some bytes both ways.
    #[track_caller]
    pub fn talk(&mut self) {
        let mut heard = [0; 4];
        self.client.writer().write_all(b"ping").expect("room");
        self.pump();
        self.server.reader().read_exact(&mut heard).expect("what was sent");
        assert_eq!(&heard, b"ping");
        self.server.writer().write_all(b"pong").expect("room");
        self.pump();
        self.client.reader().read_exact(&mut heard).expect("what was sent");
        assert_eq!(&heard, b"pong");
    }

    fn pump(&mut self) {
        loop {
            let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
            while self.client.wants_write() {
                self.client.write_tls(&mut to_server).expect("memory");
            }
            while self.server.wants_write() {
                self.server.write_tls(&mut to_client).expect("memory");
            }
            if to_server.is_empty() && to_client.is_empty() {
                return;
            }
            let mut bytes = to_server.as_slice();
            while !bytes.is_empty() && self.server_error.is_none() {
                self.server.read_tls(&mut bytes).expect("memory");
                self.server_error = self.server.process_new_packets().err();
            }
            let mut bytes = to_client.as_slice();
            while !bytes.is_empty() && self.client_error.is_none() {
                self.client.read_tls(&mut bytes).expect("memory");
                self.client_error = self.client.process_new_packets().err();
            }
        }
    }
}

pub fn shake_shared(client: &Arc<ClientConfig>, server: &Arc<ServerConfig>) -> Shaken {
    let client = ClientConnection::new(Arc::clone(client), server_name()).expect("a client");
    let server = ServerConnection::new(Arc::clone(server)).expect("a server");
    let mut shaken = Shaken { client, server, client_error: None, server_error: None };
    shaken.pump();
    shaken
}

pub fn shake(client: ClientConfig, server: ServerConfig) -> Shaken {
    shake_shared(&Arc::new(client), &Arc::new(server))
}

/// A server of ours that expects somebody.
pub fn server_of(trust: &Arc<Trust>, expected: Expected) -> ServerConfig {
    server_config(trust, Clients::Demanded(expected), clock(now())).expect("a host")
}

/// A client of ours that expects somebody.
pub fn client_of(trust: &Arc<Trust>, expected: Expected) -> ClientConfig {
    client_config(trust, expected, clock(now())).expect("a client")
}

/// Text of an error with all parts in it.
#[track_caller]
pub fn tells(refusal: &Refusal, parts: &[&str]) {
    let text = refusal.to_string();
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}
