//! Every flag of DiskSPD 2.2's command line and every element of its profiles, and what becomes of it.

use crate::keys::Key;

/// A word is the flag with the longest name that it begins with.
pub(crate) const FLAGS: &[Key] = &[
    Key::carried("-b", "Size of an I/O; 64K by default."),
    Key::carried("-B", "Where the span begins, and its length behind a colon."),
    Key::carried("-f", "Where the span ends; `r`, `s`, `t` are hints for opening and leave a note."),
    Key::carried("-c", "The size of a file that is made first."),
    Key::carried("-d", "Seconds that count; 10 by default."),
    Key::carried("-W", "Seconds before them; 5 by default."),
    Key::carried("-C", "Seconds behind them."),
    Key::carried("-o", "I/Os outstanding of each thread on each target; 2 by default."),
    Key::carried("-t", "Threads of each target; 1 by default."),
    Key::carried("-F", "Threads over all targets."),
    Key::carried("-O", "I/Os outstanding of each thread over all targets."),
    Key::carried("-r", "Random I/O, at multiples of this size (of the block's by default)."),
    Key::carried("-rs", "Percent of random I/O; the others go on in sequence."),
    Key::carried("-rdpct", "Where random I/O goes: percent of the I/Os and of the target, in zones."),
    Key::carried("-rdabs", "Where random I/O goes: percent of the I/Os and bytes, in zones."),
    Key::carried("-s", "Sequential I/O with this stride."),
    Key::carried("-si", "Sequential I/O, one position for all threads."),
    Key::carried("-T", "Distance between the starts of threads."),
    Key::noted(
        "-p",
        "Sequential I/Os overlap from the same position; in the lab each goes on where the other ended.",
    ),
    Key::carried("-w", "Percent of writes."),
    Key::carried("-S", "Caching: b, h, u, w; m (memory mapping) is refused; r leaves a note."),
    Key::noted("-N", "How mapped memory is flushed."),
    Key::carried("-h", "An old spelling of -Sh."),
    Key::carried("-g", "Bytes per millisecond, or I/Os per second with an i, of each thread on each target."),
    Key::carried("-i", "I/Os between pauses."),
    Key::carried("-j", "Milliseconds of a pause."),
    Key::carried("-z", "Random seed; from the clock where no number follows."),
    Key::carried("-Z", "What is written: zeroes, or parts of a random buffer of this size."),
    Key::carried("-Zr", "Every write has new random bytes."),
    Key::noted("-L", "Latency is measured; the lab always measures it."),
    Key::noted("-D", "IOPS in intervals; the lab always has them."),
    Key::noted("-R", "The form of the result."),
    Key::noted("-v", "More in the result."),
    Key::noted("-P", "Progress is printed."),
    Key::noted("-a", "Threads are bound to processors."),
    Key::noted("-n", "Threads are bound to no processor."),
    Key::noted("-I", "Priority of I/Os."),
    Key::noted("-x", "Completion routines in place of completion ports."),
    Key::noted("-l", "Large pages for buffers."),
    Key::noted("-e", "Event tracing of Windows."),
    Key::noted("-y", "Events of Windows that start and stop a run."),
    Key::carried("-X", "A profile; only -W, -d, -C, -R, -v and -z may stand beside it."),
    Key::refused("-A", "Runs for another process; call it without."),
    Key::refused("-?", "Prints the usage."),
];

const PROFILE: &str = "Profile";
const SPAN: &str = "TimeSpan";
const TARGET: &str = "Target";
const INNER: &str = "Within a Target";

