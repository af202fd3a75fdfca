//! fio itself as the judge of its reader: what fio takes the lab takes, or says why not; what fio refuses the lab refuses.
//!
//! The texts are in `fio/corpus.rs`. fio must be installed, as for the other tests that need it.

#[path = "fio/corpus.rs"]
mod corpus;

use corpus::{CORPUS, Expected};
use jobs::{Dialect, FaultKind, ImportError, Options, Source, import_as};
use plan::{Amount, Group, Plan, Workers};
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// Whether a text is a whole job file.
fn is_file(text: &str) -> bool {
    text.trim_start().starts_with('[')
}

/// What a text is as a job file.
fn job_file(text: &str) -> String {
    if is_file(text) { text.to_owned() } else { format!("[j]\nsize=1m\n{text}\n") }
}

fn folder() -> TempDir {
    let folder = TempDir::new().expect("a temporary folder can be made");
    std::fs::write(folder.path().join("shared.inc"), "bs=8k\niodepth=2\n").expect("it can be written");
    folder
}

fn fio(folder: &Path, text: &str, arguments: &[&str]) -> Output {
    std::fs::write(folder.join("job.fio"), text).expect("it can be written");
    Command::new("fio")
        .current_dir(folder)
        .args(arguments)
        .arg("job.fio")
        .env_remove("NOT_SET")
        .output()
        .expect("fio is installed")
}

fn lab(folder: &Path, text: &str) -> Result<(), ImportError> {
    let include = |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|error| error.to_string());
    let options = Options { include: &include, ..Options::default() };
    import_as(Dialect::Fio, &Source::new("job.fio", text), &options).map(|_| ())
}

/// Whether fio takes each of these texts. It stops at the first job that it drops, so a file of many jobs that it takes tells
/// of all of them.
fn taken(folder: &Path, texts: &[&str]) -> Vec<bool> {
    let parses = |text: &str| fio(folder, text, &["--parse-only"]).status.success();
    let together: String = (texts.iter().enumerate())
        .filter(|(_, text)| !is_file(text))
        .map(|(index, text)| job_file(text).replacen("[j]", &format!("[job{index}]"), 1))
        .collect();
    let all = texts.len() > 1 && parses(&together);
    texts.iter().map(|text| (all && !is_file(text)) || parses(&job_file(text))).collect()
}

/// What the two make of a text, as one of the expectations.
fn found(folder: &Path, text: &str, taken: bool, expected: Expected) -> Result<Expected, String> {
    let Err(error) = lab(folder, text) else {
        return if taken { Ok(Expected::Taken) } else { Err("fio refuses what the lab takes".into()) };
    };
    let all = |kind: FaultKind| error.faults.iter().all(|fault| fault.kind == kind);
    match taken {
        false if all(FaultKind::UnitTrap) || all(FaultKind::Unsupported) => {
            Err(format!("the lab says that fio takes what it refuses: {error}"))
        }
        false => Ok(Expected::Refused),
        true if all(FaultKind::UnitTrap) => Ok(Expected::Trap),
        true if all(FaultKind::Unsupported) => Ok(Expected::LabCannot),
        true if all(FaultKind::Malformed) => Ok(Expected::Malformed),
        true if expected == Expected::RefusedAtStart && !runs(folder, text) => Ok(Expected::RefusedAtStart),
        true => Err(format!("the lab says that fio refuses what it takes: {error}")),
    }
}

fn runs(folder: &Path, text: &str) -> bool {
    fio(folder, text, &["--output-format=json"]).status.success()
}

/// The texts of one expectation that fio or the lab judge otherwise.
fn wrong(expected: Expected, texts: &[&str]) -> Vec<String> {
    let folder = folder();
    let taken = match expected {
        Expected::Refused => {
            texts.iter().map(|text| taken(folder.path(), &[*text])[0]).collect::<Vec<bool>>()
        }
        _ => taken(folder.path(), texts),
    };
    (texts.iter().zip(taken))
        .map(|(text, taken)| (text, found(folder.path(), &job_file(text), taken, expected)))
        .filter(|(_, found)| *found != Ok(expected))
        .map(|(text, found)| format!("{text:?} is expected to be {expected:?}: {found:?}"))
        .collect()
}

#[test]
fn fio_and_the_lab_agree_on_what_is_a_job() {
    let count: usize = CORPUS.iter().map(|(_, texts)| texts.len()).sum();
    assert!(count > 380, "{count}");
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let runs: Vec<_> = (CORPUS.iter())
            .flat_map(|(expected, texts)| {
                let few = if *expected == Expected::Refused { 20 } else { texts.len() };
                texts.chunks(few).map(move |texts| (*expected, texts))
            })
            .map(|(expected, texts)| scope.spawn(move || wrong(expected, texts)))
            .collect();
        runs.into_iter().flat_map(|run| run.join().expect("no check panics")).collect()
    });
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}

