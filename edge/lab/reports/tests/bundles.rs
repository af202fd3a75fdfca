//! Bundles: what goes in comes out, and what was damaged on the way is told.
#![allow(clippy::unwrap_used, reason = "in tests, what is missing shall stop them")]

mod common;

use proptest::prelude::*;
use reports::{
    Bundle, BundleError, BundleProblem, BundleText, NamedExperiment, NamedRun, Report, Section, bundle, html,
    read_bundle,
};
use std::io::Read;

fn written() -> Vec<u8> {
    let (run, experiment) = (common::run("mix", &[("vm1", 8, 200)], 3), common::sweep());
    let capture = lens::Capture { source: "esx".into(), disks: Vec::new(), notes: vec!["reset".into()] };
    let report = Report {
        title: "kept".into(),
        program: "drystone 0.1".into(),
        runs: vec![NamedRun { name: "a/../b", run: &run }],
        experiments: vec![NamedExperiment { name: "sweep", experiment: &experiment }],
        captures: vec![capture],
        sections: vec![Section { title: "s".into(), lines: vec!["l".into()] }],
    };
    bundle(&report, &[BundleText { name: "job.fio".into(), text: "[x]\nrw=read\n".into() }])
}

/// The entries of an archive, changed, as an archive again.
fn rewritten(archive: &[u8], mut change: impl FnMut(&str, Vec<u8>) -> Option<Vec<u8>>) -> Vec<u8> {
    let mut reader = tar::Archive::new(zstd::Decoder::new(archive).expect("the fixture is as it is"));
    let mut writer = tar::Builder::new(zstd::Encoder::new(Vec::new(), 1).expect("the fixture is as it is"));
    for entry in reader.entries().expect("the fixture is as it is") {
        let mut entry = entry.expect("the fixture is as it is");
        let path = entry.path().expect("the fixture is as it is").display().to_string();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).expect("the fixture is as it is");
        if let Some(bytes) = change(&path, bytes) {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            writer.append_data(&mut header, path, &bytes[..]).expect("the fixture is as it is");
        }
    }
    writer.into_inner().expect("the fixture is as it is").finish().expect("the fixture is as it is")
}

fn problems(archive: &[u8]) -> Vec<BundleProblem> {
    read_bundle(archive).expect("the fixture is as it is").problems
}

#[test]
fn what_goes_in_comes_out_and_renders_the_same() {
    let archive = written();
    let read: Bundle = read_bundle(&archive[..]).expect("the fixture is as it is");
    assert_eq!(read.problems, []);
    assert_eq!(read.runs, [("a/../b".to_owned(), common::run("mix", &[("vm1", 8, 200)], 3))]);
    assert_eq!(read.experiments[0].1, common::sweep());
    let names: Vec<&str> = read.texts.iter().map(|text| text.name.as_str()).collect();
    assert_eq!(names, ["sweep.toml", "run.fio", "job.fio"]);
    assert_eq!(read.captures[0].notes, ["reset"]);
    let again = bundle(&read.report(), &read.texts);
    assert_eq!(again, archive, "the same bundle, byte for byte");
    assert!(html(&read.report()).contains("<h1>kept</h1>"));
}

#[test]
fn a_damaged_file_is_told_and_left_out() {
    let archive = rewritten(&written(), |path, mut bytes| {
        if path.starts_with("runs/") {
            bytes[100] ^= 1;
        }
        Some(bytes)
    });
    let read = read_bundle(&archive[..]).expect("the fixture is as it is");
    assert!(
        matches!(&read.problems[..], [BundleProblem::Damaged { path, .. }] if path == "runs/0001-a-..-b.json"),
        "{:?}",
        read.problems
    );
    assert_eq!((read.runs.len(), read.experiments.len()), (0, 1));
}

#[test]
fn missing_and_unknown_files_are_told() {
    let without = rewritten(&written(), |path, bytes| (!path.starts_with("experiments/")).then_some(bytes));
    assert_eq!(problems(&without), [BundleProblem::Missing { path: "experiments/0002-sweep.json".into() }]);
    let mut unlisted = false;
    let with = rewritten(&written(), |path, bytes| {
        unlisted |= path == "manifest.json";
        let text = String::from_utf8(bytes).expect("the fixture is as it is");
        Some(if path == "manifest.json" {
            text.replace("texts/0007-job.fio", "texts/other").into_bytes()
        } else {
            text.into_bytes()
        })
    });
    assert!(unlisted);
    let found = problems(&with);
    assert!(found.contains(&BundleProblem::Unknown { path: "texts/0007-job.fio".into() }), "{found:?}");
    assert!(found.contains(&BundleProblem::Missing { path: "texts/other".into() }), "{found:?}");
}

