//! `migrate`: a Linux guest that writes and verifies moves from host to host while it runs.

use crate::bench::{Bench, DISK, Plan, SILENCE_LIMIT_MS, Settings};
use crate::cluster::wait_for;
use crate::failure::Failure;
use crate::guest::{SAYS, table_checksum};
use crate::machine::{Image, Machine};
use crate::meter::Stall;
use crate::nbd::{self, Command};
use crate::report::{Report, Round};
use crate::stamp::{BLOCK, Stamp, WriteNumber};
use base::units::MIB;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// How long the guest runs at each host.
const STAY: Duration = Duration::from_secs(2);
/// Bytes of a read from outside.
const READ_BYTES: u64 = MIB;

/// What the guest has said of itself, in one line.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Said {
    writes: u64,
    reads: u64,
    bad: u64,
    longest_us: u64,
}

/// Runs it: every host hands the guest to the next, round and round.
///
/// # Errors
/// When it cannot begin.
pub fn run(settings: &Settings) -> Result<Report, Failure> {
    let bench = Bench::start(settings, Plan { area_bytes: 64 * MIB, ..Plan::usual("migrate") })?;
    let folder = PathBuf::from(&bench.report.folder);
    Ok(bench.run(|bench| {
        let campaign = bench.ledger.campaign();
        let image = Image::make(&folder, &bench.settings.kernel, campaign)?;
        let log = image.console_log();
        let hosts = bench.cluster.names().to_vec();
        let mut machine = image.start(0, &bench.cluster.socket(&hosts[0]), DISK, false)?;
        wait_for("the guest writes", || {
            fail_if_told(&log)?;
            Ok(lines(&log, 0).iter().any(|line| parse(line).is_some()).then_some(()))
        })?;
        for round in 0..bench.rounds("migrate", 9) {
            machine = once(bench, &image, machine, round)?;
        }
        let last = hosts[bench.report.rounds.len() % hosts.len()].clone();
        finish(bench, &log, &mut machine, &last)
    }))
}

fn once(bench: &mut Bench, image: &Image, mut machine: Machine, round: usize) -> Result<Machine, Failure> {
    let hosts = bench.cluster.names().to_vec();
    let (from, to) = (&hosts[round % hosts.len()], &hosts[(round + 1) % hosts.len()]);
    let log = image.console_log();
    sleep(STAY);
    let before = fs::metadata(&log).map_or(0, |data| data.len());
    let mut target = image.start(round + 1, &bench.cluster.socket(to), DISK, true)?;
    let moved = machine.migrate(&mut target)?;
    drop(machine);
    let follows = bench.cluster.wait_for_owner(DISK, to).map_err(|late| match fail_if_told(&log) {
        Err(told) => told, // A guest whose kernel died uses its disk no more.
        Ok(()) => late,
    })?;
    let at = fs::metadata(&log).map_or(0, |data| data.len());
    wait_for("the guest goes on writing", || {
        fail_if_told(&log)?;
        Ok((lines(&log, at).iter().filter_map(|line| parse(line)).count() >= 2).then_some(()))
    })?;
    let said: Vec<Said> = lines(&log, before).iter().filter_map(|line| parse(line)).collect();
    let longest_us = said.iter().map(|said| said.longest_us).max().unwrap_or_default();
    let bad = said.last().map_or(0, |said| said.bad);
    let mut row = Round {
        number: round + 1,
        fault: "migrate".to_owned(),
        host: format!("{from} to {to}"),
        held: bench.held(std::slice::from_ref(to))?,
        stall: Stall {
            silent_ms: moved.downtime_ms,
            longest_ms: longest_us as f64 / 1e3,
            ..Stall::default()
        },
        limit_ms: Some(SILENCE_LIMIT_MS),
        note: format!(
            "moved in {:.0} ms; owner followed within {:.0} ms",
            moved.total_ms,
            follows.as_secs_f64() * 1e3
        ),
        ..Round::default()
    };
    row.judge();
    if bad > 0 {
        row.broken.push(format!("the guest found {bad} blocks wrong; {} tells which", log.display()));
    }
    bench.tell(&row);
    bench.report.rounds.push(row);
    Ok(target)
}

/// The guest reads all back and turns off.
fn finish(bench: &mut Bench, log: &Path, machine: &mut Machine, host: &str) -> Result<(), Failure> {
    machine.type_line("finish")?;
    machine.wait_until_off()?;
    conclude(bench, log, host)
}

