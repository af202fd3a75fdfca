//! Rules of a job about its own end and its own depth, and what becomes of results.

use crate::fixtures::*;
use measured::Ended;

const JOB: &str = "[j]\nioengine=io_uring\nrw=randread\nbs=4k\nsize=8m\ntime_based\n";

#[test]
fn a_job_ends_when_it_is_steady_by_its_own_rule() {
    let folder = Folder::new();
    // Nothing takes any time on this target, so what is judged is how even the generator itself is: 90 % is wide enough.
    let job =
        folder.job("s.fio", &format!("{JOB}runtime=60\nsteadystate=iops:90%\nsteadystate_duration=2\n"));
    let (done, run) = kept_run(&folder, &["run", &job, "--target", "null:8MiB"]);
    done.expect("it is a good end");
    let stage = &run.stages[0];
    assert!(
        stage.ended == Ended::Steady && stage.seconds < 50.0,
        "{:?} after {}",
        stage.ended,
        stage.seconds
    );
}

#[test]
fn the_largest_depth_within_a_latency_is_searched_for_and_run_at() {
    let folder = Folder::new();
    // A spindle serves one I/O after another, in about 10 ms: two at a time take about 20.
    let rule = "iodepth=16\nruntime=1\nlatency_target=30ms\nlatency_window=1s\nlatency_percentile=50\n";
    let job = folder.job("l.fio", &format!("{JOB}{rule}"));
    let (done, run) = kept_run(&folder, &["run", &job, "--target", "spindle:depths/a/1GiB"]);
    done.expect("it is a good end");
    let outstanding = run.stages[0].outstanding();
    assert!((1..16).contains(&outstanding), "{outstanding}: {:?}", run.notes);
    assert!(
        run.notes
            .iter()
            .any(|note| note.contains("largest queue depth that meets 50 % of I/Os within 30.00 ms")),
        "{:?}",
        run.notes
    );
}

#[test]
fn writes_are_read_back_in_the_middle_of_a_run() {
    let folder = Folder::new();
    let target = text_of(&folder.file("target.img", 8 << 20));
    let rule = "rw=randwrite\niodepth=4\nruntime=1\nverify=crc32c\nverify_backlog=16\nend_fsync=1\n";
    let job = folder.job("b.fio", &format!("{JOB}{rule}"));
    let (done, run) = kept_run(&folder, &["run", &job, "--target", &target]);
    done.expect("a good target");
    let group = &run.stages[0].groups[0];
    let verified = group.verified.expect("it was verified");
    let [reads, writes, _] = &group.operations;
    assert!(writes.ios > 100 && reads.ios * 2 > writes.ios, "{} reads, {} writes", reads.ios, writes.ios);
    assert!(verified.wrong == 0 && verified.compared > reads.ios, "{verified:?}");
}

#[test]
fn a_bundle_is_shown_audited_and_compared_like_what_it_was_made_of() {
    let folder = Folder::new();
    let job = folder.job("r.fio", &format!("{JOB}runtime=1\n"));
    let out = text_of(&folder.path("run.json"));
    lab(&["run", &job, "--target", "null:8MiB", "--out", &out]).expect("a good target");
    let bundle = text_of(&folder.path("all.tar.zst"));
    let tables = text_of(&folder.path("tables"));
    let page = text_of(&folder.path("all.html"));
    let words =
        ["report", &out, "--bundle", &bundle, "--csv", &tables, "--parquet", &tables, "--html", &page];
    let written = lab_json(&words);
    assert_eq!(written["written"].as_array().map(Vec::len), Some(8), "{written}");
    for file in
        ["stages.csv", "groups.csv", "seconds.csv", "system.csv", "intervals.parquet", "buckets.parquet"]
    {
        assert!(folder.path("tables").join(file).metadata().is_ok_and(|data| data.len() > 30), "{file}");
    }
    std::fs::remove_file(&out).expect("the run is in the bundle");
    assert!(lab(&["report", &bundle]).expect("a good bundle").contains("IOPS by second"));
    assert_eq!(lab_json(&["audit", &bundle])["rows"], 1);
    let again = text_of(&folder.path("again.html"));
    let said = lab(&["compare", &bundle, &bundle, "--html", &again]).expect("a good bundle");
    assert!(said.contains("j, IOPS:"), "{said}");
    assert!(std::fs::read_to_string(&again).is_ok_and(|text| text.contains("What can be said")));

    let mut bytes = std::fs::read(&bundle).expect("the bundle");
    bytes.truncate(bytes.len() / 3);
    std::fs::write(&bundle, &bytes).expect("a bundle that is cut short");
    let error = lab(&["report", &bundle]).unwrap_or_else(|error| error.text);
    assert!(error.contains("damaged") || !error.contains("IOPS by second"), "{error}");
}

#[test]
fn what_a_job_includes_is_sought_beside_it_however_the_job_is_named() {
    // From the crate's folder, where tests run: a path with folders that does not begin at the root.
    let job = "../../../examples/jobs/fio/verify.fio";
    let near = lab(&["plan", job]).expect("its include stands beside it");
    let whole = std::fs::canonicalize(job).expect("the example");
    let far = lab(&["plan", &text_of(&whole)]).expect("the same job");
    assert_eq!(near, far.replace(&text_of(&whole), job), "but for where notes say they stand");
}
