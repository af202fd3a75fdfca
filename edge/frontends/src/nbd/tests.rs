//! Conversations with a session, in memory: a client's bytes in, a small disk behind, the server's bytes out.

mod flow;
mod hostile;
mod negotiation;
mod secure;
mod transmission;

use super::protocol::*;
use super::*;
use crate::tls::TlsPolicy;
use crate::{AttachRefusal, Event, Export, IoVec};
use base::request::{Outcome, Piece, Pieces, Reply, Request, StatusRun};
use base::{Pool, Random};

pub(super) const DISK_SIZE: usize = 1 << 20;
const BLOCK: usize = 4096;

/// The two ends of a connection and the disk behind it.
pub(super) struct Wire {
    pub(super) session: Session,
    pub(super) pool: Pool,
    pub(super) export: Export,
    pub(super) disk: Vec<u8>,
    /// What the server sent and the client has not looked at.
    pub(super) sent: Vec<u8>,
    /// Every request that was handed out, as text, with its data.
    pub(super) log: Vec<String>,
    /// Requests that wait; answered at once unless `held`.
    pub(super) waiting: Vec<(u64, Request)>,
    pub(super) held: bool,
    /// How much one receive or send moves at most; drawn anew each time if it is a seed.
    pub(super) step: Step,
}

pub(super) enum Step {
    All,
    Random(Random),
}

impl Wire {
    pub(super) fn new(tls: TlsPolicy) -> Wire {
        let pool = Pool::new(128 << 20);
        let name = "disk".to_owned();
        Wire {
            session: Session::new(tls, pool.clone()),
            pool,
            export: Export {
                name,
                size: DISK_SIZE as u64,
                read_only: false,
                description: "for tests".to_owned(),
                snapshot: None,
                bitmaps: Vec::new(),
            },
            disk: vec![0; DISK_SIZE],
            sent: Vec::new(),
            log: Vec::new(),
            waiting: Vec::new(),
            held: false,
            step: Step::All,
        }
    }

    /// A wire whose negotiation is done.
    pub(super) fn attached(structured: bool) -> Wire {
        let mut wire = Wire::new(TlsPolicy::Off);
        wire.attach(structured);
        wire
    }

    pub(super) fn attach(&mut self, structured: bool) {
        self.say(&3u32.to_be_bytes());
        if structured {
            self.say(&option(option::STRUCTURED_REPLY, &[]));
            self.say(&option(option::SET_META_CONTEXT, &meta("disk", &["base:allocation"])));
        }
        self.say(&option(option::GO, &go("disk", &[])));
        self.sent.clear();
    }

    fn limit(&mut self) -> usize {
        match &mut self.step {
            Step::All => usize::MAX,
            Step::Random(random) => match random.below(3) {
                0 => random.range(1..8) as usize,
                1 => random.range(1..5_000) as usize,
                _ => random.range(1..200_000) as usize,
            },
        }
    }

    /// Sends bytes to the server and deals with what follows; returns how many it took.
    pub(super) fn say(&mut self, mut bytes: &[u8]) -> usize {
        let before = bytes.len();
        self.settle();
        while !bytes.is_empty() && self.session.wants_receive() {
            let mut vectors = Vec::new();
            self.session.receive_vectors(&mut vectors);
            let n = scatter(&vectors, &bytes[..bytes.len().min(self.limit())]);
            bytes = &bytes[n..];
            let mut events = Vec::new();
            self.session.received(n, &mut events);
            self.handle(events);
            self.settle();
        }
        before - bytes.len()
    }

    /// Sends, answers and goes on until nothing changes.
    pub(super) fn settle(&mut self) {
        loop {
            let mut events = Vec::new();
            self.session.advance(&mut events);
            let more = !events.is_empty();
            self.handle(events);
            if !self.transmit() && !more {
                return;
            }
        }
    }

