//! TLS: a rustls client against a session, in memory.

use super::*;
use crate::tls::TlsIdentity;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use std::io::{Read, Write};
use std::sync::Arc;

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).expect("no names are valid names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key can be made");
        Authority(CertifiedIssuer::self_signed(params, key).expect("a certificate can be made"))
    }

    /// Certificate and key in PEM.
    fn issue(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().expect("a key can be made");
        let params = CertificateParams::new(vec![name.to_owned()]).expect("a host name is a valid name");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate can be signed");
        (certificate.pem(), key.serialize_pem())
    }

    fn pem(&self) -> String {
        self.0.pem()
    }
}

fn client(authority: &Authority, identity: Option<(String, String)>) -> ClientConnection {
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(authority.pem().as_bytes()).expect("our own PEM");
    roots.add(root).expect("our own certificate");
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the defaults fit the provider")
        .with_root_certificates(roots);
    let config = match identity {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => builder
            .with_client_auth_cert(
                vec![CertificateDer::from_pem_slice(certificate.as_bytes()).expect("our own PEM")],
                PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("our own PEM"),
            )
            .expect("our own certificate"),
    };
    let name = ServerName::try_from("localhost").expect("a host name");
    ClientConnection::new(Arc::new(config), name).expect("our own configuration")
}

fn identity(authority: &Authority, clients: Option<&Authority>) -> TlsIdentity {
    let (certificate, key) = authority.issue("localhost");
    let clients = clients.map(Authority::pem);
    TlsIdentity::from_pem(certificate.as_bytes(), key.as_bytes(), clients.as_ref().map(|pem| pem.as_bytes()))
        .expect("our own certificate")
}

/// Carries bytes both ways until nothing moves; gives the plaintext that came to the client, or the client's error.
fn exchange(wire: &mut Wire, tls: &mut ClientConnection) -> Result<Vec<u8>, rustls::Error> {
    let mut plaintext = Vec::new();
    loop {
        let mut out = Vec::new();
        while tls.wants_write() {
            tls.write_tls(&mut out).expect("memory takes all");
        }
        let said = wire.say(&out);
        assert!(said == out.len() || wire.session.is_finished() || !wire.session.wants_receive());
        wire.settle();
        let sent = std::mem::take(&mut wire.sent);
        let mut rest = &sent[..];
        while !rest.is_empty() {
            tls.read_tls(&mut rest).expect("memory gives all");
            tls.process_new_packets()?;
            let mut chunk = vec![0; 1 << 20];
            while let Ok(n @ 1..) = tls.reader().read(&mut chunk) {
                plaintext.extend_from_slice(&chunk[..n]);
            }
        }
        if out.is_empty() && sent.is_empty() {
            return Ok(plaintext);
        }
    }
}

fn say(wire: &mut Wire, tls: &mut ClientConnection, mut bytes: &[u8]) -> Vec<u8> {
    let mut heard = Vec::new();
    while !bytes.is_empty() {
        let n = tls.writer().write(bytes).expect("the client's buffer is emptied in between");
        bytes = &bytes[n..];
        heard.extend(exchange(wire, tls).expect("the session speaks TLS"));
    }
    heard
}

/// A wire that has just been told to start TLS.
fn upgraded(policy: TlsPolicy) -> Wire {
    let mut wire = Wire::new(policy);
    wire.say(&3u32.to_be_bytes());
    wire.say(&option(option::STRUCTURED_REPLY, &[]));
    wire.sent.clear();
    wire.say(&option(option::STARTTLS, &[]));
    let mut ack = Vec::new();
    put_option_reply(&mut ack, option::STARTTLS, reply::ACK, &[]);
    assert_eq!(std::mem::take(&mut wire.sent), ack);
    assert!(wire.session.is_encrypted());
    wire
}

#[test]
fn a_conversation_under_tls_is_the_same_conversation() {
    let authority = Authority::new();
    for seed in 0..4 {
        let mut wire = upgraded(TlsPolicy::Required(identity(&authority, None)));
        if seed > 0 {
            wire.step = Step::Random(Random::new(seed));
        }
        let mut tls = client(&authority, None);
        exchange(&mut wire, &mut tls).expect("the handshake succeeds");
        // What was agreed on in the clear is forgotten: replies are simple.
        say(&mut wire, &mut tls, &option(option::GO, &go("disk", &[])));
        let data = pattern(seed, 300 << 10);
        assert_eq!(errors(&say(&mut wire, &mut tls, &write(1, 4096, &data))), [(1, 0)]);
        let heard = say(&mut wire, &mut tls, &request(command::READ, 0, 2, 4096, data.len() as u32));
        assert!(heard[16..] == data);
        let small: Vec<u8> = (0..100).flat_map(|index| write(index, 0, &pattern(index, 4096))).collect();
        assert_eq!(errors(&say(&mut wire, &mut tls, &small)).len(), 100);
        say(&mut wire, &mut tls, &request(command::DISC, 0, 3, 0, 0));
        assert!(wire.session.is_finished());
        let mut byte = [0];
        assert_eq!(tls.reader().read(&mut byte).expect("the end was announced"), 0);
    }
}

