//! The transmission phase: requests in, replies out.
//!
//! Payload of writes is received into the buffers that the device is written from. Once a header is known its payload is
//! received where it belongs. In a stream of equal writes the headers to come are known before they are there: the receive
//! is then spread over header, payload, header, payload …. When such a guess fails, bytes are moved to the inbox and read
//! from there; those, and payload that came in one piece with headers, are the only bytes ever copied, and are counted.

use super::Counters;
use super::answer::{Refusal, Style, put_done, put_failure, put_outcome, put_refusal, put_status};
use super::contexts::Context;
use super::inbox::Inbox;
use super::outbox::Outbox;
use super::slots::Slots;
use super::surveys::{Part, SurveyFailure, Surveys};
use crate::limits::{
    BACKLOG_MAX, HEADERS_AT_ONCE, INBOX_SIZE, PAYLOAD_AT_ONCE, PAYLOAD_OUTSTANDING_MAX, PAYLOAD_SKIPPED_MAX,
    PREDICTED_BYTES_MAX, PREDICTED_WRITES_MAX, REQUEST_LEN_MAX, REQUESTS_MAX, WRITES_BEFORE_PREDICTION,
};
use crate::nbd::protocol::{BLOCK_SIZE_MIN, Errno, REQUEST_SIZE, RequestHeader, command, command_flag};
use crate::{Event, Export, IoVec, Reach};
use base::Pool;
use base::buffer::{CHUNK_SIZE, PIECE_SIZE_MIN};
use base::request::{Buffers, Outcome, Reply, Request};
use std::collections::VecDeque;

/// The parts of a conversation that both of its phases use.
pub(super) struct Io<'a> {
    pub(super) pool: &'a Pool,
    pub(super) inbox: &'a mut Inbox,
    pub(super) outbox: &'a mut Outbox,
    pub(super) counters: &'a mut Counters,
    pub(super) events: &'a mut Vec<Event>,
}

/// What the next byte belongs to.
#[derive(Debug)]
enum Incoming {
    Header,
    /// The payload of a write that is let in; `filled` of its bytes are there.
    Payload {
        slot: u64,
        request: RequestHeader,
        data: Buffers,
        filled: usize,
    },
    /// The payload of a write that is not, `rest` bytes of it.
    Skip {
        request: RequestHeader,
        refusal: Refusal,
        rest: usize,
    },
}

/// Why no more requests are taken for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    None,
    /// The connection has as much under way as it may.
    Limit,
    /// The pool has no buffers for a write's payload.
    Pool,
}

/// Whether the client may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    Open,
    /// It said goodbye, or broke the protocol.
    Ended,
}

/// The expectation of equal writes.
#[derive(Debug)]
struct Prediction {
    /// Length of the last write, and how many of that length came in a row.
    len: u32,
    streak: u32,
    /// Writes that came with the last receive.
    batch: usize,
    /// Where expected headers go; the first may have been begun.
    headers: Vec<[u8; REQUEST_SIZE]>,
    begun: usize,
    /// Payload buffers of expected writes, in order; kept from one receive to the next.
    buffers: VecDeque<Buffers>,
    /// How many writes the receive under way expects.
    offered: usize,
}

#[derive(Debug)]
pub(super) struct Transmission {
    export: Export,
    style: Style,
    /// What the client may ask about blocks.
    contexts: Vec<Context>,
    /// Questions about blocks that were handed out, once for each context.
    surveys: Surveys,
    slots: Slots,
    incoming: Incoming,
    hold: Hold,
    prediction: Prediction,
}

impl Transmission {
    pub(super) fn new(export: Export, structured: bool, contexts: Vec<Context>) -> Transmission {
        Transmission {
            export,
            style: if structured { Style::Structured } else { Style::Simple },
            contexts,
            surveys: Surveys::default(),
            slots: Slots::default(),
            incoming: Incoming::Header,
            hold: Hold::None,
            prediction: Prediction {
                len: 0,
                streak: 0,
                batch: 1,
                headers: vec![[0; REQUEST_SIZE]; PREDICTED_WRITES_MAX],
                begun: 0,
                buffers: VecDeque::new(),
                offered: 0,
            },
        }
    }

