//! Blocks of one host that rot at rest once all is quiet: bits that flip, and sectors that cannot be read. Scrubbing must find each, and owners must have it
//! mended from another copy, also where only snapshots see it.

use super::plan::MS;
use super::world::World;
use crate::model::value_of;
use base::Random;
use base::units::BLOCK_SIZE;
use node::GroupKey;
use replication::Standing;
use replication::limits::DAMAGE_PERIOD;

/// See `features`.
const STREAM: u64 = 0x0207_7e00_0000_0053;
/// Sectors that cannot be read: fewer than take a device out of service.
const SECTORS: u64 = 3;
/// How often what was found in rounds of scrubbing is waited for: a block that several snapshots see in turn comes to light one after the other.
const ROUNDS: u32 = 8;
/// Bytes that are scrubbed in a second.
const PACE: u64 = 256 << 20;

/// Where the choices come from.
pub(crate) fn draws(seed: u64) -> Random {
    Random::new(seed ^ STREAM)
}

impl World {
    /// When all is quiet, some blocks of a host rot; all that components hold must be whole again.
    pub(crate) fn have_blocks_rot(&mut self) -> Result<(), String> {
        let is_strange = self.summary.rolled_back + self.summary.rebuilt > 0;
        // What mends a block stands in another frame: a device that is full has none.
        if self.plan.rots == 0
            || !self.must_heal()
            || self.plan.spoils > 0
            || is_strange
            || !self.has_copies()
        {
            return Ok(());
        }
        let mut random = self.rotting.clone();
        let host = random.below(self.hosts.len() as u64) as usize;
        let group = self.hosts[host].node.as_ref().and_then(|node| node.group(GroupKey(0)));
        if group.is_none_or(|group| group.components().is_empty()) {
            return Ok(()); // What stands there is nobody's.
        }
        if random.chance(1, 2) {
            self.leave_disks()?;
        }
        self.rot_at_rest(host, &mut random);
        self.with_node(host, |node, _, _| {
            if let Some(group) = node.group_mut(GroupKey(0)) {
                group.set_scrub_pace(PACE);
            }
        });
        let mut told = Ok(());
        for _ in 0..ROUNDS {
            self.scrub_rounds(host)?;
            self.run_until(self.now + DAMAGE_PERIOD.as_nanos() as u64 + 5000 * MS)?;
            told = self.compare_copies().and_then(|()| self.inspect_views());
            if told.is_ok() {
                break;
            }
        }
        told.map_err(|why| format!("what rotted is not mended: {why}"))
    }

    /// Nobody uses the disks any more, and nobody owns them: whoever finds damage must see to that.
    fn leave_disks(&mut self) -> Result<(), String> {
        (0..self.guests.len()).for_each(|guest| self.use_disk(guest, false));
        for disk in self.directory.disks() {
            for host in 0..self.hosts.len() {
                self.with_node(host, |node, now, out| node.release_disk(now, disk, out));
            }
        }
        self.run_until(self.now + 1000 * MS)
    }

    /// Whether each place of all disks has more components than it takes to read it, and so has each snapshot (others may have no room for it), so that each block is known without any one of them.
    /// One that does not count, for lack of room, is not mended before it does.
    fn has_copies(&self) -> bool {
        self.directory.disks().iter().all(|disk| {
            let Some((_, roster)) = self.directory.get(*disk) else { return false };
            let actives = |place: u16| {
                let here = roster.members.iter().filter(move |one| one.place == place);
                here.filter(|one| one.standing == Standing::Active)
            };
            let have =
                |place: u16, number: u32| actives(place).filter(|one| !one.lacks.contains(number)).count();
            if roster.members.iter().any(|one| !one.standing.counts()) {
                return false;
            }
            let needed = self.plan.code.map_or(1, |code| usize::from(code.data()));
            (0..roster.place_count() as u16).all(|place| {
                let mut taken = roster.snapshots.taken.iter();
                actives(place).count() > needed
                    && taken.all(|number| !(1..=needed).contains(&have(place, *number)))
            })
        })
    }

    fn rot_at_rest(&mut self, host: usize, random: &mut Random) {
        self.summary.rotted += self.plan.rots;
        let extents = self.hosts[host].extents();
        let device = self.hosts[host].devices.last_mut().expect("a group has devices");
        let mut candidates = device.readable_blocks(extents);
        // Pages of the table are another matter.
        let value =
            |number: &u64| value_of(&device.read(number * BLOCK_SIZE, BLOCK_SIZE as usize)).unwrap_or(0);
        candidates.retain(|number| value(number) != 0);
        for count in 0..self.plan.rots.min(candidates.len() as u64) {
            let number = candidates[random.below(candidates.len() as u64) as usize];
            match count < SECTORS {
                true => device.spoil(number),
                false => {
                    device.flip(number, random);
                }
            }
        }
    }

    /// A whole round of scrubbing begins and ends.
    fn scrub_rounds(&mut self, host: usize) -> Result<(), String> {
        let rounds = |world: &World| {
            let node = world.hosts[host].node.as_ref();
            node.and_then(|node| Some(node.group(GroupKey(0))?.state().counters.scrub_rounds))
        };
        let before = rounds(self).unwrap_or_default();
        for _ in 0..600 {
            self.run_until(self.now + 500 * MS)?;
            if rounds(self).is_none_or(|rounds| rounds > before + 1) {
                return Ok(());
            }
        }
        Err("scrubbing does not get through a device in five minutes".to_owned())
    }
}
