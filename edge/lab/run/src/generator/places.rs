//! Where the I/Os of one stream go on one target.

use super::permutation::Permutation;
use super::popularity::{Popularity, unit};
use base::Random;
use plan::{AtEnd, Cursor, Line, Pattern, Reuse};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A read, a write or a trim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Data comes from the target.
    Read,
    /// Data goes to the target.
    Write,
    /// The target may forget the data.
    Trim,
}

impl Operation {
    /// In the order of results.
    pub const ALL: [Operation; 3] = [Operation::Read, Operation::Write, Operation::Trim];
}

/// Why a stream has no place on a target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the span of the job starts at byte {start} and has {length} bytes: an I/O of {size} bytes does not fit"
)]
pub struct NoRoom {
    /// Where the span begins, in bytes.
    pub start: u64,
    /// Its bytes.
    pub length: u64,
    /// Bytes of the largest I/O.
    pub size: u64,
}

/// Where the I/Os of one stream go on one target: a position in sequence, and draws.
#[derive(Debug)]
pub struct Places {
    start: u64,
    end: u64,
    align: u64,
    blocks: u64,
    popularity: Popularity,
    order: Option<Permutation>,
    position: Position,
    stride: Option<i64>,
    at_end: AtEnd,
    /// The offset of the last I/O, for strides.
    last: Option<u64>,
    follow: u32,
    follow_left: u32,
    hits: Option<(u64, f64, f64)>,
    size_max: u64,
}

/// A position in sequence, of one stream or of all streams on a target.
#[derive(Debug)]
enum Position {
    Own(u64),
    Shared(Arc<AtomicU64>),
}

impl Places {
    /// For worker `worker` of its group (`on_target` among those of this target) on a target of `size` bytes. `shared` is the
    /// position of all streams of the group on this target, in bytes from the start of the span.
    ///
    /// # Errors
    /// When no I/O of the pattern fits in the span.
    pub fn new(
        pattern: &Pattern,
        worker: WorkerNumber,
        size: u64,
        shared: &Arc<AtomicU64>,
        random: &mut Random,
    ) -> Result<Places, NoRoom> {
        let (start, length) = pattern.span.of(worker.in_group, size);
        let size_max = pattern.size_max();
        if size_max == 0 || size_max > length {
            return Err(NoRoom { start, length, size: size_max });
        }
        let align = pattern.lines.iter().map(align_of).min().unwrap_or(1);
        let blocks = (length - size_max) / align + 1;
        let first = pattern.sequence.worker_step.saturating_mul(u64::from(worker.on_target)) % length;
        let position = match pattern.sequence.cursor {
            Cursor::PerWorker => Position::Own(start + first),
            Cursor::PerTarget => Position::Shared(shared.clone()),
        };
        let once =
            pattern.reuse == Reuse::EachBlockOnce && pattern.distribution == plan::Distribution::Uniform;
        Ok(Places {
            start,
            end: start + length,
            align,
            blocks,
            popularity: Popularity::new(&pattern.distribution, blocks, align),
            order: once.then(|| Permutation::new(blocks, random)),
            position,
            stride: pattern.sequence.stride,
            at_end: pattern.sequence.at_end,
            last: None,
            follow: pattern.follow,
            follow_left: 0,
            hits: pattern
                .hits
                .map(|hits| (hits.bytes.clamp(size_max, length), hits.reads / 100.0, hits.writes / 100.0)),
            size_max,
        })
    }

    /// Bytes of the span.
    pub fn span(&self) -> u64 {
        self.end - self.start
    }

    /// Where the next I/O goes; nothing when the stream is done with this target.
    pub fn next(&mut self, random: &mut Random, line: &Line, operation: Operation, size: u64) -> Option<u64> {
        if self.follow_left > 0 {
            self.follow_left -= 1;
            return self.in_sequence(size);
        }
        // A draw is spared where it would decide nothing: patterns are mostly all random or all in sequence.
        let drawn = line.random >= 100.0 || (line.random > 0.0 && unit(random) * 100.0 < line.random);
        if !drawn {
            return self.in_sequence(size);
        }
        self.follow_left = self.follow;
        let offset = self.draw(random, operation);
        self.moved(offset, size);
        Some(offset)
    }

    fn draw(&mut self, random: &mut Random, operation: Operation) -> u64 {
        if let Some((bytes, reads, writes)) = self.hits {
            let share = if operation == Operation::Read { reads } else { writes };
            if unit(random) < share {
                let blocks = (bytes - self.size_max) / self.align + 1;
                return self.start + random.below(blocks) * self.align;
            }
        }
        let block = match &mut self.order {
            Some(order) => order.next(random),
            None => self.popularity.draw(random, self.blocks),
        };
        self.start + block * self.align
    }

    /// A random I/O sets the stream's own position: what follows in sequence follows it.
    fn moved(&mut self, offset: u64, size: u64) {
        self.last = Some(offset);
        if let Position::Own(position) = &mut self.position {
            *position = offset + size;
        }
    }