/// Elements; their names are strict, as the schema of DiskSPD is.
pub(crate) const ELEMENTS: &[Key] = &[
    Key::noted("Progress", "Progress is printed.").of(PROFILE),
    Key::noted("ResultFormat", "The form of the result.").of(PROFILE),
    Key::noted("Verbose", "More in the result.").of(PROFILE),
    Key::noted("VerboseStats", "More in the result.").of(PROFILE),
    Key::noted(
        "PrecreateFiles",
        "Files are made before the first time span; the lab makes them when they are opened.",
    )
    .of(PROFILE),
    Key::noted("ETW", "Event tracing of Windows.").of(PROFILE),
    Key::carried("TimeSpans", "One after another.").of(PROFILE),
    Key::carried("TimeSpan", "What runs together.").of(PROFILE),
    Key::noted("CompletionRoutines", "Completion routines in place of completion ports.").of(SPAN),
    Key::noted("MeasureLatency", "Latency is measured; the lab always measures it.").of(SPAN),
    Key::noted("CalculateIopsStdDev", "IOPS in intervals; the lab always has them.").of(SPAN),
    Key::noted("DisableAffinity", "Threads are bound to no processor.").of(SPAN),
    Key::noted("Affinity", "Threads are bound to processors.").of(SPAN),
    Key::carried("Duration", "Seconds that count.").of(SPAN),
    Key::carried("Warmup", "Seconds before them.").of(SPAN),
    Key::carried("Cooldown", "Seconds behind them.").of(SPAN),
    Key::carried("ThreadCount", "Threads over all targets; 0 for threads of each target.").of(SPAN),
    Key::carried(
        "RequestCount",
        "I/Os outstanding of each thread over all targets; 0 for those of each target.",
    )
    .of(SPAN),
    Key::noted("IoBucketDuration", "Length of an interval; the lab has seconds.").of(SPAN),
    Key::carried("RandSeed", "Random seed.").of(SPAN),
    Key::carried("RandomWriteData", "Every write has new random bytes.").of(SPAN),
    Key::carried("Targets", "The targets.").of(SPAN),
    Key::carried("Target", "A target.").of(SPAN),
    Key::carried("Path", "Its name; *1, *2 are targets of the command line.").of(TARGET),
    Key::carried("BlockSize", "Size of an I/O.").of(TARGET),
    Key::carried("StrideSize", "Sequential I/O with this stride.").of(TARGET).or(&["SequentialStride"]),
    Key::carried("Random", "Random I/O, at multiples of this size.").of(TARGET),
    Key::carried("RandomRatio", "Percent of random I/O.").of(TARGET),
    Key::carried("InterlockedSequential", "One position for all threads.").of(TARGET),
    Key::carried("BaseFileOffset", "Where the span begins.").of(TARGET),
    Key::carried("MaxFileSize", "Where it ends.").of(TARGET),
    Key::carried("FileSize", "The size of a file that is made first.").of(TARGET),
    Key::carried("RequestCount", "I/Os outstanding of each thread.").of(TARGET),
    Key::carried("WriteRatio", "Percent of writes.").of(TARGET),
    Key::carried(
        "Throughput",
        "A rate of each thread, in bytes per millisecond or, with unit IOPS, I/Os per second.",
    )
    .of(TARGET),
    Key::carried("ThreadsPerFile", "Threads of the target.").of(TARGET),
    Key::carried("ThreadStride", "Distance between the starts of threads.").of(TARGET),
    Key::carried("ThinkTime", "Milliseconds of a pause.").of(TARGET),
    Key::carried("BurstSize", "I/Os between pauses.").of(TARGET),
    Key::noted("IOPriority", "Priority of I/Os.").of(TARGET),
    Key::noted("Weight", "How threads of the time span choose between targets; the lab goes round.")
        .of(TARGET),
    Key::noted("ThreadTargets", "Which threads use the target; in the lab all do.").of(TARGET),
    Key::carried("DisableOSCache", "The cache of the operating system is passed by.").of(TARGET),
    Key::carried("WriteThrough", "A write is stable when it completes.").of(TARGET),
    Key::carried("DisableAllCache", "Both of them.").of(TARGET),
    Key::noted("DisableLocalCache", "The cache of a remote file on this machine; Linux has no such switch.")
        .of(TARGET),
    Key::noted("SequentialScan", "A hint for opening.").of(TARGET),
    Key::noted("RandomAccess", "A hint for opening.").of(TARGET),
    Key::noted("TemporaryFile", "A hint for opening.").of(TARGET),
    Key::noted("UseLargePages", "Large pages for buffers.").of(TARGET),
    Key::noted("ParallelAsyncIO", "Sequential I/Os overlap from the same position.").of(TARGET),
    Key::refused("MemoryMappedIo", "Memory mapping is no I/O that can be measured; take it out.")
        .of(TARGET)
        .or(&["MemoryMappedIoFlushType", "FlushType"]),
    Key::carried("WriteBufferContent", "What is written.").of(TARGET),
    Key::carried("Distribution", "Where random I/O goes.").of(TARGET),
    Key::carried("Pattern", "`sequential`, `zero` or `random`.").of(INNER),
    Key::carried("RandomDataSource", "A random buffer whose parts are written.").of(INNER),
    Key::carried("SizeInBytes", "Its size.").of(INNER),
    Key::noted("FilePath", "A file that the buffer is filled from; the lab fills it with random bytes.")
        .of(INNER),
    Key::carried("Percent", "Zones in percent of the target.").of(INNER),
    Key::carried("Absolute", "Zones in bytes.").of(INNER),
    Key::carried("Range", "A zone: attribute IO is percent of the I/Os, the text its size.").of(INNER),
];
