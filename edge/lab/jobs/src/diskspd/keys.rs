//! Every flag of DiskSPD 2.2's command line and every element of its profiles: what becomes of it, and what sets it.

use super::draft::{
    ALL_REQUESTS, ALL_THREADS, BASE, BURST, COOLDOWN, CREATE, DURATION, Draft, Number, PAUSE, RANDOM,
    RANDOM_STEP, REQUESTS, SEED, STEP, STOP, THREAD_STRIDE, THREADS, WARMUP, WINDOW, WRITES,
};
use super::elements::Element;
use super::flags::{self, Flag};
use super::settings::Cache;
use super::xml::{self, Profile};
use crate::error::Fault;
use crate::findings::Findings;
use crate::keys::{Rule, within};

/// What a flag sets.
#[derive(Clone, Copy)]
pub(crate) enum ByFlag {
    Number(Number),
    /// A number with K, M, G, T or b.
    Size(Number),
    Own(fn(&mut Draft, &Flag<'_>, &mut Findings) -> Result<(), Fault>),
}

const LATENCY: &str = "Measures latency. The lab always measures latency.";
const INTERVALS: &str = "IOPS per interval. The lab always keeps them, per second.";
const OUTPUT: &str = "Form and detail of DiskSPD's output.";
const AFFINITY: &str = "Binds threads to processors, or to none.";
const WINDOWS: &str = "Feature of Windows: completion routines, large pages, event tracing, priorities.";
const STRIDE: &str = "Sequential I/O with this stride.";
const INTERLOCKED: &str = "Sequential I/O. All threads share one position.";
const THREAD_DISTANCE: &str = "Distance between the first offsets of threads.";
const RANDOM_DATA: &str = "New random bytes in every write.";
const HINTS: &str = "Hint to the page cache of Windows.";
const OVERLAP: &str =
    "Sequential I/Os overlap at the same offset. In the lab each starts where the last ended: remove it.";

/// A word is the flag with the longest name that it begins with. A row for each key.
#[rustfmt::skip]
pub(crate) const FLAGS: &[Rule<ByFlag>] = {
    use ByFlag::{Number, Own, Size};
    &[
        // Sizes may be given in blocks, so the reader takes the block first.
        Rule::structure("-b", "I/O size, 64K by default."),
        Rule::carried("-B", "Start of the span, and its length behind a colon.", Own(flags::base)),
        Rule::carried("-f", "End of the span. The hints `r`, `s`, `t` leave a note.", Own(flags::end)),
        Rule::carried("-c", "Size of a file that is created first.", Size(CREATE)),
        Rule::carried("-d", "Duration, in seconds, 10 by default.", Number(DURATION)),
        Rule::carried("-W", "Ramp-up, in seconds, 5 by default.", Number(WARMUP)),
        Rule::carried("-C", "Cool-down, in seconds.", Number(COOLDOWN)),
        Rule::carried("-o", "Outstanding I/Os per thread and target, 2 by default.", Number(REQUESTS)),
        Rule::carried("-t", "Threads per target, 1 by default.", Number(THREADS)),
        Rule::carried("-F", "Threads over all targets.", Number(ALL_THREADS)),
        Rule::carried("-O", "Outstanding I/Os per thread over all targets.", Number(ALL_REQUESTS)),
        Rule::carried("-r", "Random I/O, aligned to this size or to the block size.", Own(flags::step)),
        Rule::carried("-rs", "Percent of random I/O. The rest is sequential.", Number(RANDOM)),
        Rule::carried("-rdpct", "Random I/O in zones: percent of I/Os and of the target.", Own(flags::zones)),
        Rule::carried("-rdabs", "Random I/O in zones: percent of I/Os, and bytes.", Own(flags::zones)),
        Rule::carried("-s", STRIDE, Own(flags::step)),
        Rule::carried("-si", INTERLOCKED, Own(flags::step)),
        Rule::carried("-T", THREAD_DISTANCE, Size(THREAD_STRIDE)),
        Rule::refused("-p", OVERLAP),
        Rule::carried("-w", "Percent of writes.", Number(WRITES)),
        Rule::carried("-S", "Caching: b, h, u, w. m (memory mapping) is refused, r leaves a note.", Own(flags::cache)),
        Rule::carried("-h", "Old spelling of -Sh.", Own(flags::cache)),
        Rule::noted("-N", "Flushes mapped memory. The lab maps no memory."),
        Rule::carried("-g", "Rate per thread and target: bytes per ms, or IOPS with an i.", Own(flags::throughput)),
        Rule::carried("-i", "I/Os between two pauses.", Number(BURST)),
        Rule::carried("-j", "Length of a pause, in milliseconds.", Number(PAUSE)),
        Rule::carried("-z", "Random seed. Without a number: a new seed for each run.", Own(flags::seed)),
        Rule::carried("-Z", "Content of writes: zeroes, or parts of a random buffer of this size.", Own(flags::buffer)),
        Rule::carried("-Zr", RANDOM_DATA, Own(flags::buffer)),
        Rule::noted("-L", LATENCY),
        Rule::noted("-D", INTERVALS),
        Rule::noted("-R", OUTPUT).or(&["-v", "-P"]),
        Rule::noted("-a", AFFINITY).or(&["-n"]),
        Rule::noted("-x", WINDOWS).or(&["-I", "-l", "-e", "-y"]),
        Rule::structure("-X", "Profile. Only -W, -d, -C, -R, -v and -z may stand beside it."),
        Rule::refused("-A", "Runs under the control of another process. Remove -A."),
        Rule::refused("-?", "Prints the usage. Remove it."),
    ]
};

/// What an element sets.
#[derive(Clone, Copy)]
pub(crate) enum ByElement {
    Number(Number),
    /// A number where 0 stands for none.
    Optional(Number),
    /// What `true` does.
    Switch(fn(&mut Draft)),
    Own(fn(&mut Profile<'_>, &Element, &mut Findings) -> Result<(), Fault>),
}

/// Elements, in the lists of the elements that they stand in; their names are strict, as DiskSPD's schema is.
#[rustfmt::skip]
pub(crate) const ELEMENTS: &[&[Rule<ByElement>]] = {
    use ByElement::{Number, Optional, Own, Switch};
    &[
        &within("Profile", [
            Rule::noted("ResultFormat", OUTPUT).or(&["Progress", "Verbose", "VerboseStats"]),
            Rule::noted("PrecreateFiles", "Creates files before the first time span. So does the lab."),
            Rule::noted("ETW", WINDOWS).or(&["ExperimentFlags"]),
            Rule::structure("TimeSpans", "Time spans, one after another."),
        ]),
        &within("TimeSpans", [
            Rule::carried("TimeSpan", "Targets that run together.", Own(xml::span)),
        ]),
        &within("TimeSpan", [
            Rule::carried("Duration", "Duration, in seconds.", Number(DURATION)),
            Rule::carried("Warmup", "Ramp-up, in seconds.", Number(WARMUP)),
            Rule::carried("Cooldown", "Cool-down, in seconds.", Number(COOLDOWN)),
            Rule::carried("ThreadCount", "Threads over all targets, or 0.", Optional(ALL_THREADS)),
            Rule::carried("RequestCount", "Outstanding I/Os per thread, or 0.", Optional(ALL_REQUESTS)),
            Rule::carried("RandSeed", "Random seed.", Number(SEED)),
            Rule::carried("RandomWriteData", RANDOM_DATA, Switch(|draft| draft.random_data = true)),
            Rule::structure("Targets", "Targets."),
            Rule::noted("MeasureLatency", LATENCY),
            Rule::noted("CalculateIopsStdDev", INTERVALS).or(&["IoBucketDuration"]),
            Rule::noted("Affinity", AFFINITY).or(&["DisableAffinity", "GroupAffinity"]),
            Rule::noted("CompletionRoutines", WINDOWS),
        ]),
        &within("Targets", [
            Rule::carried("Target", "Target.", Own(xml::target)),
        ]),
        &within("Target", [
            Rule::carried("Path", "Name. *1 and *2 stand for targets of the command line.", Own(xml::path)),
            Rule::carried("BlockSize", "I/O size.", Own(xml::block)),
            Rule::carried("StrideSize", STRIDE, Number(STEP)).or(&["SequentialStride"]),
            Rule::carried("Random", "Random I/O, aligned to this size.", Number(RANDOM_STEP)),
            Rule::carried("RandomRatio", "Percent of random I/O.", Number(RANDOM)),
            Rule::carried("InterlockedSequential", INTERLOCKED, Switch(|draft| draft.interlocked = true)),
            Rule::carried("BaseFileOffset", "Start of the span.", Number(BASE)),
            Rule::carried("MaxFileSize", "End of the span.", Optional(STOP)),
            Rule::carried("FileSize", "Size of a file that is created first.", Optional(CREATE)),
            Rule::carried("RequestCount", "Outstanding I/Os per thread.", Number(REQUESTS)),
            Rule::carried("WriteRatio", "Percent of writes.", Number(WRITES)),
            Rule::carried("Throughput", "Rate per thread: bytes per ms, or IOPS.", Own(xml::throughput)),
            Rule::carried("ThreadsPerFile", "Threads of the target.", Number(THREADS)),
            Rule::carried("ThreadStride", THREAD_DISTANCE, Number(THREAD_STRIDE)),
            Rule::carried("ThinkTime", "Length of a pause, in milliseconds.", Optional(PAUSE)),
            Rule::carried("BurstSize", "I/Os between two pauses.", Optional(BURST)),
            Rule::carried("DisableOSCache", "Direct I/O, past the page cache.", Switch(|draft| draft.target.cache.direct = Some(true))),
            Rule::carried("WriteThrough", "Writes are stable when they complete.", Switch(|draft| draft.target.cache.write_through = true)),
            Rule::carried("DisableAllCache", "Direct I/O with stable writes.", Switch(|draft| {
                draft.target.cache = Cache { direct: Some(true), write_through: true };
            })),
            Rule::structure("WriteBufferContent", "Content of writes."),
            Rule::carried("Distribution", "Distribution of random I/O.", Own(xml::distribution)),
            Rule::refused("Weight", "The lab gives all targets equal shares of a thread's I/Os. Remove the weights."),
            Rule::refused("ThreadTargets", "The lab runs all threads on all targets of a time span. Remove the element."),
            Rule::noted("DisableLocalCache", "Cache of a remote file on this machine. Linux has no such switch."),
            Rule::noted("SequentialScan", HINTS).or(&["RandomAccess", "TemporaryFile"]),
            Rule::noted("IOPriority", WINDOWS).or(&["UseLargePages"]),
            Rule::refused("ParallelAsyncIO", OVERLAP),
            Rule::refused("MemoryMappedIo", "The lab measures I/O, no memory mapping. Remove the element.")
                .or(&["MemoryMappedIoFlushType", "FlushType"]),
        ]),
        &within("WriteBufferContent", [
            Rule::carried("Pattern", "`sequential`, `zero` or `random`.", Own(xml::pattern)),
            Rule::structure("RandomDataSource", "Random buffer whose parts are written."),
        ]),
        &within("RandomDataSource", [
            Rule::carried("SizeInBytes", "Size of the buffer.", Number(WINDOW)),
            Rule::noted("FilePath", "File with the content of the buffer. The lab uses random bytes."),
        ]),
        &within("Distribution", [
            Rule::structure("Percent", "Zones in percent of the target."),
            Rule::structure("Absolute", "Zones in bytes."),
        ]),
        &within("Percent", [
            Rule::carried("Range", "Zone: IO is percent of the I/Os.", Own(xml::percent)),
        ]),
        &within("Absolute", [
            Rule::carried("Range", "Zone: IO is percent of the I/Os.", Own(xml::bytes)),
        ]),
    ]
};
