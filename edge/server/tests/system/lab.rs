//! The lab as a part of the program: a virtual disk as a target, by its name.

use super::devices::LoopDevice;
use super::host::{PROGRAM, Shape, Site};
use super::tools::{output, root_command, said, sparse_file, text, wait_for};

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

/// A device with a partition table was overwritten unasked, and could be mounted while a job wrote to it.
#[test]
fn a_block_device_is_held_while_it_is_written_and_data_on_it_is_asked_for() {
    let site = Site::bare();
    let file = site.path("device.img");
    sparse_file(&file, 64 << 20);
    let device = LoopDevice::attach(&file, &[]);
    let job = site.path("job.fio");
    std::fs::write(
        &job,
        "[j]\nioengine=psync\nrw=randwrite\nbs=4k\nsize=32m\nruntime=4\ntime_based\nrate_iops=500\n",
    )
    .expect("a job");
    let run = || {
        let mut lab = root_command(PROGRAM);
        lab.args(["lab", "run", text(&job), "-t", text(&device.path), "--out", text(&site.path("run.json"))]);
        lab
    };
    let mkfs = |options: &[&str]| output(root_command("mkfs.ext4").args(options).arg(&device.path));
    std::thread::scope(|scope| {
        let running = scope.spawn(|| output(&mut run()));
        wait_for("the job holds the device", 10, || {
            // There is nothing to wipe; it asks for the device for itself alone, as `mkfs` and `mount` do.
            let refused = output(root_command("wipefs").arg("--all").arg(&device.path));
            said(&refused).contains("busy").then_some(())
        });
        let done = running.join().expect("no panic");
        assert!(done.status.success(), "{}", said(&done));
    });
    let made = mkfs(&["-q", "-F", "-L", "accounts"]);
    assert!(made.status.success(), "nobody holds it any more: {}", said(&made));
    let refused = output(&mut run());
    assert_eq!(refused.status.code(), Some(3), "{}", said(&refused));
    let words = said(&refused);
    assert!(words.contains("holds ext4 data \"accounts\"") && words.contains("--destroy-data"), "{words}");
    let consented = output(run().args(["--destroy-data", text(&device.path)]));
    assert!(consented.status.success(), "{}", said(&consented));
}
