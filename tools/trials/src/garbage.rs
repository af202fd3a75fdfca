//! Bytes that are nearly what a port expects: conversations as its protocol has them, and what becomes of them when they are
//! cut, changed, repeated, made too large, or followed by chance.
//!
//! Pure, and decided by the seed alone, so that what broke a host can be sent again. Written from the texts of the protocols.
//! Must never make what a host should obey: nobody here has a certificate, and no option of NBD changes anything.

use base::Random;

/// The most bytes of one conversation.
const LENGTH_MAX: usize = 1 << 20;
/// Bytes of a hello between hosts, and of the header of a frame (docs/formats/wire.md).
const HELLO_BYTES: usize = 128;
const FRAME_BYTES: usize = 64;

/// What is spoken at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Nothing: bytes by chance, with beginnings of all the others.
    Chance,
    /// The records of a TLS client.
    Tls,
    /// Requests of HTTP/1.1, and the beginning of HTTP/2.
    Http,
    /// NBD: the client's flags, options, requests.
    Nbd,
    /// What hosts say to each other.
    Peers,
}

impl Protocol {
    /// All.
    pub const ALL: [Protocol; 5] =
        [Protocol::Chance, Protocol::Tls, Protocol::Http, Protocol::Nbd, Protocol::Peers];

    /// A conversation as it should be, message by message.
    pub fn conversation(self, random: &mut Random) -> Vec<Vec<u8>> {
        match self {
            Protocol::Chance => vec![by_chance(random, 1 << 16)],
            Protocol::Tls => tls(random),
            Protocol::Http => (0..1 + random.below(3)).map(|_| http(random)).collect(),
            Protocol::Nbd => nbd(random),
            Protocol::Peers => peers(random),
        }
    }

    /// A conversation that is spoilt, message by message.
    pub fn garbage(self, random: &mut Random) -> Vec<Vec<u8>> {
        let mut messages = self.conversation(random);
        for _ in 0..random.below(4) {
            spoil(&mut messages, random);
        }
        let mut left = LENGTH_MAX;
        for message in &mut messages {
            message.truncate(left);
            left -= message.len();
        }
        messages.retain(|message| !message.is_empty());
        messages
    }
}

/// Up to so many bytes by chance; short ones are as likely as long ones.
fn by_chance(random: &mut Random, most: u64) -> Vec<u8> {
    let bound = 1 << random.below(u64::from(most.ilog2()) + 1);
    let mut bytes = vec![0; random.below(bound) as usize];
    random.fill(&mut bytes);
    bytes
}

fn pick<'a, T>(random: &mut Random, of: &'a [T]) -> &'a T {
    &of[random.below(of.len() as u64) as usize]
}

/// Does one thing to a conversation that must not be done to it.
fn spoil(messages: &mut Vec<Vec<u8>>, random: &mut Random) {
    let count = messages.len();
    let index = random.below(count as u64) as usize;
    let message = &mut messages[index];
    let length = message.len() as u64;
    match random.below(9) {
        // Cut within a message, and nothing after it.
        0 => {
            message.truncate(random.below(length + 1) as usize);
            messages.truncate(index + 1);
        }
        // Some bits differ.
        1 => (0..1 + random.below(8)).for_each(|_| flip(message, random)),
        // A number within it is one that numbers overflow at.
        2 => put_number(message, random),
        // Said again, some times.
        3 => {
            let again = message.clone();
            let most = (LENGTH_MAX / again.len().max(1)).clamp(1, 64) as u64;
            (0..1 + random.below(most)).for_each(|_| messages.insert(index, again.clone()));
        }
        // Left out.
        4 if count > 1 => drop(messages.remove(index)),
        // In another order.
        5 => {
            let other = random.below(messages.len() as u64) as usize;
            messages.swap(index, other);
        }
        // Something within it is too large.
        6 => {
            let at = random.below(length + 1) as usize;
            let byte = random.bits() as u8;
            let many = vec![byte; 1 << (8 + random.below(12))];
            message.splice(at..at, many);
        }
        // Something within it is missing.
        7 => {
            let from = random.below(length + 1);
            let to = from + random.below(length - from + 1);
            message.drain(from as usize..to as usize);
        }
        // Chance follows.
        _ => messages.push(by_chance(random, 1 << 14)),
    }
}

fn flip(message: &mut [u8], random: &mut Random) {
    if !message.is_empty() {
        message[random.below(message.len() as u64) as usize] ^= 1 << random.below(8);
    }
}

fn put_number(message: &mut [u8], random: &mut Random) {
    let number = *pick(random, &[0_u64, 1, 0x7f, 0xff, 0x7fff_ffff, 0xffff_ffff, i64::MAX as u64, u64::MAX]);
    let width = *pick(random, &[1_usize, 2, 4, 8]);
    if message.len() < width {
        return;
    }
    let at = random.below((message.len() - width + 1) as u64) as usize;
    let bytes = match random.chance(1, 2) {
        true => number.to_be_bytes()[8 - width..].to_vec(),
        false => number.to_le_bytes()[..width].to_vec(),
    };
    message[at..at + width].copy_from_slice(&bytes);
}

