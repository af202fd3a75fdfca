//! Rules of attaching: who may attach to a disk, and at which hosts.
//!
//! A disk is attached at one host at a time unless it is shared. The rule keeps people from mounting a file system
//! twice. Data does not depend on it, because the owner of a disk serialises all clients wherever they are. So a
//! claim is ignored once its holder is known to have ended. Must know nothing of connections, certificates or the
//! directory.

use base::{HostId, Instant};
use std::collections::BTreeSet;

/// How a disk may be attached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// Whether clients of several hosts may have it at once.
    pub is_shared: bool,
    /// Who may attach. None: everybody who may attach to disks at all.
    pub limit: Option<Limit>,
}

/// The only ones who may attach to a disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limit {
    /// People by their names.
    pub people: BTreeSet<String>,
    /// Hosts, for their guests.
    pub hosts: BTreeSet<HostId>,
}

/// Who wants to attach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guest<'a> {
    /// A client on the host itself without a certificate, at its socket or at loopback.
    Here,
    /// A client with the certificate of a host.
    Host(HostId),
    /// A person.
    Person(&'a str),
    /// A client with a certificate that the cluster does not know.
    Stranger,
}

impl Access {
    /// Whether this client may attach at host `at`.
    pub fn admits(&self, guest: Guest<'_>, at: HostId) -> bool {
        let Some(limit) = &self.limit else { return true };
        match guest {
            // A list of people restricts access over the network. Clients on a host are kept out by listing other
            // hosts.
            Guest::Here => limit.hosts.is_empty() || limit.hosts.contains(&at),
            Guest::Host(host) => limit.hosts.contains(&host),
            Guest::Person(name) => limit.people.contains(name),
            Guest::Stranger => false,
        }
    }
}

/// One incarnation of a host whose clients have a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claim {
    /// The host.
    pub host: HostId,
    /// The incarnation.
    pub incarnation: u64,
}

/// A host that may let clients attach although another one has the disk, for a while: a running guest moves there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handover {
    /// The host.
    pub to: HostId,
    /// Until when, by the clock that hosts share.
    pub until: Instant,
}

impl Handover {
    /// Whether a host may make use of it.
    pub fn admits(&self, host: HostId, now: Instant) -> bool {
        self.to == host && now < self.until
    }

    /// Whether it goes on with these claims: while another host than the one that it names has the disk.
    pub fn goes_on(&self, claims: &[Claim]) -> bool {
        claims.iter().any(|claim| claim.host != self.to)
    }
}

/// Whether a host may let clients attach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// It may: the record names the host already.
    Held,
    /// It may once the record holds these claims.
    Take(Vec<Claim>),
    /// Another host has the disk.
    Taken(Claim),
}

/// Whether a host may let clients attach; `is_void` says whether the process that made a claim is known to be gone for good.
pub fn enter(claims: &[Claim], me: Claim, is_shared: bool, is_void: impl Fn(&Claim) -> bool) -> Admission {
    if claims.contains(&me) {
        return Admission::Held;
    }
    let counts = |claim: &&Claim| claim.host != me.host && !is_void(claim);
    let others: Vec<Claim> = claims.iter().filter(counts).copied().collect();
    match others.first() {
        Some(other) if !is_shared => Admission::Taken(*other),
        Some(_) | None => Admission::Take(others.into_iter().chain([me]).collect()),
    }
}

/// The claims without a host that has no client any more. None when the host had no claim.
pub fn leave(claims: &[Claim], host: HostId) -> Option<Vec<Claim>> {
    let left: Vec<Claim> = claims.iter().filter(|claim| claim.host != host).copied().collect();
    (left.len() < claims.len()).then_some(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(host: u128, incarnation: u64) -> Claim {
        Claim { host: HostId(host), incarnation }
    }

    #[test]
    fn one_host_has_a_disk_at_a_time_unless_it_is_shared() {
        let (me, other) = (claim(1, 10), claim(2, 20));
        let alive = |_: &Claim| false;
        assert_eq!(enter(&[], me, false, alive), Admission::Take(vec![me]));
        assert_eq!(enter(&[me], me, false, alive), Admission::Held);
        assert_eq!(enter(&[other], me, false, alive), Admission::Taken(other));
        assert_eq!(enter(&[other], me, true, alive), Admission::Take(vec![other, me]));
        // Hosts that share the disk keep it when sharing ends. No other host gets it.
        assert_eq!(enter(&[other, me], me, false, alive), Admission::Held);
        assert_eq!(enter(&[me, other], claim(3, 1), false, alive), Admission::Taken(me));
    }

    #[test]
    fn a_handover_admits_one_host_for_a_while_and_ends_with_the_host_before() {
        let (from, to) = (claim(1, 10), claim(2, 20));
        let handover = Handover { to: to.host, until: Instant(100) };
        assert!(handover.admits(to.host, Instant(99)) && !handover.admits(to.host, Instant(100)));
        assert!(!handover.admits(HostId(3), Instant(1)));
        assert!(handover.goes_on(&[from]) && handover.goes_on(&[from, to]));
        assert!(!handover.goes_on(&[to]) && !handover.goes_on(&[]));
    }

    #[test]
    fn a_claim_of_a_process_that_is_gone_holds_nobody_up() {
        let (me, other) = (claim(1, 10), claim(2, 20));
        let is_gone = |claim: &Claim| *claim == other;
        assert_eq!(enter(&[other], me, false, is_gone), Admission::Take(vec![me]));
        // A claim of a former incarnation of the host itself does not keep it out either.
        assert_eq!(enter(&[claim(1, 9)], me, false, |_| false), Admission::Take(vec![me]));
    }

    #[test]
    fn a_host_that_leaves_takes_its_claim_and_no_other() {
        let (me, other) = (claim(1, 10), claim(2, 20));
        assert_eq!(leave(&[me, other], me.host), Some(vec![other]));
        assert_eq!(leave(&[claim(1, 9)], me.host), Some(vec![]));
        assert_eq!(leave(&[other], me.host), None);
    }

    #[test]
    fn a_limited_disk_lets_in_who_is_named() {
        let (one, two) = (HostId(1), HostId(2));
        let limit = |people: &[&str], hosts: &[HostId]| Access {
            is_shared: false,
            limit: Some(Limit {
                people: people.iter().map(|name| (*name).to_owned()).collect(),
                hosts: hosts.iter().copied().collect(),
            }),
        };
        let free = Access::default();
        for guest in [Guest::Here, Guest::Host(two), Guest::Person("ann"), Guest::Stranger] {
            assert!(free.admits(guest, one), "{guest:?}");
        }
        let people = limit(&["ann"], &[]);
        assert!(people.admits(Guest::Person("ann"), one) && !people.admits(Guest::Person("bob"), one));
        assert!(people.admits(Guest::Here, one) && !people.admits(Guest::Host(one), one));
        let hosts = limit(&[], &[two]);
        assert!(!hosts.admits(Guest::Here, one) && hosts.admits(Guest::Here, two));
        assert!(hosts.admits(Guest::Host(two), one) && !hosts.admits(Guest::Person("ann"), two));
        assert!(!hosts.admits(Guest::Stranger, two));
    }
}
