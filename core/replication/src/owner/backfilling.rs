//! A snapshot that a component lacks, while it gets that from another one: what is known, and how far that is (docs/design/0051).

use super::calm::Calm;
use super::data::Data;
use super::member::At;
use crate::limits;
use crate::locks::Range;
use base::request::{Buffers, Piece, StatusRun};
use base::units::{BLOCK_SIZE, BLOCKS_PER_EXTENT};
use base::{Buffer, ComponentId, Instant};
use std::collections::VecDeque;
use wire::BackfillRequest;

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The component is to have the snapshot, whatever that sees; it is asked, or is asked again at that time.
    Marking { ask_at: Option<Instant> },
    /// It gets what the snapshot should see.
    Filling,
    /// All that it got is being made stable.
    Syncing,
    /// The record shall say that it has the snapshot.
    Recording,
}

/// What a question to a component is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BackfillStep {
    Mark,
    /// What changed between two snapshots, of the component that lacks it or of the one that gives it.
    Survey {
        /// Which of those that give is asked; none: the one that lacks it.
        giver: Option<u16>,
    },
    /// What the snapshot sees of the range that begins there.
    View {
        part: u32,
        block: u16,
        of_target: bool,
    },
    /// To take blocks of that range.
    Put {
        part: u32,
        block: u16,
    },
    Sync,
}

/// What was told of parts that stand side by side where they were asked for.
#[derive(Debug)]
pub(crate) struct Survey {
    pub(crate) parts: u32,
    pub(crate) runs: Option<Vec<StatusRun>>,
}

/// What is told of some parts by the component that lacks the snapshot, and by those that have it. There are several of these where the disk has come
/// from another layout, one after the other, and of rows, of which all tell of the same parts.
#[derive(Debug)]
pub(crate) struct Surveys {
    pub(crate) from: u32,
    pub(crate) of_rows: bool,
    pub(crate) of_givers: Vec<Survey>,
    pub(crate) of_target: Option<Vec<StatusRun>>,
}

impl Surveys {
    /// Blocks of which those that give have told, from the first part on, and those of them that are set. None while one is still to tell.
    fn told_by_givers(&self) -> Option<(u64, Vec<(u64, u64)>)> {
        let (mut end, mut set) = (0, Vec::new());
        if self.of_rows {
            let told = || self.of_givers.iter().map(|survey| survey.runs.as_ref());
            let runs: Vec<&Vec<StatusRun>> = told().collect::<Option<_>>()?;
            let end = runs.iter().map(|runs| blocks_in(runs)).min().unwrap_or_default();
            return Some((end, runs.into_iter().flat_map(|runs| set_blocks(runs)).collect()));
        }
        let mut is_whole = true;
        for survey in &self.of_givers {
            let runs = survey.runs.as_ref()?;
            if is_whole {
                set.extend(set_blocks(runs).into_iter().map(|(begin, until)| (end + begin, end + until)));
                end += blocks_in(runs);
                is_whole = blocks_in(runs) >= u64::from(survey.parts) * BLOCKS_PER_EXTENT as u64;
            }
        }
        Some((end, set))
    }
}

fn blocks_in(runs: &[StatusRun]) -> u64 {
    runs.iter().map(|run| run.len).sum::<u64>() / BLOCK_SIZE
}

/// A range that is compared, and given where it differs.
#[derive(Debug)]
pub(crate) struct Filling {
    pub(crate) range: Range,
    pub(crate) of_source: Option<Data>,
    pub(crate) of_target: Option<Data>,
    /// What is still to be given, in order.
    pub(crate) orders: VecDeque<BackfillRequest>,
}

/// A snapshot that a component gets.
#[derive(Debug)]
pub(crate) struct Backfilling {
    pub(crate) at: At,
    pub(crate) component: ComponentId,
    pub(crate) number: u32,
    pub(crate) attempt: u32,
    pub(crate) began: Instant,
    /// When a component was asked or answered last.
    pub(crate) heard_at: Instant,
    pub(crate) copied_bytes: u64,
    pub(crate) stage: Stage,
    /// Of a member of rows that is to be told of the snapshot: how far these are on the way to rest.
    pub(crate) calm: Option<Calm>,
    /// The first part of which nobody was asked yet.
    pub(crate) next_part: u32,
    pub(crate) surveys: Option<Surveys>,
    /// How often a range had to begin anew, and until when none begins because of that.
    pub(crate) again: u32,
    pub(crate) rests_until: Instant,
    /// Ranges that may differ.
    pub(crate) ranges: VecDeque<Range>,
    pub(crate) fillings: Vec<Filling>,
}

