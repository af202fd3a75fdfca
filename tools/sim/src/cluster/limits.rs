//! Rules of disks that change while guests use them: limits of I/Os and bytes, and which copies are read.
//!
//! Each host learns of a change by itself, and after a while. A limit may keep a request for seconds, while guests move, are started
//! elsewhere, and owners change; what waits for a guest that is gone must never begin.

use super::faults::TURNS;
use super::plan::MS;
use super::world::{Event, World};
use node::Limits;
use replication::owner::Reading;

/// How long a host may take to learn of a change.
const LEARNS_WITHIN: u64 = 50 * MS;

impl World {
    /// The rules of a disk change, as drawn from a stream of their own.
    pub(crate) fn change_rules(&mut self) {
        if self.plan.limits == 0 || !self.limits.chance(self.plan.limits, 1000 * TURNS) {
            return;
        }
        let disk = self.limits.below(self.disks.len() as u64) as usize;
        // Where that is all that is played, requests wait for longer than it takes to notice that a guest is gone.
        let limits = match self.limits.below(4) {
            _ if self.plan.is_plain => Limits { iops: Some(self.limits.range(2..12)), bytes: None },
            0 => Limits::default(),
            1 => Limits { iops: None, bytes: Some(self.limits.range(64 << 10..1 << 20)) },
            2 => Limits { iops: Some(self.limits.range(2..50)), bytes: None },
            _ => {
                let (iops, bytes) = (self.limits.range(5..100), self.limits.range(128 << 10..4 << 20));
                Limits { iops: Some(iops), bytes: Some(bytes) }
            }
        };
        let readings = [Reading::Auto, Reading::Auto, Reading::Spread, Reading::Local];
        let reading = readings[self.limits.below(4) as usize];
        self.say(|| format!("disk {disk} has {limits:?} and is read {reading:?} from now on"));
        self.set_rules(disk, limits, reading);
        if !self.plan.is_plain {
            return;
        }
        // Another client of host 0 has the disk, too, so its owner stays there wherever the guest goes.
        let id = self.disks[disk].id;
        self.with_node(0, |node, now, out| node.set_used(now, id, true, out));
        // A guest is started elsewhere while its host goes on, and with it what the guest had asked.
        if self.limits.chance(1, 3) {
            let delay = self.limits.below(2000 * MS);
            let host = self.guests[disk].host;
            self.later(delay, Event::Restart { host });
        }
    }

    /// The end of all limits, so that the run comes to its end.
    pub(crate) fn lift_limits(&mut self) {
        if self.plan.limits > 0 {
            (0..self.disks.len())
                .for_each(|disk| self.set_rules(disk, Limits::default(), self.disks[disk].reading));
        }
    }

    fn set_rules(&mut self, disk: usize, limits: Limits, reading: Reading) {
        (self.disks[disk].limits, self.disks[disk].reading) = (limits, reading);
        self.summary.rules_changed += 1;
        for host in 0..self.hosts.len() {
            let delay = self.limits.below(LEARNS_WITHIN);
            self.later(delay, Event::Rules { host, disk });
        }
    }

    /// A host learns of the rules of a disk.
    pub(crate) fn learn_rules(&mut self, host: usize, disk: usize) {
        let spec = self.disks[disk].clone();
        let mut waited = 0;
        self.with_node(host, |node, now, out| {
            // A directory that was set back has older versions.
            node.update_disk(now, u64::MAX, spec, out);
            waited = node.disk_activities().iter().map(|disk| u64::from(disk.limits.waiting)).sum();
        });
        self.summary.held_back += waited;
    }
}
