//! Requests that were handed out and wait for their answers.

use super::surveys::Part;
use crate::nbd::protocol::RequestHeader;

#[derive(Debug)]
struct Slot {
    /// Grows with every use, so that an answer given twice is noticed.
    generation: u32,
    /// The request, and which part of its answer it asks for if that has several.
    request: Option<(RequestHeader, Option<Part>)>,
}

/// A slab: no allocation once it has grown to the client's depth.
#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Bytes of the reads and writes among them.
    payload_bytes: u64,
}

impl Slots {
    /// Number of requests.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn payload_bytes(&self) -> u64 {
        self.payload_bytes
    }

    /// Keeps a request; the result names it.
    pub(super) fn insert(&mut self, request: RequestHeader) -> u64 {
        self.keep(request, None)
    }

    /// Keeps a request that asks for a part of an answer; the result names it.
    pub(super) fn insert_part(&mut self, request: RequestHeader, part: Part) -> u64 {
        self.keep(request, Some(part))
    }

    fn keep(&mut self, request: RequestHeader, part: Option<Part>) -> u64 {
        self.payload_bytes += request.payload_len();
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, request: None });
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[index as usize];
        slot.generation = slot.generation.wrapping_add(1);
        slot.request = Some((request, part));
        u64::from(slot.generation) << 32 | u64::from(index)
    }

    /// Gives the request back. Asking for one that is not there is a bug of the executor.
    pub(super) fn remove(&mut self, name: u64) -> (RequestHeader, Option<Part>) {
        let index = name as u32;
        let slot = &mut self.slots[index as usize];
        assert!(slot.generation == (name >> 32) as u32, "a request is answered once");
        let (request, part) = slot.request.take().expect("a request is answered once");
        self.free.push(index);
        self.payload_bytes -= request.payload_len();
        (request, part)
    }
}