    pub(super) fn export(&self) -> &Export {
        &self.export
    }

    pub(super) fn change_export(&mut self, size: u64, read_only: bool) {
        self.export.size = size;
        self.export.read_only = read_only;
    }

    /// Requests that were handed out and not answered. A write whose payload is not all there is not among them.
    pub(super) fn outstanding(&self) -> usize {
        self.slots.len() - usize::from(matches!(self.incoming, Incoming::Payload { .. }))
    }

    pub(super) fn hold(&self) -> Hold {
        self.hold
    }

    /// No more bytes will come: a write that is not all there never happened.
    pub(super) fn input_ended(&mut self) {
        if let Incoming::Payload { slot, .. } = std::mem::replace(&mut self.incoming, Incoming::Header) {
            self.slots.remove(slot);
        }
        self.prediction.buffers.clear();
    }

    /// Whether more bytes are wanted now.
    pub(super) fn wants_receive(&self, outbox: &Outbox) -> bool {
        match self.incoming {
            Incoming::Payload { .. } | Incoming::Skip { .. } => true,
            Incoming::Header => self.hold == Hold::None && self.admits(0, outbox),
        }
    }

    /// Whether a request with so much payload may be under way beside the others.
    fn admits(&self, len: u64, outbox: &Outbox) -> bool {
        self.slots.len() < REQUESTS_MAX
            && outbox.head_bytes() <= BACKLOG_MAX
            && self.slots.payload_bytes() + outbox.bytes() + len <= PAYLOAD_OUTSTANDING_MAX
    }

    /// Says where the next bytes go.
    pub(super) fn receive_vectors(
        &mut self,
        pool: &Pool,
        inbox: &mut Inbox,
        outbox: &Outbox,
        out: &mut Vec<IoVec>,
    ) -> Reach {
        self.prediction.offered = 0;
        match &self.incoming {
            Incoming::Payload { data, filled, .. } => {
                let total: usize = data.iter().map(|buffer| buffer.len()).sum();
                let mut skip = *filled;
                for buffer in data {
                    let part = skip.min(buffer.len());
                    skip -= part;
                    if part < buffer.len() {
                        out.push(IoVec::target(buffer.as_mut_ptr().wrapping_add(part), buffer.len() - part));
                    }
                }
                if total - filled >= PAYLOAD_AT_ONCE {
                    return Reach::All;
                }
            }
            Incoming::Skip { .. } => {
                out.push(inbox.space(INBOX_SIZE));
                return Reach::Any;
            }
            Incoming::Header => {}
        }
        self.prepare_prediction(pool, inbox, outbox);
        if self.prediction.offered == 0 {
            out.push(inbox.space(HEADERS_AT_ONCE));
            return Reach::Any;
        }
        let mut begun = self.prediction.begun;
        for (header, data) in
            self.prediction.headers.iter_mut().zip(&self.prediction.buffers).take(self.prediction.offered)
        {
            out.push(IoVec::target(header[begun..].as_mut_ptr(), REQUEST_SIZE - begun));
            out.extend(data.iter().map(|buffer| IoVec::target(buffer.as_mut_ptr(), buffer.len())));
            begun = 0;
        }
        Reach::Any
    }

    /// Sets up headers and buffers for as many writes as are likely to come at once, if any are.
    fn prepare_prediction(&mut self, pool: &Pool, inbox: &mut Inbox, outbox: &Outbox) {
        let len = self.prediction.len as usize;
        if self.prediction.streak < WRITES_BEFORE_PREDICTION
            || len > PREDICTED_BYTES_MAX
            || inbox.len() >= REQUEST_SIZE
        {
            return;
        }
        let used = self.slots.payload_bytes() + outbox.bytes();
        let count = (2 * self.prediction.batch)
            .clamp(2, PREDICTED_WRITES_MAX)
            .min((PREDICTED_BYTES_MAX / len).max(1))
            .min(REQUESTS_MAX.saturating_sub(self.slots.len()))
            .min(PAYLOAD_OUTSTANDING_MAX.saturating_sub(used) as usize / len);
        let prediction = &mut self.prediction;
        // A client that falls silent keeps its buffers: half of the pool stays for those that do not.
        let spare = pool.bytes_max() / 2;
        while prediction.buffers.len() < count && pool.bytes_used() < spare {
            let Some(data) = take_buffers(pool, len) else { break };
            prediction.buffers.push_back(data);
        }
        // Fewer are needed than were: their memory goes back.
        prediction.buffers.truncate(count);
        prediction.offered = prediction.buffers.len();
        if prediction.offered > 0 {
            prediction.begun = inbox.len();
            prediction.headers[0][..inbox.len()].copy_from_slice(inbox.bytes());
            inbox.consume(inbox.len());
        }
    }

