//! What flags and elements set alike, before it is known what it means together.

use super::settings::{Access, Buffer, Span, Target};
use crate::limits;
use plan::Place;

/// A time span and the target that is read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Draft {
    pub(crate) span: Span,
    pub(crate) target: Target,
    pub(crate) random: bool,
    pub(crate) interlocked: bool,
    /// Percent of random I/O.
    ratio: Option<u64>,
    /// Whether every write has new random bytes, whatever the targets say.
    pub(crate) random_data: bool,
    /// Size of the target's random buffer.
    window: Option<u64>,
}

impl Draft {
    /// DiskSPD's defaults.
    pub(crate) fn new(place: &Place) -> Draft {
        let (span, target) = (Span::new(place.clone()), Target::new(place.clone()));
        Draft { span, target, ..Draft::default() }
    }

    /// What was said of the target, together.
    pub(crate) fn target(&self) -> Target {
        let access = match (self.random, self.ratio) {
            (true, percent) => Access::Random(percent.unwrap_or(100)),
            (false, _) if self.interlocked => Access::Interlocked,
            (false, _) => Access::Sequential,
        };
        let buffer = match (&self.target.buffer, self.window) {
            (Buffer::Random, Some(bytes)) => Buffer::Window(bytes),
            (buffer, _) => buffer.clone(),
        };
        Target { access, buffer, ..self.target.clone() }
    }
}

/// A number with its limits, and what it sets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Number {
    pub(crate) least: u64,
    pub(crate) most: u64,
    pub(crate) set: fn(&mut Draft, u64),
}

impl Number {
    const fn new(least: u64, most: u64, set: fn(&mut Draft, u64)) -> Number {
        Number { least, most, set }
    }
}

const SECONDS: u64 = limits::SECONDS_MAX as u64;
const COUNT: u64 = 1 << 20;
/// The most bytes that a size may have.
pub(crate) const BYTES: u64 = i64::MAX as u64;
/// The greatest rate, in bytes per millisecond or IOPS.
pub(crate) const RATE: u64 = u64::MAX >> 20;

pub(crate) const DURATION: Number = Number::new(1, SECONDS, |draft, seconds| draft.span.duration = seconds);
pub(crate) const WARMUP: Number = Number::new(0, SECONDS, |draft, seconds| draft.span.warmup = seconds);
pub(crate) const COOLDOWN: Number = Number::new(0, SECONDS, |draft, seconds| draft.span.cooldown = seconds);
pub(crate) const SEED: Number = Number::new(0, u64::MAX, |draft, seed| draft.span.seed = Some(seed));
pub(crate) const ALL_THREADS: Number = Number::new(1, COUNT, |draft, count| draft.span.threads = Some(count));
pub(crate) const ALL_REQUESTS: Number = Number::new(1, COUNT, |draft, count| draft.span.depth = Some(count));
pub(crate) const REQUESTS: Number = Number::new(1, COUNT, |draft, count| draft.target.depth = count);
pub(crate) const THREADS: Number = Number::new(1, COUNT, |draft, count| draft.target.threads = count);
pub(crate) const WRITES: Number = Number::new(0, 100, |draft, percent| draft.target.writes = percent);
pub(crate) const BURST: Number = Number::new(1, COUNT, |draft, count| draft.target.burst = Some(count));
pub(crate) const PAUSE: Number = Number::new(1, SECONDS, |draft, time| draft.target.think_ms = Some(time));
pub(crate) const RANDOM: Number =
    Number::new(1, 100, |draft, percent| (draft.random, draft.ratio) = (true, Some(percent)));
pub(crate) const STEP: Number = Number::new(1, BYTES, |draft, bytes| draft.target.step = Some(bytes));
pub(crate) const RANDOM_STEP: Number =
    Number::new(1, BYTES, |draft, bytes| (draft.random, draft.target.step) = (true, Some(bytes)));
pub(crate) const WINDOW: Number = Number::new(1, BYTES, |draft, bytes| draft.window = Some(bytes));
pub(crate) const BASE: Number = Number::new(0, BYTES, |draft, bytes| draft.target.base = bytes);
pub(crate) const STOP: Number = Number::new(1, BYTES, |draft, bytes| draft.target.stop = Some(bytes));
pub(crate) const CREATE: Number = Number::new(1, BYTES, |draft, bytes| draft.target.create = Some(bytes));
pub(crate) const THREAD_STRIDE: Number =
    Number::new(0, BYTES, |draft, bytes| draft.target.thread_stride = bytes);
