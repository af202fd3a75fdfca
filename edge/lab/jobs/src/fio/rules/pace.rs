//! How long and how fast: times, stages, rates, pauses, goals.

use super::Rule;
use crate::error::Fault;
use crate::findings::unsupported;
use crate::fio::value::Value;
use plan::{NoteKind, PauseStart, Steady, SteadyOf};

pub(super) const RULES: &[Rule] = &[
    Rule::carried("runtime", "Longest duration of a job, in seconds.", |job, value, _| {
        value.seconds().map(|time| job.runtime = time)
    })
    .or(&["timeout"]),
    Rule::carried(
        "time_based",
        "Runs for the whole runtime, however often the span was done.",
        |job, value, _| value.switch().map(|on| job.time_based = on),
    )
    .alone(),
    Rule::carried("ramp_time", "Ramp-up, in seconds, which no figure includes.", |job, value, _| {
        value.seconds().map(|time| job.ramp = time)
    }),
    Rule::refused("ramp_size", "Ramp-up in bytes. Write ramp_time=."),
    Rule::carried(
        "startdelay",
        "Seconds before a job starts, from the start of fio.",
        |job, value, findings| {
            let (first, range) = value.text.split_once('-').unwrap_or((&value.text, ""));
            if !range.is_empty() {
                let text = "fio draws each job's delay from a range; in the lab all have the shortest";
                findings.note(NoteKind::Changed, &value.place, "startdelay", text);
            }
            value.part(first).seconds().map(|time| job.delay = time)
        },
    ),
    Rule::carried("loops", "Number of passes over the span.", |job, value, _| {
        value.count(0).map(|loops| job.passes.count = loops.max(1))
    }),
    Rule::carried("stonewall", "Waits for all jobs before this one.", |job, value, _| {
        value.switch().map(|on| job.stonewall = on.then(|| value.place.clone()))
    })
    .or(&["wait_for_previous"])
    .alone(),
    Rule::carried("wait_for", "Waits for the named job.", |job, value, _| {
        job.wait_for = Some((value.text.clone(), value.place.clone()));
        Ok(())
    }),
    Rule::carried("exitall", "Ends all jobs when one of them has ended.", |job, value, _| {
        value.switch().map(|on| job.exit_all = on)
    })
    .alone(),
    Rule::noted("exit_what", "Which jobs `exitall` ends. The lab ends those of the stage."),
    Rule::carried(
        "rate",
        "Bytes per second of each job, for reads, writes and trims.",
        |job, value, findings| {
            let rates = value.triple(Value::bytes)?;
            if rates.iter().flatten().any(|&rate| rate > 0 && rate < 65_536) {
                let text = "the rate is in bytes per second, below 64 KiB/s; I/Os per second are rate_iops";
                findings.note(NoteKind::Trap, &value.place, "rate", text);
            }
            job.rate_bytes = rates.map(|rate| rate.filter(|&rate| rate > 0));
            Ok(())
        },
    ),
    Rule::carried(
        "rate_iops",
        "I/Os per second of each job, for reads, writes and trims.",
        |job, value, _| {
            let rates = value.triple(Value::bytes)?;
            job.rate_iops = rates.map(|rate| rate.filter(|&rate| rate > 0));
            Ok(())
        },
    ),
    Rule::noted("rate_min", "fio stops a job that is slower. The lab reports the rate that was reached.")
        .alike("ratemin rate_iops_min rate_cycle ratecycle"),
    Rule::carried("rate_process", "Arrivals at a rate: linear or poisson.", |job, value, _| {
        value.one_of(&[("linear", false), ("poisson", true)]).map(|on| job.poisson = on)
    }),
    Rule::noted("rate_ignore_thinktime", "Whether pauses count against a rate. They do in the lab."),
    Rule::carried(
        "io_submit_mode",
        "`offload` submits by the clock: latency counts from the intended start of an I/O.",
        |job, value, _| value.one_of(&[("inline", false), ("offload", true)]).map(|on| job.offload = on),
    ),
    Rule::carried(
        "thinktime",
        "Pause, in microseconds. The queue drains before it begins.",
        |job, value, _| value.micros().map(|time| job.think = time),
    ),
    Rule::carried("thinktime_blocks", "I/Os between pauses.", |job, value, _| {
        value.count(0).map(|count| job.think_after = count.max(1))
    }),
    Rule::carried("thinktime_blocks_type", "Whether completed or issued I/Os count.", |job, value, _| {
        let kinds = [("complete", PauseStart::Completed), ("issue", PauseStart::Drained)];
        value.one_of(&kinds).map(|start| job.think_start = start)
    }),
    Rule::carried("thinktime_spin", "Part of a pause that keeps the processor busy.", |job, value, _| {
        value.micros().map(|time| job.think_spin = time)
    }),
    Rule::refused("thinkcycles", "Processor cycles between I/Os. Write thinktime= and thinktime_spin=."),
    Rule::refused("thinktime_iotime", "Pauses after a time. Write thinktime_blocks=."),
    Rule::carried("flow", "Shares of I/Os between jobs.", |job, value, _| {
        value.whole(0, 1000).map(|flow| job.flow = flow as u32)
    }),
    Rule::noted("flow_id", "Which jobs share I/Os. In the lab those of a stage do."),
    Rule::noted("flow_watermark", "How far a job may be ahead of its share, and how long it then waits.")
        .or(&["flow_sleep"]),
    Rule::noted(
        "max_latency",
        "Ends the job after one slower I/O. The lab reports the slowest; see --expect.",
    ),
    Rule::carried(
        "latency_target",
        "Searches for the largest queue depth that meets this latency, in microseconds.",
        |job, value, _| {
            value.micros().map(|time| job.latency_target = Some(time).filter(|time| !time.is_zero()))
        },
    ),
    Rule::carried(
        "latency_window",
        "Duration of each step of the search, in microseconds.",
        |job, value, _| {
            value.micros().map(|time| job.latency_window = Some(time).filter(|time| !time.is_zero()))
        },
    ),
    Rule::carried(
        "latency_percentile",
        "Percentage of the I/Os that must meet the latency.",
        |job, value, _| {
            let percent = value.float()?;
            if percent == 0.0 {
                return Err(
                    value.trap("fio takes it, and any latency meets it", "write a percentage above 0")
                );
            }
            if !(percent > 0.0 && percent <= 100.0) {
                return Err(value.refused("fio takes 0 to 100", "write a percentage above 0"));
            }
            job.latency_percentile = percent;
            Ok(())
        },
    ),
    Rule::noted("latency_run", "Whether fio goes on at the depth that it found. The lab always does."),
    Rule::carried(
        "steadystate",
        "Ends a stage when IOPS, throughput or latency is steady.",
        |job, value, _| steady(value).map(|found| job.steady = Some(found)),
    )
    .or(&["ss"]),
    Rule::carried("steadystate_duration", "Window of the steady state, in seconds.", |job, value, _| {
        value.seconds().map(|time| job.steady_window = time)
    })
    .or(&["ss_dur"]),
    Rule::noted("steadystate_ramp_time", "Time before the steady state is judged. Use ramp_time.")
        .or(&["ss_ramp"]),
    Rule::noted(
        "steadystate_check_interval",
        "How often the steady state is judged. The lab judges it every second.",
    )
    .or(&["ss_interval"]),
];

/// `iops:5%`, `bw_slope:0.1%`, …
fn steady(value: &Value) -> Result<Steady, Fault> {
    let (kind, limit) = value.text.split_once(':').unwrap_or((&value.text, ""));
    let (of, slope) = value.part(kind).one_of(&[
        ("iops", (SteadyOf::Iops, false)),
        ("iops_slope", (SteadyOf::Iops, true)),
        ("bw", (SteadyOf::Bandwidth, false)),
        ("bw_slope", (SteadyOf::Bandwidth, true)),
        ("lat", (SteadyOf::Latency, false)),
        ("lat_slope", (SteadyOf::Latency, true)),
    ])?;
    let Some(percent) = limit.strip_suffix('%') else {
        return Err(unsupported(
            &value.place,
            format!("`{}` is a limit in absolute numbers", value.shown()),
            "write the limit in percent of the mean, as iops:5%",
        ));
    };
    let limit = value.part(percent).float()?;
    if limit < 0.0 {
        return Err(value.refused("fio takes no limit below 0", "write a percentage"));
    }
    Ok(Steady { of, slope, limit, window: std::time::Duration::ZERO })
}
