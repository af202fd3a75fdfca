//! Requests of one disk that ended with an error for want of an answer: how many, and how many of them are still under way.

/// Requests of one disk that may have ended with an error and still be under way. Each may hold memory of a write until the
/// disk is served again, so further requests of clients that ask for errors end with an error at once. The block device of a
/// virtual machine has 128 requests in flight at most.
const OVERDUE_MAX: u32 = 256;
/// Bytes that their writes may hold: as much as the largest write.
const OVERDUE_BYTES_MAX: u64 = 32 << 20;

/// Requests of one disk that ended with an error for want of an answer.
#[derive(Debug, Default)]
pub(crate) struct Overdue {
    /// Those that are still under way, and the bytes of their writes.
    pending: u32,
    pending_bytes: u64,
    /// All since the engine started.
    pub(crate) total: u64,
}

impl Overdue {
    /// Whether no further request may end so and stay under way.
    pub(crate) fn is_full(&self) -> bool {
        self.pending >= OVERDUE_MAX || self.pending_bytes >= OVERDUE_BYTES_MAX
    }

    /// A request ends with an error and stays under way, with `bytes` of a write (zero for others). Says whether no other one is
    /// under way.
    pub(crate) fn begin(&mut self, bytes: u64) -> bool {
        self.pending += 1;
        self.pending_bytes += bytes;
        self.total += 1;
        self.pending == 1
    }

    /// One that ended with an error has its answer after all.
    pub(crate) fn end(&mut self, bytes: u64) {
        self.pending -= 1;
        self.pending_bytes -= bytes;
    }
}
