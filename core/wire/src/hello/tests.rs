//! Two nodes meet, agree, and disagree; and the bytes that are never to change.

use super::*;

const CLUSTER: ClusterId = ClusterId(0xc1);

fn node(host: u128, shard: u8) -> NodeId {
    NodeId { host: HostId(host), shard }
}

fn identity(host: u128) -> Identity {
    Identity {
        versions: VersionRange::OURS,
        cluster: CLUSTER,
        node: node(host, 1),
        incarnation: 70 + host as u64,
    }
}

fn hello() -> Hello {
    Hello { from: identity(1), receiver: node(2, 1), role: Role::NODE, session: 9 }
}

/// What each side makes of the hello, by way of bytes.
fn meet(
    hello: Hello,
    own: Identity,
    members: &[u128],
) -> (Result<Accepted, HelloRefusal>, Result<Accepted, HelloError>) {
    let received = Hello::decode(&hello.encode()).unwrap();
    assert_eq!(received, hello);
    let accepted = received.accept(&own, |host| members.contains(&host.0));
    (accepted, hello.conclude(&received.answer(&own, &accepted)))
}

#[test]
fn both_sides_agree_on_version_session_and_each_other() {
    let (acceptor, initiator) = meet(hello(), identity(2), &[1, 2]);
    let version = Version::LATEST;
    assert_eq!(acceptor, Ok(Accepted { version, peer: node(1, 1), peer_incarnation: 71, session: 9 }));
    assert_eq!(initiator, Ok(Accepted { version, peer: node(2, 1), peer_incarnation: 72, session: 9 }));
}

#[test]
fn the_highest_version_that_both_speak_is_chosen() {
    let versions = VersionRange { lowest: 1, highest: 900 };
    let newer = Hello { from: Identity { versions, ..identity(1) }, ..hello() };
    let (acceptor, initiator) = meet(newer, identity(2), &[1]);
    assert_eq!(acceptor.map(|accepted| accepted.version), Ok(Version::LATEST));
    assert_eq!(initiator.map(|accepted| accepted.version), Ok(Version::LATEST));
}

#[test]
fn a_refusal_says_what_was_found_and_what_to_do() {
    let check = |hello: Hello, own: Identity, members: &[u128], expected: HelloRefusal, text: &str| {
        let (acceptor, initiator) = meet(hello, own, members);
        assert_eq!(acceptor, Err(expected));
        assert_eq!(initiator, Err(HelloError::Refused(expected)));
        assert_eq!(expected.to_string(), text);
    };
    let versions = VersionRange { lowest: 40, highest: 42 };
    check(
        Hello { from: Identity { versions, ..identity(1) }, ..hello() },
        identity(2),
        &[1],
        HelloRefusal::NoCommonVersion { initiator: versions, acceptor: VersionRange::OURS },
        "the node that connects speaks versions 40 to 42, the one that it reached versions 1 to 3: upgrade the older one, by way \
         of a release that speaks both",
    );
    check(
        hello(),
        Identity { cluster: ClusterId(0xc2), ..identity(2) },
        &[1],
        HelloRefusal::OtherCluster { initiator: CLUSTER, acceptor: ClusterId(0xc2) },
        "the node that connects belongs to cluster 000000000000000000000000000000c1, the one that it reached to cluster \
         000000000000000000000000000000c2: correct the address",
    );
    check(
        hello(),
        Identity { node: node(2, 0), ..identity(2) },
        &[1],
        HelloRefusal::NotThisNode { wanted: node(2, 1), found: node(2, 0) },
        "node 00000000000000000000000000000002/1 is wanted, and node 00000000000000000000000000000002/0 stands at its \
         address: correct the addresses of their hosts",
    );
    check(
        hello(),
        identity(2),
        &[2],
        HelloRefusal::NotMember { host: HostId(1) },
        "host 00000000000000000000000000000001 is not a member of the cluster, or not any more: let it join",
    );
    check(
        Hello { role: Role(7), ..hello() },
        identity(2),
        &[1],
        HelloRefusal::UnknownRole { role: Role(7) },
        "the node that connects has the role 7, which the one that it reached does not know: upgrade that one",
    );
}