#[test]
fn a_bundle_that_is_cut_off_says_so_wherever_it_was_cut() {
    let archive = written();
    for cut in (0..archive.len()).step_by(archive.len() / 97 + 1) {
        match read_bundle(&archive[..cut]) {
            Ok(read) => assert!(!read.problems.is_empty(), "cut at {cut}"),
            Err(BundleError::NoBundle(_) | BundleError::NoManifest { .. }) => {}
            Err(other) => panic!("cut at {cut}: {other}"),
        }
    }
}

#[test]
fn a_newer_bundle_and_newer_runs_are_refused() {
    let newer = rewritten(&written(), |path, bytes| {
        let text = String::from_utf8(bytes).expect("the fixture is as it is");
        Some(
            if path == "manifest.json" {
                text.replace("\"bundle_version\": 1", "\"bundle_version\": 2")
            } else {
                text
            }
            .into_bytes(),
        )
    });
    let error = read_bundle(&newer[..]).unwrap_err();
    assert!(error.to_string().contains("use a newer program"), "{error}");
    let mut run = common::run("mix", &[("vm1", 8, 200)], 1);
    run.version = measured::VERSION + 1;
    let found = problems(&bundle(&Report::of_runs("t", [("r", &run)]), &[]));
    assert!(found[0].to_string().contains("use a newer program"), "{found:?}");
}

/// An archive whose only file claims to be a manifest of this size.
fn claiming(size: u64, bytes: &[u8]) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.set_path("manifest.json").expect("the fixture is as it is");
    header.set_size(size);
    header.set_cksum();
    let mut archive = header.as_bytes().to_vec();
    archive.extend(bytes);
    zstd::encode_all(&archive[..], 1).expect("the fixture is as it is")
}

#[test]
fn sizes_that_are_claimed_take_no_memory() {
    assert!(matches!(read_bundle(&claiming(1 << 40, b"{}")[..]), Err(BundleError::TooLarge { .. })));
    assert!(matches!(read_bundle(&claiming(1 << 29, b"{}")[..]), Err(BundleError::NoBundle(_))));
}

#[test]
fn histograms_that_a_forger_piles_up_are_refused() {
    let mut run = common::run("mix", &[("vm1", 8, 200)], 1);
    let group = run.stages[0].groups[0].clone();
    let empty = measured::GroupRun { operations: Default::default(), intervals: Vec::new(), ..group };
    run.stages[0].groups = vec![empty];
    let text = serde_json::to_string(&run).expect("the fixture is as it is");
    let one = text
        .split("\"groups\":[")
        .nth(2)
        .expect("the fixture is as it is")
        .split("],\"disks\"")
        .next()
        .expect("the fixture is as it is");
    let piled = text.replace(one, &vec![one; 40_000].join(","));
    let check = |text: &str, expected: &str| {
        let sum = |bytes: &[u8]| -> String {
            use sha2::{Digest, Sha256};
            Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
        };
        let manifest = format!(
            "{{\"bundle_version\":1,\"title\":\"t\",\"program\":\"p\",\"files\":[{{\"path\":\"r\",\"kind\":\"run\",\"name\":\"r\",\
             \"bytes\":0,\"sha256\":\"{}\"}}]}}",
            sum(text.as_bytes())
        );
        let mut writer =
            tar::Builder::new(zstd::Encoder::new(Vec::new(), 1).expect("the fixture is as it is"));
        for (path, bytes) in [("manifest.json", manifest.as_str()), ("r", text)] {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            writer.append_data(&mut header, path, bytes.as_bytes()).expect("the fixture is as it is");
        }
        let archive =
            writer.into_inner().expect("the fixture is as it is").finish().expect("the fixture is as it is");
        let found = problems(&archive);
        assert!(found.len() == 1 && found[0].to_string().contains(expected), "{found:?}");
    };
    check(&piled, "120000 sets of histograms");
    check(&text.replace("\"errors\"", "\"\\u0065rrors\""), "never written: \\u0065");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn garbage_is_an_error_and_never_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
        prop_assert!(read_bundle(&bytes[..]).is_err());
        // The same as the inside of a proper zstd frame.
        let framed = zstd::encode_all(&bytes[..], 1).expect("the fixture is as it is");
        prop_assert!(read_bundle(&framed[..]).is_err());
    }

    #[test]
    fn a_changed_byte_is_never_unseen(at in any::<prop::sample::Index>(), change in 1u8..) {
        let mut archive = small();
        let at = at.index(archive.len());
        archive[at] ^= change;
        if let Ok(read) = read_bundle(&archive[..]) {
            let sound = read_bundle(&small()[..]).expect("the fixture is as it is");
            prop_assert!(!read.problems.is_empty() || read == sound, "byte {}", at);
        }
    }
}

fn small() -> Vec<u8> {
    bundle(
        &Report { title: "t".into(), ..Report::default() },
        &[BundleText { name: "n".into(), text: "x".repeat(300) }],
    )
}
