//! Parameters of workload definitions.

use super::Apply::{Percent, Set};
use super::{REPLAY, Rule, set};
use crate::keys::within;

#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &within("wd", [
    Rule::structure("wd", "Workload definition. `default` applies to the definitions below it."),
    Rule::carried("sd", "Storage definitions: names, ranges of names, wildcards.", Set(|reader, parameter, _| {
        let names = parameter.names(reader.job.sds.iter().map(|sd| sd.name.as_str()));
        set(&mut reader.wd().sds, names.map(Some))
    })),
    Rule::carried("host", "Hosts that run the workload, all by default.", Set(|reader, parameter, _| {
        let names = parameter.names(reader.job.host_names());
        set(&mut reader.wd().hosts, names.map(Some))
    })).or(&["hd"]),
    Rule::carried("xfersize", "I/O size, or pairs of size and percent, or smallest, largest and alignment.", Set(|reader, parameter, _| {
        set(&mut reader.wd().transfer, parameter.transfer())
    })),
    Rule::carried("rdpct", "Percent of reads, 100 by default.", Percent(|wd, reads| wd.reads = reads)).or(&["readpct"]),
    Rule::carried("wrpct", "Percent of writes.", Percent(|wd, writes| wd.reads = 100.0 - writes)).or(&["writepct"]),
    Rule::carried("seekpct", "Percent of random I/O (or `seq`, `rand`, `eof`), 100 by default.", Set(|reader, parameter, findings| {
        set(&mut reader.wd().seek, parameter.seek_of(parameter.one()?, findings))
    })),
    Rule::carried("rhpct", "Percent of reads in the area for cache hits.", Percent(|wd, hits| wd.read_hits = hits)),
    Rule::carried("whpct", "Percent of writes in the area for cache hits.", Percent(|wd, hits| wd.write_hits = hits)),
    Rule::carried("skew", "Percent of the run's I/Os.", Percent(|wd, skew| wd.skew = Some(skew))),
    Rule::carried("range", "Part of each device that the workload uses.", Set(|reader, parameter, _| {
        set(&mut reader.wd().part, parameter.part().map(Some))
    })),
    Rule::carried("openflags", "As in a storage definition.", Set(|reader, parameter, findings| {
        set(&mut reader.wd().flags, parameter.flags(findings).map(Some))
    })),
    Rule::refused("threads", "Vdbench allows threads= of a workload only with concatenatesds=yes. Write threads= in each sd=, or forthreads= in the run."),
    Rule::refused("priority", "Workloads that wait for one another. Write skew= for the share of each workload."),
    Rule::refused("iorate", "Rate of one workload. Write the total as iorate= of the run, and skew= for the share of each workload."),
    Rule::refused("hotband", "Band with more I/Os than the rest. Write a second workload with range= and skew=."),
    Rule::refused("streams", "Several sequential streams on one device. Write a workload with range= for each stream."),
    Rule::refused("stride", "Sequential I/O with gaps of varying size. Write seekpct=0 for no gaps, or seekpct=100."),
    Rule::refused("replay", REPLAY),
]);
