//! Runs a simple pattern on a target and prints what it measured.
use lab::generator::stage::Settings;
use lab::target::{Need, Target, TargetName};
use plan::*;
fn main() {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().expect("target");
    let engine = arguments.next().expect("engine");
    let depth: u32 = arguments.next().expect("depth").parse().expect("number");
    let reads: f64 = arguments.next().expect("reads").parse().expect("number");
    let parsed = TargetName::parse(&name).expect("name");
    let need = Need { writes: reads < 100.0, reads: true, size: None };
    let target = Target::find(&name, &parsed, need, &mut |_, _| ()).expect("target");
    let mut group = Group::new("g", 0, depth, Pattern::simple(4096, reads, 100.0), Timing::seconds(4));
    group.data.content = Content::Scrambled;
    group.engine = match engine.as_str() {
        "aio" => Engine::LinuxAio,
        "sync" => Engine::Blocking,
        _ => Engine::IoUring,
    };
    if engine.ends_with('1') || engine == "aio" {
        group.batch = Batch { submit: 1, complete: 1, complete_max: 1 };
    }
    let plan = Plan {
        name: "try".into(),
        targets: vec![plan::Target::named(&name)],
        stages: vec![Stage::new("s", vec![group])],
        ..Plan::default()
    };
    let settings = Settings { processors: 1, go_on: false, interrupted: Default::default(), begin: None };
    let run = lab::runner::run(&plan, &[target], &settings, "try", &mut |_| ()).expect("run");
    let stage = &run.stages[0];
    let total = stage.total();
    println!(
        "{:?} iops {:.0} mean {:.2} us p99 {:.2} us cpu/io {:.3} us stalls {}",
        stage.ended,
        stage.iops(),
        total.latency.mean_ns().unwrap_or(0.0) / 1e3,
        total.latency.percentile(0.99).unwrap_or(0) as f64 / 1e3,
        stage.cpu_us_per_io().unwrap_or(0.0),
        stage.stalls.len()
    );
}
