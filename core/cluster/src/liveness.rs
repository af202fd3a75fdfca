//! Which hosts are alive, from their heartbeats in the directory and from reports of other hosts about their links.
//!
//! Either sign of life keeps a host alive, so that neither a slow directory nor one broken link declares a host away.
//! A host with heartbeats that no other host reaches is suspect for as long: it takes no new components and is not
//! away. Repairs do not depend on how fast this is: owners notice by themselves when a component does not answer.

use crate::host::{HostRecord, Maintenance};
use crate::limits::{AWAY_AFTER, HEARTBEAT_SILENCE, LINK_REPORT_LIFE, STEADY_AFTER};
use base::{HostId, Instant};
use std::collections::{BTreeMap, BTreeSet};

/// Whether a host is away by intent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absence {
    /// It was not announced.
    Unexpected,
    /// The host is in maintenance.
    Maintenance,
}

/// The liveness of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveness {
    /// It is.
    Alive,
    /// It may be away: it shows no sign of life, no other host reaches it, or it is only just back.
    Suspect {
        /// When it was last well.
        since: Instant,
    },
    /// It is away.
    Away {
        /// When it was last well.
        since: Instant,
        /// Whether that was to be expected.
        why: Absence,
    },
}

/// A host's report about its link to another host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkReport {
    /// The reporting host.
    pub reporter: HostId,
    /// The host at the other end.
    pub about: HostId,
    /// Whether it answers.
    pub is_up: bool,
    /// When the report arrived, by the directory's clock.
    pub at: Instant,
}

/// Signs of life of a host.
#[derive(Clone, Copy)]
enum Signs {
    /// It has heartbeats and no host reports it unreachable, or another host reaches it.
    Well,
    /// It has heartbeats, and no host that tries reaches it.
    Unreached,
    /// It has no heartbeats, and no host reaches it.
    Silent,
}

/// What is known of one host.
#[derive(Debug, Clone, Copy)]
struct Attendee {
    last_seen: Instant,
    state: Liveness,
    /// When it was last well.
    well: Instant,
    /// Since when it has been well without a gap.
    steady: Option<Instant>,
}

/// Keeps the liveness of all hosts. All times are of the directory's clock.
#[derive(Debug, Clone, Default)]
pub struct Attendance {
    hosts: BTreeMap<HostId, Attendee>,
    /// The newest report by reporter and host.
    links: BTreeMap<(HostId, HostId), LinkReport>,
}

impl Attendance {
    /// A host's heartbeat was seen.
    pub fn note_seen(&mut self, host: HostId, at: Instant) {
        let new = Attendee { last_seen: at, state: Liveness::Alive, well: at, steady: Some(at) };
        let attendee = self.hosts.entry(host).or_insert(new);
        attendee.last_seen = attendee.last_seen.max(at);
    }

    /// A host reported a link.
    pub fn reported(&mut self, report: LinkReport) {
        let newest = self.links.entry((report.reporter, report.about)).or_insert(report);
        if newest.at <= report.at {
            *newest = report;
        }
    }

    /// The directory answers again. Heartbeats that were missed meanwhile say nothing about the hosts.
    pub fn directory_is_back(&mut self, now: Instant) {
        for attendee in self.hosts.values_mut() {
            if !matches!(attendee.state, Liveness::Away { .. }) {
                attendee.last_seen = attendee.last_seen.max(now);
            }
        }
    }

