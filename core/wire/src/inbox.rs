//! Bytes that were received and not yet looked at.

use crate::limits::INBOX_SIZE;

#[derive(Debug)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Inbox {
    pub(crate) fn new() -> Inbox {
        Inbox { bytes: vec![0; INBOX_SIZE], start: 0, end: 0 }
    }

    /// What is there.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    pub(crate) fn len(&self) -> usize {
        self.end - self.start
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Forgets the first `n` bytes.
    pub(crate) fn consume(&mut self, n: usize) {
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

    /// Makes room for `n` bytes in all.
    pub(crate) fn reserve(&mut self, n: usize) {
        if self.bytes.len() < n {
            self.bytes.resize(n, 0);
        }
    }

    /// Where further bytes go; empty when it is full.
    pub(crate) fn space(&mut self) -> &mut [u8] {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        &mut self.bytes[self.end..]
    }

    /// `n` bytes came to where [`Inbox::space`] said.
    pub(crate) fn received(&mut self, n: usize) {
        assert!(n <= self.bytes.len() - self.end, "a receive stays within its space");
        self.end += n;
    }
}
