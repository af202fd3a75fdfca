//! Handshakes of those who have nothing yet but a join token.

use super::world::*;
use crate::{
    Clients, Expected, Fingerprint, Refusal, Role, authority_shown, joining_client_config, server_config,
};
use rcgen::ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};
use rustls::{ClientConfig, ServerConfig};

fn joining(print: Fingerprint) -> ClientConfig {
    joining_client_config(print, clock(now())).expect("a client")
}

fn open_server(authority: &crate::Authority) -> ServerConfig {
    let trust = member(authority, host(CLUSTER, 1));
    server_config(&trust, Clients::Optional(Expected::Member), clock(now())).expect("a host")
}

#[test]
fn who_joins_knows_the_cluster_by_the_fingerprint_and_learns_its_authority() {
    let ours = authority(CLUSTER);
    let mut shaken = shake(joining(ours.fingerprint()), open_server(&ours)).expect_good();
    shaken.talk();
    let shown = shaken.client.peer_certificates();
    let anchors = authority_shown(ours.fingerprint(), shown).expect("the authority");
    assert_eq!((anchors.cluster(), anchors.to_pem()), (CLUSTER, ours.certificate_pem()));
    let other = Fingerprint::of(b"another");
    assert!(matches!(authority_shown(other, shown), Err(Refusal::OtherAuthority { .. })));
    assert!(matches!(authority_shown(other, None), Err(Refusal::OtherAuthority { .. })));
}

#[test]
fn another_authority_than_that_of_the_token_is_refused() {
    let (ours, theirs) = (authority(CLUSTER), authority(CLUSTER));
    let refusal = shake(joining(ours.fingerprint()), open_server(&theirs)).refused_by_client();
    let print = ours.fingerprint().to_string();
    tells(&refusal, &["no authority with the fingerprint", &print, "have a new token made"]);
}

#[test]
fn to_show_the_authority_is_not_enough_without_its_signature() {
    let (ours, theirs) = (authority(CLUSTER), authority(CLUSTER));
    let mut rogue = Rogue::of(&credentials(&theirs, host(CLUSTER, 1)));
    rogue.chain.push(ours.certificate().der.clone());
    let refusal = shake(joining(ours.fingerprint()), rogue.server()).refused_by_client();
    assert!(matches!(refusal, Refusal::UnknownAuthority { .. }), "{refusal}");
}

#[test]
fn only_a_host_of_the_authoritys_cluster_is_joined() {
    let ours = authority(CLUSTER);
    let uses = [ClientAuth, ServerAuth];
    for (identity, part) in [
        (person(CLUSTER, Role::Admin), "a host is expected"),
        (host(OTHER_CLUSTER, 1), "cluster 000000000000000000000000000000c1 is expected"),
    ] {
        let mut rogue = Rogue::signed(&ours, &[identity.uri()], &uses);
        rogue.chain.push(ours.certificate().der.clone());
        tells(&shake(joining(ours.fingerprint()), rogue.server()).refused_by_client(), &[part]);
    }
}

#[test]
fn a_fingerprint_of_what_is_no_authority_joins_nothing() {
    let ours = authority(CLUSTER);
    let credentials = credentials(&ours, host(CLUSTER, 1));
    let mut rogue = Rogue::of(&credentials);
    rogue.chain.push(credentials.certificate().der.clone());
    let print = credentials.certificate().fingerprint();
    let refusal = shake(joining(print), rogue.server()).refused_by_client();
    assert_eq!(refusal, Refusal::OtherAuthority { expected: print });
}
