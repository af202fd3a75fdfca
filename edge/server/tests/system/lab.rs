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
fn jobs_of_all_dialects_run_on_a_virtual_disk_and_lens_sees_them_while_they_do() {
    let site = Site::new(&Shape::Two { size_mib: 512 });
    let _server = site.start();
    site.ask(&["disk", "create", "web", "64MiB"]);
    let vdbench = "sd=sd1,lun=/dev/x,threads=8\nwd=wd1,sd=sd1,xfersize=8k,rdpct=70,seekpct=100\n\
                   rd=run1,wd=wd1,iorate=max,elapsed=2,interval=1\n";
    let iometer = include_str!("../../../lab/run/tests/lab/simple.icf");
    let diskspd = "diskspd -b4K -d1 -W0 -o8 -t2 -r -w30 -Sh -L target.dat\n";
    for (name, job) in [("j.txt", diskspd), ("j.vdb", vdbench), ("j.icf", iometer)] {
        let path = site.path(name);
        std::fs::write(&path, job).expect("a job");
        let answer = site.json(&["lab", "run", text(&path), "--target", "disk:web"]);
        let stage = &answer["stages"][0];
        assert!(stage["ended"] == "done" && stage["iops"].as_f64() > Some(50.0), "{name}: {stage}");
    }
    let job = site.path("job.fio");
    std::fs::write(&job, FIO).expect("a job");
    let out = site.path("run.json");
    let seen = std::thread::scope(|scope| {
        let watching = scope.spawn(|| site.json(&["lens", "disk:web", "--seconds", "4", "--window", "0.5"]));
        site.json(&["lab", "run", text(&job), "--target", "disk:web", "--out", text(&out)]);
        watching.join().expect("it watches")
    });
    let windows = seen["capture"]["disks"][0]["windows"].as_array().expect("a series");
    let ios: u64 = windows
        .iter()
        .flat_map(|of| [&of["totals"][0]["ios"], &of["totals"][1]["ios"]])
        .filter_map(|n| n.as_u64())
        .sum();
    assert!(windows.len() >= 7 && ios > 100, "{ios} in {} windows", windows.len());
    // What the disk is, is kept with what was measured on it.
    let kept = std::fs::read_to_string(&out).expect("a run");
    assert!(kept.contains("policy single") && kept.contains("component"), "{kept:.300}");
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
