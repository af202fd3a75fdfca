//! Certificates and authorities replaced while connections are open and new ones come.

use super::world::*;
use crate::{
    Anchors, Credentials, Expected, Fingerprint, Identity, Refusal, Revoked, Role, Trust, TrustError,
    peer_identity,
};
use rustls::pki_types::CertificateDer;
use std::sync::Arc;

fn credentials_of(authority: &crate::Authority, id: u128) -> Credentials {
    credentials(authority, host(CLUSTER, id))
}

#[test]
fn the_authority_is_changed_while_hosts_run_and_connections_go_on() {
    let (old, new) = (authority(CLUSTER), authority(CLUSTER));
    let (server, client) = (member(&old, host(CLUSTER, 1)), member(&old, host(CLUSTER, 2)));
    let to_server = Arc::new(client_of(&client, Expected::AnyHost));
    let at_server = Arc::new(server_of(&server, Expected::AnyHost));
    let mut first = shake_shared(&to_server, &at_server).expect_good();

    // First both are believed, then each takes its new certificate at its own time, and at last the old one is dropped.
    let both = Anchors::of(&old).expect("one").with(new.certificate().clone()).expect("two");
    server.replace_anchors(both.clone()).expect("the old one is among them");
    client.replace_anchors(both.clone()).expect("the old one is among them");
    shake_shared(&to_server, &at_server).expect_good();
    server.replace_credentials(credentials_of(&new, 1)).expect("it is believed");
    shake_shared(&to_server, &at_server).expect_good();

    let last = both.without(old.fingerprint()).expect("one");
    server.replace_anchors(last.clone()).expect("its certificate is of it");
    let refusal = shake_shared(&to_server, &at_server).refused_by_server();
    assert!(matches!(refusal, Refusal::UnknownAuthority { .. }), "{refusal}");
    tells(&refusal, &["if the authority was changed, get its new certificate"]);

    client.replace_credentials(credentials_of(&new, 2)).expect("it is believed");
    shake_shared(&to_server, &at_server).expect_good();
    client.replace_anchors(last).expect("its certificate is of it");
    shake_shared(&to_server, &at_server).expect_good();
    first.talk();
}

/// Adding an authority locked all people out within seconds: hosts showed certificates of the new authority, which nobody but hosts
/// believed yet. People's own certificates were good all the time.
#[test]
fn people_who_know_the_former_authority_alone_are_served_until_it_is_dropped() {
    let (old, new) = (authority(CLUSTER), authority(CLUSTER));
    let server = member(&old, host(CLUSTER, 1));
    let (ann, bob) = (member(&old, person(CLUSTER, Role::Admin)), member(&new, person(CLUSTER, Role::Admin)));
    let both = Anchors::of(&old).expect("one").with(new.certificate().clone()).expect("two");
    let at_server = Arc::new(server_of(&server, Expected::Member));
    let to_server = |who: &Arc<Trust>| Arc::new(client_of(who, Expected::AnyHost));
    shake_shared(&to_server(&ann), &at_server).expect_good();
    server.replace_anchors(both.clone()).expect("the old one is among them");
    server.replace_credentials(credentials_of(&new, 1)).expect("it is believed");
    assert_eq!(server.signer(), new.fingerprint());
    shake_shared(&to_server(&ann), &at_server).expect_good();
    // Who came later got both; and who joins with a token of the new one asks for it by name.
    bob.replace_anchors(both.clone()).expect("the new one is among them");
    shake_shared(&to_server(&bob), &at_server).expect_good();
    // The same after a start.
    let (former, current) = (server.former().expect("it is kept"), credentials_of(&new, 1));
    let again = Trust::new(current, both.clone()).expect("they are believed");
    assert!(again.restore_former(former.clone()));
    let at_again = Arc::new(server_of(&again, Expected::Member));
    shake_shared(&to_server(&ann), &at_again).expect_good();
    // Hosts see what is to stay.
    let peer = member(&new, host(CLUSTER, 2));
    let at_peers = Arc::new(server_of(&server, Expected::AnyHost));
    shake_shared(&to_server(&peer), &at_peers).expect_good();
    let last = both.without(old.fingerprint()).expect("one");
    server.replace_anchors(last.clone()).expect("its certificate is of it");
    assert!(server.former().is_none());
    let refusal = shake_shared(&to_server(&ann), &at_server).refused_by_client();
    assert!(matches!(refusal, Refusal::UnknownAuthority { .. }), "{refusal}");
    again.replace_anchors(last).expect("its certificate is of it");
    assert!(!again.restore_former(former), "nobody would believe it");
}

#[test]
fn a_client_whose_anchors_were_replaced_refuses_the_server() {
    let (old, new) = (authority(CLUSTER), authority(CLUSTER));
    let (server, client) = (member(&old, host(CLUSTER, 1)), member(&old, host(CLUSTER, 2)));
    let to_server = Arc::new(client_of(&client, Expected::AnyHost));
    let at_server = Arc::new(server_of(&server, Expected::AnyHost));
    shake_shared(&to_server, &at_server).expect_good();
    let both = Anchors::of(&old).expect("one").with(new.certificate().clone()).expect("two");
    client.replace_anchors(both.clone()).expect("the old one is among them");
    client.replace_credentials(credentials_of(&new, 2)).expect("it is believed");
    client.replace_anchors(Anchors::of(&new).expect("one")).expect("its certificate is of it");
    let refusal = shake_shared(&to_server, &at_server).refused_by_client();
    assert!(matches!(refusal, Refusal::UnknownAuthority { .. }), "{refusal}");
}

