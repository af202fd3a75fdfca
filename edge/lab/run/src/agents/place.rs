//! Which agent runs what.

use plan::{Group, Plan};
use std::collections::BTreeMap;

/// A plan divided among agents.
#[derive(Debug, Clone, PartialEq)]
pub struct Placement {
    /// The plan as a whole: every group names its machine.
    pub plan: Plan,
    /// For every stage, for every group, the index of its agent.
    pub agents: Vec<Vec<usize>>,
}

/// A machine that nobody can place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// A name by hand that is none.
    #[error("`{found}` is not a placement: write VM=AGENT, with the number of an agent (1 to {agents})")]
    Malformed {
        /// What was given.
        found: String,
        /// How many agents there are.
        agents: usize,
    },
    /// A machine that the plan does not have.
    #[error("the plan has no machine `{found}`; its machines: {}", .known.join(", "))]
    Unknown {
        /// What was named.
        found: String,
        /// Those that are.
        known: Vec<String>,
    },
}

/// Divides a plan among `agents` (their names). Groups with a machine are placed machine by machine, by hand (`VM=2`) or round
/// robin; groups without one run on every agent, as a job of their own there.
///
/// # Errors
/// When a placement by hand names what is not there.
pub fn place(plan: &Plan, agents: &[String], by_hand: &[String]) -> Result<Placement, PlacementError> {
    assert!(!agents.is_empty(), "a plan is divided among agents");
    let mut machines: Vec<String> = Vec::new();
    for vm in plan.stages.iter().flat_map(|stage| &stage.groups).filter_map(|group| group.vm.as_ref()) {
        if !machines.contains(vm) {
            machines.push(vm.clone());
        }
    }
    let placed = placed_by_hand(&machines, agents.len(), by_hand)?;
    // Machines that nobody placed take turns: the first agents have one more where it does not divide.
    let mut next = 0;
    let home: BTreeMap<String, usize> = machines
        .iter()
        .map(|vm| {
            let agent = placed.get(vm).copied().unwrap_or_else(|| {
                next += 1;
                (next - 1) % agents.len()
            });
            (vm.clone(), agent)
        })
        .collect();
    let mut divided = plan.clone();
    let mut of_stages = Vec::new();
    for stage in &mut divided.stages {
        let mut groups = Vec::new();
        let mut of_groups = Vec::new();
        for group in &stage.groups {
            match &group.vm {
                Some(vm) => {
                    of_groups.push(home[vm]);
                    groups.push(group.clone());
                }
                None => {
                    for (agent, name) in agents.iter().enumerate() {
                        of_groups.push(agent);
                        groups.push(Group {
                            name: format!("{} on {name}", group.name),
                            vm: Some(name.clone()),
                            ..group.clone()
                        });
                    }
                }
            }
        }
        stage.groups = groups;
        of_stages.push(of_groups);
    }
    Ok(Placement { plan: divided, agents: of_stages })
}

fn placed_by_hand(
    machines: &[String],
    agents: usize,
    by_hand: &[String],
) -> Result<BTreeMap<String, usize>, PlacementError> {
    let mut placed = BTreeMap::new();
    for text in by_hand {
        let malformed = || PlacementError::Malformed { found: text.clone(), agents };
        let (vm, agent) = text.split_once('=').ok_or_else(malformed)?;
        let agent: usize = agent.parse().map_err(|_| malformed())?;
        if agent == 0 || agent > agents {
            return Err(malformed());
        }
        if !machines.iter().any(|known| known == vm) {
            return Err(PlacementError::Unknown { found: vm.to_owned(), known: machines.to_vec() });
        }
        placed.insert(vm.to_owned(), agent - 1);
    }
    Ok(placed)
}

impl Placement {
    /// The part of an agent: groups of others are gone, stages and targets keep their places.
    pub fn part(&self, agent: usize) -> Plan {
        let mut part = self.plan.clone();
        for (stage, agents) in part.stages.iter_mut().zip(&self.agents) {
            let mut agents = agents.iter();
            stage.groups.retain(|_| agents.next() == Some(&agent));
            // An agent would judge its own part alone, and end before the others.
            stage.steady = None;
        }
        part
    }

