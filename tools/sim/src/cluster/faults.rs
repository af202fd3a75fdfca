//! Faults, drawn as the plan says.

use super::host::Host;
use super::plan::MS;
use super::world::{Event, World};
use base::NodeId;

/// Faults are drawn so many times a second.
pub(crate) const TURNS: u64 = 40;

/// How long devices are well before the next one hangs, where they hang one after the other.
const BETWEEN_HANGS: u64 = 4000 * MS;

/// How long a host is deaf at most, and how long all hear well before the next one is, where they are so one after the other.
const DEAF_NS: u64 = 8000 * MS;
const BETWEEN_DEAF: u64 = 4000 * MS;

/// How long a manager waits before it starts a guest elsewhere whose host it cannot reach.
pub(crate) const RESTART_AFTER: u64 = 3000 * MS;

impl World {
    /// Draws the faults of one turn.
    pub(crate) fn fault(&mut self) {
        let plan = self.plan.clone();
        let hosts = self.hosts.len() as u64;
        let mut is_due = |rate: u64| rate > 0 && self.random.chance(rate, 1000 * TURNS);
        let (kills, power, blackouts) = (is_due(plan.kills), is_due(plan.power), is_due(plan.blackouts));
        let (pauses, cuts, partitions) = (is_due(plan.pauses), is_due(plan.cuts), is_due(plan.partitions));
        let (resets, moves, slow) = (is_due(plan.resets), is_due(plan.moves), is_due(plan.slow));
        let (rot, dead) = (is_due(plan.rot), is_due(plan.dead_devices));
        let repairs = (is_due(plan.comings), is_due(plan.goings), is_due(plan.distrusts));
        let away = plan.directory_faults && is_due(120);
        let host = self.random.below(hosts) as usize;
        if kills {
            self.kill(host, false);
        }
        if power {
            self.kill(host, true);
        }
        if blackouts {
            (0..hosts as usize).for_each(|host| self.kill(host, true));
        }
        if pauses {
            let until = self.now + self.random.below(6000 * MS);
            self.say(|| format!("host {host} stands still until {}", until / MS));
            self.hosts[host].paused_until = until;
        }
        if cuts {
            self.cut_link(host);
        }
        if partitions {
            // Where a guest runs there is more to be lost.
            let guest = self.random.below(2 * self.guests.len() as u64) as usize;
            let host = self.guests.get(guest).map_or(host, |guest| guest.host);
            self.partition(host);
        }
        if resets {
            self.reset_connection();
        }
        if moves {
            self.move_guest();
        }
        if slow {
            self.hosts[host].slow_until = self.now + self.random.below(2000 * MS);
        }
        self.hang();
        self.deafen();
        self.spoil();
        self.change_rules();
        self.change_compression();
        self.change_course();
        self.change_snapshots();
        self.begin_together();
        if away {
            self.directory.away_until = self.now + self.random.below(4000 * MS);
            self.say(|| "the directory is away".to_owned());
        }
        if plan.comings > 0 || plan.stand_ins > 0 {
            self.repair(repairs);
        }
        if rot {
            self.rot();
        }
        if dead && !self.may_damage() {
            let last = self.hosts[host].devices.len() - 1;
            self.hosts[host].devices[last].is_dead = true;
            self.hosts[host].is_damaged = true;
            self.say(|| format!("the last device of host {host} is dead"));
        }
    }

    /// A device hangs, as drawn from a stream of its own.
    fn hang(&mut self) {
        if self.plan.hangs == 0 || !self.hangs.chance(self.plan.hangs, 1000 * TURNS) {
            return;
        }
        let is_soon = |host: &Host| host.hung.1 + BETWEEN_HANGS > self.now;
        if self.plan.is_plain && self.hosts.iter().any(is_soon) {
            return;
        }
        let host = self.hangs.below(self.hosts.len() as u64) as usize;
        let member = self.hangs.below(self.hosts[host].devices.len() as u64) as u8;
        let until = self.now + self.hangs.below(6000 * MS);
        self.say(|| format!("device {member} of host {host} hangs until {}", until / MS));
        self.hosts[host].hung = (member, until);
    }

