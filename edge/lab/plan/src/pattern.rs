//! Which blocks are read and written: sizes, shares, where.

use crate::pace::Think;
use serde::{Deserialize, Serialize};

/// The I/Os of a group. Every I/O draws one of the lines by weight, then the line decides what it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pattern {
    /// At least one. Weights are parts of their sum.
    pub lines: Vec<Line>,
    /// Where random I/Os go.
    #[serde(default)]
    pub distribution: Distribution,
    /// Whether random I/Os may meet a block again before all others were met.
    #[serde(default)]
    pub reuse: Reuse,
    /// After each random I/O, so many more follow in sequence before the next is drawn; 0 for none (fio's `rw=randread:N`
    /// is N - 1).
    #[serde(default)]
    pub follow: u32,
    /// How sequential I/Os go.
    #[serde(default)]
    pub sequence: Sequence,
    /// The part of each target that is used.
    #[serde(default)]
    pub span: Span,
    /// A small area that a share of the I/Os goes to (Vdbench's `hitarea`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hits: Option<HitArea>,
}

impl Pattern {
    /// One size, one share of reads, one share of random I/Os, over the whole target.
    pub fn simple(size: u64, reads: f64, random: f64) -> Pattern {
        Pattern {
            lines: vec![Line::new(1.0, Size::Fixed(size), reads, random)],
            distribution: Distribution::default(),
            reuse: Reuse::default(),
            follow: 0,
            sequence: Sequence::default(),
            span: Span::default(),
            hits: None,
        }
    }

    /// The largest I/O that a line may give, in bytes.
    pub fn size_max(&self) -> u64 {
        self.lines.iter().map(|line| line.size.max()).max().unwrap_or(0)
    }

    /// The smallest I/O that a line may give, in bytes.
    pub fn size_min(&self) -> u64 {
        self.lines.iter().map(|line| line.size.min()).min().unwrap_or(0)
    }

    /// The mean size of an I/O in bytes.
    pub fn size_mean(&self) -> f64 {
        self.mean(|line| line.size.mean())
    }

    /// The share of reads, 0..=100 %.
    pub fn reads(&self) -> f64 {
        self.mean(|line| line.reads)
    }

    /// The share of trims, 0..=100 %.
    pub fn trims(&self) -> f64 {
        self.mean(|line| line.trims)
    }

    /// The share of random I/Os, 0..=100 %.
    pub fn random(&self) -> f64 {
        self.mean(|line| line.random)
    }

    /// Whether any I/O changes data.
    pub fn writes(&self) -> bool {
        self.lines.iter().any(|line| line.weight > 0.0 && line.reads < 100.0)
    }

    fn mean(&self, value: impl Fn(&Line) -> f64) -> f64 {
        let weights: f64 = self.lines.iter().map(|line| line.weight).sum();
        if weights <= 0.0 {
            return 0.0;
        }
        self.lines.iter().map(|line| line.weight * value(line)).sum::<f64>() / weights
    }
}

/// One kind of I/O in a mix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Its part among the lines.
    pub weight: f64,
    /// How long the I/O is.
    pub size: Size,
    /// Share of reads, 0..=100 %. What is neither read nor trim is a write.
    pub reads: f64,
    /// Share of trims, 0..=100 %.
    #[serde(default)]
    pub trims: f64,
    /// Share of random I/Os, 0..=100 %; the others go on in sequence.
    pub random: f64,
    /// Random I/Os begin at multiples of so many bytes; none: of the I/O's size (its smallest, if it varies).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub align: Option<u64>,
    /// A pause after so many I/Os of this line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think: Option<Think>,
}

impl Line {
    /// A line without trims, of its own alignment, without a pause.
    pub fn new(weight: f64, size: Size, reads: f64, random: f64) -> Line {
        Line { weight, size, reads, trims: 0.0, random, align: None, think: None }
    }

    /// Share of writes, 0..=100 %.
    pub fn writes(&self) -> f64 {
        100.0 - self.reads - self.trims
    }
}

/// How long an I/O is, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Size {
    /// Always the same.
    Fixed(u64),
    /// Any multiple of `step` from `min` to `max`, all alike.
    Range {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
        /// Sizes are multiples of it.
        step: u64,
    },
}

impl Size {
    /// The largest.
    pub fn max(self) -> u64 {
        match self {
            Size::Fixed(size) => size,
            Size::Range { max, .. } => max,
        }
    }

