//! The load of one host: operations drawn at random.

use crate::holding::FIRST;
use crate::model::{Key, Value, fill};
use crate::operation::Operation;
use crate::world::{Component, World};
use base::checksum::crc32c;
use base::request::Buffers;
use base::units::{BLOCK_SIZE, BLOCKS_PER_REGION, MIB};
use base::{ComponentId, DiskId, Instant, RequestTag, WriteId};
use diskgroup::format::page::ComponentRecord;
use diskgroup::{Input, LayerRanges, Origin};

impl World {
    pub(crate) fn begin_operation(&mut self) {
        let live: Vec<u32> =
            self.components.range(..FIRST).filter(|(_, one)| one.key.is_some()).map(|(n, _)| *n).collect();
        if live.is_empty() || (live.len() < 4 && self.random.chance(1, 40)) {
            return self.begin_create();
        }
        let number = live[self.random.below(live.len() as u64) as usize];
        match self.random.below(100) {
            0..68 | 99 if self.snapshots.is_quiet(number) => {}
            0..55 => self.begin_write(number),
            55..68 => self.begin_trim(number),
            68..94 => self.begin_read(number),
            94..98 => self.begin_settle(number),
            98..99 => self.begin_changed(number),
            _ => self.begin_delete(number),
        }
    }

    fn begin_create(&mut self) {
        let capacity = self.members_for_components();
        if capacity.is_empty() {
            return;
        }
        let member = capacity[self.random.below(capacity.len() as u64) as usize];
        let number = self.next_component;
        self.next_component += 1;
        let parts = self.random.range(4..24) as u32;
        let reservation = if self.random.chance(1, 8) { 2 * MIB } else { 0 };
        self.submit_create(number, member, parts, reservation);
    }

    /// The members on which a component can be made now.
    pub(crate) fn members_for_components(&self) -> Vec<u8> {
        if self.operations.values().any(|one| matches!(one, Operation::Create { .. }))
            || self.dead_members & 1 == 1
        {
            return Vec::new();
        }
        (0..self.superblocks.len() as u8)
            .filter(|&place| self.superblocks[place as usize].geometry.extent_count() > 0)
            .filter(|&place| (self.dead_members | self.away_members | self.given_up) >> place & 1 == 0)
            .collect()
    }

    pub(crate) fn submit_create(&mut self, number: u32, member: u8, parts: u32, reservation: u64) {
        let record = ComponentRecord {
            id: ComponentId(u64::from(number)),
            disk: DiskId(u128::from(number)),
            size: u64::from(parts) * MIB,
            reservation,
            promised: 0,
            watermark: WriteId::default(),
            is_deleting: false,
            compression: diskgroup::format::page::Compression::Off,
            disk_label: vec![number as u8; 20],
        };
        let compressions = vec![record.compression];
        let component =
            Component { id: record.id, member, parts, compressions, key: None, is_deleting: false };
        self.components.insert(number, component);
        let device = self.superblocks[member as usize].device;
        self.submit(Operation::Create { component: number }, |op| Input::Create { op, device, record });
    }

    /// A range of a component without a write under way in it, small or a whole part at times. A copy has its regions to
    /// itself, as a resync has them locked.
    fn pick_range(&mut self, number: u32, is_copy: bool) -> Option<(u32, u16, u16)> {
        let parts = u64::from(self.components[&number].parts);
        // Half of the load goes to one part, so that blocks are written again and again.
        let part = if self.random.chance(1, 2) { 0 } else { self.random.below(parts) as u32 };
        let (block, count) = if self.random.chance(1, 12) {
            (0, 256)
        } else {
            let count = [1, 1, 1, 2, 4, 16, 64][self.random.below(7) as usize];
            (self.random.below(257 - count) as u16 / 2, count as u16)
        };
        let is_free = (block..block + count).all(|block| !self.model.is_busy((number, part, block)));
        let regions =
            |first: u16, last: u16| first as usize / BLOCKS_PER_REGION..=last as usize / BLOCKS_PER_REGION;
        let mine = regions(block, block + count - 1);
        let is_in_the_way = |operation: &Operation| match operation {
            Operation::Write { keys, origin, .. } if is_copy || *origin == Origin::Copy => {
                let theirs = regions(keys[0].2, keys[keys.len() - 1].2);
                (keys[0].0, keys[0].1) == (number, part)
                    && mine.start() <= theirs.end()
                    && theirs.start() <= mine.end()
            }
            _ => false,
        };
        (is_free && !self.operations.values().any(is_in_the_way)).then_some((part, block, count))
    }

    pub(crate) fn next_id(&mut self) -> WriteId {
        self.sequence += 1;
        WriteId { epoch: self.epoch, sequence: self.sequence }
    }

    /// Any id that was given before, or none.
    pub(crate) fn earlier_id(&mut self) -> WriteId {
        let epoch = self.random.below(u64::from(self.epoch) + 1) as u32;
        WriteId { epoch, sequence: self.random.below(self.sequence + 1) }
    }

