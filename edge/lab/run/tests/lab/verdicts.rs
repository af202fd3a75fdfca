//! What a CI learns of a run: thresholds, and a baseline that later runs are compared with.

use crate::fixtures::*;
use lab::commands::ErrorKind;

fn job(folder: &Folder, iops: u32) -> String {
    let text = format!("[r]\nrw=randread\nbs=4k\nruntime=1\ntime_based\nioengine=psync\nrate_iops={iops}\n");
    folder.job(&format!("{iops}.fio"), &text)
}

#[test]
fn a_threshold_that_is_broken_fails_the_run_and_one_that_holds_does_not() {
    let folder = Folder::new();
    let job = job(&folder, 1000);
    let run = |expect: &[&str]| {
        let words = [&["run", &job, "-t", "null:8M"], expect].concat();
        let out = text_of(&folder.path("run.json"));
        lab(&[&words[..], &["--out", &out]].concat())
    };
    let text =
        run(&["--expect", "iops>=900", "--expect", "r:errors<=0", "--expect", "p99<=1s"]).expect("kept");
    assert_eq!(text.matches("holds: ").count(), 3, "{text}");
    let error = run(&["--expect", "iops>=900", "--expect", "iops<500"]).expect_err("1000 are more");
    assert_eq!((error.kind, error.text.as_str()), (ErrorKind::Refused, "1 expectation does not hold"));
    let kept = std::fs::read_to_string(folder.path("run.json")).expect("the run is kept all the same");
    let kept: measured::Run = serde_json::from_str(&kept).expect("a run");
    assert_eq!(kept.expectations.iter().map(|of| of.holds).collect::<Vec<_>>(), [true, false]);
    let error = run(&["--expect", "nowhere:iops>=1"]).expect_err("there is no such stage");
    assert_eq!(error.kind, ErrorKind::Refused);
    assert!(run(&["--expect", "speed>=1"]).expect_err("no figure").text.contains("unknown figure `speed`"));
}

#[test]
fn a_run_that_is_slower_than_its_baseline_fails_and_one_that_is_not_does_not() {
    let folder = Folder::new();
    let runs = |iops: u32, names: [&str; 3]| {
        names.map(|name| {
            let out = text_of(&folder.path(name));
            lab(&["run", &job(&folder, iops), "-t", "null:8M", "--out", &out]).expect("a run");
            out
        })
    };
    let place = text_of(&folder.path("baselines"));
    let before = runs(2000, ["b1.json", "b2.json", "b3.json"]);
    let save =
        [&["baseline", "save", "nightly"][..], &before.each_ref().map(String::as_str), &["--folder", &place]]
            .concat();
    lab(&save).expect("it is saved");
    let error = lab(&save).expect_err("there is one");
    assert!(error.hint.is_some_and(|hint| hint.contains("--replace")));
    assert!(lab(&["baseline", "list", "--folder", &place]).expect("a list").contains("nightly  3"));

    let compare = |sides: [String; 3], name: &str| {
        lab(&["compare", "--baseline", name, "--folder", &place, &sides.join(",")])
    };
    let slower =
        compare(runs(1000, ["s1.json", "s2.json", "s3.json"]), "nightly").expect_err("half the rate");
    assert!(slower.kind == ErrorKind::Refused && slower.text.contains("slower"), "{slower}");
    let error = compare(before.clone(), "release").expect_err("there is none");
    assert!(error.kind == ErrorKind::NotFound && error.hint.is_some_and(|hint| hint.contains("nightly")));
    let faster = runs(4000, ["f1.json", "f2.json", "f3.json"]);
    let verdict = lab(&["compare", "--baseline", "nightly", "--folder", &place, &faster.join(",")]);
    // Latencies of a target that does nothing may differ either way; IOPS may not be slower.
    let text = verdict.unwrap_or_else(|error| error.text);
    assert!(!text.contains("IOPS: B is slower"), "{text}");
    lab(&["baseline", "delete", "nightly", "--folder", &place]).expect("it is deleted");
    assert!(lab(&["baseline", "list", "--folder", &place]).expect("a list").contains("no baselines"));
    assert!(lab(&["baseline", "save", "../x", &before[0], "--folder", &place]).is_err(), "a name is no path");
}
