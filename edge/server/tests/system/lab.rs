//! The lab as a part of the program: a virtual disk as a target, by its name.

use super::devices::LoopDevice;
use super::host::{PROGRAM, Shape, Site};
use super::tools::{command, output, root_command, said, sparse_file, stored_bytes, text, wait_for};

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
        "[j]\nioengine=psync\ndirect=1\nrw=randwrite\nbs=4k\nsize=32m\nruntime=4\ntime_based\nrate_iops=500\n",
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
        // Not by asking for the device: that would be a use of it, which the job refuses.
        wait_for("the job writes", 10, || (stored_bytes(&file) > 0).then_some(()));
        // There is nothing to wipe; it asks for the device for itself alone, as `mkfs` and `mount` do.
        let refused = said(&output(root_command("wipefs").arg("--all").arg(&device.path)));
        assert!(refused.contains("busy"), "{refused}");
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

/// Whoever read a report saw the load, and nothing of what the hosts did meanwhile.
#[test]
fn a_run_on_a_virtual_disk_shows_what_its_host_did_and_an_experiment_makes_its_own_disks() {
    let site = Site::new(&Shape::Two { size_mib: 512 });
    let _server = site.start();
    site.ask(&["disk", "create", "web", "64MiB"]);
    let job = site.path("job.fio");
    std::fs::write(&job, FIO.replace("runtime=2", "runtime=4")).expect("a job");
    let out = site.path("run.json");
    site.ask(&["lab", "run", text(&job), "--target", "disk:web", "--out", text(&out)]);
    let run: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&out).expect("it is kept")).expect("JSON");
    let series = run["system"]["series"].as_array().expect("the host was watched");
    let figures: Vec<&str> = series.iter().filter_map(|of| of["figure"].as_str()).collect();
    for figure in ["Processor", "Device requests", "Log in use"] {
        assert!(figures.contains(&figure), "{figure} is not among {figures:?}");
    }
    let processor = series.iter().find(|of| of["figure"] == "Processor").expect("it is there");
    let points = processor["points"].as_array().expect("points");
    assert!(
        points.iter().any(|point| point[1].as_f64() > Some(0.0)),
        "a host that works takes time: {points:?}"
    );
    let page = site.path("report.html");
    site.ask(&["lab", "report", text(&out), "--html", text(&page)]);
    let page = std::fs::read_to_string(page).expect("a report");
    assert!(page.contains("System under test: processor"));

    let file = site.path("e.toml");
    let experiment = "name = 'Own disks'\nseconds = 1\n[[vm]]\nname = 'vm'\ncount = 2\nsize = '32MiB'\n\
                      [[workload]]\nname = 'w'\ndepth = 4\n";
    std::fs::write(&file, experiment).expect("an experiment");
    let words = ["lab", "experiment", text(&file), "--create-disks", "single", "--out", text(&out)];
    site.ask(&words);
    let kept: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&out).expect("it is kept")).expect("JSON");
    assert_eq!(
        kept["cells"][0]["runs"][0]["targets"][1]["about"][0].as_str().map(|of| &of[..13]),
        Some("policy single")
    );
    let disks = site.json(&["disk", "list"]);
    assert_eq!(disks.as_array().map(Vec::len), Some(1), "its disks are gone: {disks}");
    site.ask(&["disk", "create", "lab-own-disks-vm1", "1MiB"]);
    let refused = site.cli(&words);
    assert!(!refused.status.success() && said(&refused).contains("lab-own-disks-vm1"), "{}", said(&refused));
}

/// Results stood in files alone; whoever watches with Prometheus saw nothing of a run, and a run nothing of others' metrics.
#[test]
fn a_run_is_scraped_while_it_goes_on_and_scrapes_other_exporters() {
    let site = Site::bare();
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a port")
        .port();
    let address = format!("127.0.0.1:{port}");
    let url = format!("http://{address}/metrics");
    let job = |seconds: u32| {
        let path = site.path(&format!("{seconds}.fio"));
        let text = format!(
            "[r]\nrw=randread\nbs=4k\nioengine=psync\nruntime={seconds}\ntime_based\nrate_iops=500\n"
        );
        std::fs::write(&path, text).expect("a job");
        path
    };
    let (long, short) = (job(8), job(3));
    let lab = |words: &[&str]| output(command(PROGRAM).args(["lab", "run"]).args(words));
    std::thread::scope(|scope| {
        let (address, out) = (&address, site.path("long.json"));
        let long = &long;
        let running = scope
            .spawn(move || lab(&[text(long), "-t", "null:8M", "--metrics", address, "--out", text(&out)]));
        let counted = |body: &str| {
            let line = body.lines().find(|line| line.starts_with("drystone_lab_ios_total{"))?;
            line.rsplit(' ').next()?.parse::<u64>().ok().filter(|ios| *ios > 100)
        };
        wait_for("the run tells how many I/Os it did", 6, || {
            counted(&said(&output(command("curl").args(["--silent", &url]))))
        });
        let out = site.path("short.json");
        let watched = format!("{url}#drystone_lab_ios_total");
        let done = lab(&[text(&short), "-t", "null:8M", "--watch", &watched, "--out", text(&out)]);
        assert!(done.status.success(), "{}", said(&done));
        let kept = std::fs::read_to_string(out).expect("it is kept");
        let kept: serde_json::Value = serde_json::from_str(&kept).expect("JSON");
        let points = kept["system"]["series"][0]["points"].as_array().expect("the other run was watched");
        let rates: Vec<f64> = points.iter().filter_map(|point| point[1].as_f64()).collect();
        assert!(rates.iter().any(|rate| (300.0..=900.0).contains(rate)), "about 500 a second: {rates:?}");
        let done = running.join().expect("no panic");
        assert!(done.status.success(), "{}", said(&done));
    });
    let refused = lab(&[text(&short), "-t", "null:8M", "--watch", "http://127.0.0.1:1/metrics"]);
    assert!(said(&refused).contains("watch http://127.0.0.1:1/metrics"), "{}", said(&refused));
}