/// Bytes with their length before them, in so many bytes.
fn counted(width: usize, bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u64).to_be_bytes()[8 - width..], bytes].concat()
}

fn chance_bytes<const N: usize>(random: &mut Random) -> [u8; N] {
    let mut bytes = [0; N];
    random.fill(&mut bytes);
    bytes
}

/// A `ClientHello` (RFC 8446, section 4.1.2) in its record.
fn client_hello(random: &mut Random) -> Vec<u8> {
    let extension = |kind: u16, data: Vec<u8>| [kind.to_be_bytes().to_vec(), counted(2, &data)].concat();
    let name = pick(random, &["host.drystone.internal", "localhost", "10.88.0.1", ""]).as_bytes();
    let share = [[0, 0x1d].to_vec(), counted(2, &chance_bytes::<32>(random))].concat();
    let extensions = [
        extension(0, counted(2, &[vec![0], counted(2, name)].concat())),
        extension(10, counted(2, &[0, 0x1d, 0, 0x17])),
        extension(13, counted(2, &[4, 3, 8, 4, 8, 7])),
        extension(43, counted(1, &[3, 4, 3, 3])),
        extension(51, counted(2, &share)),
        extension(16, counted(2, &counted(1, b"http/1.1"))),
    ];
    let body = [
        [3, 3].to_vec(),
        chance_bytes::<32>(random).to_vec(),
        counted(1, &chance_bytes::<32>(random)),
        counted(2, &[0x13, 1, 0x13, 2, 0x13, 3, 0xc0, 0x2b]),
        counted(1, &[0]),
        counted(2, &extensions.concat()),
    ];
    record(0x16, &[vec![1], counted(3, &body.concat())].concat())
}

fn record(kind: u8, bytes: &[u8]) -> Vec<u8> {
    [vec![kind, 3, 3], counted(2, &bytes[..bytes.len().min(1 << 14)])].concat()
}

/// A handshake that is begun, and records that follow it without a key.
fn tls(random: &mut Random) -> Vec<Vec<u8>> {
    let mut messages = vec![client_hello(random)];
    for _ in 0..random.below(4) {
        let kind = *pick(random, &[0x14, 0x15, 0x16, 0x17, 0x18]);
        let bytes = by_chance(random, 1 << 14);
        messages.push(record(kind, &bytes));
    }
    messages
}

/// A request. Most change nothing even for who may ask it; the others ask for what is not there.
fn http(random: &mut Random) -> Vec<u8> {
    let method =
        *pick(random, &["GET", "HEAD", "OPTIONS", "POST", "PATCH", "DELETE", "TRACE", "CONNECT", "get"]);
    let path = *pick(
        random,
        &[
            "/api/v1/host",
            "/api/v1/disks/none",
            "/api/v1/disks?limit=99999999999999999999",
            "/metrics",
            "/api/v1/join",
            "/api/v1/../../etc/passwd",
            "/%00%ff%2e%2e/",
            "*",
            "http://localhost/api/v1/host",
        ],
    );
    let body = match random.below(4) {
        0 => "[".repeat(random.below(20_000) as usize),
        1 => "{\"name\":\"x\",\"size\":99999999999999999999999}".to_owned(),
        2 => String::new(),
        _ => "{\"token\":\"drystone-join-1/\"}".to_owned(),
    };
    let length = body.len();
    let headers = match random.below(6) {
        0 => format!("content-length: {length}\r\ncontent-length: {}\r\n", length + 1),
        1 => "content-length: 18446744073709551616\r\n".to_owned(),
        2 => "transfer-encoding: chunked\r\n".to_owned(),
        3 => "x: y\r\n".repeat(random.below(2000) as usize),
        4 => format!("cookie: {}\r\n", "z".repeat(random.below(100_000) as usize)),
        _ => format!("content-length: {length}\r\nexpect: 100-continue\r\n"),
    };
    let head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n");
    match random.below(8) {
        0 => b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec(),
        1 => format!("{head}transfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n{body}").into_bytes(),
        _ => format!("{head}{headers}\r\n{body}").into_bytes(),
    }
}

/// The client's side: its flags, options, and requests as if one of them had been granted.
fn nbd(random: &mut Random) -> Vec<Vec<u8>> {
    let mut messages = vec![pick(random, &[3_u32, 1, 0, u32::MAX]).to_be_bytes().to_vec()];
    for _ in 0..1 + random.below(6) {
        let option = *pick(random, &[1_u32, 2, 3, 5, 6, 7, 8, 9, 10, 11, u32::MAX]);
        let name = *pick(random, &["trial", "", "none", "../trial", "\u{0}\u{ff}"]);
        let asked = match option {
            1 => name.as_bytes().to_vec(),
            6 | 7 => [counted(4, name.as_bytes()), vec![0, 1, 0, 3]].concat(),
            9 | 10 => {
                let context = counted(4, b"base:allocation");
                [counted(4, name.as_bytes()), 1_u32.to_be_bytes().to_vec(), context].concat()
            }
            3 | 5 | 8 => Vec::new(),
            _ => by_chance(random, 1 << 12),
        };
        messages.push([b"IHAVEOPT".to_vec(), option.to_be_bytes().to_vec(), counted(4, &asked)].concat());
    }
    if random.chance(1, 2) {
        // What follows a granted STARTTLS.
        messages.push(client_hello(random));
    }
    for _ in 0..random.below(8) {
        messages.push(nbd_request(random));
    }
    messages
}

