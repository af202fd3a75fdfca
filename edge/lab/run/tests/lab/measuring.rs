//! What is measured on targets of every kind, and that it can be believed.

use crate::fixtures::*;
use measured::FindingKind;

const DISKSPD: &str = "diskspd -b4K -d1 -W0 -o8 -t2 -r -w30 -Sh -L target.dat\n";
const VDBENCH: &str = "sd=sd1,lun=/dev/x,openflags=o_direct,threads=8\nwd=wd1,sd=sd1,xfersize=8k,rdpct=70,seekpct=100\n\
                       rd=run1,wd=wd1,iorate=max,elapsed=2,interval=1\n";
const FIO: &str =
    "[j]\nioengine=io_uring\ndirect=1\nrw=randread\nbs=4k\niodepth=8\nsize=8m\nruntime=1\ntime_based\n";
const ICF: &str = include_str!("simple.icf");

#[test]
fn a_job_of_every_dialect_runs_on_a_file_and_on_an_nbd_export() {
    let folder = Folder::new();
    let file = text_of(&folder.file("target.img", 8 << 20));
    let server = nbdkit(&folder, &["memory", "8M"]);
    for (name, text) in [("j.fio", FIO), ("j.txt", DISKSPD), ("j.vdb", VDBENCH), ("j.icf", ICF)] {
        let job = folder.job(name, text);
        for target in [&file, &server.address] {
            let answer = lab_json(&["run", &job, "--target", target]);
            let stage = &answer["stages"][0];
            let reads = stage["groups"][0]["read"]["ios"].as_u64().expect("a count");
            assert!(reads > 100 && stage["ended"] == "done", "{name} on {target}: {stage}");
        }
    }
}

