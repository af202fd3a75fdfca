//! Parameters of run definitions.

use super::Apply::{Loop, Seconds, Set};
use super::{COMMAND, FILES, REPLAY, Rule, set};
use crate::error::Fault;
use crate::keys::within;
use crate::vdbench::settings::{Setting, Transfer};

#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &within("rd", [
    Rule::structure("rd", "Run definition. `default` applies to the definitions below it."),
    Rule::carried("wd", "Workloads.", Set(|reader, parameter, _| {
        let names = parameter.names(reader.job.wds.iter().map(|wd| wd.name.as_str()));
        set(&mut reader.rd().wds, names)
    })),
    Rule::carried("sd", "Storage definitions in place of those of the workloads.", Set(|reader, parameter, _| {
        let names = parameter.names(reader.job.sds.iter().map(|sd| sd.name.as_str()));
        set(&mut reader.rd().sds, names.map(Some))
    })),
    Rule::carried("iorate", "I/Os per second of the whole run: max, a number, a list, or curve.", Set(|reader, parameter, _| {
        set(&mut reader.rd().goals, parameter.goals())
    })),
    Rule::carried("curve", "Points of a curve, in percent of the maximum rate.", Set(|reader, parameter, _| {
        let points: Result<Vec<f64>, Fault> =
            parameter.values.iter().map(|value| parameter.float_of(value)).collect();
        set(&mut reader.rd().curve, points)?;
        if reader.rd().curve.iter().any(|&percent| percent <= 0.0) {
            return Err(parameter.refused("Vdbench expects percentages above 0", "write curve=(10,50,100)"));
        }
        Ok(())
    })),
    Rule::noted("stopcurve", "Latency that ends a curve. The lab runs all points of the curve."),
    Rule::carried("elapsed", "Duration, in seconds.", Seconds(|rd, seconds| rd.elapsed = seconds)),
    Rule::carried("interval", "Seconds of an interval. The first interval is excluded unless there is a ramp-up.", Seconds(|rd, seconds| {
        rd.interval = seconds
    })),
    Rule::carried("warmup", "Ramp-up, in seconds.", Seconds(|rd, seconds| rd.warmup = Some(seconds))),
    Rule::carried("pause", "Pause before the run, in seconds.", Seconds(|rd, seconds| rd.pause = seconds)),
    Rule::carried("maxdata", "Bytes that end a run. Below 100: a multiple of the size of all devices.", Set(|reader, parameter, _| {
        set(&mut reader.rd().bytes_max, parameter.bytes_of(parameter.one()?).map(Some))
    })),
    Rule::refused("maxdataread", "The lab limits the bytes of reads and writes together. Write maxdata=.").or(&["maxdatawritten"]),
    Rule::carried("distribution", "Arrivals of a fixed rate: exponential, uniform, deterministic.", Set(|reader, parameter, findings| {
        set(&mut reader.rd().arrivals, parameter.arrivals(findings))
    })),
    Rule::carried("openflags", "As in a storage definition.", Set(|reader, parameter, findings| {
        set(&mut reader.rd().flags, parameter.flags(findings).map(Some))
    })),
    Rule::carried("forthreads", "Loop over outstanding I/Os. Without `for`: one value for all devices.", Loop(|parameter, text, _| {
        parameter.count_of(text).map(Setting::Threads)
    })).or(&["threads"]),
    Rule::carried("forxfersize", "Loop over I/O sizes.", Loop(|parameter, text, _| {
        Ok(Setting::Transfer(Transfer::Mix(vec![(parameter.block_of(text)?, 100.0)])))
    })),
    Rule::carried("xfersize", "I/O size or mix in place of the workloads' own.", Set(|reader, parameter, _| {
        let value = (parameter.values.join("/"), Setting::Transfer(parameter.transfer()?));
        reader.add_loop("xfersize", parameter, vec![value])
    })),
    Rule::carried("forhitarea", "Loop over sizes of the area for cache hits. Without `for`: one value for all devices.", Loop(|parameter, text, _| {
        parameter.bytes_of(text).map(Setting::HitArea)
    })).or(&["hitarea"]),
    Rule::carried("forrdpct", "Loop over percent of reads. Without `for`: one value for all workloads.", Loop(|parameter, text, _| {
        parameter.percent_of(text).map(Setting::Reads)
    })).or(&["rdpct", "readpct"]),
    Rule::carried("forseekpct", "Loop over percent of random I/O. Without `for`: one value for all workloads.", Loop(|parameter, text, findings| {
        parameter.seek_of(text, findings).map(Setting::Seek)
    })).or(&["seekpct"]),
    Rule::carried("forrhpct", "Loop over percent of read hits. Without `for`: one value for all workloads.", Loop(|parameter, text, _| {
        parameter.percent_of(text).map(Setting::ReadHits)
    })).or(&["rhpct"]),
    Rule::carried("forwhpct", "Loop over percent of write hits. Without `for`: one value for all workloads.", Loop(|parameter, text, _| {
        parameter.percent_of(text).map(Setting::WriteHits)
    })).or(&["whpct"]),
    Rule::carried("fordedupratio", "Loop over deduplication ratios. Without `for`: one value for the run.", Loop(|parameter, text, _| {
        parameter.ratio_of(text).map(Setting::Deduplication)
    })).or(&["dedupratio"]),
    Rule::carried("forcompratio", "Loop over compression ratios. Without `for`: one value for the run.", Loop(|parameter, text, _| {
        parameter.ratio_of(text).map(Setting::Compression)
    })).or(&["forcompression", "compratio"]),
    Rule::refused("forrange", "Limits the run to a range. Write a workload with range= and a run definition for each range.").or(&["range"]),
    Rule::refused("replay", REPLAY),
    Rule::refused("fwd", FILES).or(&["fwdrate", "format", "operations", "foroperations"]),
    Rule::noted("startcmd", COMMAND).or(&["endcmd", "start_cmd", "end_cmd"]),
]);
