//! Rows as bytes (docs/formats/series.md).

use super::Subject;
use base::bytes::{Reader, Writer};
use base::checksum::{is_sealed, seal};
use base::{DeviceId, DiskId};
use iostats::Interval;

/// Bytes before what happened.
const HEAD: usize = 36;
const CHECKSUM_PLACE: usize = 0;
const LENGTH_PLACE: usize = 4;

/// What a subject did in a slot.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    /// When the slot began, in seconds since 1970.
    pub(super) start: u64,
    /// Seconds of the slot that were seen.
    pub(super) seconds: u16,
    pub(super) subject: Subject,
    pub(super) interval: Interval,
}

impl Row {
    pub(super) fn encode(&self) -> Vec<u8> {
        let (kind, id) = match self.subject {
            Subject::Host => (0, 0),
            Subject::Disk(id) => (1, id.0),
            Subject::Device(id) => (2, id.0),
        };
        let mut writer = Writer::with_capacity(256);
        writer.u32(0);
        writer.u16(0);
        writer.u16(self.seconds);
        writer.u64(self.start);
        writer.u8(kind);
        writer.slice(&[0; 3]);
        writer.u128(id);
        self.interval.encode(&mut writer);
        let mut bytes = writer.into_bytes();
        let length = u16::try_from(bytes.len()).expect("an interval has some hundred buckets at most");
        bytes[LENGTH_PLACE..LENGTH_PLACE + 2].copy_from_slice(&length.to_le_bytes());
        seal(&mut bytes, CHECKSUM_PLACE);
        bytes
    }

    /// The row at the beginning of `bytes`, and its length; nothing where there is no whole one.
    pub(super) fn decode(bytes: &[u8]) -> Option<(Row, usize)> {
        let length: [u8; 2] = bytes.get(LENGTH_PLACE..LENGTH_PLACE + 2)?.try_into().ok()?;
        let length = usize::from(u16::from_le_bytes(length));
        let whole = bytes.get(..length).filter(|whole| whole.len() >= HEAD)?;
        if !is_sealed(whole, CHECKSUM_PLACE) {
            return None;
        }
        let mut reader = Reader::new(whole);
        reader.u32();
        reader.u16();
        let (seconds, start, kind) = (reader.u16(), reader.u64(), reader.u8());
        reader.slice(3);
        let id = reader.u128();
        let subject = match kind {
            0 => Subject::Host,
            1 => Subject::Disk(DiskId(id)),
            2 => Subject::Device(DeviceId(id)),
            _ => return None,
        };
        let interval = Interval::decode(&mut reader).ok()?;
        (reader.remaining() == 0).then_some((Row { start, seconds, subject, interval }, length))
    }
}
