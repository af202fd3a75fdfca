//! Measurements made by hand, for all tests of reports.
#![allow(dead_code, reason = "each test uses a part of it")]

use base::Instant;
use iostats::{Operation, Recorder};
use measured::{
    Cell, Compact, Compared, ComparedFigure, Conclusion, DiskSeries, Ended, Expected, ExperimentRun,
    GroupRun, Interval, Machine, Measured, Run, Sample, StageRun, Stall, TargetFacts,
};
use plan::pattern::Pattern;
use plan::{Group, Plan, Stage, Target, Timing};
use statistics::Histogram;
use statistics::compare::{Better, Question, Verdict, compare};
use std::collections::BTreeMap;

/// A run of one stage with these groups (name, outstanding, mean latency in us) over so many seconds.
pub fn run(name: &str, groups: &[(&str, u64, u64)], seconds: u64) -> Run {
    let mut planned: Vec<Group> = Vec::new();
    let mut measured: Vec<GroupRun> = Vec::new();
    for &(group, outstanding, mean_us) in groups {
        let depth = u32::try_from(outstanding).expect("the fixture is as it is");
        let timing = Timing::seconds(seconds);
        planned.push(Group::new(group, 0, depth, Pattern::simple(4096, 70.0, 100.0), timing));
        measured.push(group_run(group, outstanding, mean_us, seconds));
    }
    Run {
        version: measured::VERSION,
        program: "a test".into(),
        started_unix_ms: 1_795_311_706_000,
        plan: Plan {
            name: name.into(),
            targets: vec![Target::named("disk")],
            stages: vec![Stage::new(name, planned)],
            ..Plan::default()
        },
        targets: vec![TargetFacts {
            name: "disk".into(),
            opened: "/dev/disk".into(),
            kind: "block device".into(),
            size: 1 << 30,
            about: vec!["policy single".into()],
        }],
        machines: vec![Machine {
            name: "host1".into(),
            kernel: "6.1".into(),
            processors: 8,
            clock_error: 0.0,
        }],
        stages: vec![StageRun {
            stage: 0,
            repeat: 0,
            started: 0.0,
            seconds: seconds as f64,
            ended: Ended::Done,
            first_error: None,
            groups: measured,
            disks: groups
                .iter()
                .map(|&(group, outstanding, us)| disk(group, outstanding, us, seconds))
                .collect(),
            stalls: vec![Stall { at: 1.0, seconds: 0.4, waiting: 3 }],
            cpu_user: 1.0,
            cpu_system: 0.5,
            start_late: 0.0,
            agents: Vec::new(),
        }],
        notes: vec!["a note".into()],
        system: measured::System::default(),
        expectations: Vec::new(),
        sources: vec![measured::SourceText { name: "run.fio".into(), text: "[job]\n".into() }],
    }
}

/// Reads at the mean latency with a tail, writes at its double; what is outstanding fits by Little's law.
fn group_run(name: &str, outstanding: u64, mean_us: u64, seconds: u64) -> GroupRun {
    let mut operations = [Measured::default(), Measured::default(), Measured::default()];
    let mut intervals = Vec::new();
    let each_second = outstanding * 1_000_000 / mean_us;
    for second in 0..seconds {
        let mut histograms = [Histogram::default(), Histogram::default(), Histogram::default()];
        let ns = mean_us * 1_000;
        for step in 0..40 {
            let share = each_second / 40;
            histograms[0].record_many(ns / 2 + ns * step / 40, share * 7 / 10);
            histograms[1].record_many(ns + ns * (step + second) / 40, share * 3 / 10);
        }
        histograms[0].record(ns * 100);
        let mut bytes = [0; 3];
        for (index, histogram) in histograms.iter().enumerate() {
            let of = &mut operations[index];
            of.ios += histogram.count();
            bytes[index] = histogram.count() * 4096;
            of.bytes += bytes[index];
            of.latency.merge(histogram);
        }
        intervals.push(Interval {
            errors: [0; 3],
            at: second as f64,
            ios: histograms.each_ref().map(Histogram::count),
            latency: histograms.each_ref().map(Compact::from),
            bytes,
        });
    }
    GroupRun {
        name: name.into(),
        vm: None,
        outstanding,
        outstanding_mean: None,
        seconds: seconds as f64,
        operations,
        intervals,
        backlog_max: 0.0,
        unsent: 0,
        rated: false,
        verified: None,
    }
}

