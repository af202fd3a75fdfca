//! What a component of this node has allocated, told to the disk's owner: stretches without space as runs, and of so many other
//! parts each block that a turn of the engine takes no longer for it.

use super::shelf::refusal;
use crate::node::{GroupKey, Node, Output};
use crate::request::push_run;
use base::request::StatusRun;
use base::units::{BLOCK_SIZE, EXTENT_SIZE};
use diskgroup::ComponentKey;
use replication::components::{StoreOp, Stored};
use wire::limits::ALLOCATION_LOOKUPS_MAX;

/// A question under way.
#[derive(Debug)]
pub(crate) struct Survey {
    op: StoreOp,
    group: GroupKey,
    component: ComponentKey,
    /// The next part, and the one behind the last.
    part: u32,
    end: u32,
    /// Parts of which each block was looked up.
    looked_up: usize,
    runs: Vec<StatusRun>,
}

impl Node {
    pub(crate) fn begin_survey(
        &mut self,
        (op, group, component): (StoreOp, GroupKey, ComponentKey),
        (part, count): (u32, u16),
        out: &mut Vec<Output>,
    ) {
        let survey = Survey {
            op,
            group,
            component,
            part,
            end: part + u32::from(count),
            looked_up: 0,
            runs: Vec::new(),
        };
        self.go_on_with_survey(survey, out);
    }

    /// Questions that waited for table pages go on.
    pub(crate) fn go_on_with_surveys(&mut self, out: &mut Vec<Output>) {
        for survey in std::mem::take(&mut self.fabric().surveys) {
            self.go_on_with_survey(survey, out);
        }
    }

    fn go_on_with_survey(&mut self, mut survey: Survey, out: &mut Vec<Output>) {
        while survey.part < survey.end && survey.looked_up < ALLOCATION_LOOKUPS_MAX {
            let (key, component, part) = (survey.group, survey.component, survey.part);
            let Some(group) = self.groups[key.0 as usize].as_mut() else {
                return self.stored(survey.op, Stored::Failed(wire::Refusal::NoComponent));
            };
            let backed = group.first_backed(component, part..survey.end).unwrap_or(survey.end);
            if backed > part {
                push_run(&mut survey.runs, u64::from(backed - part) * EXTENT_SIZE, false);
                survey.part = backed;
                continue;
            }
            let mut outputs = Vec::new();
            let found = group.allocation(component, part, &mut outputs);
            self.route(key, outputs, out);
            match found {
                None => return self.fabric().surveys.push_back(survey),
                Some(Err(error)) => return self.stored(survey.op, Stored::Failed(refusal(error))),
                Some(Ok(blocks)) => {
                    blocks.iter().for_each(|block| push_run(&mut survey.runs, BLOCK_SIZE, *block));
                    survey.part += 1;
                    survey.looked_up += 1;
                }
            }
        }
        self.stored(survey.op, Stored::Allocation(survey.runs));
    }
}
