//! An experiment as plans: a cell for every combination of workload, parameters and side.

use super::model::{Experiment, ExperimentError, Parameter, Workload};
use base::units::parse_bytes;
use measured::Cell;
use plan::{
    Arrivals, Data, Depth, Extent, Group, Length, Loop, Pace, Pattern, Plan, Rate, RateOf, RatePer, Stage,
    Target, Timing, Workers,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// More cells than these are a mistake.
const CELLS_MAX: usize = 10_000;

/// The workload of a cell whose machines run by a schedule.
pub const SCHEDULED: &str = "schedule";

/// A cell, and the plan that measures it.
#[derive(Debug, Clone, PartialEq)]
pub struct CellPlan {
    /// The cell, without runs.
    pub cell: Cell,
    /// One stage.
    pub plan: Plan,
}

/// Settings of one cell: the workload after its parameters.
#[derive(Debug, Clone)]
pub(super) struct Chosen {
    pub(super) workload: Workload,
    pub(super) vms: Option<u64>,
    pub(super) outstanding: Option<u64>,
    pub(super) target: Option<String>,
}

/// Names of all machines, in order.
pub(super) fn machine_names(experiment: &Experiment) -> Vec<String> {
    let names = |vm: &super::model::Vm| -> Vec<String> {
        match vm.count {
            1 => vec![vm.name.clone()],
            count => (1..=count).map(|number| format!("{}{number}", vm.name)).collect(),
        }
    };
    experiment.vms.iter().flat_map(names).collect()
}

/// A machine's disks: names of their targets and their sizes.
pub(super) fn machines(experiment: &Experiment) -> Result<Vec<(String, Vec<Target>)>, ExperimentError> {
    let mut all = Vec::new();
    let names = machine_names(experiment);
    let mut next = names.into_iter();
    for vm in &experiment.vms {
        let size = vm.size.as_deref().map(parse_bytes).transpose().map_err(|error| {
            ExperimentError::senseless(
                format!("vm {}", vm.name),
                error.to_string(),
                "write a size such as 10GiB",
            )
        })?;
        for index in 0..vm.count as usize {
            let name = next.next().expect("there is a name for every machine");
            let disks = (0..vm.disks as usize).map(|disk| {
                let given = vm.targets.get(index * vm.disks as usize + disk).cloned();
                let made = if vm.disks == 1 { name.clone() } else { format!("{name}-disk{}", disk + 1) };
                Target { size, ..Target::named(given.unwrap_or(made)) }
            });
            let disks = disks.collect();
            all.push((name, disks));
        }
    }
    Ok(all)
}

/// All cells, in the order of the file: workloads, then sweeps from the first (slowest) to the last, then sides.
///
/// # Errors
/// When a value is not one of its parameter, or a plan cannot be.
pub fn expand(experiment: &Experiment) -> Result<Vec<CellPlan>, ExperimentError> {
    if !experiment.schedule.is_empty() {
        return Ok(vec![scheduled(experiment)?]);
    }
    let mut cells = Vec::new();
    for workload in &experiment.workloads {
        for values in combinations(experiment) {
            let sides: Vec<Option<(&str, &toml::Value)>> = match &experiment.compare {
                None => vec![None],
                Some(compare) => vec![Some(("a", &compare.a)), Some(("b", &compare.b))],
            };
            for side in sides {
                cells.push(cell(experiment, workload, &values, side)?);
                if cells.len() > CELLS_MAX {
                    let found = format!("more than {CELLS_MAX} cells");
                    return Err(ExperimentError::senseless(
                        "sweep",
                        found,
                        "sweep fewer parameters at a time",
                    ));
                }
            }
        }
    }
    Ok(cells)
}

type Values<'a> = Vec<(Parameter, &'a toml::Value)>;

fn combinations(experiment: &Experiment) -> Vec<Values<'_>> {
    let mut all: Vec<Values> = vec![Vec::new()];
    for sweep in &experiment.sweeps {
        let mut longer = Vec::new();
        for before in &all {
            for value in sweep.values.iter().take(CELLS_MAX + 1 - longer.len()) {
                let mut values = before.clone();
                values.push((sweep.parameter, value));
                longer.push(values);
            }
        }
        all = longer;
    }
    all
}