    /// The liveness of all hosts. Hosts without a record are forgotten. Not to be called while the directory is away.
    pub fn step(&mut self, now: Instant, hosts: &BTreeMap<HostId, HostRecord>) -> BTreeMap<HostId, Liveness> {
        self.hosts.retain(|host, _| hosts.contains_key(host));
        self.links.retain(|(reporter, about), report| {
            hosts.contains_key(reporter)
                && hosts.contains_key(about)
                && now.since(report.at) <= LINK_REPORT_LIFE
        });
        let reached = self.reached();
        for (host, record) in hosts {
            // A host seen for the first time has just come, or this host has: the time before says nothing about it.
            let is_new = !self.hosts.contains_key(host);
            self.note_seen(*host, if is_new { record.last_seen.max(now) } else { record.last_seen });
            let (is_up, is_down) =
                reached.get(host).map_or((false, false), |is_reached| (*is_reached, !*is_reached));
            let attendee = self.hosts.get_mut(host).expect("it was seen just now");
            let is_silent = now.since(attendee.last_seen) > HEARTBEAT_SILENCE;
            let signs = match (is_up, is_silent, is_down) {
                (true, _, _) | (false, false, false) => Signs::Well,
                (false, false, true) => Signs::Unreached,
                (false, true, _) => Signs::Silent,
            };
            attendee.advance(now, signs, &record.maintenance);
        }
        self.hosts.iter().map(|(host, attendee)| (*host, attendee.state)).collect()
    }

    /// Suspect hosts that show signs of life again.
    pub fn returning(&self) -> BTreeSet<HostId> {
        let is_returning =
            |one: &Attendee| matches!(one.state, Liveness::Suspect { .. }) && one.steady.is_some();
        self.hosts.iter().filter(|(_, one)| is_returning(one)).map(|(host, _)| *host).collect()
    }

    /// The hosts that others report about, and whether any other one reaches them.
    fn reached(&self) -> BTreeMap<HostId, bool> {
        let mut reached = BTreeMap::new();
        for report in self.links.values().filter(|one| one.about != one.reporter) {
            *reached.entry(report.about).or_insert(false) |= report.is_up;
        }
        reached
    }
}