/// What fio did: jobs of its report, bytes read and written, I/Os read and written.
#[derive(Debug, PartialEq, Eq)]
struct Done {
    jobs: u64,
    bytes: [u64; 2],
    ios: [u64; 2],
}

fn done(folder: &Path, text: &str) -> Done {
    let output = fio(folder, text, &["--output-format=json"]);
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{report}{}", String::from_utf8_lossy(&output.stderr));
    let start = report.find('{').expect("fio reports as JSON");
    let report: serde_json::Value = serde_json::from_str(&report[start..]).expect("fio reports as JSON");
    let jobs = report["jobs"].as_array().expect("it names its jobs");
    let sum = |direction: &str, key: &str| {
        jobs.iter().map(|job| job[direction][key].as_u64().expect("it is a number")).sum::<u64>()
    };
    Done {
        jobs: jobs.len() as u64,
        bytes: [sum("read", "io_bytes"), sum("write", "io_bytes")],
        ios: [sum("read", "total_ios"), sum("write", "total_ios")],
    }
}

/// Bytes that a plan moves, where amounts and sizes of files say so.
fn bytes(plan: &Plan) -> u64 {
    let of_worker = |group: &Group, worker: u32, targets: &[usize]| -> f64 {
        let span = targets.iter().map(|target| {
            let size = plan.targets[*target].size.expect("every file has a size");
            group.pattern.span.of(worker, size).1
        });
        let amount = group.timing.length.amount().expect("the job ends with an amount");
        match amount {
            Amount::Bytes(bytes) => bytes as f64,
            Amount::Passes(passes) => span.sum::<u64>() as f64 * passes,
        }
    };
    let of_group = |group: &Group| -> f64 {
        match group.workers {
            Workers::Together(count) => {
                (0..count).map(|worker| of_worker(group, worker, &group.targets)).sum()
            }
            Workers::PerTarget(count) => (group.targets.iter().enumerate())
                .flat_map(|(index, target)| {
                    (0..count).map(move |worker| (index as u32 * count + worker, *target))
                })
                .map(|(worker, target)| of_worker(group, worker, &[target]))
                .sum(),
        }
    };
    plan.stages.iter().flat_map(|stage| &stage.groups).map(of_group).sum::<f64>() as u64
}

/// Jobs that end with an amount.
const JOBS: &[&str] = &[
    "[j]\nsize=1m",
    "[j]\nsize=1m\nrw=write",
    "[j]\nsize=1m\nrw=write\nnumber_ios=5",
    "[j]\nsize=1m\nrw=write\nnumber_ios=5\nloops=3",
    "[j]\nsize=1m\nrw=write\nnumber_ios=5000",
    "[global]\nfilename=one\n[j]\nsize=1m\nrw=write\nfilename=two",
    "[j]\nsize=1m\nrw=randwrite\nloops=3",
    "[j]\nsize=1m\nrw=randrw\nrwmixread=75",
    "[j]\nsize=1m\nrw=rw\nbs=4k,16k",
    "[j]\nsize=1m\nbs=64k\nnumjobs=3",
    "[j]\nsize=1m\nio_size=2m",
    "[j]\nsize=1m\nio_size=256k",
    "[j]\nsize=1m\nio_size=50%",
    "[j]\nsize=1m\nloops=2\nio_size=2m",
    "[j]\nsize=1m\nloops=3\nio_size=2m",
    "[j]\nsize=1m\nloops=3\nio_size=512k",
    "[j]\nsize=1m\nloops=3\nio_size=50%",
    "[j]\nsize=1m\nloops=0",
    "[j]\nsize=100k\nbs=64k",
    "[j]\nsize=1m\nnrfiles=4",
    "[j]\nsize=1m\nfilename=a:b",
    "[j]\nfilesize=256k\nfilename=a:b",
    "[j]\nsize=1m\nfilesize=256k\nfilename=a",
    "[j]\nsize=50%\nfilesize=1m\nfilename=a",
    "[j]\nsize=1m\noffset=256k",
    "[j]\nsize=1m\noffset=256k\nfilesize=1m\nfilename=a",
    "[j]\nsize=256k\noffset_increment=256k\nnumjobs=3\nfilename=a",
    "[j]\nsize=256k\nnumjobs=2\nnrfiles=2\nrw=randread",
    "[j]\nsize=1m\nbssplit=4k/50:64k/50\nrw=randread",
    "[j]\nsize=1m\nbssplit=,64k/100\nrw=write",
    "[j]\nsize=1m\nbsrange=4k-8k\nbs=16k",
    "[j]\nsize=1m\nbs=32k\nbssplit=8k/100",
    "[j]\nsize=1m\nrw=randread\nbs=64k\nnorandommap",
    "[j]\nsize=1m\nrw=randread:8",
    "[j]\nsize=1m\nrw=randread\nrandom_distribution=zipf:1.2",
    "[j]\nsize=1m\nrw=randread\nrandom_distribution=zoned:50/5:30/15:20/",
    "[j]\nsize=1m\nkb_base=1000",
    "[j]\nsize=1m\nbs=8kib\nkb_base=1000",
    "[j]\nsize=1mib",
    "[global]\nbs=8192\n[a]\nsize=256k\n[global]\nbs=16k\n[b]\nsize=256k\nstonewall\n[c]\nsize=64k\nwait_for=b",
    "[global]\nbsrange=4k-8k\n[j]\nbs=16k\nsize=256k",
    "[j]\nsize=1m\niodepth=8\nioengine=libaio\nrw=randread",
    "[j]\nsize=64k\nname=other",
    "[j]\nsize=1m\nrw=read:4k",
];