fn cell(
    experiment: &Experiment,
    workload: &Workload,
    values: &Values,
    side: Option<(&str, &toml::Value)>,
) -> Result<CellPlan, ExperimentError> {
    let mut chosen = Chosen { workload: workload.clone(), vms: None, outstanding: None, target: None };
    for (parameter, value) in values {
        chosen.set(*parameter, value)?;
    }
    if let (Some((_, value)), Some(compare)) = (side, &experiment.compare) {
        chosen.set(compare.parameter, value)?;
    }
    let parameters: BTreeMap<String, String> =
        values.iter().map(|(parameter, value)| (parameter.name().to_owned(), show(value))).collect();
    make(experiment, &chosen, parameters, side.map(|(name, _)| name.to_owned()))
}

/// The cell of a workload with its settings made.
pub(super) fn make(
    experiment: &Experiment,
    chosen: &Chosen,
    parameters: BTreeMap<String, String>,
    side: Option<String>,
) -> Result<CellPlan, ExperimentError> {
    let mut machines = machines(experiment)?;
    if let Some(vms) = chosen.vms {
        if vms == 0 || vms > machines.len() as u64 {
            let found = format!("{vms} of {} machines", machines.len());
            return Err(ExperimentError::senseless("vms", found, "write 1 up to the number of machines"));
        }
        machines.truncate(vms as usize);
    }
    let mut plan = Plan { name: experiment.name.clone(), ..Plan::default() };
    let mut groups = Vec::new();
    let count = machines.len() as u64;
    for (name, disks) in machines {
        let first = plan.targets.len();
        let targets: Vec<usize> = (first..first + disks.len()).collect();
        plan.targets.extend(disks);
        let timing = Timing {
            delay: Duration::ZERO,
            ramp: duration(experiment.ramp),
            length: Length::Time(duration(experiment.seconds)),
            cooldown: Duration::ZERO,
        };
        groups.push(group(&name, targets, chosen, count, timing)?);
    }
    if let Some(target) = &chosen.target {
        plan.targets.iter_mut().for_each(|of| target.clone_into(&mut of.name));
    }
    let mut stage = Stage::new(&chosen.workload.name, groups);
    stage.pause = duration(experiment.pause);
    let outstanding = stage.outstanding();
    plan.stages = vec![stage];
    checked(plan, |plan| {
        let cell = Cell {
            workload: chosen.workload.name.clone(),
            parameters,
            side,
            outstanding,
            vms: count,
            runs: Vec::new(),
        };
        CellPlan { cell, plan }
    })
}

fn checked(plan: Plan, done: impl FnOnce(Plan) -> CellPlan) -> Result<CellPlan, ExperimentError> {
    match plan.problems().into_iter().next() {
        Some(problem) => Err(ExperimentError::senseless(problem.at, problem.found, problem.remedy)),
        None => Ok(done(plan)),
    }
}

/// One plan in which every machine has its parts of the schedule.
fn scheduled(experiment: &Experiment) -> Result<CellPlan, ExperimentError> {
    let machines = machines(experiment)?;
    let mut plan = Plan { name: experiment.name.clone(), ..Plan::default() };
    let mut places: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (name, disks) in machines {
        let first = plan.targets.len();
        places.insert(name, (first..first + disks.len()).collect());
        plan.targets.extend(disks);
    }
    let mut groups = Vec::new();
    for part in &experiment.schedule {
        let workload = experiment.workloads.iter().find(|workload| workload.name == part.workload);
        let workload = workload.expect("the names of a schedule are checked when it is read").clone();
        let targets = places.get(&part.vm).cloned().unwrap_or_default();
        let timing = Timing {
            delay: duration(part.start),
            ramp: Duration::ZERO,
            length: Length::Time(duration(part.stop - part.start)),
            cooldown: Duration::ZERO,
        };
        let chosen = Chosen { workload, vms: None, outstanding: None, target: None };
        let mut group = group(&part.vm, targets, &chosen, 1, timing)?;
        group.name = format!("{} {}", part.vm, part.workload);
        groups.push(group);
    }
    let stage = Stage::new(&experiment.name, groups);
    let (outstanding, vms) = (stage.outstanding(), places.len() as u64);
    plan.stages = vec![stage];
    checked(plan, |plan| {
        let workload = SCHEDULED.to_owned();
        let cell =
            Cell { workload, parameters: BTreeMap::new(), side: None, outstanding, vms, runs: Vec::new() };
        CellPlan { cell, plan }
    })
}

