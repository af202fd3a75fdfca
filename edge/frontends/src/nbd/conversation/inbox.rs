//! Bytes that were received and not yet looked at: headers, options, and payload that came unexpected.

use crate::IoVec;
use crate::limits::INBOX_SIZE;

#[derive(Debug)]
pub(super) struct Inbox {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Inbox {
    pub(super) fn new() -> Inbox {
        Inbox { bytes: vec![0; INBOX_SIZE], start: 0, end: 0 }
    }

    /// What is there.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    pub(super) fn len(&self) -> usize {
        self.end - self.start
    }

    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// The first `N` bytes, if they are there.
    pub(super) fn peek<const N: usize>(&self) -> Option<&[u8; N]> {
        self.bytes().first_chunk()
    }

    /// Forgets the first `n` bytes.
    pub(super) fn consume(&mut self, n: usize) {
        assert!(n <= self.len(), "only what is there can be used");
        self.start += n;
        if self.is_empty() {
            self.start = 0;
            self.end = 0;
            if self.bytes.len() > INBOX_SIZE {
                self.bytes.truncate(INBOX_SIZE);
                self.bytes.shrink_to_fit();
            }
        }
    }

    /// Where up to `max` further bytes go; they stay there until [`Inbox::received`].
    pub(super) fn space(&mut self, max: usize) -> IoVec {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let space = &mut self.bytes[self.end..];
        let len = space.len().min(max);
        IoVec::target(space.as_mut_ptr(), len)
    }

    /// `n` bytes came to where [`Inbox::space`] said.
    pub(super) fn received(&mut self, n: usize) {
        assert!(n <= self.bytes.len() - self.end, "a receive stays within its vectors");
        self.end += n;
    }

    /// Appends bytes that came elsewhere.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let end = self.end + bytes.len();
        if end > self.bytes.len() {
            self.bytes.resize(end, 0);
        }
        self.bytes[self.end..end].copy_from_slice(bytes);
        self.end = end;
    }
}
