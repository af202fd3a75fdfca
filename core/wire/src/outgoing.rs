//! Frames that wait to be sent, in order: headers and bodies in one run of memory, payloads in the buffers that they stand in.
//!
//! Two batches, so that nothing moves while the kernel reads it: the one being sent is frozen, new frames go to the other.
//! Neither allocates once it has grown to what the connection needs.

use crate::limits::{OUTGOING_SIZE_MAX, SEND_PIECES_MAX};
use crate::message::Message;
use crate::{Body, Encoder, Version};
use base::Buffer;

/// Heads above this are given back to the allocator once sent.
const HEADS_KEPT: usize = 64 << 10;

/// As much waits to be sent as may. The message is to be held back until some of it is sent, or, where that takes longer than
/// a peer may be silent, the connection to be dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{size} bytes wait to be sent: the other node takes too little of what it is sent")]
pub struct OutgoingFull {
    /// Bytes that wait.
    pub size: u64,
}

#[derive(Debug)]
enum Segment {
    /// A range of `heads`.
    Head {
        start: usize,
        len: usize,
    },
    Data(Buffer),
    Sent,
}

impl Segment {
    fn len(&self) -> usize {
        match self {
            Segment::Head { len, .. } => *len,
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

/// The sending side of one direction of one connection.
#[derive(Debug)]
pub struct Outgoing {
    encoder: Encoder,
    sending: Batch,
    /// The first segment of `sending` that is not sent in full, and how much of it is.
    next: usize,
    offset: usize,
    queued: Batch,
    size: u64,
    /// Whether pieces were given out and not answered by `sent`.
    frozen: bool,
}

impl Outgoing {
    /// For a connection on which that version was agreed on.
    pub fn new(version: Version) -> Outgoing {
        Outgoing {
            encoder: Encoder::new(version),
            sending: Batch::default(),
            next: 0,
            offset: 0,
            queued: Batch::default(),
            size: 0,
            frozen: false,
        }
    }

    /// Queues a message; its buffers are shared, and must not change until they are sent. Allowed during a send.
    ///
    /// # Errors
    /// When [`OUTGOING_SIZE_MAX`] bytes wait already; the message is not queued.
    pub fn push<T: Body>(&mut self, message: &Message<T>) -> Result<(), OutgoingFull> {
        if self.size >= OUTGOING_SIZE_MAX {
            return Err(OutgoingFull { size: self.size });
        }
        let Batch { heads, segments } = &mut self.queued;
        let start = heads.len();
        let payload = self.encoder.encode(message, heads);
        let len = heads.len() - start;
        self.size += len as u64;
        match segments.last_mut() {
            Some(Segment::Head { len: last, .. }) => *last += len,
            Some(Segment::Data(_) | Segment::Sent) | None => segments.push(Segment::Head { start, len }),
        }
        for buffer in payload.buffers() {
            self.size += buffer.len() as u64;
            segments.push(Segment::Data(buffer.clone()));
        }
        Ok(())
    }

    /// Bytes that are not sent.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Whether all is sent.
    pub fn is_empty(&self) -> bool {
        self.size == 0
    }

    /// Begins a send: the next bytes, in order, at most [`SEND_PIECES_MAX`] pieces and none of them empty. They stay where
    /// they are until [`Outgoing::sent`], which must follow before the next send. None if there is nothing to send.
    pub fn send(&mut self) -> impl Iterator<Item = &[u8]> {
        assert!(!self.frozen, "one send at a time");
        if self.next == self.sending.segments.len() {
            self.swap();
        }
        self.frozen = self.next < self.sending.segments.len();
        let Batch { heads, segments } = &self.sending;
        let mut offset = self.offset;
        segments[self.next..].iter().take(SEND_PIECES_MAX).map(move |segment| {
            let bytes: &[u8] = match segment {
                Segment::Head { start, len } => &heads[*start..start + len],
                Segment::Data(buffer) => buffer,
                Segment::Sent => unreachable!("only segments before `next` are sent"),
            };
            &bytes[std::mem::take(&mut offset)..]
        })
    }

    /// The first `n` bytes of what [`Outgoing::send`] gave are sent. Their buffers are given back.
    pub fn sent(&mut self, mut n: usize) {
        assert!(self.frozen, "only what was given out can have been sent");
        self.frozen = false;
        self.size -= n as u64;
        while n > 0 {
            let segment = &mut self.sending.segments[self.next];
            let part = n.min(segment.len() - self.offset);
            n -= part;
            self.offset += part;
            if self.offset == segment.len() {
                *segment = Segment::Sent;
                self.next += 1;
                self.offset = 0;
            }
        }
    }

    fn swap(&mut self) {
        self.sending.segments.clear();
        self.sending.heads.clear();
        self.sending.heads.shrink_to(HEADS_KEPT);
        std::mem::swap(&mut self.sending, &mut self.queued);
        self.next = 0;
        self.offset = 0;
    }
}