#[test]
fn tcp_connections_and_a_read_only_export_work_as_they_should() {
    let folder = Folder::new();
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a port")
        .port();
    let mut child = std::process::Command::new("nbdkit")
        .args(["-f", "-r", "-i", "127.0.0.1", "-p", &port.to_string(), "pattern", "8M"])
        .spawn()
        .expect("nbdkit is installed");
    wait_for("nbdkit's port", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    let address = format!("nbd://127.0.0.1:{port}/");
    let read = lab(&["run", &folder.job("r.fio", FIO), "--target", &address]);
    let write = lab(&["run", &folder.job("w.txt", DISKSPD), "--target", &address]);
    child.kill().and_then(|()| child.wait()).expect("it ends");
    assert!(read.is_ok(), "{read:?}");
    assert!(write.expect_err("it takes no writes").text.contains("is read-only"));
}

/// A server that is stopped for 2 s of the 5 that are measured.
fn with_a_stall(rate: &str) -> measured::StageRun {
    let folder = Folder::new();
    let server = nbdkit(&folder, &["memory", "8M"]);
    let job = folder.job("j.fio", &format!("{FIO}iodepth=4\nruntime=5\n{rate}"));
    let run = std::thread::scope(|scope| {
        scope.spawn(|| {
            // The stall begins when the run is well under way: its time is the test's subject.
            std::thread::sleep(std::time::Duration::from_millis(1500));
            signal(&server.child, libc::SIGSTOP);
            std::thread::sleep(std::time::Duration::from_secs(2));
            signal(&server.child, libc::SIGCONT);
        });
        kept_run(&folder, &["run", &job, "--target", &server.address]).1
    });
    run.stages.into_iter().next().expect("a stage")
}

#[test]
fn a_stall_shows_in_the_percentiles_of_an_open_loop() {
    let stage = with_a_stall("rate_iops=500\nrate_process=poisson\nio_submit_mode=offload\n");
    let total = stage.total();
    let p999 = total.latency.percentile(0.999).expect("latencies");
    let p75 = total.latency.percentile(0.75).expect("latencies");
    assert!(p999 > 1_800_000_000, "the p99.9 is {p999} ns");
    assert!(p75 > 100_000_000, "a third of what was due came in the stall, and waited: {p75} ns");
    let service =
        total.service.expect("an open loop measures service too").percentile(0.9).expect("latencies");
    assert!(service < 100_000_000, "once begun, most were quick: {service} ns");
    let kinds: Vec<FindingKind> = stage.findings().into_iter().map(|finding| finding.kind).collect();
    assert!(kinds.contains(&FindingKind::Stall) && !kinds.contains(&FindingKind::HiddenStall), "{kinds:?}");
}

#[test]
fn a_stall_that_a_closed_loop_hides_is_told() {
    let stage = with_a_stall("");
    let p999 = stage.total().latency.percentile(0.999).expect("latencies");
    assert!(p999 < 1_000_000_000, "four I/Os among many thousands do not move it: {p999} ns");
    let hidden = stage.findings().into_iter().find(|finding| finding.kind == FindingKind::HiddenStall);
    let text = hidden.expect("the stall is told").text;
    assert!(text.contains("nothing completed for 2") && text.contains("closed loop hides this"), "{text}");
}

/// A server that serves 4 MiB/s, which is 1,024 I/Os of 4 KiB a second.
const SLOW_IOPS: f64 = 1024.0;

fn on_a_slow_server(job: &str) -> measured::StageRun {
    let folder = Folder::new();
    let server = nbdkit(&folder, &["--filter=rate", "memory", "8M", "rate=32M", "burstiness=0.1"]);
    let job = folder.job("j.fio", &format!("{FIO}{job}"));
    let run = kept_run(&folder, &["run", &job, "--target", &server.address]).1;
    run.stages.into_iter().next().expect("a stage")
}

/// Twice as much was offered as a target takes: what was due counted as done, with all that ended up to 10 s later.
#[test]
fn throughput_is_what_completed_while_it_counted_below_at_and_beyond_saturation() {
    for (offered, expected) in [(500.0, 500.0), (1000.0, 1000.0), (2000.0, SLOW_IOPS)] {
        let rate =
            format!("iodepth=32\nruntime=6\nramp_time=2\nrate_iops={offered}\nio_submit_mode=offload\n");
        let stage = on_a_slow_server(&rate);
        let group = &stage.groups[0];
        assert!((group.iops() / expected - 1.0).abs() < 0.05, "{offered} offered: {} IOPS", group.iops());
        let total = group.total();
        let due = total.latency.count() as f64 / group.seconds;
        assert!(
            (due / offered - 1.0).abs() < 0.02,
            "every I/O that was due is in the latencies: {due} of {offered}"
        );
        let by_second: u64 = group.intervals.iter().map(measured::Interval::completed).sum();
        assert_eq!(by_second, total.ios);
        if offered > SLOW_IOPS {
            // Due in the last of 8 s: some 7,800 others stand before it.
            let longest = total.latency.max_ns().expect("latencies") as f64 / 1e9;
            assert!((6.0..9.0).contains(&longest), "{longest} s");
        }
    }
}

#[test]
fn a_closed_loop_gains_nothing_by_what_it_has_under_way_at_its_end() {
    let stage = on_a_slow_server("iodepth=128\nruntime=4\n");
    let group = &stage.groups[0];
    assert!((group.iops() / SLOW_IOPS - 1.0).abs() < 0.05, "{} IOPS", group.iops());
    let mean = group.outstanding_mean.expect("it is measured");
    assert!((115.0..=128.0).contains(&mean), "{mean} outstanding");
}

/// A rate of which so much waits at the end that the rest is given up.
#[test]
fn what_was_due_and_never_sent_is_told_and_stands_in_the_latencies() {
    let stage = on_a_slow_server("iodepth=32\nruntime=4\nrate_iops=8000\nio_submit_mode=offload\n");
    let group = &stage.groups[0];
    let total = group.total();
    assert!(
        (total.latency.count() as f64 / 32_000.0 - 1.0).abs() < 0.02,
        "{} are due",
        total.latency.count()
    );
    let sent = total.latency.count() - group.unsent;
    assert!((sent as f64 / (14.0 * SLOW_IOPS) - 1.0).abs() < 0.1, "{sent} sent in 4 s and the 10 s after it");
    assert!(total.latency.percentile(0.99).expect("latencies") > 10_000_000_000);
    let text =
        stage.findings().into_iter().find(|one| one.kind == FindingKind::Backlog).expect("it is told").text;
    assert!(text.contains("IOPS were due") && text.contains("Never sent"), "{text}");
}

#[test]
fn every_io_is_counted_once_and_the_seconds_add_up() {
    let folder = Folder::new();
    let job = folder.job("j.fio", &format!("{FIO}numjobs=3\nruntime=2\n"));
    let run = kept_run(&folder, &["run", &job, "--target", "null:8M"]).1;
    let group = &run.stages[0].groups[0];
    let by_second: u64 = group.intervals.iter().map(|interval| interval.latency[0].count()).sum();
    assert_eq!(group.operations[0].latency.count(), by_second);
    let ios = group.operations[0].ios;
    assert_eq!(group.intervals.iter().map(measured::Interval::completed).sum::<u64>(), ios);
    assert_eq!(group.operations[0].bytes, ios * 4096);
    assert!(
        (by_second - 24..=by_second).contains(&ios),
        "those under way at the end are {by_second} less {ios}"
    );
    let seen: u64 = run.stages[0]
        .disks
        .iter()
        .flat_map(|disk| &disk.samples)
        .map(|sample| sample.statistics.completed(iostats::Operations::Both))
        .sum();
    assert!(seen >= by_second, "{seen} of {by_second}");
    assert_eq!(group.outstanding, 24);
}

#[test]
fn an_experiment_sweeps_concludes_and_is_judged() {
    let folder = Folder::new();
    let file = folder.job(
        "e.toml",
        "name = 'sweep'\nseconds = 0.5\n[[vm]]\nname = 'vm'\nsize = '8MiB'\n[[workload]]\nname = 'read'\n[[sweep]]\n\
         parameter = 'outstanding'\nvalues = [1, 2, 4, 8]\n[[expect]]\nfigure = 'iops'\nat_least = 1\n[[expect]]\nfigure = 'errors'\n\
         equals = 0\n",
    );
    let dir = text_of(&folder.path("disks"));
    let answer = lab_json(&["experiment", &file, "--dir", &dir]);
    assert_eq!(answer["cells"].as_array().map(Vec::len), Some(4));
    let text = answer["conclusions"].to_string();
    // Whether throughput still grows with the last step is the machine's affair.
    let is_told = text.contains("sweet spot N = ") || text.contains("no knee up to N = 8");
    assert!(is_told && text.contains("knee (a doubling"), "{text}");
    let impossible = folder.job(
        "i.toml",
        &std::fs::read_to_string(&file).expect("text").replace("at_least = 1", "at_least = 1e12"),
    );
    let error = lab(&["experiment", &impossible, "--dir", &dir]).expect_err("nothing is so fast");
    assert!(error.text.contains("expectations do not hold"), "{error}");
}

#[test]
fn an_export_is_filled_once_and_not_again_while_its_map_has_no_hole() {
    let folder = Folder::new();
    let server = nbdkit(&folder, &["memory", "8M"]);
    let text = "name = \"e\"\nseconds = 1\n[prepare]\nfill = \"random\"\n[[vm]]\nname = \"vm\"\n\
                [[workload]]\nname = \"w\"\nsize = \"4k\"\n";
    let file = folder.job("e.toml", text);
    let notes = || lab_json(&["experiment", &file, "--target", &server.address])["notes"].to_string();
    assert!(!notes().contains("not filled"), "it was empty");
    assert!(notes().contains("not filled"), "it is full");
}

/// Two machines on one target were one disk without a name of its own: nobody could tell who slowed whom.
#[test]
fn two_machines_on_one_target_keep_their_names() {
    let folder = Folder::new();
    let file = folder.job(
        "fight.toml",
        "name = 'fight'\n[[vm]]\nname = 'vm'\ncount = 2\nsize = '8MiB'\n[[workload]]\nname = 'w'\ndepth = 2\n\
         [[schedule]]\nvm = 'vm1'\nworkload = 'w'\nstop = 2\n[[schedule]]\nvm = 'vm2'\nworkload = 'w'\nstart = 1\nstop = 3\n",
    );
    let out = text_of(&folder.path("run.json"));
    lab(&["experiment", &file, "-t", "spindle:disk/part/8MiB", "--out", &out]).expect("it runs");
    let kept = std::fs::read_to_string(&out).expect("it is kept");
    let kept: measured::ExperimentRun = serde_json::from_str(&kept).expect("an experiment");
    let disks = kept.cells[0].runs[0].stages[0].disks.iter().map(|disk| disk.name.as_str());
    assert_eq!(disks.collect::<Vec<_>>(), ["vm1", "vm2"]);
}

/// Such a run was told to have failed, and its command with it.
#[test]
fn a_run_that_goes_on_after_errors_ends_as_planned_and_tells_the_first() {
    let folder = Folder::new();
    let server = nbdkit(&folder, &["--filter=error", "memory", "8M", "error-pread-rate=10%"]);
    let job =
        folder.job("j.fio", "[r]\nrw=randread\nbs=4k\niodepth=4\nioengine=io_uring\nruntime=1\ntime_based\n");
    let (done, run) = kept_run(&folder, &["run", &job, "--target", &server.address, "--continue-on-error"]);
    done.expect("errors are counted");
    let stage = &run.stages[0];
    assert_eq!(stage.ended, measured::Ended::Done);
    let total = stage.total();
    let share = total.errors as f64 / (total.errors + total.ios) as f64;
    assert!((0.05..0.2).contains(&share), "{share} of the I/Os failed");
    let told = stage
        .findings()
        .into_iter()
        .any(|finding| finding.serious && finding.text.contains("Input/output error"));
    assert!(told, "{:?}", stage.findings());
    let (done, run) = kept_run(&folder, &["run", &job, "--target", &server.address]);
    assert!(done.expect_err("the first error ends it").text.contains("Input/output error"));
    assert!(matches!(run.stages[0].ended, measured::Ended::Failed(_)));
}
