//! Who gets in and who does not: real handshakes in memory. Each refusal is tried on both sides, because each side verifies for
//! itself.

use super::world::*;
use crate::{
    Anchors, Authority, Clients, Expected, Grant, Identity, KeyPair, Refusal, Role, TlsError, client_config,
    peer_identity, server_config,
};
use base::HostId;
use rcgen::ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};
use rustls::version::{TLS12, TLS13};
use rustls::{AlertDescription, Error, HandshakeKind, ProtocolVersion};
use std::time::Duration;

const OUR_ID: &str = "cluster 000000000000000000000000000000c1";

/// What a server of host 1 that expects somebody makes of a client.
fn server_sees(authority: &Authority, expected: Expected, client: &Rogue) -> Shaken {
    let server = server_of(&member(authority, host(CLUSTER, 1)), expected);
    shake(client.client(&TLS13), server)
}

/// What a client, host 2, that expects somebody makes of a server.
fn client_sees(authority: &Authority, expected: Expected, server: &Rogue) -> Shaken {
    shake(client_of(&member(authority, host(CLUSTER, 2)), expected), server.server())
}

#[test]
fn members_of_one_cluster_meet_and_know_each_other() {
    let authority = authority(CLUSTER);
    let server = member(&authority, host(CLUSTER, 1));
    let host_2 = member(&authority, host(CLUSTER, 2));
    let ann = member(&authority, person(CLUSTER, Role::Viewer));
    let cases = [
        (&host_2, Expected::Host(HostId(1)), Expected::Host(HostId(2))),
        (&host_2, Expected::AnyHost, Expected::AnyHost),
        (&ann, Expected::Member, Expected::Member),
    ];
    for (client, of_server, of_client) in cases {
        let shaken = shake(client_of(client, of_server), server_of(&server, of_client));
        let mut shaken = shaken.expect_good();
        shaken.talk();
        assert_eq!(shaken.client.protocol_version(), Some(ProtocolVersion::TLSv1_3));
        let seen = peer_identity(shaken.server.peer_certificates()).expect("an identity");
        assert_eq!(seen, Some(client.identity()));
        let seen = peer_identity(shaken.client.peer_certificates()).expect("an identity");
        assert_eq!(seen, Some(server.identity()));
    }
}

#[test]
fn a_client_without_a_certificate_gets_in_only_where_it_is_optional() {
    let authority = authority(CLUSTER);
    let trust = member(&authority, host(CLUSTER, 1));
    let none = || crate::joining_client_config(authority.fingerprint(), clock(now())).expect("a client");
    let shaken = shake(none(), server_of(&trust, Expected::Member));
    let refusal = shaken.refused_by_server();
    assert_eq!(refusal, Refusal::NoCertificate);
    tells(&refusal, &["no certificate was shown", "join token"]);
    let told = Refusal::of(shaken.client_error.as_ref().expect("an alert")).expect("about the certificate");
    tells(&told, &["the other side refused", "CertificateRequired", "none was shown"]);

    let server =
        || server_config(&trust, Clients::Optional(Expected::AnyHost), clock(now())).expect("a host");
    let mut shaken = shake(none(), server()).expect_good();
    shaken.talk();
    assert_eq!(peer_identity(shaken.server.peer_certificates()), Ok(None));
    // What is shown counts all the same.
    let ann = member(&authority, person(CLUSTER, Role::Admin));
    let refusal = shake(client_of(&ann, Expected::AnyHost), server()).refused_by_server();
    assert!(matches!(refusal, Refusal::NotAHost { .. }), "{refusal}");
    let host_2 = member(&authority, host(CLUSTER, 2));
    shake(client_of(&host_2, Expected::AnyHost), server()).expect_good();
}

#[test]
fn a_certificate_of_another_authority_is_refused_whatever_it_says() {
    let (ours, theirs) = (authority(CLUSTER), authority(CLUSTER));
    let rogue = Rogue::of(&credentials(&theirs, host(CLUSTER, 1)));
    let parts =
        ["says it is host `h1`", "no authority signed it that is known here", OUR_ID, "join this cluster"];
    tells(&server_sees(&ours, Expected::Member, &rogue).refused_by_server(), &parts);
    tells(&client_sees(&ours, Expected::AnyHost, &rogue).refused_by_client(), &parts);
}