    pub(super) fn transmit(&mut self) -> bool {
        if !self.session.wants_transmit() {
            return false;
        }
        let mut vectors = Vec::new();
        self.session.transmit_vectors(&mut vectors);
        assert!(vectors.len() <= crate::limits::VECTORS_MAX);
        let limit = self.limit();
        let n = gather(&vectors, limit, &mut self.sent);
        let mut events = Vec::new();
        self.session.transmitted(n, &mut events);
        self.handle(events);
        true
    }

    pub(super) fn handle(&mut self, events: Vec<Event>) {
        for event in events {
            match event {
                Event::ListExports => self.session.exports(std::slice::from_ref(&self.export)),
                Event::Describe { wanted } | Event::Attach { wanted } => {
                    let found = ["disk", ""].contains(&wanted.disk.as_str());
                    self.session.export(if found {
                        Ok(self.export.clone())
                    } else {
                        Err(AttachRefusal::Unknown)
                    });
                }
                Event::Request { cookie, request } => {
                    self.log.push(describe(&request));
                    self.waiting.push((cookie, request));
                }
            }
        }
        if !self.held {
            self.answer_all();
        }
    }

    pub(super) fn answer_all(&mut self) {
        for (cookie, request) in std::mem::take(&mut self.waiting) {
            let outcome = self.perform(request);
            self.session.reply(cookie, outcome);
        }
    }

    fn perform(&mut self, request: Request) -> Outcome {
        Ok(match request {
            Request::CopyUp { .. } => unreachable!("clients ask for none"),
            Request::Read { offset, len } | Request::View { offset, len, .. } => {
                Reply::Data(self.read(offset as usize, len as usize))
            }
            Request::Write { offset, data } => {
                let mut at = offset as usize;
                for buffer in data {
                    self.disk[at..at + buffer.len()].copy_from_slice(&buffer);
                    at += buffer.len();
                }
                Reply::Done
            }
            Request::Flush => Reply::Done,
            Request::Trim { offset, len } | Request::WriteZeroes { offset, len, .. } => {
                self.disk[offset as usize..][..len as usize].fill(0);
                Reply::Done
            }
            Request::Status { len, .. } => Reply::Status(vec![StatusRun { len, is_set: true }]),
        })
    }

    /// Blocks of zeroes count as holes.
    fn read(&self, offset: usize, len: usize) -> Pieces {
        let mut pieces = Pieces::new();
        let mut at = offset;
        while at < offset + len {
            let part = (BLOCK - at % BLOCK).min(offset + len - at);
            let bytes = &self.disk[at..at + part];
            pieces.push(if bytes.iter().all(|&byte| byte == 0) {
                Piece::Hole(part as u32)
            } else {
                let mut buffer = self.pool.take(part).expect("the pool is large enough");
                buffer.bytes_mut().copy_from_slice(bytes);
                Piece::Bytes(buffer)
            });
            at += part;
        }
        pieces
    }
}

fn describe(request: &Request) -> String {
    match request {
        Request::Write { offset, data } => {
            let bytes: Vec<u8> = data.iter().flat_map(|buffer| buffer.iter().copied()).collect();
            for buffer in &data[..data.len() - 1] {
                assert!(buffer.len().is_multiple_of(BLOCK), "only the last buffer may be odd");
            }
            format!("write {offset} {} {:08x}", bytes.len(), base::checksum::crc32c(&bytes))
        }
        other => format!("{other:?}"),
    }
}

/// What a receive does: fills the vectors in order. Returns how much fitted.
pub(super) fn scatter(vectors: &[IoVec], mut bytes: &[u8]) -> usize {
    let before = bytes.len();
    for vector in vectors {
        let part = vector.len.min(bytes.len());
        // SAFETY: the session gave this memory out to be written to.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), vector.base, part) };
        bytes = &bytes[part..];
    }
    before - bytes.len()
}

/// What a send does: takes from the vectors in order, up to `limit` bytes.
pub(super) fn gather(vectors: &[IoVec], limit: usize, out: &mut Vec<u8>) -> usize {
    let mut left = limit;
    for vector in vectors {
        let part = vector.len.min(left);
        // SAFETY: the session gave this memory out to be read from.
        out.extend_from_slice(unsafe { std::slice::from_raw_parts(vector.base.cast_const(), part) });
        left -= part;
    }
    limit - left
}

