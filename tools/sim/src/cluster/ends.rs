//! The beginning and the end of a run: components are made before anything goes wrong; when faults are over all heals,
//! reads as it must, and the copies agree.

use super::guest::Guest;
use super::plan::MS;
use super::world::World;
use crate::model::joined_pieces;
use base::DiskId;
use base::units::BLOCK_SIZE;
use layout::{Code, Unit};
use node::Token;
use replication::{Roster, Standing};
use std::collections::BTreeMap;
use wire::{Answer, Request};

/// A part of a place of a disk, and the inspections of what its members have there, by position.
type Inspected = (DiskId, u16, u32, Vec<(u8, u64)>);

impl World {
    /// No more faults: everything comes back.
    pub(crate) fn heal(&mut self) {
        self.say(|| "faults end".to_owned());
        self.is_faulty = false;
        self.network.heal();
        self.spoil_at_the_end();
        self.directory.away_until = 0;
        for host in 0..self.hosts.len() {
            self.hosts[host].paused_until = self.hosts[host].paused_until.min(self.now);
            self.hosts[host].slow_until = 0;
            self.hosts[host].hung.1 = 0;
            self.hosts[host].down_until = 0;
            self.hosts[host].cut_off_until = 0;
            self.hosts[host].deaf_until = 0;
            self.start(host);
            self.tend_later(host);
            self.with_node(host, |_, _, _| {});
        }
        self.lift_limits();
        self.let_move();
    }

    /// Whether every disk must become whole and every request must end.
    pub(crate) fn must_heal(&self) -> bool {
        !self.may_damage() && self.plan.extents > 20
    }

    /// Load goes on for a while; then it stops, and all must come to rest.
    pub(crate) fn settle(&mut self) -> Result<(), String> {
        self.run_until(self.now + 1000 * MS)?;
        self.has_load = false;
        if self.plan.other.is_some() {
            // Disks that nobody uses any more move on all the same.
            (0..self.guests.len()).for_each(|guest| self.use_disk(guest, false));
        }
        let deadline = self.now + 120_000 * MS;
        while self.now < deadline {
            self.run_until(self.now + 500 * MS)?;
            self.begin_all_moves();
            let is_quiet = self.guests.iter().all(|guest| guest.outstanding() == 0);
            let is_done = self.have_moved() && self.are_snapshots_done();
            if is_quiet && self.is_whole() && self.is_tidy() && !self.is_rebuilding() && is_done {
                return self.run_until(self.now + 3000 * MS);
            }
            if is_quiet && !self.must_heal() && self.now > deadline - 90_000 * MS {
                return Ok(());
            }
        }
        if !self.must_heal() {
            return Ok(());
        }
        let records: Vec<_> = self.directory.disks().iter().map(|disk| self.directory.get(*disk)).collect();
        let waiting: usize = self.guests.iter().map(Guest::outstanding).sum();
        let states: Vec<_> = self.hosts.iter().map(|host| self.states_of(host)).collect();
        let logs: Vec<_> = self.hosts.iter().map(logs_of).collect();
        let is_tidy = self.is_tidy();
        Err(format!(
            "it does not heal: {waiting} requests wait, tidy: {is_tidy}; {logs:?}; records {records:?}; hosts {states:?}"
        ))
    }

    /// What a host says of the disks that it owns or uses.
    pub(crate) fn states_of(&self, host: &super::host::Host) -> Vec<node::OwnershipState> {
        let Some(node) = &host.node else { return Vec::new() };
        let states = self.directory.disks().into_iter().filter_map(|disk| node.ownership(disk));
        states.filter(|state| state.owner.is_some() || state.is_used || state.held > 0).collect()
    }

    fn is_whole(&self) -> bool {
        let is_active = |roster: &Roster| roster.members.iter().all(|one| one.standing == Standing::Active);
        self.directory
            .disks()
            .iter()
            .all(|disk| self.directory.get(*disk).is_some_and(|(_, one)| is_active(&one)))
    }