    /// The smallest.
    pub fn min(self) -> u64 {
        match self {
            Size::Fixed(size) => size,
            Size::Range { min, .. } => min,
        }
    }

    /// The mean.
    pub fn mean(self) -> f64 {
        (self.min() as f64 + self.max() as f64) / 2.0
    }
}

/// Where random I/Os go within the span.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Everywhere alike.
    #[default]
    Uniform,
    /// The k-th most popular block with a share in proportion to 1/k^theta.
    Zipf {
        /// 0 < theta, not 1.
        theta: f64,
        /// Where the most popular block stands, 0..=1 of the span; none: popular blocks are strewn by a hash.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        center: Option<f64>,
    },
    /// fio's Pareto, with a power of 0 < h < 1.
    Pareto {
        /// The power.
        h: f64,
        /// As for Zipf.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        center: Option<f64>,
    },
    /// Around the middle (or `center`).
    Normal {
        /// Standard deviation in percent of the span, as fio's `normal:`.
        deviation: f64,
        /// As for Zipf.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        center: Option<f64>,
    },
    /// Zones one behind another, each with its share of the I/Os.
    Zoned(Vec<Zone>),
}

/// A part of the span and how many of the I/Os go there.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Zone {
    /// Percent of the random I/Os.
    pub ios: f64,
    /// How much of the span. A zone ends where the span ends, so a last one of 100 % is all that is left behind zones in bytes.
    pub length: Extent,
}

/// Whether random I/Os may meet a block again before all others were met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reuse {
    /// Each I/O is drawn alone (DiskSPD, Vdbench, Iometer; fio with `norandommap`).
    #[default]
    Draws,
    /// Every block once before any comes again (fio's random map).
    EachBlockOnce,
}

/// How sequential I/Os go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Sequence {
    /// Who goes on where whom left off.
    #[serde(default)]
    pub cursor: Cursor,
    /// From the start of one I/O to that of the next, in bytes; none: its size, so that they touch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stride: Option<i64>,
    /// Each next worker of a target begins so many bytes further into the span (DiskSPD's `-T`).
    #[serde(default)]
    pub worker_step: u64,
    /// What happens at the end of the span.
    #[serde(default)]
    pub at_end: AtEnd,
}

/// Who shares a sequential position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cursor {
    /// Every worker has its own on every target.
    #[default]
    PerWorker,
    /// All workers of the group share one on every target.
    PerTarget,
}

/// What happens at the end of the span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AtEnd {
    /// From its start again.
    #[default]
    Wrap,
    /// The worker is done with this target.
    Stop,
}

/// A distance on a target.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// In bytes.
    Bytes(u64),
    /// In percent of the target (of the span, in a zone).
    Percent(f64),
}

impl Default for Extent {
    /// Nothing.
    fn default() -> Self {
        Extent::Bytes(0)
    }
}

impl Extent {
    /// In bytes of a whole of `whole` bytes, rounded down.
    pub fn of(self, whole: u64) -> u64 {
        match self {
            Extent::Bytes(bytes) => bytes,
            Extent::Percent(percent) => (whole as f64 * percent / 100.0) as u64,
        }
    }
}

/// The part of each target that is used.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// From here.
    pub offset: Extent,
    /// So much; none: to the end of the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<Extent>,
    /// Each next worker's span begins so much further (fio's `offset_increment`).
    #[serde(default = "nothing")]
    pub worker_step: Extent,
}

fn nothing() -> Extent {
    Extent::Bytes(0)
}

impl Default for Span {
    fn default() -> Self {
        Span { offset: Extent::Bytes(0), length: None, worker_step: Extent::Bytes(0) }
    }
}

impl Span {
    /// Where the span of the group's worker `worker` lies on a target of `size` bytes: start and length. Nothing is left of
    /// it where it would begin behind the end.
    pub fn of(&self, worker: u32, size: u64) -> (u64, u64) {
        let start = self
            .offset
            .of(size)
            .saturating_add(self.worker_step.of(size).saturating_mul(u64::from(worker)))
            .min(size);
        let rest = size - start;
        (start, self.length.map_or(rest, |length| length.of(size).min(rest)))
    }
}

/// A small area that a share of the I/Os goes to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct HitArea {
    /// At the start of the span, so many bytes.
    pub bytes: u64,
    /// Percent of the reads.
    pub reads: f64,
    /// Percent of the writes.
    pub writes: f64,
}