    /// `n` bytes came to where [`Transmission::receive_vectors`] said.
    pub(super) fn received(&mut self, mut n: usize, draining: bool, io: &mut Io) -> Progress {
        let mut batch = 0;
        if let Incoming::Payload { data, filled, .. } = &mut self.incoming {
            let total: usize = data.iter().map(|buffer| buffer.len()).sum();
            let part = n.min(total - *filled);
            *filled += part;
            n -= part;
            if *filled < total {
                return Progress::Open;
            }
            batch += 1;
            self.finish_write(io);
        }
        if self.prediction.offered > 0 {
            batch += self.received_predicted(n, draining, io);
            self.prediction.batch = batch.max(1);
        } else {
            io.inbox.received(n);
        }
        self.parse(draining, io)
    }

    /// Nothing came: a header that was begun goes back to where it was.
    pub(super) fn interrupted(&mut self, inbox: &mut Inbox) {
        if self.prediction.offered > 0 {
            let begun = std::mem::take(&mut self.prediction.begun);
            inbox.push(&self.prediction.headers[0][..begun]);
        }
    }

    /// Takes `n` bytes that were spread over expected headers and payloads. Returns how many writes began.
    fn received_predicted(&mut self, mut n: usize, draining: bool, io: &mut Io) -> usize {
        let mut head = std::mem::take(&mut self.prediction.begun);
        let mut index = 0;
        while n > 0 || head > 0 {
            let part = n.min(REQUEST_SIZE - head);
            n -= part;
            head += part;
            if head < REQUEST_SIZE {
                io.inbox.push(&self.prediction.headers[index][..head]);
                break;
            }
            head = 0;
            let request = RequestHeader::decode(&self.prediction.headers[index]);
            match request.filter(|request| !draining && self.is_expected(request)) {
                Some(request) => {
                    let data =
                        self.prediction.buffers.pop_front().expect("as many as were offered are there");
                    let filled = n.min(self.prediction.len as usize);
                    n -= filled;
                    self.begin_write(request, data, filled, io);
                }
                None => {
                    self.spill(index, n, io);
                    return index;
                }
            }
            index += 1;
        }
        index
    }

    fn is_expected(&self, request: &RequestHeader) -> bool {
        request.command == command::WRITE
            && request.len == self.prediction.len
            && self.validate(request).is_ok()
    }

    /// The header at `index` is not what was expected: moves it and the `n` bytes after it to the inbox.
    fn spill(&mut self, index: usize, mut n: usize, io: &mut Io) {
        let prediction = &mut self.prediction;
        io.counters.copied_bytes += n as u64;
        io.inbox.push(&prediction.headers[index]);
        // The buffers of the writes before it are gone from the queue: its own is the first.
        for (place, data) in prediction.buffers.iter().enumerate() {
            if place > 0 {
                let part = n.min(REQUEST_SIZE);
                io.inbox.push(&prediction.headers[index + place][..part]);
                n -= part;
            }
            for buffer in data {
                let part = n.min(buffer.len());
                io.inbox.push(&buffer[..part]);
                n -= part;
            }
            if n == 0 {
                break;
            }
        }
        assert!(n == 0, "no more bytes came than there was room for");
        prediction.streak = 0;
        prediction.buffers.clear();
    }