    /// Every block must read as the oracle knows it.
    pub(crate) fn read_everything(&mut self) -> Result<(), String> {
        for guest in 0..self.guests.len() {
            if self.guests[guest].outstanding() > 0 || self.awaits_origin(guest) {
                continue; // The disk cannot be reached, which is fair where devices are lost.
            }
            let mut part = 0;
            let now = self.now;
            while let Some((number, request)) = self.guests[guest].read_part(now, part) {
                self.guest_asks(guest, number, request);
                part += 1;
            }
        }
        let deadline = self.now + 20_000 * MS;
        while self.guests.iter().any(|guest| guest.outstanding() > 0) && self.now < deadline {
            self.run_until(self.now + 20 * MS)?;
        }
        match self.guests.iter().all(|guest| guest.outstanding() == 0) || !self.must_heal() {
            true => Ok(()),
            false => Err("reads at the end are not answered".to_owned()),
        }
    }

    /// When all is quiet, the active components of a place hold the same.
    pub(crate) fn compare_copies(&mut self) -> Result<(), String> {
        if self.may_damage() {
            return Ok(());
        }
        let sizes: Vec<u64> = self.disks[0].layout.places().map(|(_, members)| members[0].size).collect();
        let mut token = 1;
        let mut places: Vec<Inspected> = Vec::new();
        for disk in self.directory.disks() {
            let (_, roster) = self.directory.get(disk).expect("just listed");
            for place in 0..roster.place_count() as u16 {
                for part in 0..(sizes[usize::from(place)] / base::units::EXTENT_SIZE) as u32 {
                    let mut tokens = Vec::new();
                    let active = roster.members.iter().filter(|one| one.standing == Standing::Active);
                    for member in active.filter(|one| one.place == place) {
                        let (host, component) = (self.index_of(member.node), member.component);
                        self.with_node(host, |node, now, out| {
                            node.inspect(now, Token(token), component, (part, 0), out);
                        });
                        tokens.push((member.rows.map_or(0, |rows| rows.position), token));
                        token += 1;
                    }
                    places.push((disk, place, part, tokens));
                }
            }
        }
        self.run_until(self.now + 3000 * MS)?;
        for (disk, place, part, tokens) in places {
            if let Some(code) = self.disks[0].layout.place_code(usize::from(place)) {
                let found = tokens.iter().map(|(position, token)| (*position, self.bytes_of(*token)));
                check_rows(code, part, &found.collect::<Vec<_>>())
                    .map_err(|told| format!("place {place}, part {part} of {disk:?}: {told}"))?;
                continue;
            }
            let found: Vec<Option<Vec<u8>>> = tokens.iter().map(|(_, token)| self.bytes_of(*token)).collect();
            // A block that cannot be read says nothing; what is read of it is read elsewhere.
            let found: Vec<_> =
                found.into_iter().filter(|one| self.plan.spoils == 0 || one.is_some()).collect();
            if found.windows(2).any(|pair| pair[0] != pair[1]) {
                let told = first_difference(&found);
                return Err(format!("copies of place {place}, part {part} of {disk:?} differ: {told}"));
            }
        }
        Ok(())
    }

    fn bytes_of(&self, token: u64) -> Option<Vec<u8>> {
        let Answer::Data { pieces, .. } = self.inspected.get(&token)? else { return None };
        Some(joined_pieces(pieces))
    }

    /// Starts all hosts and has the components made, before anything goes wrong.
    pub(crate) fn make_components(&mut self) -> Result<(), String> {
        let faulty = std::mem::replace(&mut self.is_faulty, false);
        for host in 0..self.hosts.len() {
            self.start(host);
        }
        self.run_until(self.now + 2000 * MS)?;
        let mut token = 1;
        for spec in self.disks.clone() {
            let (_, roster) = self.directory.get(spec.id).expect("every disk has a record");
            for (_, component) in spec.layout.components() {
                let node = roster.member(component.id).expect("every component is a member").node;
                let new = wire::NewComponent {
                    id: component.id,
                    disk: spec.id,
                    device: component.device,
                    size: component.size,
                    reservation: 0,
                    disk_label: self.label_of(spec.id),
                };
                let host = self.index_of(node);
                self.with_node(host, |one, now, out| {
                    one.ask_component(now, Token(token), node, Request::Create(new), out);
                });
                token += 1;
            }
        }
        self.run_until(self.now + 1000 * MS)?;
        self.is_faulty = faulty;
        let is_made = |answer: &Answer| matches!(answer, Answer::Done { .. });
        let made = self.inspected.values().filter(|answer| is_made(answer)).count() as u64;
        self.inspected.clear();
        match made == token - 1 {
            true => Ok(()),
            false => Err(format!("only {made} of {} components were made", token - 1)),
        }
    }
}