/// A certificate of host 1 with the name of one signer and the signature of a key.
fn signed_in_the_name_of(signer: &crate::Certificate, with: &KeyPair) -> Rogue {
    let key = KeyPair::generate().expect("a key");
    let mut asked = crate::authority::params(now(), DAY).expect("a time");
    let uri = host(CLUSTER, 1).uri();
    asked.subject_alt_names = vec![rcgen::SanType::URI(uri.as_str().try_into().expect("ASCII"))];
    asked.extended_key_usages = vec![ClientAuth, ServerAuth];
    let issuer = rcgen::Issuer::from_ca_cert_der(&signer.der, &*with.inner).expect("an issuer");
    let made = asked.signed_by(&*key.inner, &issuer).expect("a certificate");
    Rogue { chain: vec![made.der().clone(), signer.der.clone()], key }
}

#[test]
fn a_signer_with_the_name_of_our_authority_and_another_key_is_refused() {
    let ours = authority(CLUSTER);
    let rogue = signed_in_the_name_of(ours.certificate(), &KeyPair::generate().expect("a key"));
    let refusal = server_sees(&ours, Expected::Member, &rogue).refused_by_server();
    assert!(matches!(refusal, Refusal::UnknownAuthority { .. }), "{refusal}");
    let refusal = client_sees(&ours, Expected::AnyHost, &rogue).refused_by_client();
    assert!(matches!(refusal, Refusal::UnknownAuthority { .. }), "{refusal}");
}

#[test]
fn what_a_member_signed_is_refused() {
    let ours = authority(CLUSTER);
    let signer = credentials(&ours, host(CLUSTER, 3));
    let rogue = signed_in_the_name_of(signer.certificate(), signer.key());
    let refusal = server_sees(&ours, Expected::Member, &rogue).refused_by_server();
    assert!(matches!(refusal, Refusal::UnknownAuthority { .. }), "{refusal}");
    let refusal = client_sees(&ours, Expected::AnyHost, &rogue).refused_by_client();
    assert!(matches!(refusal, Refusal::UnknownAuthority { .. }), "{refusal}");
}

#[test]
fn who_shows_a_genuine_certificate_and_has_not_its_key_is_refused() {
    let ours = authority(CLUSTER);
    let mut rogue = Rogue::of(&credentials(&ours, host(CLUSTER, 1)));
    rogue.key = KeyPair::generate().expect("a key");
    for refusal in [
        server_sees(&ours, Expected::Member, &rogue).refused_by_server(),
        client_sees(&ours, Expected::AnyHost, &rogue).refused_by_client(),
    ] {
        tells(&refusal, &["cannot be used", "BadSignature"]);
    }
}

#[test]
fn an_expired_certificate_is_refused() {
    let ours = authority_since(CLUSTER, now() - DAY * 2);
    let short = Grant { lifetime: DAY, ..grant(host(CLUSTER, 1)) };
    let rogue = Rogue::of(&issued(&ours, &short, now() - DAY - Duration::from_secs(1)));
    let parts =
        ["has expired", "valid to 2026-11-22 10:41:59 UTC", "is 2026-11-22 10:42:00 UTC now", "renew it"];
    let shaken = server_sees(&ours, Expected::Member, &rogue);
    tells(&shaken.refused_by_server(), &parts);
    let told = Refusal::of(shaken.client_error.as_ref().expect("an alert")).expect("about the certificate");
    tells(&told, &["CertificateExpired", "compare the clocks"]);
    tells(&client_sees(&ours, Expected::AnyHost, &rogue).refused_by_client(), &parts);

    let last_second = Rogue::of(&issued(&ours, &short, now() - DAY));
    server_sees(&ours, Expected::Member, &last_second).expect_good();
}

#[test]
fn a_certificate_that_is_not_valid_yet_is_refused() {
    let ours = authority(CLUSTER);
    let ahead = crate::CLOCK_TOLERANCE + Duration::from_secs(1);
    let rogue = Rogue::of(&issued(&ours, &grant(host(CLUSTER, 1)), now() + ahead));
    let parts = ["is not valid before 2026-11-22 10:42:01 UTC", "is 2026-11-22 10:42:00 UTC now", "clocks"];
    tells(&server_sees(&ours, Expected::Member, &rogue).refused_by_server(), &parts);
    tells(&client_sees(&ours, Expected::AnyHost, &rogue).refused_by_client(), &parts);

    let tolerated = Rogue::of(&issued(&ours, &grant(host(CLUSTER, 1)), now() + crate::CLOCK_TOLERANCE));
    server_sees(&ours, Expected::Member, &tolerated).expect_good();
}

