//! `libvirt`: a Linux guest that libvirt runs has the disk as `drystone attach --format libvirt-arguments` prints it; the
//! server of its host is killed while it writes, and started again. The guest goes on without an error.

use super::migrate::{conclude, fail_if_told, has_written, lines, longest_us, writes};
use crate::bench::{Bench, DISK, Plan, Settings};
use crate::cluster::wait_for;
use crate::failure::Failure;
use crate::libvirt::Libvirt;
use crate::machine::Image;
use crate::meter::Stall;
use crate::report::{Report, Round};
use base::units::MIB;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

/// How long the guest writes before its server is killed.
const BEFORE: Duration = Duration::from_secs(2);
/// How long the server is gone.
const GONE: Duration = Duration::from_secs(3);
/// The server is gone, starts, and QEMU tries again at 1, 2, 4 and 8 s.
const LIMIT_MS: f64 = 20_000.0;
/// How the disk is printed for a guest that waits.
const FORMAT: &str = "libvirt-arguments";

/// Runs it.
///
/// # Errors
/// When it cannot begin.
pub fn run(settings: &Settings) -> Result<Report, Failure> {
    let plan = Plan { area_bytes: 64 * MIB, is_shared: false, ..Plan::usual("libvirt") };
    let bench = Bench::start(settings, plan)?;
    let folder = PathBuf::from(&bench.report.folder);
    Ok(bench.run(|bench| {
        let image = Image::make(&folder, &bench.settings.kernel, bench.ledger.campaign())?;
        let log = image.console_log();
        let host = bench.cluster.names()[0].clone();
        let printed = printed(bench, &host)?;
        let libvirt = Libvirt::start(&folder)?;
        libvirt.create(&image, &printed)?;
        wait_for("the guest writes", || {
            fail_if_told(&log)?;
            Ok(has_written(&lines(&log, 0)).then_some(()))
        })?;
        for _ in 0..bench.rounds("libvirt", 3) {
            once(bench, &log, &host)?;
        }
        libvirt.type_line("finish")?;
        libvirt.wait_until_off()?;
        conclude(bench, &log, &host)
    }))
}

/// What users paste.
fn printed(bench: &Bench, host: &str) -> Result<String, Failure> {
    let socket = bench.cluster.socket(host).with_file_name("api.sock");
    let mut attach = Command::new(&bench.settings.program);
    attach.env("DRYSTONE_API", format!("unix:{}", socket.display()));
    let done = attach.args(["attach", DISK, "--format", FORMAT]).output();
    let done = done.map_err(Failure::machine("run drystone attach"))?;
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
        false => Err(Failure::Refused(String::from_utf8_lossy(&done.stderr).into_owned())),
    }
}

fn once(bench: &mut Bench, log: &Path, host: &str) -> Result<(), Failure> {
    sleep(BEFORE);
    let hosts = [host.to_owned()];
    let held = bench.held(&hosts)?;
    let before = fs::metadata(log).map_or(0, |data| data.len());
    bench.cluster.kill(&hosts)?;
    sleep(GONE);
    let at = fs::metadata(log).map_or(0, |data| data.len());
    bench.cluster.start_host(host)?;
    wait_for("the guest goes on writing", || {
        fail_if_told(log)?;
        let writes = writes(&lines(log, at));
        Ok((writes.last() > writes.first()).then_some(()))
    })?;
    // The I/O that stood still is told once it has ended.
    sleep(Duration::from_secs(1));
    let mut row = Round {
        number: bench.report.rounds.len() + 1,
        fault: "the server of a guest of libvirt is killed".to_owned(),
        host: host.to_owned(),
        held,
        stall: Stall { longest_ms: longest_us(&lines(log, before)) as f64 / 1e3, ..Stall::default() },
        limit_ms: Some(LIMIT_MS),
        note: "the guest had no error".to_owned(),
        ..Round::default()
    };
    row.judge();
    bench.tell(&row);
    bench.report.rounds.push(row);
    bench.cluster.wait_until_whole(DISK).map(drop)
}