/// What a disk saw: some I/Os of several sizes a second.
fn disk(name: &str, outstanding: u64, mean_us: u64, seconds: u64) -> DiskSeries {
    let samples = (0..seconds).map(|second| {
        let mut recorder = Recorder::new();
        let mut now = 1_000_000_000;
        let mut under_way = Vec::new();
        for io in 0..200u64 {
            now += mean_us * 100;
            let operation = if io % 3 == 0 { Operation::Write } else { Operation::Read };
            let sectors = 8 << (io % 4);
            let arrival = recorder.arrive(Instant(now), operation, io * 977 % 100_000, sectors as u32);
            under_way.push(arrival);
            if under_way.len() as u64 > outstanding {
                now += mean_us * (500 + io * second % 700);
                recorder.complete(Instant(now), under_way.remove(0), true);
            }
        }
        Sample { at: second as f64, seconds: 1.0, statistics: recorder.statistics() }
    });
    DiskSeries { name: name.into(), samples: samples.collect() }
}

/// The experiment's own comparison of what its sides do with so much outstanding, by IOPS, with this verdict.
pub fn compared(experiment: &ExperimentRun, outstanding: u64, verdict: Verdict) -> Conclusion {
    let of = |side: &str| {
        let mut cells = experiment.cells.iter();
        let cell = cells.find(|cell| cell.outstanding == outstanding && cell.side.as_deref() == Some(side));
        cell.expect("the fixture is as it is").figures(|run| Some(run.stages[0].iops()))
    };
    let mut comparison =
        compare(&of("a"), &of("b"), &Question::new(Better::Higher)).expect("rates above zero");
    comparison.verdict = verdict;
    let text = format!("IOPS: {}", verdict.sentence("A", "B"));
    let compared = Some(Box::new(Compared { figure: ComparedFigure::Iops, comparison }));
    Conclusion { about: format!("4k random read, outstanding {outstanding}"), text, compared }
}

/// [`sweep`] with a comparison of its sides.
pub fn experiment() -> ExperimentRun {
    let mut experiment = sweep();
    experiment.conclusions.push(compared(&experiment, 16, Verdict::Faster { low: 0.2, high: 0.3 }));
    experiment
}

/// A sweep with a knee at 8, three runs a cell, on two sides, with expectations.
pub fn sweep() -> ExperimentRun {
    let mut cells = Vec::new();
    for (side, factor) in [("a", 100), ("b", 80)] {
        for outstanding in [1u64, 2, 4, 8, 16, 32] {
            let runs = (0..3).map(|index| {
                let queued = (outstanding * factor / 8).max(factor) + index;
                run("4k random read", &[("reader", outstanding, queued)], 3)
            });
            cells.push(Cell {
                workload: "4k random read".into(),
                parameters: BTreeMap::from([("outstanding".to_owned(), outstanding.to_string())]),
                side: Some(side.into()),
                outstanding,
                vms: 1,
                runs: runs.collect(),
            });
        }
    }
    ExperimentRun {
        experiment_version: measured::EXPERIMENT_VERSION,
        name: "a sweep".into(),
        about: "where latency begins to grow".into(),
        source: "name = \"a sweep\"\n".into(),
        program: "a test".into(),
        started_unix_ms: 1_795_311_706_000,
        cells,
        conclusions: vec![Conclusion::new("4k random read", "sweet spot N = 8")],
        expectations: vec![
            Expected { text: "IOPS at least 1".into(), measured: Some(5.0), holds: true },
            Expected { text: "p99 at most 1 us".into(), measured: Some(9.0), holds: false },
        ],
        notes: vec!["nothing was filled".into()],
    }
}
