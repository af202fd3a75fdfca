//! The example jobs in `examples/jobs`: what each becomes, and that it survives being written and read again.

use jobs::{Dialect, Imported, Options, Source, difference, export, import, import_as};
use plan::{Depth, Distribution, Loop, Pace, Plan, StageEnd, Workers};
use std::path::{Path, PathBuf};
use std::time::Duration;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/jobs")
}

fn read(name: &str) -> Imported {
    let text = std::fs::read_to_string(folder().join(name)).expect("the example is there");
    let include =
        |file: &str| std::fs::read_to_string(folder().join(file)).map_err(|error| error.to_string());
    let options = Options {
        include: &include,
        variables: vec![("lun".into(), "/dev/sdx".into())],
        ..Options::default()
    };
    import(&Source::new(name, text), &options).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn plan_of(name: &str) -> Plan {
    read(name).plan
}

/// All examples that are jobs of their own.
fn all() -> Vec<String> {
    let mut names = Vec::new();
    for dialect in ["fio", "diskspd", "vdbench", "iometer"] {
        let entries = std::fs::read_dir(folder().join(dialect)).expect("the folder is there");
        for entry in entries {
            let name = entry.expect("it can be listed").file_name().into_string().expect("names are plain");
            if !["shared-settings.fio", "library.icf"].contains(&name.as_str()) {
                names.push(format!("{dialect}/{name}"));
            }
        }
    }
    names.sort();
    assert!(names.len() >= 29, "{names:?}");
    names
}

/// Stages, workers of the first stage, outstanding I/Os of the first stage, seconds of the first stage.
#[test]
fn every_example_becomes_the_plan_that_it_describes() {
    let check = |name: &str, stages: usize, workers: u64, outstanding: u64, seconds: Option<u64>| {
        let plan = plan_of(name);
        let stage = &plan.stages[0];
        let count: u64 = stage.groups.iter().map(plan::Group::worker_count).sum();
        let longest: Option<Vec<Duration>> =
            stage.groups.iter().map(|group| group.timing.longest()).collect();
        let longest = longest.and_then(|all| all.into_iter().max()).map(|time| time.as_secs());
        assert_eq!(
            (plan.stages.len(), count, stage.outstanding(), longest),
            (stages, workers, outstanding, seconds),
            "{name}"
        );
    };
    check("fio/client-endurance.fio", 1, 1, 32, Some(3600));
    check("fio/four-corners.fio", 4, 1, 4, Some(60));
    check("fio/wait-for.fio", 3, 1, 1, None);
    check("fio/latency-profile.fio", 1, 1, 128, Some(300));
    check("fio/fixed-rate.fio", 1, 1, 64, Some(130));
    check("fio/zones.fio", 1, 1, 16, Some(600));
    check("fio/steady.fio", 1, 2, 64, Some(7200));
    check("fio/database.fio", 1, 9, 1 + 32 + 8, Some(330));
    check("fio/verify.fio", 1, 1, 16, None);
    check("diskspd/oltp.cmd", 1, 8, 64, Some(370));
    check("diskspd/log-writer.cmd", 1, 1, 1, Some(130));
    check("diskspd/rate-and-pause.cmd", 2, 2, 8, Some(65));
    check("diskspd/hot-spot.cmd", 2, 2, 64, Some(125));
    check("diskspd/sweep.cmd", 6, 1, 1, Some(35));
    check("diskspd/sql.xml", 1, 5, 33, Some(375));
    check("diskspd/desktops.xml", 2, 2, 8, Some(150));
    check("vdbench/simple.vdb", 1, 1, 16, Some(330));
    check("vdbench/curve.vdb", 49, 1, 32, Some(70));
    check("vdbench/loops.vdb", 24, 1, 8, Some(35));
    check("vdbench/several-devices.vdb", 2, 5, 40, Some(130));
    check("vdbench/skew.vdb", 1, 1, 24, Some(65));
    check("vdbench/hits-and-ranges.vdb", 2, 1, 4, Some(65));
    check("vdbench/variables.vdb", 1, 1, 8, Some(65));
    check("vdbench/fill.vdb", 1, 2, 8, Some(36_010));
    check("iometer/two-patterns.icf", 2, 2, 64, Some(330));
    check("iometer/file-server.icf", 1, 1, 64, Some(660));
    check("iometer/depth-sweep.icf", 6, 1, 1, Some(70));
    check("iometer/two-machines.icf", 1, 2, 16, Some(135));
    check("iometer/most-iops.icf", 1, 8, 128, Some(60));
    check("iometer/bursts.icf", 1, 1, 4, Some(155));
    check("iometer/all-in-one.icf", 1, 1, 16, Some(330));
    check("iometer/old-form.icf", 2, 1, 4, Some(65));
}

#[test]
fn the_numbers_that_matter_are_carried() {
    let endurance = plan_of("fio/client-endurance.fio");
    let pattern = &endurance.stages[0].groups[0].pattern;
    assert_eq!((pattern.lines.len(), pattern.reads(), pattern.size_max()), (12, 40.0, 65_536));
    assert!(
        matches!(&pattern.distribution, Distribution::Zoned(zones) if zones.len() == 3 && zones[0].ios == 50.0)
    );

    let search = plan_of("fio/latency-profile.fio").stages[0].search.expect("a target is given");
    assert_eq!(
        (search.latency, search.window, search.percentile),
        (Duration::from_millis(2), Duration::from_secs(10), 99.0)
    );

    let rated = plan_of("fio/fixed-rate.fio");
    let rates = &rated.stages[0].groups[0].rates;
    assert_eq!(
        (rates[0].pace, rates[1].pace, rates[0].clock),
        (Pace::Iops(750.0), Pace::Iops(250.0), Loop::Open)
    );

    let steady = plan_of("fio/steady.fio").stages[0].steady.expect("a rule is given");
    assert!(steady.slope && steady.limit == 0.3 && steady.window == Duration::from_secs(600), "{steady:?}");
    assert_eq!(plan_of("fio/steady.fio").stages[0].ends, StageEnd::All);

    let skew = plan_of("vdbench/skew.vdb");
    let group = &skew.stages[0].groups[0];
    let weights: Vec<f64> = group.pattern.lines.iter().map(|line| line.weight).collect();
    assert_eq!((weights, group.rates[0].pace), (vec![30.0, 30.0, 30.0, 10.0], Pace::Iops(8000.0)));

    let curve = plan_of("vdbench/curve.vdb");
    assert_eq!(curve.stages[8].groups[0].rates[0].pace, Pace::PercentOf { stage: 7, percent: 10.0 });
    assert_eq!(curve.stages[7].groups[0].pattern.size_max(), 2048);

    let machines = plan_of("iometer/two-machines.icf");
    let names: Vec<_> = machines.stages[0].groups.iter().map(|group| group.vm.as_deref()).collect();
    assert_eq!(names, [Some("HOST1"), Some("HOST2")]);
    let sweep = plan_of("iometer/depth-sweep.icf");
    let depths: Vec<u64> = sweep.stages.iter().map(plan::Stage::outstanding).collect();
    assert_eq!(depths, [1, 2, 4, 8, 16, 32]);
    let patterns = plan_of("iometer/two-patterns.icf");
    let group = &patterns.stages[0].groups[0];
    assert_eq!((group.workers, group.depth), (Workers::Together(2), Depth::PerTarget(16)));
    assert_eq!(patterns.stages[0].name, "4K; 70% reads, 100% random");
}

#[test]
fn every_example_can_be_written_for_fio_and_what_is_written_is_the_same_plan_unless_losses_say_otherwise() {
    for name in all() {
        let read = read(&name);
        let exported = export(&read.plan).unwrap_or_else(|error| panic!("{name}: {error}"));
        let again =
            import_as(Dialect::Fio, &Source::new("again", exported.text.as_str()), &Options::default())
                .unwrap_or_else(|error| panic!("{name}: {error}\n{}", exported.text));
        if read.dialect == Dialect::Fio {
            assert!(exported.losses.is_empty(), "{name}: {:?}\n{}", exported.losses, exported.text);
        }
        if exported.losses.is_empty() {
            assert_eq!(difference(&read.plan, &again.plan), None, "{name}\n{}", exported.text);
        }
    }
}