    /// Indices of a stage's groups that are an agent's.
    pub fn groups(&self, stage: usize, agent: usize) -> Vec<usize> {
        let all = self.agents[stage].iter().enumerate();
        all.filter(|&(_, of)| *of == agent).map(|(index, _)| index).collect()
    }

    /// The machine that uses a target on an agent, if it is one alone. Machines of several agents may have the same path.
    pub fn machine_of(&self, stage: usize, agent: usize, target: &str) -> Option<&str> {
        let of_stage = &self.plan.stages[stage].groups;
        let uses =
            |group: &&Group| group.targets.iter().any(|&index| self.plan.targets[index].name == target);
        let groups = self.groups(stage, agent).into_iter().map(|group| &of_stage[group]).filter(uses);
        let mut machines: Vec<&str> = groups.filter_map(|group| group.vm.as_deref()).collect();
        machines.dedup();
        match machines.as_slice() {
            [machine] => Some(machine),
            _ => None,
        }
    }

    /// How many seconds after the stage an agent begins to count: its groups may all come later.
    pub fn counts_later(&self, stage: usize, agent: usize) -> f64 {
        let groups = &self.plan.stages[stage].groups;
        let from = |group: usize| groups[group].timing.delay + groups[group].timing.ramp;
        let first = (0..groups.len()).map(from).min().unwrap_or_default();
        let own = self.groups(stage, agent).into_iter().map(from).min().unwrap_or(first);
        (own - first).as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::{Pattern, Stage, Timing};

    fn plan(machines: &[Option<&str>]) -> Plan {
        let groups = machines.iter().map(|vm| {
            let mut group = Group::new("g", 0, 1, Pattern::simple(4096, 100.0, 0.0), Timing::seconds(1));
            group.vm = vm.map(str::to_owned);
            group
        });
        Plan { stages: vec![Stage::new("s", groups.collect())], ..Plan::default() }
    }

    fn names(count: usize) -> Vec<String> {
        (1..=count).map(|number| format!("agent{number}")).collect()
    }

    #[test]
    fn machines_take_turns_and_none_is_lost_where_it_does_not_divide() {
        let machines: Vec<String> = (1..=7).map(|number| format!("vm{number}")).collect();
        let plan = plan(&machines.iter().map(|vm| Some(vm.as_str())).collect::<Vec<_>>());
        let placed = place(&plan, &names(3), &[]).expect("a placement");
        assert_eq!(placed.agents[0], [0, 1, 2, 0, 1, 2, 0]);
        let parts: usize = (0..3).map(|agent| placed.part(agent).stages[0].groups.len()).sum();
        assert_eq!(parts, 7);
        assert_eq!(placed.groups(0, 0), [0, 3, 6]);
    }

    #[test]
    fn a_machine_is_where_a_person_put_it_and_its_groups_stay_together() {
        let plan = plan(&[Some("a"), Some("b"), Some("a")]);
        let placed = place(&plan, &names(2), &["a=2".to_owned()]).expect("a placement");
        assert_eq!(placed.agents[0], [1, 0, 1]);
        assert!(place(&plan, &names(2), &["c=1".to_owned()]).is_err());
        assert!(place(&plan, &names(2), &["a=3".to_owned()]).is_err());
    }

    /// Two machines that overlap for 10 of 30 s, each on an agent of its own: what the second one did stood in the first one's seconds.
    #[test]
    fn an_agent_whose_machines_come_later_counts_later() {
        let mut plan = plan(&[Some("a"), Some("b")]);
        plan.stages[0].groups[0].timing.ramp = std::time::Duration::from_secs(2);
        plan.stages[0].groups[1].timing.delay = std::time::Duration::from_secs(10);
        let placed = place(&plan, &names(2), &[]).expect("a placement");
        assert_eq!((placed.counts_later(0, 0), placed.counts_later(0, 1)), (0.0, 8.0));
    }

    #[test]
    fn a_job_without_machines_runs_on_every_agent() {
        let placed = place(&plan(&[None]), &names(3), &[]).expect("a placement");
        assert_eq!(placed.agents[0], [0, 1, 2]);
        let names: Vec<&str> = placed.plan.stages[0].groups.iter().map(|group| group.name.as_str()).collect();
        assert_eq!(names, ["g on agent1", "g on agent2", "g on agent3"]);
    }
}
