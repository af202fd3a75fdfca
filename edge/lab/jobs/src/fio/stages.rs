//! Jobs as stages: those between two stonewalls run together.

use super::job::{DEFAULT_SEED, Job};
use crate::builder::Builder;
use crate::error::Fault;
use crate::findings::{Findings, refused};
use crate::source::Options;
use plan::{Group, Length, NoteKind, Plan, Stage, StageEnd};
use std::time::Duration;

/// The plan of these jobs, in their order.
pub(crate) fn plan(jobs: &[Job], options: &Options<'_>, findings: &mut Findings) -> Plan {
    let mut stages = Stages::default();
    seed(jobs, &mut stages.builder, findings);
    for job in jobs {
        if findings.is_full() {
            break;
        }
        match job.groups(&mut stages.builder, options, findings) {
            Ok(groups) => {
                if let Err(fault) = stages.add(job, groups, findings) {
                    findings.fault(fault);
                    break;
                }
            }
            Err(fault) => findings.fault(fault),
        }
    }
    if findings.faults.is_empty() {
        let last = stages.close(findings);
        findings.take(last);
    }
    stages.builder.plan
}

/// Stages in the making: those that are in the plan, and the jobs of the next.
#[derive(Default)]
struct Stages<'a> {
    builder: Builder,
    members: Vec<&'a Job>,
    groups: Vec<Group>,
    /// Targets of these groups together.
    assignments: usize,
    /// `flow=` of each group.
    flows: Vec<u32>,
    /// Jobs of the stages before.
    earlier: Vec<&'a str>,
    /// How long these take together, where that is known.
    elapsed: Option<Duration>,
}

impl<'a> Stages<'a> {
    /// Adds the groups of a job, to the stage of the job before or to a new one.
    fn add(&mut self, job: &'a Job, mut groups: Vec<Group>, findings: &mut Findings) -> Result<(), Fault> {
        if begins_stage(job, &self.members, &self.earlier, findings) {
            self.close(findings)?;
        }
        if !self.builder.plan.stages.is_empty() && !job.delay.is_zero() {
            delay(job, &mut groups, self.elapsed, findings);
        }
        self.flows.extend(groups.iter().map(|_| job.flow));
        self.members.push(job);
        self.assignments += groups.iter().map(|group| group.targets.len()).sum::<usize>();
        self.groups.extend(groups);
        self.builder.room(1, self.groups.len(), self.assignments, &job.place)
    }

    /// Puts the jobs so far into the plan as a stage.
    fn close(&mut self, findings: &mut Findings) -> Result<(), Fault> {
        let Some(first) = self.members.first() else { return Ok(()) };
        let place = &first.place;
        let mut stage = Stage::new(&first.name, std::mem::take(&mut self.groups));
        finish_stage(&mut stage, &self.members, &self.flows, findings);
        let before = if self.builder.plan.stages.is_empty() { Some(Duration::ZERO) } else { self.elapsed };
        self.elapsed = before.zip(duration(&stage)).map(|(sum, time)| sum + time);
        self.builder.stage(stage, place)?;
        self.earlier.extend(self.members.drain(..).map(|member| member.name.as_str()));
        self.flows.clear();
        self.assignments = 0;
        Ok(())
    }
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
fn finish_stage(stage: &mut Stage, members: &[&Job], flows: &[u32], findings: &mut Findings) {
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
fn seed(jobs: &[Job], builder: &mut Builder, findings: &mut Findings) {
    let of = |job: &Job| job.seed.or(job.repeatable.then_some(DEFAULT_SEED));
    builder.seed(jobs.iter().map(|job| (of(job), &job.place)), "jobs", "randseed", findings);
    let Some(first) = jobs.first() else { return };
    if of(first) == Some(DEFAULT_SEED) && jobs.iter().any(|job| job.mode.random) {
        let text = "every run issues the same I/Os, so repeated runs may be served from cache; randrepeat=0 draws a new seed";
        findings.note(NoteKind::Default, &first.place, "randrepeat", text);
    }
}