    /// Goes through the inbox as far as bytes, limits and the pool allow.
    pub(super) fn parse(&mut self, draining: bool, io: &mut Io) -> Progress {
        self.hold = Hold::None;
        loop {
            match &mut self.incoming {
                Incoming::Payload { .. } => return Progress::Open,
                Incoming::Skip { request, refusal, rest } => {
                    let part = io.inbox.len().min(*rest);
                    io.inbox.consume(part);
                    *rest -= part;
                    if *rest > 0 {
                        return Progress::Open;
                    }
                    put_refusal(io.outbox, self.style, request, *refusal);
                    self.incoming = Incoming::Header;
                }
                Incoming::Header => {
                    let Some(bytes) = io.inbox.peek::<REQUEST_SIZE>() else { return Progress::Open };
                    let Some(request) = RequestHeader::decode(bytes) else { return Progress::Ended };
                    if request.command == command::DISC {
                        return Progress::Ended;
                    }
                    if !self.admits(request.payload_len().min(u64::from(REQUEST_LEN_MAX)), io.outbox) {
                        self.hold = Hold::Limit;
                        return Progress::Open;
                    }
                    if self.header(request, draining, io) == Progress::Ended {
                        return Progress::Ended;
                    }
                    if self.hold != Hold::None {
                        return Progress::Open;
                    }
                }
            }
        }
    }

    /// Deals with a request whose header is the first thing in the inbox.
    fn header(&mut self, request: RequestHeader, draining: bool, io: &mut Io) -> Progress {
        let checked = match draining {
            true => Err(Refusal::new(Errno::Shutdown, "the server is stopping")),
            false => self.validate(&request),
        };
        if request.command == command::WRITE && request.len > 0 {
            return match checked {
                Ok(()) => self.write_header(request, io),
                Err(refusal) if request.len <= PAYLOAD_SKIPPED_MAX => {
                    io.inbox.consume(REQUEST_SIZE);
                    self.incoming = Incoming::Skip { request, refusal, rest: request.len as usize };
                    Progress::Open
                }
                Err(_) => Progress::Ended,
            };
        }
        io.inbox.consume(REQUEST_SIZE);
        self.prediction.streak = 0;
        self.prediction.buffers.clear();
        match checked {
            Err(refusal) => put_refusal(io.outbox, self.style, &request, refusal),
            Ok(()) if request.command == command::BLOCK_STATUS => self.survey(request, io),
            Ok(()) => match self.as_request(&request) {
                Some(meaning) => {
                    io.counters.requests += 1;
                    let cookie = self.slots.insert(request);
                    io.events.push(Event::Request { cookie, request: meaning });
                }
                None => put_done(io.outbox, self.style, &request),
            },
        }
        Progress::Open
    }

    /// Asks about blocks, once for each context.
    fn survey(&mut self, request: RequestHeader, io: &mut Io) {
        io.counters.requests += 1;
        let key = self.surveys.begin(self.contexts.len());
        let (offset, len) = (request.offset, u64::from(request.len));
        for &context in &self.contexts {
            let cookie = self.slots.insert_part(request, Part { survey: key, context });
            let request = Request::Status { of: context.question(&self.export), offset, len };
            io.events.push(Event::Request { cookie, request });
        }
    }

    fn write_header(&mut self, request: RequestHeader, io: &mut Io) -> Progress {
        let len = request.len as usize;
        let data = io.pool.has_room_for_guests(len).then(|| take_buffers(io.pool, len)).flatten();
        let Some(data) = data else {
            self.hold = Hold::Pool;
            return Progress::Open;
        };
        io.inbox.consume(REQUEST_SIZE);
        let filled = io.inbox.len().min(request.len as usize);
        let mut rest = filled;
        for buffer in &data {
            let part = rest.min(buffer.len());
            buffer.fill_from(0, &io.inbox.bytes()[..part]);
            io.inbox.consume(part);
            rest -= part;
        }
        io.counters.copied_bytes += filled as u64;
        self.begin_write(request, data, filled, io);
        Progress::Open
    }

    /// A write is let in, and `filled` bytes of its payload are in place.
    fn begin_write(&mut self, request: RequestHeader, data: Buffers, filled: usize, io: &mut Io) {
        if request.len == self.prediction.len {
            self.prediction.streak = self.prediction.streak.saturating_add(1);
        } else {
            self.prediction.len = request.len;
            self.prediction.streak = 1;
            self.prediction.buffers.clear();
        }
        io.counters.requests += 1;
        let slot = self.slots.insert(request);
        self.incoming = Incoming::Payload { slot, request, data, filled };
        if filled == request.len as usize {
            self.finish_write(io);
        }
    }

