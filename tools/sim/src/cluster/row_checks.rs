//! Rows that disagree: what owners find when they compare parity with data. While a run goes on they must find nothing; when all is quiet,
//! rows are made to disagree, each by a block of one member that gets other content with the right checksum, as if the member had lost a
//! write, or parity had been computed wrongly. Each must be found and mended.

use super::plan::MS;
use super::world::World;
use base::checksum::crc32c;
use base::units::{BLOCKS_PER_REGION, EXTENT_SIZE};
use base::{ComponentId, DiskId, Random, WriteId};
use layout::Unit;
use node::Token;
use replication::Standing;
use wire::{Answer, EntryKind, Request};

/// See `features`.
pub(crate) const ROWS: u64 = 0xd15a_9000_0000_0001;
/// For how long it is waited for rows to be found: longer than a pass takes at the least pace.
const PATIENCE: u64 = 200_000 * MS;

/// A row that was made to disagree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpoiledRow {
    disk: DiskId,
    part: u32,
    /// The parity that will be found not to agree.
    parity: ComponentId,
    /// The component whose data two parity units imply to be others.
    implied: Option<ComponentId>,
}

impl World {
    /// An owner has found parity that does not agree.
    pub(crate) fn row_disagrees(
        &mut self,
        disk: DiskId,
        (parity, part): (ComponentId, u32),
        implied: Option<ComponentId>,
    ) {
        let found = SpoiledRow { disk, part, parity, implied };
        if let Some(index) = self.spoiled_rows.iter().position(|(_, one)| *one == found) {
            self.spoiled_rows.swap_remove(index);
            self.summary.rows_mended += 1;
        } else if !self.may_damage() {
            self.fail(format!("{found:?} disagrees, and nothing was done to it"));
        }
    }

    /// When all is quiet, some rows are made to disagree; they must be found and mended.
    pub(crate) fn make_rows_disagree(&mut self) -> Result<(), String> {
        if self.may_damage() || self.plan.spoils > 0 {
            return Ok(());
        }
        let mut random = self.row_draws.clone();
        let mut rows = Vec::new();
        for number in 0..self.plan.disagreements {
            self.spoil_row(number, &mut random, &mut rows);
        }
        let deadline = self.now + PATIENCE;
        while !self.spoiled_rows.is_empty() && self.now < deadline {
            self.run_until(self.now + 100 * MS)?;
            // A member that did not take it has no other content.
            let inspected = &self.inspected;
            let is_refused = |token: &u64| matches!(inspected.get(token), Some(Answer::Refused(_)));
            self.spoiled_rows.retain(|(token, _)| !is_refused(token));
        }
        match self.spoiled_rows.first() {
            Some((_, row)) => {
                let states: Vec<_> = self.hosts.iter().map(|host| self.states_of(host)).collect();
                Err(format!("a row that disagrees was not found: {row:?}; {states:?}"))
            }
            None if rows.is_empty() => Ok(()),
            None => {
                self.run_until(self.now + 1000 * MS)?;
                self.compare_copies()
            }
        }
    }

    /// Gives a member of a row another block, by the hand of the owner.
    fn spoil_row(&mut self, number: u64, random: &mut Random, rows: &mut Vec<(DiskId, u16, u32, u16)>) {
        let disks = self.directory.disks();
        let disk = disks[random.below(disks.len() as u64) as usize];
        let Some((_, roster)) = self.directory.get(disk) else { return };
        let members: Vec<_> = roster.members.iter().filter(|one| one.standing == Standing::Active).collect();
        let (Some(owner), Some(chosen)) =
            (roster.owner, members.get(random.below(members.len() as u64) as usize))
        else {
            return;
        };
        let Some(in_rows) = chosen.rows else { return };
        // Where one member replaces another and both are there, rows are compared once that is over.
        let here = roster.members.iter().filter(|one| one.place == chosen.place).count();
        if here != usize::from(in_rows.code.members()) {
            return;
        }
        let layout = &self.disks[0].layout;
        let Some((_, here)) = layout.places().nth(usize::from(chosen.place)) else { return };
        let part = random.below(here[0].size / EXTENT_SIZE) as u32;
        let row_in_part = random.below(16) as u16;
        let (code, row) = (in_rows.code, u64::from(part) * 16 + u64::from(row_in_part));
        let name = (disk, chosen.place, part, row_in_part);
        let is_there = |position: u8| {
            let mut here = members.iter().filter(|one| one.place == chosen.place);
            here.find(|one| one.rows.is_some_and(|rows| rows.position == position)).map(|one| one.component)
        };
        let parity = match code.unit(row, in_rows.position) {
            Unit::Parity(unit) => is_there(code.position(row, Unit::Parity(unit))),
            Unit::Data(_) => is_there(code.position(row, Unit::Parity(0))),
        };
        let is_data = matches!(code.unit(row, in_rows.position), Unit::Data(_));
        let implied = (is_data && code.parity() == 2).then_some(chosen.component);
        let (Some(parity), false) = (parity, rows.contains(&name)) else { return };
        let host = self.index_of(owner.node);
        // Owners find parts to compare by the ids of their blocks. Every block of a guest, a fold or a resync has an id. A block without one
        // would not be found in a part where no member ever had anything, and no product writes such a block there.
        let id = WriteId { epoch: roster.epoch, sequence: 0 };
        let pool = base::Pool::new(1 << 20);
        let mut block = pool.take(4096).expect("an empty pool has a block");
        block.bytes_mut().iter_mut().for_each(|byte| *byte = random.bits() as u8);
        let request = Request::Write {
            component: chosen.component,
            epoch: roster.epoch,
            id,
            watermark: WriteId::default(),
            marks: 0,
            kind: EntryKind::Copy,
            part,
            block: row_in_part * BLOCKS_PER_REGION as u16 + random.below(BLOCKS_PER_REGION as u64) as u16,
            checksums: smallvec::smallvec![crc32c(&block)],
            data: smallvec::smallvec![block],
        };
        self.say(|| format!("unit of {:?} in row {row} is made another one", chosen.component));
        rows.push(name);
        let token = u64::MAX - number;
        self.spoiled_rows.push((token, SpoiledRow { disk, part, parity, implied }));
        let node = chosen.node;
        self.with_node(host, |one, now, out| one.ask_component(now, Token(token), node, request, out));
    }
}
