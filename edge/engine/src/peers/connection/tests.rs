//! Connections without a socket between them: what one sends the other receives, in pieces of any size, encrypted or not.

use super::*;
use crate::peers::PeerTls;
use base::request::Request as GuestRequest;
use base::{ClusterId, DiskId, HostId, Random, RequestTag};
use std::net::TcpListener;
use std::time::SystemTime;
use trust::{Anchors, Authority, Credentials, Grant, Identity as Who, KeyPair, Trust};
use wire::{Identity, Role, VersionRange};

const CLUSTER: ClusterId = ClusterId(1);

fn authority() -> Authority {
    Authority::create(CLUSTER, &"test".parse().expect("a name"), SystemTime::now()).expect("an authority")
}

fn tls(authority: &Authority, host: u128) -> PeerTls {
    let key = KeyPair::generate().expect("a key");
    let identity = Who::Host { cluster: CLUSTER, host: HostId(host), name: "h".parse().expect("a name") };
    let grant = Grant { identity, addresses: Vec::new(), lifetime: trust::HOST_LIFETIME };
    let request = key.signing_request().expect("a request");
    let issued = authority.issue(&request, &grant, SystemTime::now()).expect("a certificate");
    let credentials = Credentials::new(key, &issued).expect("they fit");
    let trust = Trust::new(credentials, Anchors::of(authority).expect("one")).expect("they fit");
    PeerTls::new(trust, trust::system_clock()).expect("a host's")
}

fn node(host: u128) -> NodeId {
    NodeId { host: HostId(host), shard: 0 }
}

fn identity(host: u128) -> Identity {
    Identity { versions: VersionRange::OURS, cluster: CLUSTER, node: node(host), incarnation: 1 }
}

/// Any descriptor: nothing goes through it here.
fn socket() -> OwnedFd {
    TcpListener::bind("127.0.0.1:0").expect("a socket").into()
}

/// Takes what waits to be sent, a piece of it at a time, as the kernel would.
fn take(from: &mut Connection, limit: usize) -> Vec<u8> {
    from.encrypt();
    let whole: Vec<u8> = match (&mut from.secure, &from.greeting, &mut from.stage) {
        (Some(secure), ..) => {
            let Some(vector) = secure.outgoing() else { return Vec::new() };
            // SAFETY: the bytes stay where they are until `sent`.
            unsafe { std::slice::from_raw_parts(vector.base.cast_const(), vector.len) }.to_vec()
        }
        (None, Some((bytes, sent)), _) => bytes[*sent..].to_vec(),
        (None, None, Stage::Asking { outgoing, .. } | Stage::Answering { outgoing, .. }) => {
            if outgoing.is_empty() {
                return Vec::new();
            }
            outgoing.send().flatten().copied().take(limit).collect()
        }
        (None, None, _) => return Vec::new(),
    };
    let part = whole[..whole.len().min(limit)].to_vec();
    assert!(from.sent(Vectors::new(), &Ok(part.len() as i32)));
    part
}

/// Gives bytes as a receive does, and everything that comes of them to `each`.
fn give(to: &mut Connection, mut bytes: &[u8], each: &mut dyn FnMut(&mut Connection, Received)) {
    while !bytes.is_empty() {
        let part = match &mut to.secure {
            Some(secure) => {
                let space = secure.space().expect("what came before was looked at");
                let part = bytes.len().min(space.len);
                // SAFETY: the space is the connection's own, and nobody else uses it now.
                unsafe { std::slice::from_raw_parts_mut(space.base, part) }.copy_from_slice(&bytes[..part]);
                assert!(to.received(Vectors::new(), &Ok(part as i32)));
                part
            }
            None => to.stage.fill(&mut &*bytes),
        };
        bytes = &bytes[part..];
        loop {
            match to.step().expect("all of it is right") {
                Received::Nothing => break,
                Received::NeedsBuffers => panic!("there are buffers"),
                received => each(to, received),
            }
        }
    }
}

/// A pair that has greeted, or the fault that ended it.
fn greeted(
    initiator: Option<&PeerTls>,
    acceptor: Option<&PeerTls>,
    meant: u128,
) -> Result<(Connection, Connection), Fault> {
    let hello = Hello { from: identity(1), receiver: node(meant), role: Role::NODE, session: 9 };
    let secure = initiator.map(|tls| tls.connect(HostId(meant))).transpose()?;
    let mut first = Connection::connecting(socket(), hello, secure);
    let mut second = Connection::accepted(socket(), acceptor.map(PeerTls::accept).transpose()?);
    first.connected();
    let pool = || Pool::new(64 << 20);
    for _ in 0..10 {
        for is_first in [true, false] {
            let (from, to) = if is_first { (&mut first, &mut second) } else { (&mut second, &mut first) };
            let bytes = take(from, usize::MAX);
            if let (Some(secure), false) = (&mut to.secure, bytes.is_empty()) {
                let space = secure.space().expect("it was looked at");
                // SAFETY: the space is the connection's own, and nobody else uses it now.
                unsafe { std::slice::from_raw_parts_mut(space.base, bytes.len()) }.copy_from_slice(&bytes);
                to.received(Vectors::new(), &Ok(bytes.len() as i32));
            } else {
                to.stage.fill(&mut &*bytes);
            }
            match to.step()? {
                Received::Hello(hello) => {
                    assert!(to.may_be(hello.from.node.host), "it is who it says");
                    let result = hello.accept(&identity(2), |_| true);
                    to.greet(hello.answer(&identity(2), &result));
                    let accepted = result.expect("a good hello");
                    let channel = Channel { side: Side::Acceptor, peer: accepted.peer, session: 9 };
                    to.open(channel, &accepted, pool());
                }
                Received::Accepted(accepted) => {
                    to.open(to.channel.expect("it began"), &accepted, pool());
                    return Ok((first, second));
                }
                _ => {}
            }
        }
    }
    panic!("they do not come to an end")
}

