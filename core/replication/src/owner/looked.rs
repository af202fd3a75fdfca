//! What an owner saw when it last looked for what is to be done about snapshots.
//!
//! Which component has which of up to 256 snapshots is looked through only when something of it may have changed: the owner is stepped for every read and change
//! of a guest.

/// What counts of one member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) is_active: bool,
    pub(crate) is_open: bool,
    pub(crate) has_wish: bool,
    pub(crate) is_known: bool,
    /// How many snapshots it has, is deleting, and cannot be given.
    pub(crate) numbers: [usize; 3],
}

/// What counts of the disk.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Around {
    pub(crate) version: u64,
    pub(crate) is_idle: bool,
    pub(crate) is_open: bool,
    pub(crate) taking: Option<u32>,
    pub(crate) backfilling: Option<u32>,
    pub(crate) is_resting: bool,
}

/// Both.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    around: Around,
    members: Vec<Seen>,
}

impl Looked {
    /// Takes in what is seen now. Says whether anything has changed since.
    pub(crate) fn update(&mut self, around: Around, members: impl Iterator<Item = Seen> + Clone) -> bool {
        if self.around == around && self.members.iter().copied().eq(members.clone()) {
            return false;
        }
        self.around = around;
        self.members.clear();
        self.members.extend(members);
        true
    }
}