impl Attendee {
    fn advance(&mut self, now: Instant, signs: Signs, maintenance: &Maintenance) {
        let since = self.well;
        let is_away = matches!(self.state, Liveness::Away { .. });
        match signs {
            Signs::Well => {
                let steady = *self.steady.get_or_insert(now);
                if self.state == Liveness::Alive || now.since(steady) >= STEADY_AFTER {
                    self.state = Liveness::Alive;
                    self.well = now;
                } else {
                    self.state = Liveness::Suspect { since };
                }
                return;
            }
            Signs::Unreached if is_away => {}
            Signs::Unreached => self.state = Liveness::Suspect { since },
            Signs::Silent => {
                self.state = match maintenance {
                    Maintenance::Entering { .. } | Maintenance::On { .. } => {
                        Liveness::Away { since, why: Absence::Maintenance }
                    }
                    Maintenance::Off if is_away || now.since(since) >= AWAY_AFTER => {
                        Liveness::Away { since, why: Absence::Unexpected }
                    }
                    Maintenance::Off => Liveness::Suspect { since },
                };
            }
        }
        self.steady = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Mode;
    use crate::testing::{at, cluster};

    /// Runs second by second; `heard` and `up` say whether host 2 is heard and reached. The states are told when they
    /// change, with the second.
    fn run(
        maintenance: Maintenance,
        seconds: u64,
        is_seen: impl Fn(u64) -> bool,
        link: impl Fn(u64) -> Option<bool>,
    ) -> Vec<(u64, Liveness)> {
        let mut hosts = cluster(2, 1).hosts;
        let (one, two) = (HostId(1), HostId(2));
        hosts.get_mut(&two).unwrap().maintenance = maintenance;
        let mut attendance = Attendance::default();
        let mut changes: Vec<(u64, Liveness)> = Vec::new();
        for second in 0..seconds {
            hosts.get_mut(&one).unwrap().last_seen = at(second);
            if is_seen(second) {
                hosts.get_mut(&two).unwrap().last_seen = at(second);
            }
            if let Some(is_up) = link(second) {
                attendance.reported(LinkReport { reporter: one, about: two, is_up, at: at(second) });
            }
            let state = attendance.step(at(second), &hosts)[&two];
            if changes.last().is_none_or(|(_, last)| *last != state) {
                changes.push((second, state));
            }
        }
        changes
    }

    const ALIVE: Liveness = Liveness::Alive;

    fn suspect(since: u64) -> Liveness {
        Liveness::Suspect { since: at(since) }
    }

    fn away(since: u64) -> Liveness {
        Liveness::Away { since: at(since), why: Absence::Unexpected }
    }

    #[test]
    fn a_silent_host_is_suspect_first_and_away_later() {
        let changes = run(Maintenance::Off, 60, |second| second <= 5, |_| None);
        assert_eq!(changes, [(0, ALIVE), (16, suspect(15)), (45, away(15))]);
    }

    #[test]
    fn a_host_that_comes_later_is_alive_from_its_first_moment() {
        let mut hosts = cluster(2, 1).hosts;
        let mut attendance = Attendance::default();
        let two = hosts.remove(&HostId(2)).unwrap();
        attendance.step(at(0), &hosts);
        // Its record comes before its first heartbeat: by the record alone it was last seen long ago.
        hosts.insert(HostId(2), HostRecord { last_seen: at(0), ..two });
        for second in 100..=110 {
            assert_eq!(attendance.step(at(second), &hosts)[&HostId(2)], ALIVE, "{second}");
        }
    }

    #[test]
    fn a_host_that_others_reach_is_alive_without_the_directory() {
        assert_eq!(run(Maintenance::Off, 60, |second| second <= 5, |_| Some(true)), [(0, ALIVE)]);
    }

    #[test]
    fn a_host_that_nobody_reaches_is_suspect_and_never_away() {
        let changes = run(Maintenance::Off, 60, |_| true, |second| Some(second < 5));
        assert_eq!(changes, [(0, ALIVE), (5, suspect(4))]);
    }

    #[test]
    fn a_host_is_alive_again_only_after_a_while() {
        let changes = run(Maintenance::Off, 90, |second| second <= 5 || second > 60, |_| None);
        let expected = [(0, ALIVE), (16, suspect(15)), (45, away(15)), (61, suspect(15)), (81, ALIVE)];
        assert_eq!(changes, expected);
    }

    #[test]
    fn a_host_that_comes_and_goes_keeps_the_time_since_it_was_well() {
        let changes = run(Maintenance::Off, 130, |second| second <= 5 || second % 25 == 0, |_| None);
        assert_eq!(changes[..3], [(0, ALIVE), (16, suspect(15)), (45, away(15))]);
        for (second, state) in &changes[3..] {
            assert!([suspect(15), away(15)].contains(state), "{state:?} at {second}");
        }
    }

    #[test]
    fn a_host_in_maintenance_is_never_away_by_surprise() {
        let maintenance = Maintenance::On { mode: Mode::EnsureAccessibility, since: at(0) };
        let changes = run(maintenance, 60, |second| second <= 5, |_| None);
        let expected = Liveness::Away { since: at(15), why: Absence::Maintenance };
        assert_eq!(changes, [(0, ALIVE), (16, expected)]);
    }

    #[test]
    fn a_directory_that_was_away_accuses_nobody() {
        let hosts = cluster(2, 1).hosts;
        let mut attendance = Attendance::default();
        attendance.step(at(0), &hosts);
        attendance.directory_is_back(at(500));
        assert!(attendance.step(at(501), &hosts).values().all(|state| *state == ALIVE));
        assert!(attendance.step(at(511), &hosts).values().all(|state| *state != ALIVE));
    }

    #[test]
    fn hosts_without_a_record_are_forgotten() {
        let mut hosts = cluster(3, 1).hosts;
        let mut attendance = Attendance::default();
        assert_eq!(attendance.step(at(0), &hosts).len(), 3);
        hosts.remove(&HostId(3));
        assert_eq!(attendance.step(at(1), &hosts).len(), 2);
    }
}