pub(super) fn option(number: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = OPTION_MAGIC.to_be_bytes().to_vec();
    bytes.extend_from_slice(&number.to_be_bytes());
    bytes.extend_from_slice(&(data.len() as u32).to_be_bytes());
    bytes.extend_from_slice(data);
    bytes
}

pub(super) fn go(name: &str, wants: &[u16]) -> Vec<u8> {
    let mut data = (name.len() as u32).to_be_bytes().to_vec();
    data.extend_from_slice(name.as_bytes());
    data.extend_from_slice(&(wants.len() as u16).to_be_bytes());
    wants.iter().for_each(|want| data.extend_from_slice(&want.to_be_bytes()));
    data
}

pub(super) fn meta(name: &str, queries: &[&str]) -> Vec<u8> {
    let mut data = (name.len() as u32).to_be_bytes().to_vec();
    data.extend_from_slice(name.as_bytes());
    data.extend_from_slice(&(queries.len() as u32).to_be_bytes());
    for query in queries {
        data.extend_from_slice(&(query.len() as u32).to_be_bytes());
        data.extend_from_slice(query.as_bytes());
    }
    data
}

pub(super) fn request(command: u16, flags: u16, cookie: u64, offset: u64, len: u32) -> Vec<u8> {
    RequestHeader { flags, command, cookie, offset, len }.encode().to_vec()
}

pub(super) fn write(cookie: u64, offset: u64, data: &[u8]) -> Vec<u8> {
    let mut bytes = request(command::WRITE, 0, cookie, offset, data.len() as u32);
    bytes.extend_from_slice(data);
    bytes
}

/// Takes big-endian numbers and bytes from the front of what the server sent.
pub(super) struct Take<'a>(pub(super) &'a [u8]);

impl<'a> Take<'a> {
    pub(super) fn bytes(&mut self, n: usize) -> &'a [u8] {
        let (head, tail) = self.0.split_at(n);
        self.0 = tail;
        head
    }

    pub(super) fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.bytes(2).try_into().expect("two bytes"))
    }

    pub(super) fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.bytes(4).try_into().expect("four bytes"))
    }

    pub(super) fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.bytes(8).try_into().expect("eight bytes"))
    }
}

/// A reply in the transmission phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Simple { cookie: u64, error: u32 },
    Chunk { cookie: u64, done: bool, kind: u16, payload: Vec<u8> },
}

/// All that the server sent in the transmission phase. `reads` has the lengths of simple replies with data, by cookie.
pub(super) fn answers(sent: &[u8]) -> Vec<Answer> {
    let mut take = Take(sent);
    let mut found = Vec::new();
    while !take.0.is_empty() {
        match take.u32() {
            SIMPLE_REPLY_MAGIC => {
                let error = take.u32();
                found.push(Answer::Simple { error, cookie: take.u64() });
            }
            CHUNK_MAGIC => {
                let (flags, kind, cookie) = (take.u16(), take.u16(), take.u64());
                let len = take.u32() as usize;
                let payload = take.bytes(len).to_vec();
                found.push(Answer::Chunk { cookie, done: flags & chunk::DONE != 0, kind, payload });
            }
            other => panic!("no reply begins with {other:08x}"),
        }
    }
    found
}

/// The error of each answer; 0 is success.
pub(super) fn errors(sent: &[u8]) -> Vec<(u64, u32)> {
    let of = |answer| match answer {
        Answer::Simple { cookie, error } => (cookie, error),
        Answer::Chunk { cookie, kind: chunk::ERROR, payload, .. } => (cookie, Take(&payload).u32()),
        Answer::Chunk { cookie, .. } => (cookie, 0),
    };
    answers(sent).into_iter().map(of).collect()
}

pub(super) fn pattern(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Random::new(seed).fill(&mut bytes);
    bytes
}
