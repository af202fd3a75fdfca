//! What is not done: targets in use, jobs that do not fit, results that are none.

use crate::fixtures::*;
use std::os::fd::AsRawFd;

const WRITES: &str = "diskspd -b4K -d1 -W0 -o1 -t1 -w100 -Sh x\n";

fn refused(words: &[&str], expected: &str) {
    let error = lab(words).expect_err(expected);
    assert!(
        error.text.contains(expected) || error.hint.as_deref().unwrap_or("").contains(expected),
        "{error:?}"
    );
}

#[test]
fn a_target_in_use_is_written_only_if_its_name_is_given() {
    let folder = Folder::new();
    let target = text_of(&folder.file("target.img", 1 << 20));
    let job = folder.job("w.txt", WRITES);
    let file = std::fs::File::open(&target).expect("the target");
    // SAFETY: the call takes numbers only; the lock ends with the file.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) };
    let before = std::fs::read(&target).expect("the target");
    refused(&["run", &job, "-t", &target], "another program holds a lock on it");
    refused(&["run", &job, "-t", &target], &format!("--destroy-data {target}"));
    refused(&["run", &job, "-t", &target, "--destroy-data", "another"], "in use");
    assert_eq!(std::fs::read(&target).expect("the target"), before, "nothing was changed");
    lab(&["run", &job, "-t", &target, "--destroy-data", &target]).expect("its name was given");
    let read = folder.job("r.txt", "diskspd -b4K -d1 -W0 -o1 -t1 -Sh x\n");
    lab(&["run", &read, "-t", &target]).expect("reading harms nobody");
}

#[test]
fn a_job_that_does_not_fit_says_what_is_missing() {
    let folder = Folder::new();
    let target = text_of(&folder.file("target.img", 10 << 20));
    let job =
        folder.job("big.fio", "[j]\nrw=randwrite\nbs=4k\nsize=3t\nruntime=1\ntime_based\nioengine=psync\n");
    refused(&["run", &job, "-t", &target], "reduce the job");
    refused(&["run", &job, "-t", "null:10G"], "3.0 TiB are missing");
    let offset = folder.job("o.txt", "diskspd -b4K -d1 -B20M -w100 x\n");
    refused(&["run", &offset, "-t", &target], "the job uses");
}

#[test]
fn jobs_and_targets_that_are_none_are_refused_with_the_way_out() {
    let folder = Folder::new();
    let job = folder.job("w.txt", WRITES);
    refused(&["run", "/nowhere/job.fio", "-t", "null:1M"], "read /nowhere/job.fio");
    refused(&["run", &job, "-t", &text_of(&folder.path("new.img"))], "add --size");
    refused(&["run", &job, "-t", &text_of(folder.0.path())], "a folder");
    refused(
        &["run", &job, "-t", "nbd+unix:///x?socket=/nowhere.sock"],
        "check the address and that the server runs",
    );
    refused(&["run", &job, "-t", "nbd://h:x/"], "not the address of an NBD export");
    refused(&["run", &folder.job("t.fio", "[j]\nrw=read\nbs=8\nsize=1m\n"), "-t", "null:1M"], "8");
    refused(&["run", &job, "-t", "null:1M", "-t", "null:2M"], "2 targets are given");
}

#[test]
fn results_that_cannot_be_read_say_so() {
    let folder = Folder::new();
    let check = |name: &str, text: &str, expected: &str| {
        let file = folder.job(name, text);
        refused(&["audit", &file], expected);
    };
    check("cut.json", "{\"fio version\":\"fio-3.33\",\"jobs\":[{\"jobname\":\"a\",\"read\":{", "");
    check("ours.json", "{\"version\":1,\"program\":\"x\"", "cut short");
    check("newer.json", &newer(), "version 99");
    check("noise.txt", "\u{1}\u{2}nothing", "");
    refused(&["audit", "/nowhere/x.json"], "read /nowhere/x.json");
}

fn newer() -> String {
    "{\"version\":99,\"program\":\"x\",\"started_unix_ms\":0,\"plan\":{\"name\":\"\",\"targets\":[],\"stages\":[]},\"targets\":[],\
     \"machines\":[],\"stages\":[]}"
        .to_owned()
}

#[test]
fn experiments_that_make_no_sense_run_nothing() {
    let folder = Folder::new();
    let dir = text_of(&folder.path("disks"));
    let file = folder.job(
        "e.toml",
        "name = 'e'\n[[vm]]\nname = 'vm'\nsize = '1MiB'\n[[workload]]\nname = 'w'\n[[expect]]\nfigure = 'iops'\nat_least = 10\nat_most = 5\n",
    );
    refused(&["experiment", &file, "--dir", &dir], "contradict each other");
    assert!(!folder.path("disks").exists(), "nothing was made");
    refused(&["experiment", &folder.job("t.toml", "name = 'e'\ncolour = 'red'\n"), "--dir", &dir], "colour");
}
