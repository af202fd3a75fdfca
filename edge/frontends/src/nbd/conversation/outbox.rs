//! Bytes that wait to be sent, in order: small heads in one run of memory, data in the buffers that it came in.
//!
//! Two batches, so that nothing moves while the kernel reads it: the one being sent is frozen, new replies go to the
//! other. Neither allocates once it has grown to the size that the client needs.

use crate::IoVec;
use crate::limits::VECTORS_MAX;
use base::Buffer;

/// What holes are sent from where the client cannot be told of them.
static ZEROES: [u8; 1 << 20] = [0; 1 << 20];
/// Heads above this are given back to the allocator once sent.
const HEADS_KEPT: usize = 64 << 10;

#[derive(Debug)]
enum Segment {
    /// A range of `heads`.
    Head {
        start: u32,
        len: u32,
    },
    Data(Buffer),
    /// At most as many as `ZEROES` has.
    Zeroes(u32),
    Sent,
}

impl Segment {
    fn len(&self) -> usize {
        match self {
            Segment::Head { len, .. } | Segment::Zeroes(len) => *len as usize,
            Segment::Data(buffer) => buffer.len(),
            Segment::Sent => 0,
        }
    }
}

#[derive(Debug, Default)]
struct Batch {
    heads: Vec<u8>,
    segments: Vec<Segment>,
}

#[derive(Debug, Default)]
pub(super) struct Outbox {
    sending: Batch,
    /// The first segment of `sending` that is not sent in full, and how much of it is sent.
    next: usize,
    offset: usize,
    queued: Batch,
    bytes: u64,
    head_bytes: usize,
    /// Whether vectors were given out and not answered by `sent`.
    frozen: bool,
}

impl Outbox {
    /// Queues what `write` appends.
    pub(super) fn put(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let heads = &mut self.queued.heads;
        let start = heads.len();
        write(heads);
        let len = heads.len() - start;
        self.bytes += len as u64;
        self.head_bytes += len;
        match self.queued.segments.last_mut() {
            Some(Segment::Head { len: last, .. }) => *last += len as u32,
            _ if len == 0 => {}
            _ => self.queued.segments.push(Segment::Head { start: start as u32, len: len as u32 }),
        }
    }

    /// Queues the bytes of a buffer, which is held until they are sent.
    pub(super) fn data(&mut self, buffer: Buffer) {
        if !buffer.is_empty() {
            self.bytes += buffer.len() as u64;
            self.queued.segments.push(Segment::Data(buffer));
        }
    }

    /// Queues zeroes.
    pub(super) fn zeroes(&mut self, mut len: u32) {
        self.bytes += u64::from(len);
        while len > 0 {
            let part = len.min(ZEROES.len() as u32);
            self.queued.segments.push(Segment::Zeroes(part));
            len -= part;
        }
    }

    /// Bytes not sent.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Of these, bytes that are not data: memory that belongs to this connection alone.
    pub(super) fn head_bytes(&self) -> usize {
        self.head_bytes
    }

    /// Whether a send is under way.
    pub(super) fn is_frozen(&self) -> bool {
        self.frozen
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Forgets everything: there is nobody to send it to. A send that is under way must have ended.
    pub(super) fn clear(&mut self) {
        assert!(!self.frozen, "bytes are not freed while the kernel reads them");
        *self = Outbox::default();
    }

    /// Appends where the next bytes to send are; they stay there until [`Outbox::sent`].
    pub(super) fn vectors(&mut self, out: &mut Vec<IoVec>) {
        assert!(!self.frozen, "one send at a time");
        if self.next == self.sending.segments.len() {
            self.swap();
        }
        let mut offset = self.offset;
        for segment in self.sending.segments[self.next..].iter().take(VECTORS_MAX) {
            let start = match segment {
                Segment::Head { start, .. } => self.sending.heads[*start as usize..].as_ptr(),
                Segment::Data(buffer) => buffer.as_mut_ptr().cast_const(),
                Segment::Zeroes(_) => ZEROES.as_ptr(),
                Segment::Sent => unreachable!("only segments before `next` are sent"),
            };
            out.push(IoVec::source(start.wrapping_add(offset), segment.len() - offset));
            offset = 0;
        }
        self.frozen = self.next < self.sending.segments.len();
    }

    fn swap(&mut self) {
        self.sending.segments.clear();
        self.sending.heads.clear();
        self.sending.heads.shrink_to(HEADS_KEPT);
        std::mem::swap(&mut self.sending, &mut self.queued);
        self.next = 0;
        self.offset = 0;
    }

    /// The first `n` bytes of what [`Outbox::vectors`] gave are sent.
    pub(super) fn sent(&mut self, mut n: usize) {
        assert!(self.frozen, "only what was given out can have been sent");
        self.frozen = false;
        self.bytes -= n as u64;
        while n > 0 {
            let segment = &mut self.sending.segments[self.next];
            let part = n.min(segment.len() - self.offset);
            if matches!(segment, Segment::Head { .. }) {
                self.head_bytes -= part;
            }
            n -= part;
            self.offset += part;
            if self.offset == segment.len() {
                *segment = Segment::Sent;
                self.next += 1;
                self.offset = 0;
            }
        }
    }
}