#[test]
fn a_renewed_certificate_is_shown_from_the_next_connection_on() {
    let authority = authority(CLUSTER);
    let (server, client) = (member(&authority, host(CLUSTER, 1)), member(&authority, host(CLUSTER, 2)));
    let to_server = Arc::new(client_of(&client, Expected::AnyHost));
    let at_server = Arc::new(server_of(&server, Expected::AnyHost));
    let seen = || {
        let shaken = shake_shared(&to_server, &at_server).expect_good();
        let of =
            |shown: Option<&[CertificateDer<'static>]>| Fingerprint::of(&shown.expect("certificates")[0]);
        (of(shaken.client.peer_certificates()), of(shaken.server.peer_certificates()))
    };
    assert_eq!(seen(), (server.certificate().fingerprint(), client.certificate().fingerprint()));
    let (next_1, next_2) = (credentials_of(&authority, 1), credentials_of(&authority, 2));
    let expected = (next_1.certificate().fingerprint(), next_2.certificate().fingerprint());
    assert_ne!(seen(), expected);
    server.replace_credentials(next_1).expect("the same host");
    client.replace_credentials(next_2).expect("the same host");
    assert_eq!(seen(), expected);
}

#[test]
fn who_was_taken_out_is_out_at_the_next_connection_on_either_side_and_in_with_a_new_certificate() {
    let authority = authority(CLUSTER);
    let (server, client) = (member(&authority, host(CLUSTER, 1)), member(&authority, host(CLUSTER, 2)));
    let ann = member(&authority, person(CLUSTER, Role::Admin));
    let to_server = Arc::new(client_of(&client, Expected::AnyHost));
    let by_ann = Arc::new(client_of(&ann, Expected::AnyHost));
    let at_server = Arc::new(server_of(&server, Expected::Member));
    let since = |trust: &Trust| trust.certificate().issued_ns();
    let name = ann.identity().name().clone();
    // Others are not meant, and neither are certificates that were made later.
    let mut revoked = Revoked::default();
    revoked.hosts.insert(base::HostId(3), u64::MAX);
    revoked.hosts.insert(base::HostId(2), since(&client) - 1);
    revoked.people.insert("bob".parse().expect("a name"), u64::MAX);
    server.replace_revoked(revoked.clone());
    shake_shared(&to_server, &at_server).expect_good();
    shake_shared(&by_ann, &at_server).expect_good();
    revoked.hosts.insert(base::HostId(2), since(&client));
    revoked.people.insert(name, since(&ann));
    server.replace_revoked(revoked);
    for config in [&to_server, &by_ann] {
        let refusal = shake_shared(config, &at_server).refused_by_server();
        assert!(matches!(refusal, Refusal::Revoked { .. }), "{refusal}");
        tells(&refusal, &["was taken out", "new token"]);
    }
    let later = now() + std::time::Duration::from_secs(1);
    client.replace_credentials(issued(&authority, &grant(host(CLUSTER, 2)), later)).expect("the same host");
    shake_shared(&to_server, &at_server).expect_good();
    // A client looks too.
    let mut revoked = Revoked::default();
    revoked.hosts.insert(base::HostId(1), since(&server));
    client.replace_revoked(revoked);
    let refusal = shake_shared(&to_server, &at_server).refused_by_client();
    assert!(matches!(refusal, Refusal::Revoked { .. }), "{refusal}");
}

#[test]
fn a_process_stays_who_it_is() {
    let (authority, theirs) = (authority(CLUSTER), authority(OTHER_CLUSTER));
    let trust = member(&authority, host(CLUSTER, 1));
    let before = trust.certificate();
    let others = [
        credentials_of(&authority, 2),
        credentials(&authority, person(CLUSTER, Role::Admin)),
        credentials(&theirs, host(OTHER_CLUSTER, 1)),
    ];
    for other in others {
        let error = trust.replace_credentials(other).expect_err("somebody else");
        assert!(matches!(error, TrustError::SomebodyElse { .. }), "{error}");
        assert!(error.to_string().contains("this process is host `h1`"), "{error}");
    }
    let error = trust.replace_anchors(Anchors::of(&theirs).expect("one")).expect_err("another cluster");
    assert!(matches!(error, TrustError::OtherCluster { .. }), "{error}");
    assert_eq!((trust.certificate(), trust.anchors().cluster()), (before, CLUSTER));

    // A person's role may change.
    let ann = member(&authority, person(CLUSTER, Role::Viewer));
    ann.replace_credentials(credentials(&authority, person(CLUSTER, Role::Admin))).expect("the same person");
    let bob = Identity::Person { cluster: CLUSTER, name: "bob".parse().expect("a name"), role: Role::Admin };
    let error = ann.replace_credentials(credentials(&authority, bob)).expect_err("somebody else").to_string();
    assert!(error.contains("the certificate is of admin `bob`"), "{error}");
    let shaken = shake(client_of(&ann, Expected::AnyHost), server_of(&trust, Expected::Member)).expect_good();
    let seen = peer_identity(shaken.server.peer_certificates()).expect("an identity");
    assert_eq!(seen, Some(person(CLUSTER, Role::Admin)));
}

#[test]
fn nobody_shows_what_no_anchor_of_their_own_signed() {
    let (old, new) = (authority(CLUSTER), authority(CLUSTER));
    let trust = member(&old, host(CLUSTER, 1));
    let not_signed = |result: Result<(), TrustError>| {
        let error = result.expect_err("not signed");
        assert!(matches!(error, TrustError::NotSigned(_)), "{error}");
        assert!(error.to_string().contains("believe the new authority first"), "{error}");
    };
    not_signed(trust.replace_credentials(credentials_of(&new, 1)));
    not_signed(trust.replace_anchors(Anchors::of(&new).expect("one")));
    not_signed(Trust::new(credentials_of(&new, 1), Anchors::of(&old).expect("one")).map(|_| ()));
    assert_eq!(trust.anchors().to_pem(), old.certificate_pem());
}
