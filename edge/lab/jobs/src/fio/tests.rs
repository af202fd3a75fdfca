//! Tests of fio's reader.

use crate::{Dialect, Options, Source, import};
use plan::{Amount, Batch, Content, Engine, Length, Reuse, Seed, Workers};
use std::time::Duration;

fn plan(text: &str) -> plan::Plan {
    let imported =
        import(&Source::new("test.fio", text), &Options::default()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(imported.dialect, Dialect::Fio);
    imported.plan
}

#[test]
fn a_simple_job_is_one_group() {
    let plan = plan(
        "[global]\nioengine=io_uring\ndirect=1\n[one]\nrw=randrw\nrwmixread=70\nbs=8k\niodepth=16\nnumjobs=4\nfilename=/dev/sdx\nruntime=60\ntime_based\nramp_time=5\n",
    );
    assert_eq!((plan.targets[0].name.as_str(), plan.targets[0].size), ("/dev/sdx", None));
    let group = &plan.stages[0].groups[0];
    assert_eq!(
        (group.workers, group.outstanding(), group.engine),
        (Workers::Together(4), 64, Engine::IoUring)
    );
    assert_eq!(
        (group.pattern.size_max(), group.pattern.reads(), group.pattern.random()),
        (8192, 70.0, 100.0)
    );
    assert_eq!(group.timing.length, Length::Time(Duration::from_secs(60)));
    assert_eq!(group.timing.ramp, Duration::from_secs(5));
    assert_eq!((group.batch, group.pattern.reuse), (Batch { submit: 1, complete: 1 }, Reuse::EachBlockOnce));
    assert_eq!((group.data.content.clone(), plan.seed), (Content::Scrambled, Seed::Fixed(0xb189_9bed)));
}

#[test]
fn jobs_without_a_file_name_have_files_of_their_own() {
    let plan = plan("[w]\nrw=write\nbs=1m\nsize=1g\nnumjobs=2\ndirectory=/data\n");
    let names: Vec<&str> = plan.targets.iter().map(|target| target.name.as_str()).collect();
    assert_eq!(names, ["/data/w.0.0", "/data/w.1.0"]);
    assert_eq!(plan.targets[1].size, Some(1 << 30));
    let group = &plan.stages[0].groups[0];
    assert_eq!(
        (group.workers, group.timing.length),
        (Workers::PerTarget(1), Length::Amount(Amount::Passes(1.0)))
    );
}
