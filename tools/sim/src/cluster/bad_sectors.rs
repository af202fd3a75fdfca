//! Blocks of devices that cannot be read until they are written again, on several hosts at once: never the same block of a
//! disk on two of them, so that every block has a good copy.

use super::world::World;
use crate::model::{Value, value_of};
use base::units::BLOCK_SIZE;
use std::collections::BTreeSet;

/// So many blocks of each host at once: fewer than take a device out of service in all of a run.
const BLOCKS_AT_ONCE: u64 = 3;

impl World {
    /// Blocks of all hosts fail reads from now on, as drawn from a stream of its own.
    pub(crate) fn spoil(&mut self) {
        if self.plan.spoils == 0 || !self.spoils.chance(self.plan.spoils, 1000 * super::faults::TURNS) {
            return;
        }
        for host in 0..self.hosts.len() {
            // Beside other faults, the good copy of a block may be away.
            self.hosts[host].is_damaged |= !self.plan.is_plain;
            (0..BLOCKS_AT_ONCE).for_each(|_| self.spoil_block_of(host));
        }
    }

    /// Before all heals, blocks of all hosts fail, and a component comes that must be made of what can be read.
    pub(crate) fn spoil_at_the_end(&mut self) {
        if self.plan.spoils > 0 && self.plan.is_plain {
            for host in 0..self.hosts.len() {
                (0..40).for_each(|_| self.spoil_block_of(host));
            }
            self.begin_coming();
        }
    }

    fn spoil_block_of(&mut self, host: usize) {
        let others = (0..self.hosts.len()).filter(|&other| other != host);
        let elsewhere: BTreeSet<Value> = others.flat_map(|other| self.spoilt_on(other)).collect();
        let last = self.hosts[host].devices.len() - 1;
        let device = &self.hosts[host].devices[last];
        let value =
            |number: &u64| value_of(&device.read(number * BLOCK_SIZE, BLOCK_SIZE as usize)).unwrap_or(0);
        let mut candidates = device.readable_blocks(self.hosts[host].extents());
        candidates.retain(|number| value(number) != 0 && !elsewhere.contains(&value(number)));
        if candidates.is_empty() {
            return;
        }
        let number = candidates[self.spoils.below(candidates.len() as u64) as usize];
        self.hosts[host].devices[last].spoil(number);
        self.summary.bad_sectors += 1;
        self.say(|| format!("block {number} of host {host} cannot be read"));
    }

    /// What stands in blocks of a host that cannot be read.
    fn spoilt_on(&self, host: usize) -> Vec<Value> {
        let spoilt = self.hosts[host].devices.iter().flat_map(crate::device::Device::unreadable_content);
        spoilt.filter_map(|bytes| value_of(&bytes).ok()).collect()
    }
}