fn write(pool: &Pool, number: u32, len: usize) -> Message<Request> {
    let mut buffer = pool.take(len).expect("buffers");
    buffer.bytes_mut().iter_mut().enumerate().for_each(|(at, byte)| *byte = (at as u32 ^ number) as u8);
    let request = GuestRequest::Write { offset: 0, data: [buffer].into_iter().collect() };
    let body = Request::Guest { disk: DiskId(1), tag: RequestTag(u64::from(number)), request };
    Message { session: 9, sequence: u64::from(number), stamp: 0, token: number, body }
}

fn run(seed: u64, tls: Option<(PeerTls, PeerTls)>) {
    let mut random = Random::new(seed);
    let tls = tls.as_ref();
    let (mut first, mut second) =
        greeted(tls.map(|(one, _)| one), tls.map(|(_, two)| two), 2).expect("they greet");
    let pool = Pool::new(64 << 20);
    let (mut sent, mut seen) = (0_u32, 0_u32);
    while seen < 300 {
        while sent < 300 && random.chance(2, 3) {
            let len = match random.below(3) {
                0 => 512,
                1 => 4096 * (1 + random.below(16) as usize),
                _ => 512 * (1 + random.below(2048) as usize),
            };
            first.ask(&write(&pool, sent, len)).expect("there is room");
            first
                .ask(&Message { session: 9, sequence: 0, stamp: 0, token: 0, body: Request::Heartbeat })
                .expect("there is room");
            sent += 1;
        }
        let bytes = take(&mut first, 1 + random.below(400_000) as usize);
        give(&mut second, &bytes, &mut |_, received| {
            let Received::Request(message) = received else { panic!("only requests come") };
            let Request::Guest { request: GuestRequest::Write { data, .. }, .. } = &message.body else {
                return assert!(matches!(message.body, Request::Heartbeat));
            };
            assert_eq!(message.token, seen, "in order");
            let mut at = 0;
            for buffer in data {
                for byte in buffer.iter() {
                    assert_eq!(*byte, (at ^ seen) as u8, "byte {at} of write {seen}");
                    at += 1;
                }
            }
            seen += 1;
        });
    }
    assert_eq!(seen, 300);
}

#[test]
fn what_is_sent_arrives_in_whatever_pieces_it_comes() {
    for seed in 0..4 {
        run(seed, None);
    }
}

#[test]
fn what_is_sent_encrypted_arrives_in_whatever_pieces_it_comes() {
    let authority = authority();
    for seed in 0..8 {
        run(seed, Some((tls(&authority, 1), tls(&authority, 2))));
    }
}

#[test]
fn who_is_not_meant_or_of_another_authority_does_not_get_through() {
    let (ours, theirs) = (authority(), authority());
    let (one, two, foreign) = (tls(&ours, 1), tls(&ours, 2), tls(&theirs, 2));
    let fault = |result: Result<_, Fault>| {
        result.map(|_: (Connection, Connection)| ()).expect_err("refused").to_string()
    };
    assert!(fault(greeted(Some(&one), Some(&two), 3)).contains("is expected"), "another host answers");
    assert!(
        fault(greeted(Some(&one), Some(&foreign), 2)).contains("no authority signed it"),
        "another authority"
    );
}

#[test]
fn a_host_that_names_itself_another_is_noticed() {
    let authority = authority();
    let (three, two) = (tls(&authority, 3), tls(&authority, 2));
    // The certificate is of host 3, and the hello says host 1.
    let secure = three.connect(HostId(2)).expect("it begins");
    let hello = Hello { from: identity(1), receiver: node(2), role: Role::NODE, session: 9 };
    let mut first = Connection::connecting(socket(), hello, Some(secure));
    let mut second = Connection::accepted(socket(), Some(two.accept().expect("it begins")));
    first.connected();
    let mut seen = None;
    for _ in 0..4 {
        let bytes = take(&mut first, usize::MAX);
        give(&mut second, &bytes, &mut |to, received| {
            let Received::Hello(hello) = received else { panic!("a hello comes first") };
            seen = Some((to.may_be(hello.from.node.host), to.may_be(HostId(3))));
            to.end();
        });
        let bytes = take(&mut second, usize::MAX);
        give(&mut first, &bytes, &mut |_, _| panic!("nothing is answered"));
    }
    assert_eq!(seen, Some((false, true)));
}