    fn begin_write(&mut self, number: u32) {
        // Some are copies, as of a resync: with an id that may be less than what stands there.
        let is_copy = self.random.chance(1, 6);
        let Some((part, block, count)) = self.pick_range(number, is_copy) else { return };
        let mut data = Buffers::new();
        let mut keys = Vec::new();
        let len = count as usize * BLOCK_SIZE as usize;
        let Some(mut buffer) = self.pool.take(len) else { return };
        let bytes = buffer.bytes_mut();
        let mut values: Vec<Value> = (0..count).map(|_| self.random.bits() >> 16 | 1).collect();
        self.zeroes.mix_in(&mut values);
        self.compressing.mix_in(&mut values);
        for (index, value) in (0..count).zip(values) {
            let at = index as usize * BLOCK_SIZE as usize;
            fill(value, &mut bytes[at..at + BLOCK_SIZE as usize]);
            let key = (number, part, block + index);
            self.model.begin(key, value);
            keys.push(key);
        }
        data.push(buffer);
        let id = if is_copy { self.earlier_id() } else { self.next_id() };
        let component = self.components[&number].key.expect("only live components are used");
        let checksums = data.iter().flat_map(|buffer| buffer.chunks_exact(4096)).map(crc32c).collect();
        let origin = if is_copy { Origin::Copy } else { Origin::Guest(tag_of(id)) };
        if !is_copy {
            self.ledger.begin(self.components[&number].id, id);
        }
        self.submit(Operation::Write { keys, id, origin }, |op| Input::Write {
            op,
            component,
            part,
            layer: 0,
            block,
            data,
            id,
            origin,
            checksums,
            ends: LayerRanges::new(),
        });
    }

    fn begin_trim(&mut self, number: u32) {
        let is_copy = self.random.chance(1, 6);
        let Some((part, block, count)) = self.pick_range(number, is_copy) else { return };
        let keys: Vec<Key> = (block..block + count).map(|block| (number, part, block)).collect();
        keys.iter().for_each(|key| self.model.begin(*key, 0));
        let id = if is_copy { self.earlier_id() } else { self.next_id() };
        let component = self.components[&number].key.expect("only live components are used");
        let origin = if is_copy { Origin::Copy } else { Origin::Guest(tag_of(id)) };
        if !is_copy {
            self.ledger.begin(self.components[&number].id, id);
        }
        self.submit(Operation::Write { keys, id, origin }, |op| Input::Trim {
            op,
            component,
            part,
            layer: 0,
            block,
            count,
            id,
            origin,
        });
    }

    /// The group is told how far all changes of a component are decided.
    pub(crate) fn begin_settle(&mut self, number: u32) {
        let component = self.components[&number].key.expect("only live components are used");
        let Some((watermark, from_epoch)) = self.ledger.watermark(self.components[&number].id) else {
            return;
        };
        let mut out = Vec::new();
        let group = self.group.as_mut().expect("a group is open");
        let settle = Input::Settle { op: None, component, watermark, from_epoch };
        group.step(Instant(self.now), settle, &mut out);
        // One whose device has died hears nothing.
        if group.watermark(component) >= watermark {
            let told = self.ledger.check_told(self.components[&number].id, &group.decided_lately(component));
            told.unwrap_or_else(|why| self.fail(why));
        }
        self.perform(out);
    }

    pub(crate) fn begin_changed(&mut self, number: u32) {
        let component = self.components[&number].key.expect("only live components are used");
        let since = self.earlier_id();
        let expected = self.ledger.changed(self.components[&number].id, since);
        let operation = Operation::Changed { component: number, expected };
        self.submit(operation, |op| Input::Changed { op, component, since, from_part: 0 });
    }

    fn begin_read(&mut self, number: u32) {
        let parts = u64::from(self.components[&number].parts);
        let part = if self.random.chance(1, 2) { 0 } else { self.random.below(parts) as u32 };
        let count = [1, 4, 32, 256][self.random.below(4) as usize];
        let block = self.random.below(257 - count) as u16;
        self.read(number, part, block, count as u16);
    }

    pub(crate) fn read(&mut self, number: u32, part: u32, block: u16, count: u16) {
        let component = self.components[&number].key.expect("only live components are used");
        let operation = Operation::Read { first: (number, part, block), count, began: self.model.clock() };
        self.submit(operation, |op| Input::Read {
            op,
            component,
            part,
            layer: 0,
            block,
            count,
            snapshot: 0,
            verify: true,
        });
    }

    pub(crate) fn begin_delete(&mut self, number: u32) {
        let is_used = self.operations.values().any(|operation| match operation {
            Operation::Write { keys, .. } => keys[0].0 == number,
            Operation::Changed { component, .. } => *component == number,
            Operation::Read { first, .. } => first.0 == number,
            Operation::Create { component } | Operation::Delete { component } => *component == number,
            Operation::Holding(holding) => holding.component() == number,
            Operation::OnSnapshot(operation, _) => operation.component() == number,
            Operation::Compress { component, .. } | Operation::Rewrite { component } => *component == number,
        });
        if is_used {
            return;
        }
        let component = self.components.get_mut(&number).expect("only live components are deleted");
        component.is_deleting = true;
        self.computing.deletions += 1;
        let key = component.key.take().expect("only live components are deleted");
        self.submit(Operation::Delete { component: number }, |op| Input::Delete { op, component: key });
    }
}

/// The tag of the change with that id.
pub fn tag_of(id: WriteId) -> RequestTag {
    RequestTag(u64::from(id.epoch) << 48 ^ id.sequence.wrapping_mul(3))
}