impl Backfilling {
    pub(crate) fn new(
        (at, component): (At, ComponentId),
        number: u32,
        attempt: u32,
        now: Instant,
    ) -> Backfilling {
        Backfilling {
            at,
            component,
            number,
            attempt,
            began: now,
            heard_at: now,
            copied_bytes: 0,
            stage: Stage::Marking { ask_at: Some(now) },
            calm: None,
            next_part: 0,
            surveys: None,
            again: 0,
            rests_until: now,
            ranges: VecDeque::new(),
            fillings: Vec::new(),
        }
    }

    /// Bytes of ranges that are being read or given.
    pub(crate) fn bytes_under_way(&self) -> u64 {
        self.fillings.iter().map(|one| u64::from(one.range.count) * BLOCK_SIZE).sum()
    }

    /// Whether an answer is waited for.
    pub(crate) fn is_asking(&self) -> bool {
        match self.stage {
            Stage::Marking { ask_at } => ask_at.is_none(),
            Stage::Filling => self.surveys.is_some() || !self.fillings.is_empty(),
            Stage::Syncing => true,
            Stage::Recording => false,
        }
    }

    /// Whether ranges wait to be compared, or are.
    pub(crate) fn wants_pace(&self) -> bool {
        !self.ranges.is_empty() || !self.fillings.is_empty()
    }

    pub(crate) fn filling(&mut self, part: u32, block: u16) -> Option<&mut Filling> {
        self.fillings.iter_mut().find(|one| (one.range.part, one.range.block) == (part, block))
    }

    /// Takes in what all told, if all have: the parts that both sides covered. False if one of them is still to tell.
    pub(crate) fn take_surveys(&mut self) -> bool {
        let surveys = self.surveys.as_ref();
        let of_givers = surveys.and_then(Surveys::told_by_givers);
        let (Some((covered, mut told)), Some(Surveys { from, of_target: Some(of_target), .. })) =
            (of_givers, surveys)
        else {
            return false;
        };
        let covered = covered.min(blocks_in(of_target));
        let first = u64::from(*from) * BLOCKS_PER_EXTENT as u64;
        told.extend(set_blocks(of_target));
        told.sort_unstable();
        let mut end = 0;
        for (begin, until) in told {
            let (begin, until) = (begin.max(end), until.min(covered));
            push_ranges(&mut self.ranges, first + begin, first + until);
            end = end.max(until);
        }
        self.next_part = from + (covered / BLOCKS_PER_EXTENT as u64) as u32;
        self.surveys = None;
        true
    }
}

/// The blocks of runs that are set, first and end of each.
fn set_blocks(runs: &[StatusRun]) -> Vec<(u64, u64)> {
    let mut at = 0;
    let mut found = Vec::new();
    for run in runs {
        let end = at + run.len / BLOCK_SIZE;
        if run.is_set {
            found.push((at, end));
        }
        at = end;
    }
    found
}

/// Cuts blocks of a component into ranges of a part, none of them longer than what is read at once.
fn push_ranges(ranges: &mut VecDeque<Range>, mut block: u64, end: u64) {
    while block < end {
        let in_part = block % BLOCKS_PER_EXTENT as u64;
        let left = (BLOCKS_PER_EXTENT as u64 - in_part).min(end - block);
        let count = left.min(u64::from(limits::COPY_SLICE_BLOCKS));
        ranges.push_back(Range {
            part: (block / BLOCKS_PER_EXTENT as u64) as u32,
            block: in_part as u16,
            count: count as u16,
        });
        block += count;
    }
}

impl Filling {
    pub(crate) fn new(range: Range) -> Filling {
        Filling { range, of_source: None, of_target: None, orders: VecDeque::new() }
    }

