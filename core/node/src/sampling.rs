//! Inspections of the components of this node, whoever owns their disks, for whoever measures what devices hold.
//!
//! They are reads of the component's content as it stands here. No guest, limit or histogram is involved. What they read counts as work
//! in the background, so that `shares` sees what guests feel of it.

use crate::interface::{FabricOutput, Output, Token};
use crate::node::{Node, Waiter};
use base::request::StatusOf;
use base::units::{BLOCK_SIZE, BLOCKS_PER_EXTENT};
use base::{ComponentId, Instant};
use diskgroup::{ComponentKey, Input, Op};
use std::ops::Range;
use wire::{Answer, Refusal};

impl Node {
    /// The first part from `from` on in which a component has taken space. `None` if there is none, or no such component.
    pub fn next_backed_part(&self, component: ComponentId, from: u32) -> Option<u32> {
        let (group, key) = self.find_component(component)?;
        let group = self.group(group)?;
        let parts = group.part_count(key);
        group.first_of_survey(key, from..parts.max(from), StatusOf::Disk).filter(|part| *part < parts)
    }

    /// Tells the checksums of all blocks of a part. Ends with [`FabricOutput::Component`].
    pub fn inspect_checksums(
        &mut self,
        now: Instant,
        token: Token,
        component: ComponentId,
        part: u32,
        out: &mut Vec<Output>,
    ) {
        self.inspected_bytes += BLOCK_SIZE; // A page of the table.
        self.inspect_by(now, token, (component, part), out, |op, component| {
            let count = BLOCKS_PER_EXTENT as u16;
            Input::Checksums { op, component, part, block: 0, count }
        });
    }

    /// Reads blocks of a part and verifies them. Ends with [`FabricOutput::Component`].
    pub fn inspect_blocks(
        &mut self,
        now: Instant,
        token: Token,
        (component, part): (ComponentId, u32),
        blocks: Range<u16>,
        out: &mut Vec<Output>,
    ) {
        let (block, count) = (blocks.start, blocks.end - blocks.start);
        self.inspected_bytes += u64::from(count) * BLOCK_SIZE;
        self.inspect_by(now, token, (component, part), out, |op, component| Input::Read {
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

    fn inspect_by(
        &mut self,
        now: Instant,
        token: Token,
        (component, part): (ComponentId, u32),
        out: &mut Vec<Output>,
        input: impl FnOnce(Op, ComponentKey) -> Input,
    ) {
        self.now = now;
        let found = self.find_component(component).filter(|(group, key)| {
            let parts = self.group(*group).map_or(0, |group| group.part_count(*key));
            part < parts
        });
        let Some((group, key)) = found else {
            let answer = Some(Answer::Refused(Refusal::NoComponent));
            return out.push(Output::Fabric(FabricOutput::Component { token, answer }));
        };
        self.ask(group, Waiter::Inspection { token }, |op| input(op, key), out);
        self.pump(out);
    }
}
