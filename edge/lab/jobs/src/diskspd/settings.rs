//! What a command line or a time span says, with DiskSPD's defaults.

use plan::{Place, Zone};

/// Whether and how sequential I/O is shared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Access {
    /// One behind another; each thread has its own position.
    #[default]
    Sequential,
    /// One behind another; all threads share a position (`-si`).
    Interlocked,
    /// So many percent random.
    Random(u64),
}

/// What stands between threads and target (`-S`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Cache {
    /// Past the page cache or through it; none where nothing is said, which is through it.
    pub(crate) direct: Option<bool>,
    pub(crate) write_through: bool,
}

/// What is written (`-Z`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Buffer {
    #[default]
    Counting,
    Zeroes,
    Random,
    Window(u64),
}

/// `-g`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Throughput {
    BytesPerMillisecond(u64),
    Iops(u64),
}

/// A target with all that may differ between targets of an XML profile.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Target {
    pub(crate) path: String,
    pub(crate) place: Place,
    pub(crate) block: u64,
    pub(crate) base: u64,
    /// From the base on.
    pub(crate) length: Option<u64>,
    /// From the target's start on (`-f`, `MaxFileSize`).
    pub(crate) stop: Option<u64>,
    pub(crate) create: Option<u64>,
    pub(crate) access: Access,
    /// Alignment of random I/Os or stride of sequential ones; none: the block's size.
    pub(crate) step: Option<u64>,
    pub(crate) thread_stride: u64,
    pub(crate) writes: u64,
    pub(crate) depth: u64,
    pub(crate) threads: u64,
    pub(crate) cache: Cache,
    pub(crate) buffer: Buffer,
    pub(crate) throughput: Option<Throughput>,
    pub(crate) burst: Option<u64>,
    pub(crate) think_ms: Option<u64>,
    pub(crate) zones: Vec<Zone>,
}

impl Target {
    /// A target of the defaults: 64 KiB sequential reads, one thread, two outstanding.
    pub(crate) fn new(place: Place) -> Target {
        Target { place, block: 64 << 10, depth: 2, threads: 1, ..Target::default() }
    }
}

/// What runs together.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Span {
    pub(crate) place: Place,
    pub(crate) duration: u64,
    pub(crate) warmup: u64,
    pub(crate) cooldown: u64,
    /// None: from the clock.
    pub(crate) seed: Option<u64>,
    /// Threads over all targets (`-F`).
    pub(crate) threads: Option<u64>,
    /// I/Os of a thread over all targets (`-O`).
    pub(crate) depth: Option<u64>,
    pub(crate) targets: Vec<Target>,
}

impl Span {
    /// A time span of the defaults: 10 s after 5 s.
    pub(crate) fn new(place: Place) -> Span {
        Span { place, duration: 10, warmup: 5, seed: Some(0), ..Span::default() }
    }
}