    /// Both were read: what is to be given where they differ. The next older snapshot of the component gets first what both see, where it has nothing of its own.
    pub(crate) fn compare(
        &mut self,
        (component, epoch, number): (ComponentId, u32, u32),
        older: Option<u32>,
    ) -> bool {
        let (Some(of_source), Some(of_target)) = (&self.of_source, &self.of_target) else { return false };
        let Range { part, block, .. } = self.range;
        let mut orders: Vec<(BackfillRequest, Option<BackfillRequest>)> = Vec::new();
        let order = |number: u32, at: u16, as_seen_by: Option<u32>| BackfillRequest {
            component,
            epoch,
            number,
            part,
            block: block + at,
            count: 0,
            as_seen_by,
            data: Buffers::new(),
            checksums: Default::default(),
        };
        let mut open = false;
        for (at, (source, target)) in (0u16..).zip(blocks_of(of_source).zip(blocks_of(of_target))) {
            let is_same = match (&source, &target) {
                (None, None) => true,
                // What was put together from others does not tell what was never written.
                (Some((one, _)), None) => one.iter().all(|byte| *byte == 0),
                (Some((one, _)), Some((other, _))) => **one == **other,
                _ => false,
            };
            if is_same {
                open = false;
                continue;
            }
            let is_like = orders.last().is_some_and(|(given, kept)| {
                let kept_like = kept.as_ref().is_none_or(|kept| kept.data.is_empty() == target.is_none());
                given.data.is_empty() == source.is_none() && kept_like
            });
            if !open || !is_like {
                orders.push((order(number, at, None), older.map(|older| order(older, at, Some(number)))));
                open = true;
            }
            let (given, kept) = orders.last_mut().expect("one is there");
            add_block(given, source);
            if let Some(kept) = kept {
                add_block(kept, target);
            }
        }
        self.orders = orders.into_iter().flat_map(|(given, kept)| kept.into_iter().chain([given])).collect();
        true
    }
}

fn add_block(order: &mut BackfillRequest, block: Option<(Buffer, u32)>) {
    order.count += 1;
    if let Some((buffer, checksum)) = block {
        order.checksums.push(checksum);
        if !order.data.last_mut().is_some_and(|last: &mut Buffer| last.try_join(&buffer)) {
            order.data.push(buffer);
        }
    }
}

/// Each block with its checksum; none of a hole.
fn blocks_of(data: &Data) -> impl Iterator<Item = Option<(Buffer, u32)>> + '_ {
    let mut checksums = data.checksums.iter();
    data.pieces
        .iter()
        .flat_map(|piece| {
            let (len, buffer) = match piece {
                Piece::Hole(len) => (u64::from(*len), None),
                Piece::Bytes(buffer) => (buffer.len() as u64, Some(buffer)),
            };
            let block =
                |at: usize| buffer.map(|buffer| buffer.slice(at * BLOCK_SIZE as usize, BLOCK_SIZE as usize));
            (0..(len / BLOCK_SIZE) as usize).map(block).collect::<Vec<_>>()
        })
        .map(move |block| Some((block?, *checksums.next()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(told: &[(u64, bool)]) -> Option<Vec<StatusRun>> {
        Some(
            told.iter()
                .map(|(blocks, is_set)| StatusRun { len: blocks * BLOCK_SIZE, is_set: *is_set })
                .collect(),
        )
    }

    #[test]
    fn what_either_of_two_tells_to_have_changed_is_compared_once() {
        let at = At { place: 0, member: 1 };
        let mut one = Backfilling::new((at, ComponentId(7)), 4, 1, Instant(0));
        let of_source = runs(&[(250, false), (10, true), (508, false)]);
        let of_target = runs(&[(200, false), (52, true), (4, false), (2, true), (254, false)]);
        let of_givers = vec![Survey { parts: 3, runs: of_source }];
        one.surveys = Some(Surveys { from: 3, of_rows: false, of_givers, of_target: None });
        assert!(!one.take_surveys(), "the other one is still to tell");
        one.surveys.as_mut().expect("it is there").of_target = of_target;
        assert!(one.take_surveys());
        let found: Vec<_> = one.ranges.iter().map(|range| (range.part, range.block, range.count)).collect();
        assert_eq!(found, [(3, 200, 32), (3, 232, 20), (3, 252, 4), (4, 0, 4)]);
        assert_eq!(one.next_part, 5, "what both covered");
    }
}