    /// The payload is complete: hands the write out.
    fn finish_write(&mut self, io: &mut Io) {
        match std::mem::replace(&mut self.incoming, Incoming::Header) {
            Incoming::Payload { slot, request, data, .. } => {
                let request = Request::Write { offset: request.offset, data };
                io.events.push(Event::Request { cookie: slot, request });
            }
            Incoming::Header | Incoming::Skip { .. } => panic!("only a write has payload to complete"),
        }
    }

    /// What a valid request asks of the disk; nothing if it is done already.
    fn as_request(&self, request: &RequestHeader) -> Option<Request> {
        let (offset, len) = (request.offset, u64::from(request.len));
        match request.command {
            command::FLUSH => Some(Request::Flush),
            _ if len == 0 => None,
            command::READ => Some(Request::Read { offset, len: request.len }),
            command::TRIM => Some(Request::Trim { offset, len }),
            command::WRITE_ZEROES => {
                let allocate = request.flags & command_flag::NO_HOLE != 0;
                Some(Request::WriteZeroes { offset, len, allocate })
            }
            // A hint that we have no use for: what is read often is in the host's memory or on flash already.
            command::CACHE => None,
            other => panic!("validation lets no request of type {other} through"),
        }
    }

    /// Whether a request makes sense, by the specification's sections on flags, sizes and errors.
    fn validate(&self, request: &RequestHeader) -> Result<(), Refusal> {
        let structured = self.style == Style::Structured;
        let extra = match request.command {
            command::READ if structured => command_flag::DF,
            command::READ | command::WRITE | command::FLUSH | command::TRIM | command::CACHE => 0,
            command::WRITE_ZEROES => command_flag::NO_HOLE | command_flag::FAST_ZERO,
            command::BLOCK_STATUS => command_flag::REQ_ONE,
            _ => return Err(Refusal::new(Errno::Invalid, "this request is not known here")),
        };
        if request.flags & !(command_flag::FUA | extra) != 0 {
            return Err(Refusal::new(Errno::Invalid, "the request has a flag that does not belong to it"));
        }
        let writes = matches!(request.command, command::WRITE | command::TRIM | command::WRITE_ZEROES);
        if writes && self.export.read_only {
            return Err(Refusal::new(Errno::NotPermitted, "the disk is read-only"));
        }
        if request.command == command::FLUSH {
            return match (request.offset, request.len) {
                (0, 0) => Ok(()),
                _ => Err(Refusal::new(Errno::Invalid, "a flush has no offset and no length")),
            };
        }
        if request.payload_len() > u64::from(REQUEST_LEN_MAX) {
            return Err(Refusal::new(Errno::Invalid, "the request is larger than 32 MiB"));
        }
        let sector = u64::from(BLOCK_SIZE_MIN);
        if !request.offset.is_multiple_of(sector) || !request.len.is_multiple_of(BLOCK_SIZE_MIN) {
            return Err(Refusal::new(Errno::Invalid, "offset and length must be multiples of 512"));
        }
        let end = request.offset.checked_add(u64::from(request.len));
        if end.is_none_or(|end| end > self.export.size) {
            let full = matches!(request.command, command::WRITE | command::WRITE_ZEROES);
            let errno = if full { Errno::NoSpace } else { Errno::Invalid };
            return Err(Refusal::new(errno, "the range reaches beyond the end of the disk"));
        }
        let slow = command_flag::NO_HOLE | command_flag::FAST_ZERO;
        if request.command == command::WRITE_ZEROES && request.flags & slow == slow {
            // Zeroes that must keep their space are written: no faster than a write of the client's own.
            return Err(Refusal::new(Errno::NotSupported, "zeroes that take space are not fast"));
        }
        if request.command == command::BLOCK_STATUS && (self.contexts.is_empty() || request.len == 0) {
            return Err(Refusal::new(
                Errno::Invalid,
                "no metadata context was agreed on, or the length is zero",
            ));
        }
        Ok(())
    }