fn group(
    vm: &str,
    targets: Vec<usize>,
    chosen: &Chosen,
    machines: u64,
    timing: Timing,
) -> Result<Group, ExperimentError> {
    let workload = &chosen.workload;
    let pattern = pattern_of(workload)?;
    let disks = targets.len() as u64;
    let mut group = Group::new(vm, 0, workload.depth, pattern, timing);
    group.vm = Some(vm.to_owned());
    group.targets = targets;
    group.workers = Workers::PerTarget(workload.workers);
    group.depth = Depth::PerTarget(workload.depth);
    if let Some(outstanding) = chosen.outstanding {
        let (workers, depth) =
            split(outstanding, machines, disks, u64::from(workload.workers)).ok_or_else(|| {
                ExperimentError::senseless(
                    "outstanding",
                    format!("{outstanding} over {machines} machines of {disks} disks"),
                    format!("write multiples of {machines}"),
                )
            })?;
        (group.workers, group.depth) = (workers, depth);
    }
    group.rates = workload.rate.map(rate).into_iter().collect();
    group.data =
        Data { compressible: workload.compressible, duplicates: workload.duplicates, ..Data::default() };
    Ok(group)
}

fn rate(iops: f64) -> Rate {
    Rate {
        pace: Pace::Iops(iops),
        per: RatePer::Group,
        of: RateOf::All,
        arrivals: Arrivals::Poisson,
        clock: Loop::Open,
    }
}

/// Workers and depth of a machine that has its part of `outstanding`: over its disks where it divides, else over all of them.
fn split(outstanding: u64, machines: u64, disks: u64, workers: u64) -> Option<(Workers, Depth)> {
    let each =
        outstanding.checked_div(machines).filter(|&each| each > 0 && each * machines == outstanding)?;
    let number = |value: u64| u32::try_from(value).ok();
    if each.is_multiple_of(disks) {
        let of_disk = each / disks;
        let workers = (1..=workers.min(of_disk)).rev().find(|workers| of_disk.is_multiple_of(*workers))?;
        return Some((Workers::PerTarget(number(workers)?), Depth::PerTarget(number(of_disk / workers)?)));
    }
    Some((Workers::Together(1), Depth::PerWorker(number(each)?)))
}

fn pattern_of(workload: &Workload) -> Result<Pattern, ExperimentError> {
    let at = || format!("workload {}", workload.name);
    let mut pattern = match (&workload.pattern, &workload.profile) {
        (Some(pattern), _) => pattern.clone(),
        (None, Some(profile)) => super::super::profiles::pattern(profile).ok_or_else(|| {
            ExperimentError::senseless(
                at(),
                format!("unknown profile `{profile}`"),
                "`drystone lab profiles` lists the profiles",
            )
        })?,
        (None, None) => Pattern::simple(4096, 100.0, 100.0),
    };
    if let Some(text) = &workload.size {
        let size = parse_bytes(text).map_err(|error| {
            ExperimentError::senseless(at(), error.to_string(), "write a size such as 4k")
        })?;
        pattern.lines.iter_mut().for_each(|line| line.size = plan::Size::Fixed(size));
    }
    if let Some(reads) = workload.reads {
        pattern.lines.iter_mut().for_each(|line| line.reads = reads);
    }
    if let Some(random) = workload.random {
        pattern.lines.iter_mut().for_each(|line| line.random = random);
    }
    if let Some(span) = workload.span {
        pattern.span.length = Some(Extent::Percent(span));
    }
    Ok(pattern)
}

fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