#[test]
fn any_flipped_bit_is_refused() {
    let hello = hello();
    let own = identity(2);
    let bytes = hello.encode();
    let answer = hello.answer(&own, &hello.accept(&own, |_| true));
    for bit in 0..HELLO_SIZE * 8 {
        let flipped = |mut bytes: [u8; HELLO_SIZE]| {
            bytes[bit / 8] ^= 1 << (bit % 8);
            bytes
        };
        assert!(Hello::decode(&flipped(bytes)).is_err(), "bit {bit} of a hello");
        assert!(hello.conclude(&flipped(answer)).is_err(), "bit {bit} of an answer");
    }
}

#[test]
fn what_is_no_hello_is_refused() {
    let bytes = hello().encode();
    let check = |at: usize, value: u8, expected: &str| {
        let mut bytes = bytes;
        bytes[at] = value;
        if at > SEAL_AT {
            checksum::seal(&mut bytes, SEAL_AT);
        }
        assert_eq!(Hello::decode(&bytes).unwrap_err().to_string(), expected);
    };
    let text = "what came begins with 0x47525948454c4c4f instead of a hello or its answer: something else than a node speaks there";
    check(0, b'G', text);
    check(8, bytes[8] ^ 1, "a hello or its answer came damaged: its checksum does not match");
    check(12, 0, "a hello or its answer makes no sense: its range of versions is none");
    check(12, 4, "a hello or its answer makes no sense: its range of versions is none");
    for reserved in (67..72).chain(88..128) {
        check(reserved, 1, "a hello or its answer makes no sense: reserved bytes are set");
    }
}

#[test]
fn an_answer_that_contradicts_its_hello_is_refused() {
    let hello = hello();
    let own = identity(2);
    let good = hello.answer(&own, &hello.accept(&own, |_| true));
    let check = |at: usize, value: u8, expected: &str| {
        let mut bytes = good;
        bytes[at] = value;
        checksum::seal(&mut bytes, SEAL_AT);
        let error = hello.conclude(&bytes).unwrap_err().to_string();
        assert_eq!(error, format!("a hello or its answer makes no sense: {expected}"));
    };
    check(16, 0xc2, "one accepts that was not meant");
    check(32, 3, "one accepts that was not meant");
    check(48, 0, "one accepts that was not meant");
    check(49, 0, "it is refused for no known reason");
    check(49, 2, "a refusal chooses a version, or an acceptance none");
    check(49, 7, "it is refused for no known reason");
    check(50, 0, "a refusal chooses a version, or an acceptance none");
    check(50, 1, "it does not choose the highest version that both speak");
    check(52, 1, "reserved bytes are set");
    check(64, 8, "it answers another hello");
    check(127, 1, "reserved bytes are set");
}

/// Frozen: these bytes are never to change.
#[test]
fn the_bytes_of_version_1_are_understood() {
    let hello = Hello {
        from: Identity {
            versions: VersionRange { lowest: 0x0102, highest: 0x0304 },
            cluster: ClusterId(0x1112_1314_1516_1718_191a_1b1c_1d1e_1f20),
            node: node(0x2122_2324_2526_2728_292a_2b2c_2d2e_2f30, 0x31),
            incarnation: 0x4142_4344_4546_4748,
        },
        receiver: node(0x5152_5354_5556_5758_595a_5b5c_5d5e_5f60, 0x61),
        role: Role::NODE,
        session: 0x7172_7374_7576_7778,
    };
    let versions = VersionRange { lowest: 1, highest: 1 };
    let own = Identity { node: hello.receiver, versions, incarnation: 0x81, ..hello.from };
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(hex(&hello.encode()), include_str!("fixtures/hello.hex").trim());
    let refusal = hello.accept(&own, |_| true);
    assert!(matches!(refusal, Err(HelloRefusal::NoCommonVersion { .. })));
    assert_eq!(hex(&hello.answer(&own, &refusal)), include_str!("fixtures/refusal.hex").trim());
    let hello = Hello { from: Identity { versions, ..hello.from }, ..hello };
    assert_eq!(
        hex(&hello.answer(&own, &hello.accept(&own, |_| true))),
        include_str!("fixtures/acceptance.hex").trim()
    );
}