#[test]
fn an_authority_whose_own_time_is_over_is_not_believed() {
    let ours = authority(CLUSTER);
    let lifetime = crate::AUTHORITY_LIFETIME + DAY * 30;
    let uris = [host(CLUSTER, 1).uri()];
    let rogue = Rogue::signed_for(&ours, &uris, &[ClientAuth, ServerAuth], lifetime);
    let late = now() + crate::AUTHORITY_LIFETIME + DAY;
    let trust = member(&ours, host(CLUSTER, 2));
    let server = server_config(&trust, Clients::Demanded(Expected::Member), clock(late)).expect("a host");
    let parts =
        ["host `h1`", "signed by an authority whose own certificate is valid from", "change the authority"];
    tells(&shake(rogue.client(&TLS13), server).refused_by_server(), &parts);
    let client = client_config(&trust, Expected::AnyHost, clock(late)).expect("a client");
    tells(&shake(client, rogue.server()).refused_by_client(), &parts);
}

#[test]
fn a_member_of_another_cluster_is_refused_even_if_our_authority_signed_it() {
    let ours = authority(CLUSTER);
    let rogue = Rogue::signed(&ours, &[host(OTHER_CLUSTER, 1).uri()], &[ClientAuth, ServerAuth]);
    let parts = [
        "host `h1`",
        "0000c2 was found, and cluster 000000000000000000000000000000c1 is expected",
        "join this one",
    ];
    tells(&server_sees(&ours, Expected::Member, &rogue).refused_by_server(), &parts);
    tells(&client_sees(&ours, Expected::AnyHost, &rogue).refused_by_client(), &parts);
}

#[test]
fn a_host_that_is_another_one_than_expected_is_refused() {
    let ours = authority(CLUSTER);
    let rogue = Rogue::of(&credentials(&ours, host(CLUSTER, 3)));
    let expected = Expected::Host(HostId(4));
    let parts = [
        "host `h3` (00000000000000000000000000000003)",
        "host 00000000000000000000000000000004 is expected",
        "correct the addresses",
    ];
    tells(&server_sees(&ours, expected, &rogue).refused_by_server(), &parts);
    tells(&client_sees(&ours, expected, &rogue).refused_by_client(), &parts);
}

#[test]
fn a_person_is_no_host() {
    let ours = authority(CLUSTER);
    let admin = person(CLUSTER, Role::Admin);
    let genuine = Rogue::of(&credentials(&ours, admin.clone()));
    // With a use that no person is given.
    let able = Rogue::signed(&ours, &[admin.uri()], &[ClientAuth, ServerAuth]);
    let parts = ["admin `ann`", "and a host is expected"];
    for rogue in [&genuine, &able] {
        for expected in [Expected::AnyHost, Expected::Host(HostId(1))] {
            tells(&server_sees(&ours, expected, rogue).refused_by_server(), &parts);
            tells(&client_sees(&ours, expected, rogue).refused_by_client(), &parts);
        }
    }
    server_sees(&ours, Expected::Member, &genuine).expect_good();
    let trust = member(&ours, admin.clone());
    let refused = server_config(&trust, Clients::Demanded(Expected::Member), clock(now()));
    assert_eq!(refused.map(|_| ()), Err(TlsError::NotAHost(admin)));
}

#[test]
fn a_certificate_is_used_only_as_it_was_issued() {
    let ours = authority(CLUSTER);
    let uris = [host(CLUSTER, 1).uri()];
    let server_only = Rogue::signed(&ours, &uris, &[ServerAuth]);
    let client_only = Rogue::signed(&ours, &uris, &[ClientAuth]);
    let parts = ["host `h1`", "may not be used on this side"];
    tells(&server_sees(&ours, Expected::Member, &server_only).refused_by_server(), &parts);
    tells(&client_sees(&ours, Expected::AnyHost, &client_only).refused_by_client(), &parts);
}

