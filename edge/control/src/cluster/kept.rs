//! What a host makes of all that it sees of its cluster.

use crate::directory::shared::Attendees;
use ::cluster::{Attendance, Balancer, Links, Liveness, MoveWatch, Repairs, RoomWatch, SlowWatch, StandIns};
use base::{ComponentId, HostId};
use std::collections::BTreeMap;
use std::time::Instant;

/// The answer to the last heartbeat, and when it came.
pub(super) struct LastBeat {
    pub(super) attendees: Attendees,
    pub(super) came: Instant,
}

/// What a host makes of all that it sees.
#[derive(Default)]
pub struct Keeper {
    pub(super) last_beat: Option<LastBeat>,
    pub(super) attendance: Attendance,
    /// Who was there when the directory last answered.
    pub(super) attended: BTreeMap<HostId, Liveness>,
    /// Hosts that this one does not reach, and since when.
    pub(super) unreached: BTreeMap<HostId, base::Instant>,
    /// Which hosts that are there do not reach each other.
    pub(super) links: Links,
    /// All that decisions are made from.
    pub(super) facts: ::cluster::View,
    /// What was decided about repairs.
    pub(super) repairs: Repairs,
    /// What was decided about components that stand in for others.
    pub(super) stand_ins: StandIns,
    /// What was decided about evening out.
    pub(super) balancer: Balancer,
    pub(super) balanced: Option<Instant>,
    /// Since when disks that move into another layout stand still.
    pub(super) moves: MoveWatch,
    /// Full devices that components wait for.
    pub(super) room: RoomWatch,
    /// How long this host's devices work for what they do.
    pub(super) devices: SlowWatch,
    pub(super) sized: Option<Instant>,
    /// Components here that no record names and that cannot be deleted now, and since when.
    pub(super) kept: BTreeMap<ComponentId, Instant>,
    /// Since when the directory has not answered, by its clock.
    pub(super) away_since: Option<base::Instant>,
}
