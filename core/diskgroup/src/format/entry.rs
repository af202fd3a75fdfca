//! What records of the log name: where something stands, and which guest's change is remembered.

use base::bytes::Writer;
use base::{RequestTag, WriteId};

/// Where an extent stands: which device of the group, which extent of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExtentLocation {
    /// The member of the group.
    pub member: u8,
    /// The extent on it; [`ExtentLocation::UNPLACED`] if it is chosen when the blocks are destaged.
    pub extent: u32,
}

impl ExtentLocation {
    /// The extent of what gets its place when it is destaged.
    pub const UNPLACED: u32 = u32::MAX;

    /// Nowhere yet on that member.
    pub fn unplaced(member: u8) -> ExtentLocation {
        ExtentLocation { member, extent: ExtentLocation::UNPLACED }
    }

    /// Whether it names an extent.
    pub fn is_placed(self) -> bool {
        self.extent != ExtentLocation::UNPLACED
    }
}

/// A guest's write or trim that the watermark has not passed, as it is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowEntry {
    /// Its id.
    pub id: WriteId,
    /// Which MiB of the component; [`WindowEntry::SPAN_PART`] for a span.
    pub part: u32,
    /// The layer of that part; 0 is the content, also for marks and spans.
    pub layer: u8,
    /// First block of it.
    pub block: u8,
    /// Blocks, 0..=256; 0 for a mark, which changes nothing, and for a span.
    pub count: u16,
    /// Whether it is a trim (or a mark, or a span).
    pub is_trim: bool,
    /// The guest's request; of a span, the number of ids that follow the first.
    pub tag: RequestTag,
}

impl WindowEntry {
    /// The part of a span: no component has so many.
    pub const SPAN_PART: u32 = u32::MAX;

    /// A span: the component holds every change from `first` on and the `following` after it. Their ranges are forgotten,
    /// for all of them are decided.
    pub fn span(first: WriteId, following: u64) -> WindowEntry {
        let tag = RequestTag(following);
        WindowEntry {
            id: first,
            part: WindowEntry::SPAN_PART,
            layer: 0,
            block: 0,
            count: 0,
            is_trim: true,
            tag,
        }
    }

    /// Whether it stands for several changes.
    pub fn is_span(&self) -> bool {
        self.count == 0 && self.part == WindowEntry::SPAN_PART
    }

    /// The last id that it stands for.
    pub fn last(&self) -> WriteId {
        let following = if self.is_span() { self.tag.0 } else { 0 };
        WriteId { epoch: self.id.epoch, sequence: self.id.sequence + following }
    }
}

/// Whose change a record tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A guest's, in the owner's order: it is remembered by its id until the watermark passes it, and with it the tag of
    /// the guest's request.
    Guest(RequestTag),
    /// A copy of what stands elsewhere (resync, repair), or the group's own. It may bring a lesser id than what it
    /// replaces.
    Copy,
}

impl Origin {
    /// The bit of a record's kind that tells copies.
    pub(super) const COPY: u8 = 0x80;

    pub(super) fn bit(self) -> u8 {
        match self {
            Origin::Guest(_) => 0,
            Origin::Copy => Origin::COPY,
        }
    }

    /// What follows the id in a record.
    pub(super) fn encode(self, w: &mut Writer) {
        if let Origin::Guest(tag) = self {
            w.u64(tag.0);
        }
    }
}