    /// Queues the reply to a request that was handed out as `cookie`.
    pub(super) fn reply(&mut self, cookie: u64, outcome: Outcome, outbox: Option<&mut Outbox>) {
        match self.slots.remove(cookie) {
            (request, None) => {
                if let Some(outbox) = outbox {
                    put_outcome(outbox, self.style, &request, outcome);
                }
            }
            (request, Some(part)) => self.reply_part(&request, part, outcome, outbox),
        }
    }

    /// Queues what one context says of the blocks that a client asked about; if it is the last one, with the end of the reply.
    fn reply_part(
        &mut self,
        request: &RequestHeader,
        part: Part,
        outcome: Outcome,
        outbox: Option<&mut Outbox>,
    ) {
        let runs = match outcome {
            Ok(Reply::Status(runs)) => Some(runs),
            Ok(reply) => panic!("a question about blocks is not answered by {reply:?}"),
            Err(error) => {
                self.surveys.failed(part.survey, SurveyFailure::OfDisk(error));
                None
            }
        };
        let end = self.surveys.told(part.survey);
        let Some(outbox) = outbox else { return };
        if let Some(runs) = runs {
            put_status(outbox, request, part.context, &runs, end == Some(Ok(())));
        }
        if let Some(Err(failure)) = end {
            self.put_survey_failure(request, failure, outbox);
        }
    }

    fn put_survey_failure(&self, request: &RequestHeader, failure: SurveyFailure, outbox: &mut Outbox) {
        match failure {
            SurveyFailure::OfDisk(error) => put_failure(outbox, self.style, request, error),
            SurveyFailure::Refused(refusal) => put_refusal(outbox, self.style, request, refusal),
        }
    }

    /// Queues an I/O error as the reply to a request that was handed out as `cookie`.
    pub(super) fn fail(&mut self, cookie: u64, why: &'static str, outbox: Option<&mut Outbox>) {
        let (request, part) = self.slots.remove(cookie);
        let refusal = Refusal::new(Errno::Io, why);
        let failure = SurveyFailure::Refused(refusal);
        let failure = match part {
            None => Some(failure),
            Some(part) => {
                self.surveys.failed(part.survey, failure);
                self.surveys.told(part.survey).and_then(Result::err)
            }
        };
        if let (Some(outbox), Some(failure)) = (outbox, failure) {
            self.put_survey_failure(&request, failure, outbox);
        }
    }
}

/// Buffers of `len` bytes in all; nothing if the pool has not as many now. Each but the last is a multiple of 4 KiB.
fn take_buffers(pool: &Pool, len: usize) -> Option<Buffers> {
    let mut buffers = Buffers::new();
    let mut rest = len;
    while rest > 0 {
        let part = buffer_len(rest);
        buffers.push(pool.take(part)?);
        rest -= part;
    }
    Some(buffers)
}

/// How much of `rest` bytes goes into one buffer. Buffers come in powers of two: one that would be much too large is
/// given up for two smaller ones.
fn buffer_len(rest: usize) -> usize {
    let size = rest.next_power_of_two().max(PIECE_SIZE_MIN);
    match rest {
        _ if rest >= CHUNK_SIZE => CHUNK_SIZE,
        _ if rest <= 4 * PIECE_SIZE_MIN || size - rest <= rest / 4 => rest,
        _ => size / 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_fill_few_buffers_and_waste_little() {
        for (len, parts) in [
            (512, vec![512]),
            (4096, vec![4096]),
            (12 << 10, vec![12 << 10]),
            (20 << 10, vec![16 << 10, 4 << 10]),
            (64 << 10, vec![64 << 10]),
            (300 << 10, vec![256 << 10, 32 << 10, 12 << 10]),
            ((1 << 20) + 512, vec![1 << 20, 512]),
            (3 << 20, vec![1 << 20; 3]),
        ] {
            let (mut rest, mut found) = (len, Vec::new());
            while rest > 0 {
                found.push(buffer_len(rest));
                rest -= found.last().expect("just pushed");
            }
            assert_eq!(found, parts, "{len}");
        }
    }
}