/// The first block in which copies differ, and what each has there.
fn first_difference(copies: &[Option<Vec<u8>>]) -> String {
    let block = |copy: &Option<Vec<u8>>, index: usize| {
        let bytes = copy.as_ref()?.get(index * 4096..(index + 1) * 4096)?;
        Some(crate::model::value_of(bytes))
    };
    let values = |index: usize| copies.iter().map(|copy| block(copy, index)).collect::<Vec<_>>();
    let differs = |index: &usize| values(*index).windows(2).any(|pair| pair[0] != pair[1]);
    match (0..256).find(differs) {
        Some(index) => format!("block {index}: {:x?}", values(index)),
        None => "in length".to_owned(),
    }
}

/// Each unit of each row must be what follows from each sufficient set of the others, as far as they can be read; and members of one
/// position must have the same.
pub(crate) fn check_rows(code: Code, part: u32, found: &[(u8, Option<Vec<u8>>)]) -> Result<(), String> {
    let unit_len = layout::rows::UNIT as usize;
    let mut by_position: BTreeMap<u8, &Vec<u8>> = BTreeMap::new();
    for (position, bytes) in found {
        let Some(bytes) = bytes else { continue };
        if by_position.insert(*position, bytes).is_some_and(|other| other != bytes) {
            return Err(format!("members of position {position} differ"));
        }
    }
    let rows_in_part = (base::units::EXTENT_SIZE / layout::rows::UNIT) as usize;
    for index in 0..rows_in_part {
        let row = (part as usize * rows_in_part + index) as u64;
        let of_unit = |unit| {
            let bytes = by_position.get(&code.position(row, unit))?;
            bytes.get(index * unit_len..(index + 1) * unit_len)
        };
        let all: Vec<Unit> = code.units().filter(|unit| of_unit(*unit).is_some()).collect();
        // Where nothing was written all is as it must be.
        let is_empty = |unit: &Unit| of_unit(*unit).is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0));
        if all.iter().all(is_empty) {
            continue;
        }
        for wanted in &all {
            let mut others: Vec<Unit> = all.iter().copied().filter(|unit| unit != wanted).collect();
            for _ in 0..others.len() {
                others.rotate_left(1);
                let Some(coefficients) = code.decode(*wanted, &others) else { continue };
                let mut sum = vec![0; unit_len];
                for unit in &others {
                    let source = of_unit(*unit).expect("it was read");
                    layout::code::add(&mut sum, source, coefficients[code.index(*unit)]);
                }
                let expected = of_unit(*wanted).expect("it was read");
                if let Some(at) = sum.iter().zip(expected).position(|(one, other)| one != other) {
                    return Err(format!("{wanted:?} of row {row} does not follow from {others:?} at {at}"));
                }
            }
        }
    }
    Ok(())
}

/// How full the logs of a host's groups are.
#[derive(Debug)]
#[expect(dead_code, reason = "read by whoever looks why a cluster does not heal")]
struct LogUse {
    blocks: u64,
    used: u64,
    to_destage: u64,
    held: u64,
}

fn logs_of(host: &super::host::Host) -> Vec<LogUse> {
    let states = host.node.iter().flat_map(|node| node.groups()).map(|(_, group)| group.state());
    let in_blocks = |bytes: u64| bytes / BLOCK_SIZE;
    states
        .map(|state| LogUse {
            blocks: in_blocks(state.log_bytes),
            used: in_blocks(state.log_used_bytes),
            to_destage: in_blocks(state.destage_pending_bytes),
            held: in_blocks(state.held_bytes),
        })
        .collect()
}
