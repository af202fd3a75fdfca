//! The forms of traces that are read.

use serde::Serialize;

/// A form of trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// `blkparse`'s text.
    Blkparse,
    /// Block tracepoints as `trace_pipe`, `trace` and `perf script` print them.
    Tracepoints,
    /// fio's log of latencies, one line an I/O.
    FioLatency,
    /// fio's iolog, version 2 or 3.
    FioIolog,
    /// The table of the MSR Cambridge traces.
    Msr,
    /// The table of the Tencent CBS traces.
    Tencent,
    /// The table of the Alibaba block traces.
    Alibaba,
    /// bcc's `biosnoop`.
    Biosnoop,
}

impl Format {
    /// All that there are.
    pub const ALL: [Format; 8] = [
        Format::Blkparse,
        Format::Tracepoints,
        Format::FioLatency,
        Format::FioIolog,
        Format::Msr,
        Format::Tencent,
        Format::Alibaba,
        Format::Biosnoop,
    ];

    /// A name for commands: "blkparse".
    pub fn name(self) -> &'static str {
        match self {
            Format::Blkparse => "blkparse",
            Format::Tracepoints => "tracepoints",
            Format::FioLatency => "fio-latency",
            Format::FioIolog => "fio-iolog",
            Format::Msr => "msr",
            Format::Tencent => "tencent",
            Format::Alibaba => "alibaba",
            Format::Biosnoop => "biosnoop",
        }
    }

    /// As what a line is read: "a line of blkparse".
    pub(super) fn line(self) -> &'static str {
        match self {
            Format::Blkparse => "a line of blkparse",
            Format::Tracepoints => "a line of kernel tracepoints",
            Format::FioLatency => "a line of fio's latency log of single I/Os",
            Format::FioIolog => "a line of fio's iolog",
            Format::Msr => "a line of an MSR Cambridge trace",
            Format::Tencent => "a line of a Tencent block trace",
            Format::Alibaba => "a line of an Alibaba block trace",
            Format::Biosnoop => "a line of bcc's biosnoop",
        }
    }

    /// How a line of it looks.
    pub(super) fn shape(self) -> &'static str {
        match self {
            Format::Blkparse => "8,0 3 1 0.000000123 697 D W 223490 + 8 [process]",
            Format::Tracepoints => {
                "process-697 [001] ..... 1.234567: block_rq_issue: 8,0 W 4096 () 223490 + 8 [process]"
            }
            Format::FioLatency => {
                "ms, ns, direction, bytes, offset: write it with log_offset=1 and without log_avg_msec"
            }
            Format::FioIolog => "file action [offset length], in version 3 after a time in us",
            Format::Msr => "time in 100 ns,host,disk,Read or Write,offset,bytes,latency in 100 ns",
            Format::Tencent => "seconds,sector,sectors,0 or 1,volume",
            Format::Alibaba => "device,R or W,offset,bytes,time in us",
            Format::Biosnoop => "TIME(s) COMM PID DISK T SECTOR BYTES [QUE(ms)] LAT(ms)",
        }
    }
}
