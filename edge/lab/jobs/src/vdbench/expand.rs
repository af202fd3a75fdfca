//! Run definitions as stages: every combination of their loops, in the order in which they are written, the rate innermost.

use super::convert;
use super::settings::{General, Goal, Job, Rd, Sd, Setting, Wd};
use crate::builder::Builder;
use crate::findings::{Findings, malformed, refused};
use crate::limits;
use plan::{NoteKind, Pace, Plan, Seed};

/// One run, with everything that its loops have set.
pub(crate) struct Run<'a> {
    pub(crate) rd: &'a Rd,
    pub(crate) hosts: &'a [String],
    pub(crate) label: String,
    pub(crate) general: General,
    pub(crate) sds: Vec<Sd>,
    pub(crate) wds: Vec<Wd>,
    pub(crate) pace: Option<Pace>,
}

/// The plan of all runs.
pub(crate) fn plan(job: &Job, findings: &mut Findings) -> Plan {
    let mut builder = Builder::default();
    builder.plan.seed = Seed::Fresh;
    if job.rds.is_empty() {
        findings.fault(refused(
            &job.place,
            "the file has no run definition",
            "Vdbench runs nothing",
            "add rd=run1,wd=*,iorate=max,elapsed=60",
        ));
    }
    let stages: u128 = job.rds.iter().map(count).fold(0, u128::saturating_add);
    let members = (job.sds.len().max(1) * job.wds.len().max(1)) as u128;
    if let Some(rd) = job.rds.first() {
        let room = builder.room(usize::try_from(stages).unwrap_or(usize::MAX), 0, 0, &rd.place);
        if findings.take(room).is_some() && stages.saturating_mul(members) > limits::EXPANSION_MAX {
            findings.fault(malformed(
                &rd.place,
                format!(
                    "{stages} runs of {} workloads on {} devices are too many",
                    job.wds.len(),
                    job.sds.len()
                ),
                "remove values from the loops, or split the file",
            ));
        }
    }
    for rd in &job.rds {
        check(rd, findings);
    }
    if !findings.faults.is_empty() {
        return builder.plan;
    }
    if job.hosts.len() > 1 {
        let text = "each host becomes a machine of the plan; --agents places the machines, otherwise all of them run here";
        findings.note(NoteKind::Changed, &job.place, "hd", text);
    }
    for rd in &job.rds {
        expand(rd, job, &mut builder, findings);
        if !findings.faults.is_empty() {
            break;
        }
    }
    builder.plan
}

/// How many runs a definition makes.
fn count(rd: &Rd) -> u128 {
    let goals: u128 =
        (rd.goals.iter()).map(|goal| if *goal == Goal::Curve { 1 + rd.curve.len() as u128 } else { 1 }).sum();
    rd.loops.iter().map(|one| one.values.len() as u128).fold(goals, u128::saturating_mul)
}

/// What Vdbench refuses of a run definition.
fn check(rd: &Rd, findings: &mut Findings) {
    let mut refuse = |found: String, tool: &str, remedy: &str| {
        findings.fault(refused(&rd.place, format!("rd={}: {found}", rd.name), tool, remedy));
    };
    if rd.goals.is_empty() {
        refuse("iorate= is missing".into(), "Vdbench requires iorate=", "add iorate=max");
    }
    if rd.interval == 0 || !rd.elapsed.is_multiple_of(rd.interval) {
        let found = format!("elapsed={} is not a multiple of interval={}", rd.elapsed, rd.interval);
        refuse(found, "Vdbench rejects the run", "correct elapsed= or interval=");
    } else if rd.elapsed < 2 * rd.interval {
        let found = format!("elapsed={} is shorter than two intervals of {} s", rd.elapsed, rd.interval);
        refuse(found, "Vdbench rejects the run", "write a longer elapsed=");
    } else if rd.warmup.is_some_and(|warmup| !warmup.is_multiple_of(rd.interval)) {
        refuse(
            "warmup= is not a multiple of interval=".into(),
            "Vdbench rejects the run",
            "correct warmup= or interval=",
        );
    }
    if rd.wds.is_empty() && rd.sds.is_none() {
        refuse(
            "wd= is missing".into(),
            "Vdbench says `No 'wd=' parameter specified`",
            "add wd=* for all workloads above, or sd= for the workload of wd=default",
        );
    }
    if rd.warmup.is_none() {
        let text = format!("without warmup= the first interval ({} s) is excluded", rd.interval);
        findings.note(NoteKind::Default, &rd.place, "warmup", text);
    }
    if rd.goals.iter().any(|goal| *goal != Goal::Max) {
        let text = "I/Os of a fixed rate arrive at random intervals, and the latency of a late I/O starts when the I/O is sent; \
                    rates of a curve are not rounded to hundreds";
        findings.note(NoteKind::Default, &rd.place, "iorate", text);
    }
}