#[test]
fn a_certificate_names_exactly_one_identity() {
    let ours = authority(CLUSTER);
    let uses = [ClientAuth, ServerAuth];
    let (one, two) = (host(CLUSTER, 1).uri(), host(CLUSTER, 2).uri());
    let cases = [
        (vec![], "names no host or person"),
        (vec!["https://example.org/".to_owned()], "names no host or person"),
        (vec![one.clone(), two], "names 2 identities"),
        (vec![one.clone(), one.replace("drystone:", "DRYSTONE:")], "names 2 identities"),
        (
            vec![one.replace("hosts", "guests")],
            "guests/00000000000000000000000000000001?name=h1` is not an identity",
        ),
        (vec!["drystone://000000000000000000000000000000c1/authority".to_owned()], "may not sign others"),
    ];
    for (uris, part) in cases {
        let rogue = Rogue::signed(&ours, &uris, &uses);
        tells(&server_sees(&ours, Expected::Member, &rogue).refused_by_server(), &[part]);
        tells(&client_sees(&ours, Expected::AnyHost, &rogue).refused_by_client(), &[part]);
    }
}

#[test]
fn the_certificate_of_an_authority_connects_nobody() {
    let ours = authority(CLUSTER);
    let key = KeyPair::from_pem(&ours.key_pem()).expect("its key");
    let rogue = Rogue { chain: vec![ours.certificate().der.clone()], key };
    tells(&server_sees(&ours, Expected::Member, &rogue).refused_by_server(), &["cannot be used"]);
    tells(&client_sees(&ours, Expected::AnyHost, &rogue).refused_by_client(), &["cannot be used"]);
}

#[test]
fn no_version_below_1_3_is_spoken() {
    let ours = authority(CLUSTER);
    let rogue = Rogue::of(&credentials(&ours, host(CLUSTER, 1)));
    let server = server_of(&member(&ours, host(CLUSTER, 2)), Expected::Member);
    let shaken = shake(rogue.client(&TLS12), server);
    assert!(matches!(shaken.server_error, Some(Error::PeerIncompatible(_))), "{:?}", shaken.server_error);
    let alert = Error::AlertReceived(AlertDescription::ProtocolVersion);
    assert_eq!(Refusal::of(&alert), None, "no matter of certificates");
    assert_eq!(shaken.client_error, Some(alert));

    let mut old = rogue.server();
    old = rustls::ServerConfig::builder_with_provider(std::sync::Arc::clone(old.crypto_provider()))
        .with_protocol_versions(&[&TLS12])
        .expect("a version")
        .with_no_client_auth()
        .with_cert_resolver(old.cert_resolver);
    let client = client_of(&member(&ours, host(CLUSTER, 2)), Expected::AnyHost);
    assert!(shake(client, old).client_error.is_some());
}

#[test]
fn sessions_are_never_resumed_for_resuming_verifies_nothing() {
    use std::sync::Arc;
    let ours = authority(CLUSTER);
    let rogue = Rogue::of(&credentials(&ours, host(CLUSTER, 1)));
    let trust = member(&ours, host(CLUSTER, 2));
    let pairs = [
        (Arc::new(rogue.client(&TLS13)), Arc::new(server_of(&trust, Expected::Member))),
        (Arc::new(client_of(&trust, Expected::AnyHost)), Arc::new(rogue.server())),
    ];
    for (client, server) in pairs {
        for _ in 0..3 {
            let mut shaken = shake_shared(&client, &server).expect_good();
            shaken.talk();
            assert_eq!(shaken.client.handshake_kind(), Some(HandshakeKind::Full));
        }
    }
    // The rogues would: else this test tells nothing.
    let (client, server) = (Arc::new(rogue.client(&TLS13)), Arc::new(rogue.server()));
    shake_shared(&client, &server).expect_good().talk();
    let resumed = shake_shared(&client, &server).expect_good();
    assert_eq!(resumed.client.handshake_kind(), Some(HandshakeKind::Resumed));
}

#[test]
fn the_name_of_the_server_is_not_sent() {
    let ours = authority(CLUSTER);
    let config = client_of(&member(&ours, host(CLUSTER, 1)), Expected::AnyHost);
    assert!(!config.enable_sni);
}

#[test]
fn authorities_of_another_cluster_are_never_among_the_anchors() {
    let (ours, theirs) = (authority(CLUSTER), authority(OTHER_CLUSTER));
    let error =
        Anchors::of(&ours).expect("one").with(theirs.certificate().clone()).expect_err("another cluster");
    assert!(error.to_string().contains("each cluster has its own"), "{error}");
    let holder: Identity = host(CLUSTER, 1);
    let certificate = credentials(&ours, holder).certificate().clone();
    let error = Anchors::of(&ours).expect("one").with(certificate).expect_err("a host").to_string();
    assert!(error.contains("host `h1`") && error.contains("is not an authority"), "{error}");
}
