//! Parts that got a map page, or lost theirs, as long as the pages on their device may say otherwise (docs/design/0044).
//!
//! A write of such a part must not name an extent: after a crash the page, or the extent that the part had before, would be there again, and the
//! record would contradict it.

use std::collections::BTreeSet;
use std::ops::Range;

/// Those parts, by component key and number.
#[derive(Debug, Default)]
pub(crate) struct Unmapped {
    /// Since the checkpoint under way began, or the last one, if none is.
    recent: BTreeSet<(u32, u32)>,
    /// Before the checkpoint under way began.
    settling: BTreeSet<(u32, u32)>,
}

impl Unmapped {
    /// A part has got a map page, or lost it.
    pub(crate) fn note(&mut self, part: (u32, u32)) {
        self.recent.insert(part);
    }

    /// Whether the pages on its device may still say otherwise of a part.
    pub(crate) fn contains(&self, part: (u32, u32)) -> bool {
        self.recent.contains(&part) || self.settling.contains(&part)
    }

    /// Whether they may of any of these parts of a component.
    pub(crate) fn contains_any(&self, component: u32, parts: Range<u32>) -> bool {
        let range = (component, parts.start)..(component, parts.end);
        self.recent.range(range.clone()).chain(self.settling.range(range)).next().is_some()
    }

    /// A checkpoint begins: its pages say what became of all these parts.
    pub(crate) fn checkpoint_begun(&mut self) {
        self.settling = std::mem::take(&mut self.recent);
    }

    /// That checkpoint has ended.
    pub(crate) fn checkpoint_ended(&mut self) {
        self.settling.clear();
    }

    /// A component is gone.
    pub(crate) fn drop_component(&mut self, component: u32) {
        self.recent.retain(|(of, _)| *of != component);
        self.settling.retain(|(of, _)| *of != component);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_counts_as_mapped_until_a_checkpoint_ends_that_began_later() {
        let mut unmapped = Unmapped::default();
        unmapped.checkpoint_begun();
        unmapped.note((1, 7));
        unmapped.checkpoint_ended();
        assert!(unmapped.contains((1, 7)), "its pages were written as they were before");
        unmapped.checkpoint_begun();
        assert!(unmapped.contains((1, 7)));
        unmapped.checkpoint_ended();
        assert!(!unmapped.contains((1, 7)));
    }
}