fn expand(rd: &Rd, job: &Job, builder: &mut Builder, findings: &mut Findings) {
    let Some((wds, sds)) = members(rd, job, findings) else { return };
    let mut positions = vec![0; rd.loops.len()];
    loop {
        let mut run = Run {
            rd,
            hosts: &job.hosts,
            label: String::new(),
            general: job.general,
            sds: sds.clone(),
            wds: wds.clone(),
            pace: None,
        };
        let mut label = Vec::new();
        for (one, &position) in rd.loops.iter().zip(&positions) {
            let (text, setting) = &one.values[position];
            apply(setting, &mut run);
            if one.named {
                label.push(format!("{}={text}", one.key));
            }
        }
        for goal in &rd.goals {
            rates(&mut run, *goal, &label, builder, findings);
        }
        // The last loop turns first.
        let Some(turning) =
            (0..positions.len()).rev().find(|&index| positions[index] + 1 < rd.loops[index].values.len())
        else {
            return;
        };
        positions[turning] += 1;
        positions[turning + 1..].fill(0);
    }
}

/// The stages of one combination: one, or the greatest rate and the points of a curve.
fn rates(run: &mut Run<'_>, goal: Goal, label: &[String], builder: &mut Builder, findings: &mut Findings) {
    let named = |more: Option<String>| {
        let words: Vec<String> = label.iter().cloned().chain(more).collect();
        if words.is_empty() { run.rd.name.clone() } else { format!("{} {}", run.rd.name, words.join(" ")) }
    };
    let several = run.rd.goals.len() > 1;
    let mut points: Vec<(String, Option<Pace>)> = Vec::new();
    match goal {
        Goal::Max => points.push((named(several.then(|| "iorate=max".to_owned())), None)),
        Goal::Iops(iops) => {
            points.push((named(several.then(|| format!("iorate={iops}"))), Some(Pace::Iops(iops))));
        }
        Goal::Curve => {
            let stage = builder.plan.stages.len();
            points.push((named(Some("(max)".into())), None));
            for &percent in &run.rd.curve {
                points.push((named(Some(format!("({percent}%)"))), Some(Pace::PercentOf { stage, percent })));
            }
        }
    }
    for (label, pace) in points {
        run.label = label;
        run.pace = pace;
        let Some(stage) = convert::stage(run, builder, findings) else { return };
        let added = builder.stage(stage, &run.rd.place);
        if findings.take(added).is_none() {
            return;
        }
    }
}

/// The workloads and devices of a run.
fn members(rd: &Rd, job: &Job, findings: &mut Findings) -> Option<(Vec<Wd>, Vec<Sd>)> {
    let mut wds: Vec<Wd> = match rd.wds.as_slice() {
        // With sd= alone Vdbench runs the latest wd=default, whatever other workloads there are.
        [] => {
            let text = "without wd= Vdbench runs the latest wd=default on the devices of sd=; its defaults are 4 KiB random \
                        reads";
            findings.note(NoteKind::Default, &rd.place, "wd", text);
            vec![Wd { name: format!("rd={}", rd.name), ..job.wd_default.clone() }]
        }
        names => job.wds.iter().filter(|wd| names.contains(&wd.name)).cloned().collect(),
    };
    for wd in &mut wds {
        if let Some(sds) = &rd.sds {
            wd.sds = Some(sds.clone());
        }
        if wd.sds.is_none() {
            findings.fault(refused(
                &wd.place,
                format!("wd={} has no sd=", wd.name),
                "Vdbench expects a storage definition",
                "add sd=* to the workload, or sd= to the run",
            ));
        }
    }
    let given: f64 = wds.iter().filter_map(|wd| wd.skew).sum();
    let open = wds.iter().filter(|wd| wd.skew.is_none()).count();
    let skewed = wds.iter().any(|wd| wd.skew.is_some());
    if skewed && (given > 100.01 || (open == 0 && (given - 100.0).abs() > 0.01)) {
        findings.fault(refused(
            &rd.place,
            format!("rd={}: the skews of the workloads total {given}", rd.name),
            "Vdbench expects a total of 100",
            "correct skew=; workloads without skew= share the rest",
        ));
    }
    if wds.is_empty() {
        findings.fault(refused(
            &rd.place,
            format!("rd={} has no workload", rd.name),
            "Vdbench expects wd=",
            "add wd=",
        ));
    }
    if !findings.faults.is_empty() {
        return None;
    }
    let used: Vec<Sd> = (job.sds.iter())
        .filter(|sd| wds.iter().any(|wd| wd.sds.as_ref().is_some_and(|names| names.contains(&sd.name))))
        .cloned()
        .collect();
    Some((wds, used))
}

fn apply(setting: &Setting, run: &mut Run<'_>) {
    match setting {
        Setting::Threads(threads) => run.sds.iter_mut().for_each(|sd| sd.threads = *threads),
        Setting::HitArea(bytes) => run.sds.iter_mut().for_each(|sd| sd.hit_area = *bytes),
        Setting::Transfer(transfer) => run.wds.iter_mut().for_each(|wd| wd.transfer = transfer.clone()),
        Setting::Reads(reads) => run.wds.iter_mut().for_each(|wd| wd.reads = *reads),
        Setting::Seek(seek) => run.wds.iter_mut().for_each(|wd| wd.seek = *seek),
        Setting::ReadHits(hits) => run.wds.iter_mut().for_each(|wd| wd.read_hits = *hits),
        Setting::WriteHits(hits) => run.wds.iter_mut().for_each(|wd| wd.write_hits = *hits),
        Setting::Deduplication(ratio) => run.general.deduplication = *ratio,
        Setting::Compression(ratio) => run.general.compression = *ratio,
    }
}
