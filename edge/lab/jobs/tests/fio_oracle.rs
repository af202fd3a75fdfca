//! fio itself as the judge of its reader: what fio takes the lab takes, or says why not; what fio refuses the lab refuses.
//!
//! The texts are in `fio/corpus.rs`. fio must be installed, as for the other tests that need it.

#[path = "fio/corpus.rs"]
mod corpus;

use corpus::{CORPUS, Expected};
use jobs::{Dialect, FaultKind, ImportError, Options, Source, import_as};
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// What a text is as a job file.
fn job_file(text: &str) -> String {
    if text.trim_start().starts_with('[') { text.to_owned() } else { format!("[j]\nsize=1m\n{text}\n") }
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
    let include =
        |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|error| error.to_string());
    let options = Options { include: &include, ..Options::default() };
    import_as(Dialect::Fio, &Source::new("job.fio", text), &options).map(|_| ())
}

/// What the two make of it, as one of the expectations.
fn found(folder: &Path, text: &str, expected: Expected) -> Result<Expected, String> {
    let taken = fio(folder, text, &["--parse-only"]).status.success();
    let Err(error) = lab(folder, text) else {
        return if taken { Ok(Expected::Taken) } else { Err("fio refuses what the lab takes".into()) };
    };
    let kinds = |kind: FaultKind| error.faults.iter().all(|fault| fault.kind == kind);
    match taken {
        false if kinds(FaultKind::UnitTrap) || kinds(FaultKind::Unsupported) => {
            Err(format!("the lab says that fio takes what it refuses: {error}"))
        }
        false => Ok(Expected::Refused),
        true if kinds(FaultKind::UnitTrap) => Ok(Expected::Trap),
        true if kinds(FaultKind::Unsupported) => Ok(Expected::LabCannot),
        true if kinds(FaultKind::Malformed) => Ok(Expected::Malformed),
        true if expected == Expected::RefusedAtStart
            && !fio(folder, text, &["--output-format=json"]).status.success() =>
        {
            Ok(Expected::RefusedAtStart)
        }
        true => Err(format!("the lab says that fio refuses what it takes: {error}")),
    }
}

#[test]
fn fio_and_the_lab_agree_on_what_is_a_job() {
    let texts: Vec<(Expected, &str)> = (CORPUS.iter())
        .flat_map(|(expected, texts)| texts.iter().map(move |text| (*expected, *text)))
        .collect();
    assert!(texts.len() > 250, "{}", texts.len());
    let chunk = texts.len().div_ceil(4);
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let runs: Vec<_> = (texts.chunks(chunk))
            .map(|texts| {
                scope.spawn(move || {
                    let folder = folder();
                    (texts.iter())
                        .filter_map(|(expected, text)| {
                            let found = found(folder.path(), &job_file(text), *expected);
                            let wrong = found.as_ref() != Ok(expected);
                            wrong.then(|| format!("{text:?} is expected to be {expected:?}: {found:?}"))
                        })
                        .collect::<Vec<String>>()
                })
            })
            .collect();
        runs.into_iter().flat_map(|run| run.join().expect("no check panics")).collect()
    });
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), texts.len(), wrong.join("\n"));
}