    /// A host hears nothing, as drawn from a stream of its own: what it sends arrives, its transactions take effect, and it learns
    /// of none of that. Its guests are started elsewhere.
    fn deafen(&mut self) {
        if self.plan.deaf == 0 || !self.deafness.chance(self.plan.deaf, 1000 * TURNS) {
            return;
        }
        let is_soon = |host: &Host| host.deaf_until > 0 && host.deaf_until + BETWEEN_DEAF > self.now;
        if self.plan.is_plain && self.hosts.iter().any(is_soon) {
            return;
        }
        // Where a guest runs is who owns its disk.
        let guest = self.deafness.below(self.guests.len() as u64) as usize;
        let host = self.guests[guest].host;
        let length = if self.plan.is_plain { DEAF_NS } else { self.deafness.below(DEAF_NS) };
        let until = self.now + length;
        self.say(|| format!("host {host} is deaf until {}", until / MS));
        for other in 0..self.hosts.len() {
            self.network.cut(self.hosts[other].id, self.hosts[host].id, until);
        }
        self.hosts[host].deaf_until = until;
        let leave_after = 1 + self.deafness.below(2 * RESTART_AFTER);
        if self.plan.is_plain || self.deafness.chance(2, 3) {
            self.later(leave_after, Event::Restart { host });
        }
    }

    fn cut_link(&mut self, host: usize) {
        let other = self.random.below(self.hosts.len() as u64) as usize;
        if other == host {
            return;
        }
        let (from, to) = (self.hosts[host].id, self.hosts[other].id);
        let until = self.now + self.random.below(5000 * MS);
        self.network.cut(from, to, until);
        if self.random.chance(1, 2) {
            self.network.cut(to, from, until);
        }
        self.say(|| format!("link {host} to {other} is cut until {}", until / MS));
    }

    fn partition(&mut self, host: usize) {
        let until = self.now + self.random.below(6000 * MS);
        let one_way = self.random.chance(1, 4);
        self.cut_off(host, until, one_way);
        self.late_words_arrive(host);
        if self.random.chance(1, 2) {
            self.hosts[host].cut_off_until = until;
        }
        self.say(|| format!("host {host} is cut off until {}", until / MS));
        // Its guests are started elsewhere, as by a manager that takes the host for dead after a while, though it goes on.
        if until > self.now + RESTART_AFTER && self.random.chance(2, 3) {
            self.later(RESTART_AFTER, Event::Restart { host });
        }
    }

    fn cut_off(&mut self, host: usize, until: u64, one_way: bool) {
        let alone = self.hosts[host].id;
        let others: Vec<NodeId> = self.hosts.iter().map(|one| one.id).filter(|id| *id != alone).collect();
        for other in others {
            self.network.cut(alone, other, until);
            if !one_way {
                self.network.cut(other, alone, until);
            }
        }
    }

    /// Nobody hears of a host, which hears all.
    pub(crate) fn silence(&mut self, host: usize, until: u64) {
        let alone = self.hosts[host].id;
        for other in 0..self.hosts.len() {
            self.network.cut(alone, self.hosts[other].id, until);
        }
    }

    /// A host reaches nobody, nor the directory, and goes on; its guests are started elsewhere after a while.
    pub(crate) fn isolate(&mut self, host: usize, until: u64, guests_leave_after: u64) {
        self.cut_off(host, until, false);
        self.late_words_arrive(host);
        self.hosts[host].cut_off_until = until;
        self.say(|| format!("host {host} is isolated until {}", until / MS));
        self.later(guests_leave_after, Event::Restart { host });
    }

    fn reset_connection(&mut self) {
        let count = self.network.connections.len() as u64;
        if count == 0 {
            return;
        }
        let index = self.random.below(count) as usize;
        let Some((&(from, session), connection)) = self.network.connections.iter().nth(index) else { return };
        let to = connection.to;
        // Both sides hear of it.
        self.close(from, to, session, true);
        self.with_node(self.index_of(from), |node, now, out| node.disconnected(now, to, session, out));
    }

    fn move_guest(&mut self) {
        let guest = self.random.below(self.guests.len() as u64) as usize;
        let to = self.random.below(self.hosts.len() as u64) as usize;
        self.move_guest_to(guest, to);
    }

    /// A guest moves, unless it does already or its host is not there.
    pub(crate) fn move_guest_to(&mut self, guest: usize, to: usize) {
        if to == self.guests[guest].host
            || self.hosts[to].node.is_none()
            || self.guests[guest].moving_to.is_some()
        {
            return;
        }
        self.guests[guest].moving_to = Some(to);
        let disk = self.guests[guest].disk;
        self.with_node(to, |node, now, out| node.set_used(now, disk, true, out));
    }

    /// A bit flips, on one host only, so that a good copy exists elsewhere.
    fn rot(&mut self) {
        let host = self.hosts.iter().position(|host| host.is_damaged).unwrap_or(0);
        let mut random = self.random.fork();
        let extents = self.hosts[host].extents();
        let device = self.hosts[host].devices.last_mut().expect("a group has devices");
        if device.rot(extents, &mut random).is_some() {
            self.hosts[host].is_damaged = true;
            self.say(|| format!("a bit flips on host {host}"));
        }
    }
}