#[test]
fn without_tls_a_server_that_requires_it_tells_nothing() {
    let authority = Authority::new();
    let mut wire = Wire::new(TlsPolicy::Required(identity(&authority, None)));
    wire.say(&3u32.to_be_bytes());
    wire.sent.clear();
    for number in [option::LIST, option::GO, option::INFO, option::STRUCTURED_REPLY, 99] {
        wire.say(&option(number, &[]));
        let sent = std::mem::take(&mut wire.sent);
        assert_eq!(sent[12..16], reply::ERR_TLS_REQD.to_be_bytes(), "option {number}");
    }
    wire.say(&option(option::EXPORT_NAME, b"disk"));
    assert!(wire.session.is_finished());
}

#[test]
fn bytes_sent_ahead_of_tls_end_the_connection() {
    let authority = Authority::new();
    let mut wire = Wire::new(TlsPolicy::Allowed(identity(&authority, None)));
    wire.say(&3u32.to_be_bytes());
    wire.say(&[option(option::STARTTLS, &[]), option(option::LIST, &[])].concat());
    assert!(!wire.session.is_encrypted() && wire.session.is_finished());
}

#[test]
fn tls_starts_once() {
    let authority = Authority::new();
    let mut wire = upgraded(TlsPolicy::Allowed(identity(&authority, None)));
    let mut tls = client(&authority, None);
    let heard = say(&mut wire, &mut tls, &option(option::STARTTLS, &[]));
    assert_eq!(heard[12..16], reply::ERR_INVALID.to_be_bytes());
}

#[test]
fn only_clients_of_the_authority_get_in() {
    let (authority, other) = (Authority::new(), Authority::new());
    for (certificate, welcome) in
        [(Some(authority.issue("client")), true), (Some(other.issue("client")), false), (None, false)]
    {
        let mut wire = upgraded(TlsPolicy::Required(identity(&authority, Some(&authority))));
        let mut tls = client(&authority, certificate);
        let result = exchange(&mut wire, &mut tls);
        assert_eq!(result.is_ok(), welcome);
        assert_eq!(wire.session.is_finished(), !welcome, "who is turned away has no connection left");
    }
}

#[test]
fn noise_under_tls_ends_the_connection() {
    let authority = Authority::new();
    for seed in 0..50 {
        let mut wire = upgraded(TlsPolicy::Allowed(identity(&authority, None)));
        if seed % 2 == 0 {
            exchange(&mut wire, &mut client(&authority, None)).expect("the handshake succeeds");
        }
        wire.say(&pattern(seed, 70_000));
        assert!(wire.session.is_finished(), "seed {seed}");
    }
}

#[test]
fn certificates_that_cannot_be_used_are_refused_with_a_reason() {
    let authority = Authority::new();
    let (certificate, key) = authority.issue("localhost");
    let (_, other_key) = authority.issue("localhost");
    let with = |certificate: &str, key: &str, clients: Option<&str>| {
        TlsIdentity::from_pem(certificate.as_bytes(), key.as_bytes(), clients.map(str::as_bytes))
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    assert_eq!(with(&certificate, &key, Some(&certificate)), Ok(()));
    for (result, reason) in [
        (with("", &key, None), "certificate is not usable PEM"),
        (with(&certificate, "nonsense", None), "key is not usable PEM"),
        (with(&certificate, &key, Some("")), "client authority is not usable PEM"),
        (with(&certificate, &other_key, None), "cannot be used"),
    ] {
        let text = result.expect_err("it cannot be used");
        assert!(text.contains(reason), "{text}");
    }
}

#[test]
fn a_drain_in_the_middle_of_a_handshake_ends_it() {
    let authority = Authority::new();
    for hello in [false, true] {
        let mut wire = upgraded(TlsPolicy::Required(identity(&authority, None)));
        if hello {
            let mut out = Vec::new();
            client(&authority, None).write_tls(&mut out).expect("memory takes all");
            wire.say(&out);
        }
        wire.session.drain();
        wire.settle();
        assert!(wire.session.is_finished());
    }
}
