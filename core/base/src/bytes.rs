//! Reading and writing of our own fixed little-endian formats, field after field.
//!
//! A decoder that ran out of bytes says so once, at its end: every `take` after the end gives zeroes, and
//! [`Reader::finish`] fails. So decoders are straight lines, and no input makes them panic.

/// Writes fields one after the other.
#[derive(Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// An empty writer with room for `capacity` bytes.
    pub fn with_capacity(capacity: usize) -> Writer {
        Writer { bytes: Vec::with_capacity(capacity) }
    }

    /// Appends one byte.
    pub fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    /// Appends a 16-bit number.
    pub fn u16(&mut self, value: u16) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends a 32-bit number.
    pub fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends a 64-bit number.
    pub fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends a 128-bit number.
    pub fn u128(&mut self, value: u128) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends bytes as they are.
    pub fn slice(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends zeroes until the length is `length`; what is there must not be longer.
    pub fn pad_to(&mut self, length: usize) {
        assert!(self.bytes.len() <= length, "a format's fields overran their place");
        self.bytes.resize(length, 0);
    }

    /// Bytes written so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing has been written.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// All that was written.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Forgets all that was written, keeping the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// All that was written so far.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads fields one after the other.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    rest: &'a [u8],
    overrun: bool,
}

/// The bytes ended before the fields did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the bytes end in the middle of a field")]
pub struct Truncated;

impl<'a> Reader<'a> {
    /// Reads from the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes, overrun: false }
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        match self.rest.split_first_chunk::<N>() {
            Some((head, tail)) => {
                self.rest = tail;
                *head
            }
            None => {
                self.rest = &[];
                self.overrun = true;
                [0; N]
            }
        }
    }

    /// The next byte.
    pub fn u8(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    /// The next 16-bit number.
    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    /// The next 32-bit number.
    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    /// The next 64-bit number.
    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    /// The next 128-bit number.
    pub fn u128(&mut self) -> u128 {
        u128::from_le_bytes(self.array())
    }

    /// The next `length` bytes; an empty slice when fewer are left.
    pub fn slice(&mut self, length: usize) -> &'a [u8] {
        match self.rest.split_at_checked(length) {
            Some((head, tail)) => {
                self.rest = tail;
                head
            }
            None => {
                self.rest = &[];
                self.overrun = true;
                &[]
            }
        }
    }

    /// Skips `length` reserved bytes and says whether all are zero: if not, a newer program gave them a meaning.
    #[must_use = "reserved bytes that are set make what follows mean something else"]
    pub fn reserved(&mut self, length: usize) -> bool {
        self.slice(length).iter().all(|&byte| byte == 0)
    }

    /// Bytes not read yet.
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Whether a field lay beyond the end.
    ///
    /// # Errors
    /// [`Truncated`] if any field so far did.
    pub fn finish(&self) -> Result<(), Truncated> {
        if self.overrun { Err(Truncated) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_and_an_overrun_is_told_once() {
        let mut writer = Writer::default();
        writer.u8(1);
        writer.u16(2);
        writer.u32(3);
        writer.u64(4);
        writer.u128(5);
        writer.pad_to(40);
        let bytes = writer.into_bytes();
        let mut reader = Reader::new(&bytes);
        assert_eq!((reader.u8(), reader.u16(), reader.u32(), reader.u64(), reader.u128()), (1, 2, 3, 4, 5));
        assert_eq!(reader.finish(), Ok(()));
        assert_eq!(reader.slice(100), &[] as &[u8]);
        assert_eq!(reader.finish(), Err(Truncated));
    }
}
