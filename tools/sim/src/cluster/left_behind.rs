//! A component that missed writes is all that starts with an old directory, and the others come back later.
//!
//! Nobody who is there can know that the directory is old, so the disk is served as the component has it. When the others are back they hold
//! acknowledged changes which it lacks: they must be found to have diverged, and nothing may be copied onto them. Power fails at the
//! moment at which the first such change is acknowledged, or soon after.

use super::plan::MS;
use super::rebuilding::Rebuilding;
use super::rollback::Rollback;
use super::summary::Summary;
use super::world::World;
use replication::Standing;

/// How often the record and the guests are looked at.
const LOOK_EVERY: u64 = MS / 50;
/// How long a component may take to leave.
const LEAVES_WITHIN: u64 = 6_000 * MS;
/// How long the one that is left is alone: longer than it waits for others that may be starting.
const ALONE_NS: u64 = 13_000 * MS;
/// How long the others are there again.
const TOGETHER_NS: u64 = 8_000 * MS;

impl World {
    /// Makes this what is played.
    pub(crate) fn leave_behind(&mut self, seed: u64) {
        self.rebuilding = Rebuilding::on_demand();
        self.rollback = Rollback::draw(seed);
        self.rollback.leaves_behind = true;
    }

    /// Plays it to its end.
    ///
    /// # Errors
    /// When a component was brought up to date that has what others lack, or nobody noticed one.
    pub(crate) fn play_left_behind(mut self) -> Result<Summary, String> {
        self.begin_load()?;
        let warm = self.now + 500 * MS + self.random.below(1500 * MS);
        self.run_until(warm)?;
        self.save_snapshot();
        let disk = self.disks[0].id;
        let (_, roster) = self.directory.get(disk).expect("it has a record");
        let owner = roster.owner.map(|owner| owner.node);
        let is_other =
            |one: &&replication::Member| Some(one.node) != owner && one.standing == Standing::Active;
        let Some(behind) = roster.members.iter().find(is_other).cloned() else { return Ok(self.summary) };
        let left = self.index_of(behind.node);
        self.down(left);
        let is_out = |world: &World| {
            let (_, roster) = world.directory.get(disk).expect("it has a record");
            roster.member(behind.component).is_some_and(|one| one.standing != Standing::Active)
        };
        let until = self.now + LEAVES_WITHIN;
        while self.now < until && !is_out(&self) {
            self.run_until(self.now + LOOK_EVERY)?;
        }
        if !is_out(&self) {
            return Ok(self.summary);
        }
        // From here on some are acknowledged that the component lacks.
        let (before, more) = (self.written(), 1 + self.random.below(6));
        while self.now < until && self.written() < before + more {
            self.run_until(self.now + LOOK_EVERY)?;
        }
        if self.written() == before {
            return Ok(self.summary);
        }
        (0..self.hosts.len()).filter(|&host| host != left).for_each(|host| self.down(host));
        self.set_back();
        self.has_load = false;
        self.guests.clear();
        let (joined, served) = (self.summary.joined, self.summary.take_overs);
        self.up(left);
        self.run_until(self.now + 500 * MS)?;
        self.with_node(left, |node, now, out| node.set_used(now, disk, true, out));
        self.run_until(self.now + ALONE_NS)?;
        (0..self.hosts.len()).for_each(|host| self.up(host));
        self.run_until(self.now + TOGETHER_NS)?;
        if self.summary.take_overs == served {
            return Ok(self.summary); // Its host has heard of later records, and serves nothing.
        }
        match (self.summary.joined > joined, self.summary.diverged) {
            (true, _) => Err("a component was brought up to date that has acknowledged changes which those that count lack".to_owned()),
            (false, 0) => Err("nobody noticed that a component has acknowledged changes which those that count lack".to_owned()),
            (false, _) => Ok(self.summary),
        }
    }

    /// A host loses power and stays away.
    fn down(&mut self, host: usize) {
        self.hosts[host].down_until = u64::MAX;
        self.kill(host, true);
    }

    fn up(&mut self, host: usize) {
        self.hosts[host].down_until = 0;
        self.start(host);
    }

    /// Writes of guests that were acknowledged.
    fn written(&self) -> u64 {
        self.guests.iter().map(|guest| guest.written).sum()
    }
}