    fn in_sequence(&mut self, size: u64) -> Option<u64> {
        let length = self.end - self.start;
        match &mut self.position {
            Position::Shared(shared) => {
                let step = self.stride.map_or(size, |stride| stride.unsigned_abs());
                let moved = shared.fetch_add(step, Ordering::Relaxed);
                if self.at_end == AtEnd::Stop && moved + size > length {
                    return None;
                }
                // Whole I/Os only: a remainder at the end of the span is left out.
                let round = (length / step).max(1) * step;
                Some(self.start + (moved % round).min(length - size))
            }
            Position::Own(position) => {
                let mut offset = match (self.stride, self.last) {
                    // Beyond the first byte is beyond the span.
                    (Some(stride), Some(last)) => last.checked_add_signed(stride).unwrap_or(u64::MAX - size),
                    _ => *position,
                };
                if offset < self.start || offset + size > self.end {
                    if self.at_end == AtEnd::Stop {
                        return None;
                    }
                    offset = match self.stride {
                        Some(stride) if stride < 0 => self.end - size,
                        _ => self.start,
                    };
                }
                *position = offset + size;
                self.last = Some(offset);
                Some(offset)
            }
        }
    }
}

fn align_of(line: &Line) -> u64 {
    line.align.unwrap_or_else(|| line.size.min()).max(1)
}

/// Which of its group's workers a stream belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerNumber {
    /// Counted over the whole group.
    pub in_group: u32,
    /// Counted over those of the same target.
    pub on_target: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::{Extent, Sequence, Span};

    fn offsets(change: impl FnOnce(&mut Pattern), random: f64, size: u64, count: usize) -> Vec<u64> {
        let mut pattern = Pattern::simple(4096, 100.0, random);
        change(&mut pattern);
        let mut source = Random::new(1);
        let shared = Arc::new(AtomicU64::new(0));
        let worker = WorkerNumber { in_group: 0, on_target: 0 };
        let mut places = Places::new(&pattern, worker, size, &shared, &mut source).expect("there is room");
        let line = pattern.lines[0].clone();
        (0..count)
            .map_while(|_| places.next(&mut source, &line, Operation::Read, 4096))
            .map(|offset| offset / 4096)
            .collect()
    }

    #[test]
    fn in_sequence_each_io_follows_the_one_before_and_wraps() {
        assert_eq!(offsets(|_| (), 0.0, 4 * 4096 + 100, 6), [0, 1, 2, 3, 0, 1]);
        let shared = |pattern: &mut Pattern| pattern.sequence.cursor = Cursor::PerTarget;
        assert_eq!(offsets(shared, 0.0, 4 * 4096 + 100, 6), [0, 1, 2, 3, 0, 1]);
        let stop = |pattern: &mut Pattern| pattern.sequence.at_end = AtEnd::Stop;
        assert_eq!(offsets(stop, 0.0, 4 * 4096, 6), [0, 1, 2, 3]);
    }

    #[test]
    fn strides_go_on_from_the_start_of_the_last_io_and_backwards_too() {
        let forward =
            |pattern: &mut Pattern| pattern.sequence = Sequence { stride: Some(8192), ..Sequence::default() };
        assert_eq!(offsets(forward, 0.0, 5 * 4096, 5), [0, 2, 4, 0, 2]);
        let backward = |pattern: &mut Pattern| {
            pattern.sequence = Sequence { stride: Some(-4096), ..Sequence::default() }
        };
        assert_eq!(offsets(backward, 0.0, 3 * 4096, 5), [0, 2, 1, 0, 2]);
    }

    #[test]
    fn draws_stay_within_the_span_and_each_block_comes_once_where_asked() {
        let half = |pattern: &mut Pattern| {
            pattern.span = Span {
                offset: Extent::Percent(50.0),
                length: Some(Extent::Percent(25.0)),
                worker_step: Extent::Bytes(0),
            };
        };
        let found = offsets(half, 100.0, 1000 * 4096, 2000);
        assert!(found.iter().all(|block| (500..750).contains(block)));
        let once = |pattern: &mut Pattern| pattern.reuse = Reuse::EachBlockOnce;
        let mut found = offsets(once, 100.0, 256 * 4096, 256);
        found.sort_unstable();
        assert_eq!(found, (0..256).collect::<Vec<u64>>());
    }

    #[test]
    fn after_a_random_io_so_many_follow_in_sequence() {
        let found = offsets(|pattern| pattern.follow = 3, 100.0, 100_000 * 4096, 400);
        for run in found.chunks(4) {
            assert!(run.windows(2).all(|pair| pair[1] == pair[0] + 1 || pair[1] == 0), "{run:?}");
        }
    }

    #[test]
    fn a_share_of_random_ios_is_kept() {
        let found = offsets(|_| (), 20.0, 100_000 * 4096, 50_000);
        let jumps = found.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
        assert!((jumps as f64 / 50_000.0 - 0.2).abs() < 0.01, "{jumps} jumps");
    }

    #[test]
    fn a_span_without_room_for_one_io_is_refused() {
        let pattern = Pattern::simple(1 << 20, 100.0, 0.0);
        let shared = Arc::new(AtomicU64::new(0));
        let worker = WorkerNumber { in_group: 0, on_target: 0 };
        let refused = Places::new(&pattern, worker, 4096, &shared, &mut Random::new(1)).expect_err("no room");
        assert_eq!(refused, NoRoom { start: 0, length: 4096, size: 1 << 20 });
    }
}
