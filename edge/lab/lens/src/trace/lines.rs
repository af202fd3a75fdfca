//! What reads the lines of a form of trace, and what lines give: I/Os, and names of disks.

use crate::event::Event;

/// Disks that are told apart; I/Os of further ones are dropped and counted.
pub const DISKS_MAX: usize = 16_384;
/// Characters of a disk's name that are looked at.
const NAME_MAX: usize = 128;

/// An I/O on the trace's own clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Raw {
    pub(super) at_ns: i128,
    pub(super) event: Event,
}

/// What a line was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineOutcome {
    /// An I/O or a step of one.
    Used,
    /// Nothing about an I/O: a heading, a comment, a step that is not needed.
    Ignored,
    /// Something that cannot be used.
    Dropped(&'static str),
}

/// What reads the lines of one form of trace.
pub(super) trait Lines: std::fmt::Debug {
    /// Takes a line.
    fn line(&mut self, line: &str, found: &mut Found) -> LineOutcome;
    /// There are no more lines.
    fn end(&mut self, found: &mut Found) {
        let _ = found;
    }
}

/// What lines gave: I/Os, and names of disks.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) raw: Vec<Raw>,
    pub(super) names: Vec<String>,
    places: rustc_hash::FxHashMap<String, u32>,
    pub(super) unfinished: u64,
    pub(super) notes: Vec<String>,
}

impl Found {
    /// The index of a disk; nothing when there are too many.
    pub(super) fn disk(&mut self, name: &str) -> Option<u32> {
        let end = name.char_indices().nth(NAME_MAX).map_or(name.len(), |(end, _)| end);
        let name = &name[..end];
        if let Some(&place) = self.places.get(name) {
            return Some(place);
        }
        if self.names.len() >= DISKS_MAX {
            return None;
        }
        let place = self.names.len() as u32;
        self.places.insert(name.to_owned(), place);
        self.names.push(name.to_owned());
        Some(place)
    }

    pub(super) fn event(&mut self, at_ns: i128, event: Event) -> LineOutcome {
        self.raw.push(Raw { at_ns, event });
        LineOutcome::Used
    }
}
