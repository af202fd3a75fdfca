//! What an owner tells of itself.

use super::Owner;
use super::interface::{MemberState, OwnerState, Phase};
use super::member::Member;
use super::resync::Resync;
use super::steering::Reading;
use std::time::Duration;

impl Owner {
    /// The figures of the owner.
    pub fn state(&self) -> OwnerState {
        let of_member = |place: u16, member: &Member| MemberState {
            component: member.component,
            node: member.node,
            place,
            standing: member.standing(),
            role: member.role,
            is_open: member.is_open(),
            is_passed_over: self.passes_over(place, member),
            read_time: Duration::from_nanos(member.recent.ns),
            resync: member.resync().map(Resync::progress),
            looked_through: member.resync().and_then(Resync::looked_through),
            trouble: member.trouble,
            retry_in: self.retry_in(member),
        };
        let places = (0u16..).zip(&self.places);
        let members = places.flat_map(|(index, place)| place.known().map(move |one| of_member(index, one)));
        OwnerState {
            phase: self.phase,
            epoch: self.epoch,
            members: members.collect(),
            waits_for_directory: !self.recording.is_idle() && self.is_held_up(),
            copied_bytes: self.copied_bytes,
            repaired_blocks: self.repaired_blocks,
            held_blocks: self.places.iter().map(|place| place.held.blocks()).sum(),
            folded_blocks: self.folded_blocks,
            row_checks: self.row_check_state(),
        }
    }

    fn passes_over(&self, place: u16, member: &Member) -> bool {
        let is_own = member.node.host == self.me.node.host && member.is_active();
        is_own && self.settings.reading == Reading::Auto && self.places[usize::from(place)].steering.is_away()
    }

    /// Whether nobody is answered before the directory has said what counts.
    fn is_held_up(&self) -> bool {
        let is_missed = |one: &Member| one.may_count() && !one.is_open();
        match self.phase {
            Phase::Claiming | Phase::Opening => true,
            Phase::Serving => self.places.iter().any(|place| place.known().any(is_missed)),
            Phase::Releasing | Phase::Ended => false,
        }
    }

    fn retry_in(&self, member: &Member) -> Option<Duration> {
        member.trouble?;
        let (_, retry_at) = member.is_down()?;
        (retry_at > self.now).then(|| retry_at.since(self.now))
    }
}
