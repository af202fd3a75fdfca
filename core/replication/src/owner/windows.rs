//! What members' windows show: what is decided, whether one has all of it, and what must be rolled forward.

use super::member::{Member, Opened};
use super::member_set::MemberSet;
use super::place::{Place, Roll};
use base::WriteId;
use std::collections::BTreeMap;
use wire::Entry;

/// What a member told of its window.
pub(crate) fn opened(member: &Member) -> &Opened {
    member.opened().expect("a window is decided when all have told theirs")
}

/// The greatest id that any component that counts knows to be decided: by what its owner told it, or because that had so many
/// changes after it that it cannot be undecided.
pub(crate) fn decided(place: &Place) -> WriteId {
    let spans = |opened: &Opened| {
        opened.entries.iter().filter(|entry| entry.is_span()).map(Entry::last).max().unwrap_or_default()
    };
    let known = |opened: &Opened| opened.watermark.max(spans(opened));
    place.counting().filter_map(|(_, one)| Some(known(one.opened()?))).max().unwrap_or_default()
}

/// Whether a component holds every change between its watermark and what is decided (invariant 13). Ids of one epoch
/// have no gaps. Where the epochs differ, the new owner's first watermark was under way, which came after all; no change was decided
/// in the later epoch before all that counted had it.
pub(crate) fn is_contiguous(opened: &Opened, decided: WriteId, trusts_epochs: bool) -> bool {
    let is_first = decided.sequence == 0 || trusts_epochs;
    if opened.watermark >= decided || (opened.watermark.epoch != decided.epoch && is_first) {
        return true;
    }
    contiguous_end(opened) >= decided
}

/// The last id up to which a component shows every change after its watermark.
pub(crate) fn contiguous_end(opened: &Opened) -> WriteId {
    // They are in the order of their ids, but for what was rolled forward to this component just now.
    let mut held: Vec<&Entry> = opened.entries.iter().filter(|entry| !entry.is_cut()).collect();
    held.sort_unstable_by_key(|entry| entry.id);
    let follows = |through: WriteId, entry: &Entry| {
        let next = WriteId { sequence: through.sequence.saturating_add(1), ..through };
        if entry.id <= next && entry.last() >= next { entry.last() } else { through }
    };
    held.into_iter().fold(opened.watermark, follows)
}

/// What must be rolled forward among members, all open, by id.
pub(crate) fn rolls(members: &[(u8, &Member)], decided: WriteId) -> Vec<Roll> {
    let mut window: BTreeMap<WriteId, (Entry, MemberSet)> = BTreeMap::new();
    for (member, one) in members {
        // Spans and cuts tell of nothing beyond what is decided that could be rolled forward.
        let is_undecided = |entry: &&Entry| entry.id > decided && !entry.is_span() && !entry.is_cut();
        for entry in opened(one).entries.iter().filter(is_undecided) {
            window.entry(entry.id).or_insert((*entry, MemberSet::EMPTY)).1.insert(*member);
        }
    }
    let mut rolls = Vec::new();
    for (entry, holders) in window.values() {
        let source = holders.iter().next().expect("a member told of it");
        let lacking = members.iter().map(|(member, _)| *member).filter(|member| !holders.contains(*member));
        rolls.extend(lacking.map(|target| Roll { entry: *entry, source, target }));
    }
    rolls
}