/// What fio moves is what the plan says, to the last I/O of each worker.
#[test]
fn fio_does_what_the_plan_of_its_job_says() {
    // fio waits more than it works.
    std::thread::scope(|scope| {
        let runs: Vec<_> = (JOBS.chunks(5))
            .map(|jobs| scope.spawn(move || jobs.iter().for_each(|job| check_done(job))))
            .collect();
        runs.into_iter().for_each(|run| run.join().expect("a check failed"));
    });
}

fn check_done(job: &str) {
    let folder = folder();
    let text = format!("{job}\n");
    let plan = import_as(Dialect::Fio, &Source::new("job.fio", text.as_str()), &Options::default())
        .unwrap_or_else(|error| panic!("{job:?}: {error}"))
        .plan;
    let done = done(folder.path(), &text);
    let groups = || plan.stages.iter().flat_map(|stage| &stage.groups);
    assert_eq!(done.jobs, groups().map(Group::worker_count).sum::<u64>(), "{job:?}: {done:?}");
    for target in &plan.targets {
        assert!(folder.path().join(&target.name).exists(), "{job:?}: fio has no file {}", target.name);
    }
    let largest = groups().map(|group| group.pattern.size_max()).max().expect("there is a group");
    let (moved, planned) = (done.bytes.iter().sum::<u64>(), bytes(&plan));
    assert!(
        moved.abs_diff(planned) < largest * done.jobs,
        "{job:?}: fio moved {moved} bytes, the plan says {planned}"
    );
    for (direction, reads) in [(0, true), (1, false)] {
        let mut sizes: Vec<u64> = (groups())
            .flat_map(|group| &group.pattern.lines)
            .filter(|line| if reads { line.reads > 0.0 } else { line.writes() > 0.0 })
            .flat_map(|line| [line.size.min(), line.size.max()])
            .collect();
        sizes.sort_unstable();
        let (bytes, ios) = (done.bytes[direction], done.ios[direction]);
        assert_eq!(sizes.is_empty(), ios == 0, "{job:?}: {done:?}");
        if let (Some(least), Some(most)) = (sizes.first(), sizes.last()) {
            assert!(ios * least <= bytes && bytes <= ios * most, "{job:?}: {done:?}, sizes {sizes:?}");
        }
    }
}

/// What fio prints of itself, run with this argument.
fn told_by_fio(argument: &str) -> String {
    let told = Command::new("fio").arg(argument).output().expect("fio is installed");
    String::from_utf8_lossy(&told.stdout).into_owned()
}

#[test]
fn every_option_and_engine_of_fio_is_known() {
    let known =
        |name: &str| jobs::keys(Dialect::Fio).iter().any(|key| key.names().any(|known| known == name));
    let engines = told_by_fio("--enghelp");
    let engines: Vec<&str> = engines.lines().skip(1).map(str::trim).filter(|name| !name.is_empty()).collect();
    assert!(engines.len() > 20, "{engines:?}");
    let mut texts = vec![told_by_fio("--cmdhelp=all")];
    texts.extend(engines.iter().map(|engine| told_by_fio(&format!("--enghelp={engine}"))));
    let unknown: Vec<&str> = (texts.iter().flat_map(|text| text.lines()))
        .filter_map(|line| line.split_once(" : ").map(|(name, _)| name.trim()))
        .filter(|name| !known(name))
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    for engine in engines {
        let text = format!("[j]\nsize=1m\nioengine={engine}\n");
        let Err(error) = import_as(Dialect::Fio, &Source::new("job.fio", text), &Options::default()) else {
            continue;
        };
        assert!(!error.to_string().contains("fails to parse"), "{engine}: {error}");
    }
}
