//! A plan in the making, alike for all dialects: its targets, its limits, its seed, and groups as asynchronous tools run them.

use crate::error::Fault;
use crate::findings::{Findings, malformed};
use crate::limits;
use plan::{Caching, Engine, Group, NoteKind, Pattern, Place, Plan, Seed, Stage, Target, Timing};
use std::collections::HashMap;

/// A plan with what is counted of it.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    pub(crate) plan: Plan,
    /// Where each target is, by its machine and its name.
    targets: HashMap<(Option<String>, String), usize>,
    groups: usize,
    /// Targets of all groups together.
    assignments: usize,
}

impl Builder {
    /// The index of a target in the plan, which gets it if it is new. The same name on two machines is two targets. The size is the
    /// largest that anything asks for.
    pub(crate) fn target(&mut self, host: Option<&str>, name: &str, size: Option<u64>) -> usize {
        let targets = &mut self.plan.targets;
        let key = (host.map(str::to_owned), name.to_owned());
        let index = *self.targets.entry(key).or_insert_with_key(|(host, name)| {
            targets.push(Target { host: host.clone(), ..Target::named(name) });
            targets.len() - 1
        });
        targets[index].size = targets[index].size.max(size);
        index
    }

    /// Adds a stage.
    ///
    /// # Errors
    /// When the plan is larger than [`limits`] allow, with the place that asked for more.
    pub(crate) fn stage(&mut self, stage: Stage, place: &Place) -> Result<(), Fault> {
        let assignments = stage.groups.iter().map(|group| group.targets.len()).sum();
        self.room(1, stage.groups.len(), assignments, place)?;
        self.groups += stage.groups.len();
        self.assignments += assignments;
        self.plan.stages.push(stage);
        Ok(())
    }

    /// Whether so many more stages, groups and targets of groups fit into the plan.
    ///
    /// # Errors
    /// When they do not.
    pub(crate) fn room(
        &self,
        stages: usize,
        groups: usize,
        assignments: usize,
        place: &Place,
    ) -> Result<(), Fault> {
        let sizes = [
            ("stages", self.plan.stages.len().saturating_add(stages), limits::STAGES_MAX),
            ("groups", self.groups.saturating_add(groups), limits::GROUPS_MAX),
            ("targets", self.plan.targets.len(), limits::TARGETS_MAX),
            ("targets of groups", self.assignments.saturating_add(assignments), limits::ASSIGNMENTS_MAX),
        ];
        match sizes.into_iter().find(|(_, count, most)| count > most) {
            None => Ok(()),
            Some((what, count, most)) => Err(malformed(
                place,
                format!("the job has too many {what}: {count} or more, and a plan has at most {most}"),
                "ask for fewer jobs, files, loops or cycles, or split the file",
            )),
        }
    }

    /// Takes the seed of the first of several members; none is a fresh one for each run.
    pub(crate) fn seed<'a>(
        &mut self,
        members: impl Iterator<Item = (Option<u64>, &'a Place)>,
        who: &str,
        key: &str,
        findings: &mut Findings,
    ) {
        let mut members = members.peekable();
        let first = members.peek().and_then(|(seed, _)| *seed);
        self.plan.seed = first.map_or(Seed::Fresh, Seed::Fixed);
        if let Some((_, place)) = members.find(|(seed, _)| *seed != first) {
            let text = format!("{who} have seeds of their own; the lab takes the seed of the first");
            findings.note(NoteKind::Changed, place, key, text);
        }
    }
}

/// A group of asynchronous I/O over these targets.
pub(crate) fn group(
    name: impl Into<String>,
    targets: Vec<usize>,
    pattern: Pattern,
    timing: Timing,
    caching: Caching,
) -> Group {
    Group { targets, caching, engine: Engine::IoUring, ..Group::new(name, 0, 1, pattern, timing) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(line: u32) -> Place {
        Place { file: "job".into(), line, column: 1 }
    }

    #[test]
    fn a_plan_is_refused_at_the_place_that_goes_over_a_limit() {
        let mut builder = Builder::default();
        builder.target(None, "disk", None);
        for _ in 0..limits::STAGES_MAX {
            builder.stage(Stage::new("one", Vec::new()), &place(1)).expect("it is within the limit");
        }
        let fault = builder.stage(Stage::new("more", Vec::new()), &place(7)).expect_err("it is beyond");
        assert!(fault.place.line == 7 && fault.found.contains("10001 or more"), "{fault}");
        assert_eq!(builder.plan.stages.len(), limits::STAGES_MAX);
        let full = |groups, assignments| Builder::default().room(0, groups, assignments, &place(1)).is_err();
        assert!(!full(limits::GROUPS_MAX, limits::ASSIGNMENTS_MAX));
        assert!(full(limits::GROUPS_MAX + 1, 0) && full(0, limits::ASSIGNMENTS_MAX + 1));
    }

    #[test]
    fn the_first_seed_counts_and_the_first_other_one_is_told() {
        let mut findings = Findings::default();
        let mut builder = Builder::default();
        let places = [place(1), place(2), place(3), place(4)];
        let seeds = [Some(5), Some(5), None, Some(6)];
        builder.seed(seeds.into_iter().zip(&places), "workers", "seed", &mut findings);
        assert_eq!(builder.plan.seed, Seed::Fixed(5));
        assert_eq!(findings.notes.iter().map(|note| note.place.line).collect::<Vec<_>>(), [3]);
    }
}
