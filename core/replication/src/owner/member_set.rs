//! Some members of one place, by their index: who has not answered, who has no room, where blocks are damaged.

use crate::limits::PLACE_MEMBERS_MAX;

const _: () = assert!(PLACE_MEMBERS_MAX <= u16::BITS as usize);

/// A set of members of one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct MemberSet(u16);

impl MemberSet {
    /// No member.
    pub(crate) const EMPTY: MemberSet = MemberSet(0);

    /// One member.
    pub(crate) fn of(member: u8) -> MemberSet {
        assert!(usize::from(member) < PLACE_MEMBERS_MAX, "a place has no such member");
        MemberSet(1 << member)
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn contains(self, member: u8) -> bool {
        self.intersects(MemberSet::of(member))
    }

    /// Whether a member is in both.
    pub(crate) fn intersects(self, other: MemberSet) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) fn union(self, other: MemberSet) -> MemberSet {
        MemberSet(self.0 | other.0)
    }

    /// The members that are not in `other`.
    pub(crate) fn without(self, other: MemberSet) -> MemberSet {
        MemberSet(self.0 & !other.0)
    }

    pub(crate) fn insert(&mut self, member: u8) {
        *self = self.union(MemberSet::of(member));
    }

    pub(crate) fn remove(&mut self, member: u8) {
        *self = self.without(MemberSet::of(member));
    }

    /// The members in ascending order.
    pub(crate) fn iter(self) -> impl Iterator<Item = u8> {
        (0..PLACE_MEMBERS_MAX as u8).filter(move |member| self.contains(*member))
    }
}

impl FromIterator<u8> for MemberSet {
    fn from_iter<I: IntoIterator<Item = u8>>(members: I) -> MemberSet {
        members.into_iter().fold(MemberSet::EMPTY, |all, member| all.union(MemberSet::of(member)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_room_for_every_member_of_a_place() {
        let all: MemberSet = (0..PLACE_MEMBERS_MAX as u8).collect();
        assert_eq!(all.iter().count(), PLACE_MEMBERS_MAX);
        let last = PLACE_MEMBERS_MAX as u8 - 1;
        let mut some = all.without([0, last].into_iter().collect());
        assert!(!some.contains(last) && some.contains(1) && all.intersects(some));
        some.insert(last);
        some.remove(1);
        assert_eq!((some.iter().next(), some.contains(last)), (Some(2), true));
        assert!(all.without(all).is_empty());
    }
}