fn nbd_request(random: &mut Random) -> Vec<u8> {
    let magic = *pick(random, &[0x2560_9513_u32, 0x21e4_1c71]);
    let flags = *pick(random, &[0_u16, 1, 2, 0xffff]);
    // Reads, flushes, block status and what is unknown: if a host ever took them, no data would change.
    let command = *pick(random, &[0_u16, 3, 5, 7, 9, 0xffff]);
    let offset = *pick(random, &[0_u64, 1, 4096, 1 << 40, u64::MAX]);
    let length = *pick(random, &[0_u32, 1, 4096, 1 << 25, u32::MAX]);
    let head = [magic.to_be_bytes().to_vec(), [flags.to_be_bytes(), command.to_be_bytes()].concat()];
    let tail = [random.bits().to_be_bytes().to_vec(), offset.to_be_bytes().to_vec()];
    [head.concat(), tail.concat(), length.to_be_bytes().to_vec()].concat()
}

/// A hello, and frames as if it had been accepted. Their checksums are right.
fn peers(random: &mut Random) -> Vec<Vec<u8>> {
    let mut hello = vec![0; HELLO_BYTES];
    random.fill(&mut hello[16..64]);
    random.fill(&mut hello[72..88]);
    hello[..8].copy_from_slice(b"DRYHELLO");
    hello[12..16].copy_from_slice(&[1, 0, 0xff, 0]);
    hello[66] = *pick(random, &[1, 2, 3]);
    base::checksum::seal(&mut hello, 8);
    let mut messages = vec![hello];
    for _ in 0..random.below(6) {
        let body = by_chance(random, 1 << 12);
        let mut frame = vec![0; FRAME_BYTES];
        frame[..4].copy_from_slice(b"DRYF");
        frame[4] = 1;
        frame[6] = random.bits() as u8;
        frame[8..12].copy_from_slice(&(body.len() as u32).to_le_bytes());
        let payload = *pick(random, &[0_u32, 4096, 1 << 20, u32::MAX]);
        frame[12..16].copy_from_slice(&payload.to_le_bytes());
        random.fill(&mut frame[16..44]);
        frame[44..48].copy_from_slice(&base::checksum::crc32c(&body).to_le_bytes());
        base::checksum::seal(&mut frame, 60);
        messages.push([frame, body].concat());
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_same_seed_makes_the_same_garbage_and_another_another() {
        for protocol in Protocol::ALL {
            let garbage = |seed| -> Vec<Vec<Vec<u8>>> {
                let mut random = Random::new(seed);
                (0..20).map(|_| protocol.garbage(&mut random)).collect()
            };
            assert_eq!(garbage(7), garbage(7), "{protocol:?}");
            assert_ne!(garbage(7), garbage(8), "{protocol:?}");
        }
    }

    #[test]
    fn garbage_has_a_bound_and_is_cut_changed_and_repeated() {
        let mut random = Random::new(1);
        let mut lengths = BTreeSet::new();
        let (mut hellos, mut others) = (0, 0);
        for _ in 0..2000 {
            let messages = Protocol::Peers.garbage(&mut random);
            let length: usize = messages.iter().map(Vec::len).sum();
            assert!(length <= LENGTH_MAX, "{length}");
            lengths.insert(length);
            for message in &messages {
                let is_hello = message.len() == HELLO_BYTES && message.starts_with(b"DRYHELLO");
                match is_hello && base::checksum::is_sealed(message, 8) {
                    true => hellos += 1,
                    false => others += 1,
                }
            }
        }
        assert!(hellos > 1000 && others > 1000, "{hellos} whole hellos, {others} other messages");
        assert!(lengths.contains(&HELLO_BYTES) && lengths.first() < Some(&HELLO_BYTES), "some are cut");
        assert!(lengths.last() > Some(&(LENGTH_MAX / 8)), "some are too large");
    }

    #[test]
    fn a_client_hello_says_how_long_its_parts_are() {
        let hello = client_hello(&mut Random::new(3));
        let length = |at: usize, width: usize| {
            hello[at..at + width].iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte))
        };
        assert_eq!((hello[0], length(3, 2)), (0x16, hello.len() - 5));
        assert_eq!((hello[5], length(6, 3)), (1, hello.len() - 9));
        // Version, random, session, four suites, one compression.
        let extensions = 9 + 2 + 32 + 33 + 10 + 2;
        assert_eq!(length(extensions, 2), hello.len() - extensions - 2);
    }
}
