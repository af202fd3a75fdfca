//! What members' windows show: what is decided, whether one has all of it, and what must be rolled forward.

use super::member::{Member, Opened};
use super::member_set::MemberSet;
use super::place::{Place, Roll, RollFrom};
use super::rows::is_touched;
use base::WriteId;
use layout::Code;
use std::collections::BTreeMap;
use wire::{Entry, layer};

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
        let from = RollFrom::Copy(source);
        rolls.extend(lacking.map(|target| Roll { entry: *entry, from, target }));
    }
    rolls
}

/// How changes of rows are decided.
pub(crate) struct RowRules<'a> {
    pub(crate) code: Code,
    /// Who gives the blocks of those that are rolled forward; none if they follow from what others have.
    pub(crate) source: Option<u8>,
    /// Whether a change goes on that these members tell of.
    pub(crate) is_enough: &'a dyn Fn(MemberSet) -> bool,
    /// Whether active members are missing that may tell of changes what these do not.
    pub(crate) are_some_away: bool,
}

/// What must be done for members of rows, all open, by id: a change that enough tell of is rolled forward. Any other is dropped, and what
/// it replaced counts again (invariant 18).
pub(crate) fn row_rolls(rules: &RowRules<'_>, members: &[(u8, &Member)], decided: WriteId) -> Vec<Roll> {
    let mut window: BTreeMap<WriteId, Vec<(u8, Entry)>> = BTreeMap::new();
    for (member, one) in members {
        let is_undecided = |entry: &&Entry| entry.id > decided && !entry.is_span() && !entry.is_cut();
        for entry in opened(one).entries.iter().filter(is_undecided) {
            window.entry(entry.id).or_default().push((*member, *entry));
        }
    }
    window.values().flat_map(|told| rolls_of_row(rules, members, told)).collect()
}

/// The same of one change. Members tell of it with its range where they have a part in it, and with none where they have not. With
/// its range and no blocks they tell that they have dropped it.
fn rolls_of_row(rules: &RowRules<'_>, members: &[(u8, &Member)], told: &[(u8, Entry)]) -> Vec<Roll> {
    let has_range = |entry: &Entry| entry.count > 0 || entry.part != 0;
    let position = |member: u8| {
        let found = members.iter().find(|(index, _)| *index == member);
        found.expect("it is one of them").1.position
    };
    let holders: MemberSet = told.iter().map(|(member, _)| *member).collect();
    let ranged = told.iter().map(|(_, entry)| entry).find(|entry| has_range(entry));
    let is_dropped = told.iter().any(|(_, entry)| entry.count == 0 && has_range(entry));
    // Of a small change that parity does not count yet each member that has a part in it has the same.
    let copied = ranged.filter(|entry| layer::is_of_copies(layer::split(entry.part).0));
    let source = told
        .iter()
        .find(|(_, entry)| entry.count > 0)
        .map(|(member, _)| *member)
        .filter(|_| copied.is_some());
    let is_enough = source.is_some() || copied.is_none() && (rules.is_enough)(holders);
    let source = source.or(rules.source);
    let goes_on = !is_dropped && is_enough;
    let nothing = |entry: &Entry| Entry { part: 0, block: 0, count: 0, is_trim: true, ..*entry };
    let (first, dropped) = match ranged {
        // Who is away may tell its range later, and whoever had its number then would be taken to have its part in it.
        None if rules.are_some_away => return Vec::new(),
        // All that tell of it have no part in it; whoever has does not have it.
        None => (nothing(&told[0].1), nothing(&told[0].1)),
        Some(entry) => (*entry, Entry { count: 0, is_trim: true, ..*entry }),
    };
    let roll = |target: u8| {
        let own = told.iter().find(|(member, _)| *member == target).map(|(_, entry)| *entry);
        let (entry, from) = match (goes_on && ranged.is_some(), own) {
            (true, Some(_)) => return None,
            (true, None) if is_touched(rules.code, (first.part, first.block), position(target)) => {
                (first, source.map_or(RollFrom::Row(holders), RollFrom::Copy))
            }
            (true, None) => (nothing(&first), RollFrom::Nothing),
            (false, Some(own)) if own.count == 0 => return None,
            (false, _) => (dropped, RollFrom::Nothing),
        };
        Some(Roll { entry, from, target })
    };
    members.iter().filter_map(|(member, _)| roll(*member)).collect()
}
