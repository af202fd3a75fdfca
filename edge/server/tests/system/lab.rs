//! The lab as a part of the program: a virtual disk as a target, by its name.

use super::host::{Shape, Site};
use super::tools::text;

const FIO: &str =
    "[j]\nioengine=io_uring\ndirect=1\nrw=randrw\nbs=4k\niodepth=8\nsize=32m\nruntime=2\ntime_based\n";

#[test]
fn a_job_runs_on_a_virtual_disk_verified_and_the_disk_saw_the_same() {
    let site = Site::new(&Shape::Two { size_mib: 512 });
    let _server = site.start();
    site.ask(&["disk", "create", "web", "64MiB"]);
    let job = site.path("job.fio");
    std::fs::write(&job, FIO).expect("a job");
    let out = site.path("run.json");
    let words = ["lab", "run", text(&job), "--target", "disk:web", "--verify", "--out", text(&out)];
    let answer = site.json(&words);
    let group = &answer["stages"][0]["groups"][0];
    let (reads, writes) = (group["read"]["ios"].as_u64(), group["write"]["ios"].as_u64());
    assert!(reads.is_some_and(|ios| ios > 50) && writes.is_some_and(|ios| ios > 50), "{group}");
    assert_eq!(answer["stages"][0]["ended"], "done");
    let audit = site.json(&["lab", "audit", text(&out)]);
    assert_eq!(audit["rows"], 1, "{audit}");
}

#[test]
fn a_disk_that_is_not_there_and_one_that_is_in_use_are_refused() {
    let site = Site::new(&Shape::Two { size_mib: 512 });
    let _server = site.start();
    site.ask(&["disk", "create", "web", "64MiB"]);
    let job = site.path("job.fio");
    std::fs::write(&job, FIO).expect("a job");
    let refused = |target: &str, code: i32, words: &str| {
        let output = site.cli(&["lab", "run", text(&job), "--target", target]);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(code) && errors.contains(words), "{errors}");
    };
    refused("disk:other", 4, "other");
    let client = site.attach("web");
    refused("disk:web", 3, "--destroy-data disk:web");
    drop(client);
}