fn show(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

impl Chosen {
    pub(super) fn set(&mut self, parameter: Parameter, value: &toml::Value) -> Result<(), ExperimentError> {
        let wrong = || {
            ExperimentError::senseless(
                parameter.name(),
                format!("`{value}` is not a value of this parameter"),
                "write a number, or a text for size and target",
            )
        };
        let number = value.as_float().or(value.as_integer().map(|whole| whole as f64));
        let positive = || number.filter(|number| *number > 0.0 && *number <= 1e12).ok_or_else(wrong);
        let whole = || positive().map(|number| number as u64);
        match parameter {
            Parameter::Outstanding => self.outstanding = Some(whole()?),
            Parameter::Depth => self.workload.depth = u32::try_from(whole()?).map_err(|_| wrong())?,
            Parameter::Workers => self.workload.workers = u32::try_from(whole()?).map_err(|_| wrong())?,
            Parameter::Vms => self.vms = Some(whole()?),
            Parameter::Size => {
                let bytes = whole().ok().map(|bytes| bytes.to_string());
                self.workload.size = Some(value.as_str().map(str::to_owned).or(bytes).ok_or_else(wrong)?);
            }
            Parameter::Reads => self.workload.reads = Some(number.ok_or_else(wrong)?),
            Parameter::Random => self.workload.random = Some(number.ok_or_else(wrong)?),
            Parameter::Span => self.workload.span = Some(positive()?),
            Parameter::Rate => self.workload.rate = Some(positive()?),
            Parameter::Compressible => self.workload.compressible = number.ok_or_else(wrong)?,
            Parameter::Duplicates => self.workload.duplicates = number.ok_or_else(wrong)?,
            Parameter::Target => self.target = Some(value.as_str().ok_or_else(wrong)?.to_owned()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(text: &str) -> Vec<CellPlan> {
        expand(&Experiment::parse(text).expect("an experiment")).expect("cells")
    }

    const HEAD: &str = "name = 'e'\n[[vm]]\nname = 'vm'\ncount = 4\ndisks = 2\nsize = '1GiB'\n[[workload]]\nname = 'w'\nworkers = 4\n";

    #[test]
    fn a_sweep_of_what_is_outstanding_is_spread_over_machines_and_disks() {
        let found = cells(&format!("{HEAD}[[sweep]]\nparameter = 'outstanding'\nvalues = [4, 8, 32, 256]\n"));
        let totals: Vec<u64> = found.iter().map(|cell| cell.cell.outstanding).collect();
        assert_eq!(totals, [4, 8, 32, 256]);
        let group = |index: usize| {
            (found[index].plan.stages[0].groups[0].workers, found[index].plan.stages[0].groups[0].depth)
        };
        assert_eq!(group(0), (Workers::Together(1), Depth::PerWorker(1)));
        assert_eq!(group(2), (Workers::PerTarget(4), Depth::PerTarget(1)));
        assert_eq!(group(3), (Workers::PerTarget(4), Depth::PerTarget(8)));
    }

    #[test]
    fn machines_are_added_one_by_one_and_every_combination_is_a_cell() {
        let found = cells(&format!(
            "{HEAD}[[sweep]]\nparameter = 'vms'\nvalues = [1, 2, 4]\n[[sweep]]\nparameter = 'size'\nvalues = ['4k', '64k']\n"
        ));
        let labels: Vec<String> = found.iter().map(|cell| cell.cell.label()).collect();
        assert_eq!(labels[0], "w, size 4k, vms 1");
        assert_eq!((labels.len(), found[5].plan.targets.len(), found[5].cell.vms), (6, 8, 4));
    }

    #[test]
    fn a_schedule_is_one_plan_with_delays() {
        let text = "name = 'fight'\n[[vm]]\nname = 'vm'\ncount = 2\n[[workload]]\nname = 's'\nrandom = 0\nsize = '64k'\n[[workload]]\n\
                    name = 'r'\n[[schedule]]\nvm = 'vm1'\nworkload = 's'\nstop = 30\n[[schedule]]\nvm = 'vm2'\nworkload = 'r'\nstart = 10\nstop = 20\n";
        let found = cells(text);
        let groups = &found[0].plan.stages[0].groups;
        assert_eq!((found.len(), groups.len()), (1, 2));
        assert_eq!(groups[1].timing.delay, Duration::from_secs(10));
        assert_eq!(groups[1].timing.length, Length::Time(Duration::from_secs(10)));
        assert_eq!(groups[1].vm.as_deref(), Some("vm2"));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_the_way_out() {
        let refused = |more: &str, expected: &str| {
            let result =
                Experiment::parse(&format!("{HEAD}{more}")).and_then(|experiment| expand(&experiment));
            let error = result.expect_err(more).to_string();
            assert!(error.contains(expected), "{error}");
        };
        refused("[[expect]]\nfigure = 'iops'\nat_least = -5\n", "can never be -5");
        refused("[[expect]]\nfigure = 'fairness'\nat_least = 1.5\n", "can never be 1.5");
        refused("[[expect]]\nfigure = 'iops'\nat_least = 10\nat_most = 5\n", "contradict each other");
        refused("[[expect]]\nfigure = 'iops'\n", "expects nothing");
        refused("[[expect]]\nfigure = 'iops'\nworkload = 'x'\nat_least = 1\n", "unknown workload `x`");
        refused(
            "[[expect]]\nfigure = 'iops'\nat_least = 1\nwhere = { depth = 3 }\n",
            "`depth` is not varied",
        );
        refused("[[sweep]]\nparameter = 'outstanding'\nvalues = [5]\n", "multiples of 4");
        refused("[[sweep]]\nparameter = 'vms'\nvalues = [9]\n", "9 of 4 machines");
        refused("[[sweep]]\nparameter = 'colour'\nvalues = [9]\n", "unknown variant `colour`");
        refused("[search]\nover = 'rate'\npercentile = 101\nlatency_ms = 1\nto = 5\n", "between 0 and 100");
    }
}
