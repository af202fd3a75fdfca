//! Which hosts run the members of a directory that the cluster runs for itself.
//!
//! One member while there are one or two hosts: two would need each other, and the loss of either would stop both. Three from the third
//! host on: one may be lost. A member whose host is lost for good is taken out before another host becomes one in its place: the other
//! way round, four members would need three that answer (etcd, "Runtime reconfiguration"). Must never take out a member while another
//! one is away, too.

use crate::host::HostRecord;
use crate::liveness::Liveness;
use base::{HostId, Instant};
use std::collections::BTreeMap;
use std::time::Duration;

/// Members of the directory, from the third host on.
pub const MEMBERS: usize = 3;

/// A member, as the directory knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seat {
    /// Its id there.
    pub id: u64,
    /// The host that runs it; nothing where no host of the cluster has its address.
    pub host: Option<HostId>,
    /// Whether it has no vote yet.
    pub is_learner: bool,
    /// Whether it answered just now.
    pub answers: bool,
}

/// What is to be done about members; one thing at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberStep {
    /// Take a member out.
    Remove(u64),
    /// Give a member its vote, once it has caught up.
    Promote(u64),
    /// Have a host become a member, without a vote at first.
    Add(HostId),
}

/// What is known of hosts.
#[derive(Debug, Clone, Copy)]
pub struct Hosts<'a> {
    /// Their records.
    pub records: &'a BTreeMap<HostId, HostRecord>,
    /// Whether they are there.
    pub liveness: &'a BTreeMap<HostId, Liveness>,
    /// How long a host may be away before another one takes its place.
    pub patience: Duration,
    /// Now, by the directory's clock.
    pub now: Instant,
}

impl Hosts<'_> {
    fn is_there(&self, host: HostId) -> bool {
        self.liveness.get(&host) == Some(&Liveness::Alive)
    }

    /// Whether a host can become a member: it is there to stay.
    fn can_serve(&self, host: HostId) -> bool {
        let record = self.records.get(&host);
        self.is_there(host) && record.is_some_and(|record| record.maintenance == crate::Maintenance::Off)
    }

    fn is_lost(&self, host: HostId) -> bool {
        match self.liveness.get(&host) {
            Some(Liveness::Suspect { since } | Liveness::Away { since, .. }) => {
                self.now.since(*since) >= self.patience
            }
            Some(Liveness::Alive) | None => false,
        }
    }
}

/// What to do next about the members; `able` are the hosts that can run one, by their own word.
pub fn next_member_step(seats: &[Seat], able: &[HostId], hosts: Hosts<'_>) -> Option<MemberStep> {
    let is_host = |seat: &Seat| seat.host.is_some_and(|host| hosts.records.contains_key(&host));
    let is_lost = |seat: &Seat| seat.host.is_some_and(|host| hosts.is_lost(host));
    let others_answer = |seat: &&Seat| {
        let mut others = seats.iter().filter(|other| other.id != seat.id && !other.is_learner).peekable();
        others.peek().is_some() && others.all(|other| other.answers)
    };
    let removed = |seat: &Seat| Some(MemberStep::Remove(seat.id));
    if let Some(stranger) = seats.iter().filter(|seat| !is_host(seat)).find(others_answer) {
        return removed(stranger);
    }
    if let Some(learner) = seats.iter().find(|seat| seat.is_learner) {
        return if is_lost(learner) { removed(learner) } else { Some(MemberStep::Promote(learner.id)) };
    }
    if hosts.records.len() < MEMBERS {
        // Two need each other: one alone is better.
        let last = seats.iter().max_by_key(|seat| seat.id);
        return last.filter(|seat| seat.answers && others_answer(seat)).and_then(removed);
    }
    let spares = spares(seats, able, hosts);
    // A lost host's member stays while nobody can take its place: it counts again if the host comes back.
    let lost = seats.iter().filter(|seat| !seat.answers && is_lost(seat)).find(others_answer);
    if let Some(lost) = lost.filter(|_| !spares.is_empty()) {
        return removed(lost);
    }
    let can_be_whole = seats.len() + spares.len() >= MEMBERS && seats.iter().all(|seat| seat.answers);
    let spare = spares.first().filter(|_| seats.len() < MEMBERS && can_be_whole);
    spare.map(|host| MemberStep::Add(*host))
}

/// The hosts that could be members and are none; first those of fault domains with the fewest.
fn spares(seats: &[Seat], able: &[HostId], hosts: Hosts<'_>) -> Vec<HostId> {
    let members = || seats.iter().filter_map(|seat| seat.host);
    let domain = |host: HostId| hosts.records.get(&host).map(HostRecord::domain);
    let taken = |host: HostId| members().filter(|member| domain(*member) == domain(host)).count();
    let is_spare = |host: &HostId| hosts.can_serve(*host) && members().all(|member| member != *host);
    let mut spares: Vec<HostId> = able.iter().copied().filter(is_spare).collect();
    spares.sort_by_key(|host| (taken(*host), *host));
    spares
}

#[cfg(test)]
mod tests;
