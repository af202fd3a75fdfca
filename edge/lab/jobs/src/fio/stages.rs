//! Jobs as stages: those between two stonewalls run together.

use super::convert::Targets;
use super::job::{DEFAULT_SEED, Job};
use crate::findings::{Findings, malformed, refused};
use crate::limits;
use crate::source::Options;
use plan::{Group, Length, NoteKind, Plan, Seed, Stage, StageEnd};
use std::time::Duration;

/// The plan of these jobs, in their order.
pub(crate) fn plan(jobs: &[Job], options: &Options<'_>, findings: &mut Findings) -> Plan {
    let mut plan = Plan { seed: seed(jobs, findings), ..Plan::default() };
    let mut targets = Targets::new(options);
    let mut members: Vec<&Job> = Vec::new();
    let mut earlier: Vec<&str> = Vec::new();
    let mut flows: Vec<u32> = Vec::new();
    let mut group_count = 0;
    let mut elapsed = Some(Duration::ZERO);
    for job in jobs {
        if findings.is_full() || targets.are_too_many() {
            break;
        }
        let mut groups = match job.groups(&mut plan, &mut targets, findings) {
            Ok(groups) => groups,
            Err(fault) => {
                findings.fault(fault);
                continue;
            }
        };
        group_count += groups.len();
        if group_count > limits::GROUPS_MAX {
            let found = format!("the jobs are more than {} groups", limits::GROUPS_MAX);
            findings.fault(malformed(&job.place, found, "split the file"));
            return plan;
        }
        if begins_stage(job, &members, &earlier, findings) || plan.stages.is_empty() {
            finish_stage(&mut plan, &members, &flows, findings);
            earlier.extend(members.drain(..).map(|member| member.name.as_str()));
            flows.clear();
            elapsed = elapsed
                .zip(plan.stages.last().map_or(Some(Duration::ZERO), duration))
                .map(|(sum, time)| sum + time);
            plan.stages.push(Stage::new(&job.name, Vec::new()));
        }
        if plan.stages.len() > 1 && !job.delay.is_zero() {
            delay(job, &mut groups, elapsed, findings);
        }
        flows.extend(groups.iter().map(|_| job.flow));
        members.push(job);
        let stage = plan.stages.last_mut().expect("one was begun");
        stage.groups.extend(groups);
    }
    finish_stage(&mut plan, &members, &flows, findings);
    plan
}

/// How long a stage takes, where nothing but time ends it.
pub(crate) fn duration(stage: &Stage) -> Option<Duration> {
    let timed = stage.ends == StageEnd::All
        && (stage.bytes_max.is_none() && stage.steady.is_none() && stage.search.is_none());
    let longest = (stage.groups.iter())
        .map(|group| match group.timing.length {
            Length::Time(_) if timed => group.timing.longest(),
            _ => None,
        })
        .collect::<Option<Vec<Duration>>>()?;
    Some(stage.pause + longest.into_iter().max()?)
}

/// fio counts `startdelay=` from its own start, however long the stages before took.
fn delay(job: &Job, groups: &mut [Group], elapsed: Option<Duration>, findings: &mut Findings) {
    let left = elapsed.map_or(Duration::ZERO, |elapsed| job.delay.saturating_sub(elapsed));
    let text = match elapsed {
        Some(elapsed) => format!(
            "fio counts startdelay= from its own start: the stages before take {elapsed:?}, so {left:?} are left"
        ),
        None => "fio counts startdelay= from its own start; the duration of the stages before is unknown, so the job starts at once"
            .to_owned(),
    };
    findings.note(NoteKind::Trap, &job.place, "startdelay", text);
    for group in groups {
        group.timing.delay = left;
    }
}

/// Whether a job waits for those before it.
fn begins_stage(job: &Job, members: &[&Job], earlier: &[&str], findings: &mut Findings) -> bool {
    if let Some((name, place)) = &job.wait_for {
        if members.iter().any(|member| member.name == *name) {
            if members.len() > 1 {
                let text = format!("the job waits for all jobs of the stage of {name}, not only for {name}");
                findings.note(NoteKind::Changed, place, "wait_for", text);
            }
            return true;
        }
        if !earlier.contains(&name.as_str()) {
            findings.fault(refused(
                place,
                format!("the job {} waits for {name}, which is no job before it", job.name),
                format!("fio says `waitee job {name} unknown`"),
                "name a job above, as its section does",
            ));
        }
    }
    job.stonewall.is_some()
}

/// What the jobs of a stage say about the whole of it.
fn finish_stage(plan: &mut Plan, members: &[&Job], flows: &[u32], findings: &mut Findings) {
    let Some(stage) = plan.stages.last_mut() else { return };
    if members.iter().any(|job| job.exit_all) {
        stage.ends = StageEnd::First;
    }
    if let Some(job) = members.iter().find(|job| job.latency_target.is_some()) {
        stage.search = job.search();
        if members.len() > 1 {
            let text =
                "fio searches for each job by itself; the lab searches for all jobs of the stage together";
            findings.note(NoteKind::Changed, &job.place, "latency_target", text);
        }
    }
    if let Some(job) = members.iter().find(|job| job.steady.is_some()) {
        stage.steady = job.steady.map(|steady| plan::Steady { window: job.steady_window, ..steady });
        if job.steady_window.is_zero() {
            let text = "fio ignores steadystate without steadystate_duration=";
            findings.note(NoteKind::Trap, &job.place, "steadystate", text);
            stage.steady = None;
        } else if members.len() > 1 {
            let text = "fio judges each job by itself; the lab judges the stage";
            findings.note(NoteKind::Changed, &job.place, "steadystate", text);
        }
    }
    share(&mut stage.groups, flows, members, findings);
}

/// `flow=` of all jobs as shares.
fn share(groups: &mut [Group], flows: &[u32], members: &[&Job], findings: &mut Findings) {
    if flows.iter().all(|&flow| flow == 0) {
        return;
    }
    let sum: f64 = flows.iter().map(|&flow| f64::from(flow)).sum();
    if flows.contains(&0) || flows.len() != groups.len() {
        if let Some(job) = members.iter().find(|job| job.flow > 0) {
            let text = "not all jobs of the stage have flow=, so their shares are not kept";
            findings.note(NoteKind::NotCarried, &job.place, "flow", text);
        }
        return;
    }
    for (group, &flow) in groups.iter_mut().zip(flows) {
        group.share = Some(100.0 * f64::from(flow) / sum);
    }
}

/// One seed for all: fio has one of each job.
fn seed(jobs: &[Job], findings: &mut Findings) -> Seed {
    let of = |job: &Job| match (job.repeatable, job.seed) {
        (_, Some(seed)) => Seed::Fixed(seed),
        (true, None) => Seed::Fixed(DEFAULT_SEED),
        (false, None) => Seed::Fresh,
    };
    let Some(first) = jobs.first() else { return Seed::Fresh };
    let seed = of(first);
    if seed == Seed::Fixed(DEFAULT_SEED) && jobs.iter().any(|job| job.mode.random) {
        let text = "every run issues the same I/Os, so repeated runs may be served from cache; randrepeat=0 draws a new seed";
        findings.note(NoteKind::Default, &first.place, "randrepeat", text);
    }
    if let Some(other) = jobs.iter().find(|job| of(job) != seed) {
        let text = "jobs have different seeds: the lab uses the seed of the first job";
        findings.note(NoteKind::Changed, &other.place, "randseed", text);
    }
    seed
}