/// The guest has turned off: the disk is read from outside and compared with what it said.
pub(super) fn conclude(bench: &mut Bench, log: &Path, host: &str) -> Result<(), Failure> {
    fail_if_told(log)?;
    let lines = lines(log, 0);
    let said = lines.iter().rev().find_map(|line| parse(line)).unwrap_or_default();
    let table = lines
        .iter()
        .find_map(|line| line.strip_prefix(SAYS)?.trim().strip_prefix("table ").map(str::to_owned));
    let table =
        table.ok_or_else(|| Failure::Client(format!("the guest did not finish; see {}", log.display())))?;
    (bench.report.reads, bench.report.writes) = (said.reads, said.writes);
    if said.bad > 0 {
        let what = format!("the guest found {} blocks wrong; {} tells which", said.bad, log.display());
        return Err(Failure::Client(what));
    }
    let seen = outside(bench, host)?;
    let found = format!("{:08x}", table_checksum(&seen));
    bench.report.notes.push(format!(
        "the guest verified {} reads itself, and all blocks at the end; from outside the same writes were found",
        said.reads
    ));
    if found != table {
        let what = format!("from outside other writes are found ({found}) than the guest made ({table})");
        return Err(Failure::Client(what));
    }
    // What every host says of the disk is held to this from here on.
    bench.ledger.settle(&seen);
    Ok(())
}

/// Which write stands in each block.
fn outside(bench: &Bench, host: &str) -> Result<Vec<WriteNumber>, Failure> {
    let failed = || Failure::machine(format!("read disk {DISK} at host {host}"));
    let (mut stream, size) = nbd::attach(&bench.cluster.socket(host), DISK).map_err(failed())?;
    let mut seen = Vec::new();
    let mut data = vec![0; READ_BYTES as usize];
    for offset in (0..size).step_by(READ_BYTES as usize) {
        let request = nbd::request(Command::Read, 1, offset, READ_BYTES as u32, &[]);
        stream.write_all(&request).map_err(failed())?;
        let reply = nbd::reply(&mut stream).map_err(failed())?;
        if reply.error != 0 {
            return Err(Failure::Client(format!(
                "a read at {offset} was answered with error {}",
                reply.error
            )));
        }
        stream.read_exact(&mut data).map_err(failed())?;
        for (block, bytes) in (offset / BLOCK as u64..).zip(data.chunks_exact(BLOCK)) {
            let write = Stamp::read(bytes, block, bench.ledger.campaign());
            seen.push(
                write.map_err(|error| Failure::Client(format!("block {block} from outside: {error}")))?,
            );
        }
    }
    Ok(seen)
}

/// The whole lines of the console from some byte on.
pub(super) fn lines(log: &Path, from: u64) -> Vec<String> {
    let bytes = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(bytes.get(from as usize..).unwrap_or_default()).into_owned();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().map(|line| line.trim_end_matches('\r').to_owned()).collect()
}

/// Whether the guest has told of what it does.
pub(super) fn has_written(lines: &[String]) -> bool {
    !writes(lines).is_empty()
}

/// How many writes the guest had done, each time that it told.
pub(super) fn writes(lines: &[String]) -> Vec<u64> {
    lines.iter().filter_map(|line| parse(line)).map(|said| said.writes).collect()
}

/// The longest I/O that the guest told of, in microseconds.
pub(super) fn longest_us(lines: &[String]) -> u64 {
    lines.iter().filter_map(|line| parse(line)).map(|said| said.longest_us).max().unwrap_or_default()
}

/// What a line tells of the guest's counters.
fn parse(line: &str) -> Option<Said> {
    let line = line.strip_prefix(SAYS)?.trim();
    let rest = line.strip_prefix("runs ").or_else(|| line.strip_prefix("done "))?;
    let number = |name: &str| -> Option<u64> {
        rest.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
    };
    Some(Said {
        writes: number("writes")?,
        reads: number("reads")?,
        bad: number("bad")?,
        longest_us: number("longest_us")?,
    })
}

pub(super) fn fail_if_told(log: &Path) -> Result<(), Failure> {
    let is_bad =
        |line: &&String| line.contains("Kernel panic") || line.starts_with(&format!("{SAYS} failed"));
    match lines(log, 0).iter().find(is_bad) {
        Some(line) => Err(Failure::Client(format!(
            "the guest: {line} (emulated guests at times lose their memory when they move: docs/TESTING.md)"
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_guest_says_is_read_from_its_console() {
        let said = parse("guest: runs writes=7 reads=3 bad=0 longest_us=1500");
        assert_eq!(said, Some(Said { writes: 7, reads: 3, bad: 0, longest_us: 1500 }));
        assert_eq!(parse("guest: begins with 16384 blocks"), None);
        assert_eq!(parse("[    1.0] virtio_blk virtio1: [vda] 131072"), None);
    }
}
