//! What every scenario stands on: a cluster with one disk, clients, rounds of faults, and reading everything back.

use crate::api::Disk;
use crate::cluster::Cluster;
use crate::failure::Failure;
use crate::flushes::Flushes;
use crate::ledger::Ledger;
use crate::load::{Done, Load, Pattern, Refused, Shape};
use crate::meter::{Stall, summary};
use crate::report::{Report, Round, costs};
use crate::stamp::BLOCK;
use base::Random;
use base::units::MIB;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The disk of every trial.
pub const DISK: &str = "trial";
/// How long clients run before a fault.
pub const WARM_UP: Duration = Duration::from_millis(700);
/// A process is killed: others go on within this (docs/design/0006, "times to meet"; 0015).
pub const KILL_LIMIT_MS: f64 = 500.0;
/// A component's host falls silent: the same.
pub const SILENCE_LIMIT_MS: f64 = 2000.0;
/// An owner falls silent: its disk is served elsewhere within about three seconds of suspicion, which takes one.
pub const OWNER_LIMIT_MS: f64 = 4000.0;

/// What the command line sets for all scenarios.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The program `drystone`.
    pub program: PathBuf,
    /// The next release of it, for `upgrade`; the same if nothing was said.
    pub next: PathBuf,
    /// Where clusters are made, each in a folder of its own.
    pub folder: PathBuf,
    /// Seed of all choices.
    pub seed: u64,
    /// I/Os under way of a client.
    pub depth: usize,
    /// Rounds instead of a scenario's own number.
    pub rounds: Option<usize>,
    /// How long what a scenario is about lasts, where that can be said.
    pub seconds: Option<u64>,
    /// How long `mixed` takes.
    pub minutes: Option<u64>,
    /// Only the kinds of rounds whose name contains this.
    pub only: String,
    /// Below which folder the kernel of guests is.
    pub kernel: PathBuf,
    /// Whether files stay when all went well.
    pub keeps: bool,
    /// Whether hosts are on machines of their own in all scenarios.
    pub is_apart: bool,
}

/// What a cluster for a scenario is like.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Its name.
    pub scenario: &'static str,
    /// Hosts.
    pub hosts: usize,
    /// The disk's policy.
    pub policy: &'static str,
    /// Bytes that are written and read.
    pub area_bytes: u64,
    /// What hosts run on.
    pub ground: Ground,
    /// Whether clients of several hosts may have the disk at once, as those of most scenarios do.
    pub is_shared: bool,
}

/// What hosts run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ground {
    /// What the command line says.
    Any,
    /// Each on a machine of its own.
    Apart,
    /// The same, with virtual devices.
    Virtual,
    /// The same, with two capacity devices for each host, and one to replace one of them.
    Pair,
    /// The same, with a clock of its own for each host.
    Clocks,
    /// The same, with small devices, and a small file system of its own for each host's data directory.
    Small,
}

impl Plan {
    /// Three hosts, two copies, 128 MiB.
    pub fn usual(scenario: &'static str) -> Plan {
        Plan {
            scenario,
            hosts: 3,
            policy: "default,stripes=1",
            area_bytes: 128 * MIB,
            ground: Ground::Any,
            is_shared: true,
        }
    }
}

/// A cluster with a disk, and what was seen of it.
pub struct Bench {
    /// The hosts.
    pub cluster: Cluster,
    /// The disk as it was made.
    pub disk: Disk,
    /// What was written and read.
    pub ledger: Arc<Ledger>,
    /// What was seen.
    pub report: Report,
    /// For choices.
    pub random: Random,
    /// As the command line has them.
    pub settings: Settings,
    /// What the file system takes by itself.
    pub flushes: Flushes,
    /// Of all I/Os that a client was answered, for the report.
    pub latencies_us: Vec<u32>,
    /// Findings that a round was told of.
    blamed: usize,
    next_client: u32,
    /// The files to remove at the end, once all went well.
    finished: Option<PathBuf>,
}

/// A fault to be measured.
pub struct Fault<'a> {
    /// What is done.
    pub name: &'a str,
    /// To which hosts.
    pub hosts: &'a [String],
    /// The most that clients elsewhere may be stalled.
    pub limit_ms: Option<f64>,
}

/// The second now, as events count.
pub fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl Bench {
    /// Makes the cluster and its disk.
    ///
    /// # Errors
    /// When something stands in the way.
    pub fn start(settings: &Settings, plan: Plan) -> Result<Bench, Failure> {
        let folder = settings.folder.join(plan.scenario);
        if folder.exists() {
            let what = format!(
                "{} is there already: name another folder with --dir, or remove it",
                folder.display()
            );
            return Err(Failure::Usage(what));
        }
        eprintln!("trials: {}: {} hosts in {}", plan.scenario, plan.hosts, folder.display());
        let mut cluster = match (plan.ground, settings.is_apart) {
            (Ground::Any, false) => Cluster::start(&settings.program, &folder, plan.hosts)?,
            (ground, _) => Cluster::start_apart(&settings.program, &folder, plan.hosts, ground)?,
        };
        let disk = cluster.create_disk_for(DISK, plan.area_bytes, plan.policy, plan.is_shared)?;
        let mut random = Random::new(settings.seed);
        let campaign = random.bits() ^ unix_seconds();
        let report = Report {
            scenario: plan.scenario.to_owned(),
            seed: settings.seed,
            folder: folder.display().to_string(),
            ..Report::default()
        };
        Ok(Bench {
            cluster,
            disk,
            ledger: Arc::new(Ledger::new(plan.area_bytes / BLOCK as u64, campaign)),
            report,
            random,
            settings: settings.clone(),
            flushes: Flushes::start(&folder)?,
            latencies_us: Vec::new(),
            blamed: 0,
            next_client: 1,
            finished: None,
        })
    }

    /// Rounds of a kind to run: what was asked for, or so many.
    pub fn rounds(&self, kind: &str, usual: usize) -> usize {
        if !kind.contains(&self.settings.only) {
            return 0;
        }
        self.settings.rounds.unwrap_or(usual)
    }

    /// Starts a client at a host.
    ///
    /// # Errors
    /// When the host does not let it in.
    pub fn attach(&mut self, host: &str, shape: &Shape) -> Result<Load, Failure> {
        let client = self.next_client;
        self.next_client += 1;
        Load::start(&self.cluster.socket(host), DISK, &self.ledger, client, shape)
    }

    /// Starts a client with the usual load at a socket where another program hands the disk on.
    ///
    /// # Errors
    /// As [`Bench::attach`].
    pub fn attach_load_at(&mut self, socket: &Path) -> Result<Load, Failure> {
        let client = self.next_client;
        self.next_client += 1;
        Load::start(socket, DISK, &self.ledger, client, &Shape::random(self.settings.depth))
    }

    /// Starts a client with the usual load.
    ///
    /// # Errors
    /// As [`Bench::attach`].
    pub fn attach_load(&mut self, host: &str) -> Result<Load, Failure> {
        self.attach(host, &Shape::random(self.settings.depth))
    }

    /// Ends a client, and counts what it did.
    ///
    /// # Errors
    /// When it was answered with an error, or an answer does not come.
    pub fn stop(&mut self, load: Load) -> Result<(), Failure> {
        let done = load.stop()?;
        self.count(done);
        Ok(())
    }

    /// Ends a client whose host was killed, and counts what it had done.
    pub fn abandon(&mut self, load: Load) {
        self.count(load.abandon());
    }

    /// Counts what a client did that has ended; gives what found no room.
    pub fn count(&mut self, done: Done) -> Refused {
        self.report.reads += done.reads;
        self.report.writes += done.writes;
        self.latencies_us.extend(done.latencies_us);
        done.refused
    }

    /// What hosts hold of the disk.
    ///
    /// # Errors
    /// When no host tells.
    pub fn held(&self, hosts: &[String]) -> Result<String, Failure> {
        let disk = self.cluster.disk(DISK)?;
        let holders = disk.holders();
        let held = |host: &String| match (disk.owner.as_ref() == Some(host), holders.contains(host)) {
            (true, true) => "owner+component",
            (true, false) => "owner",
            (false, true) => "component",
            (false, false) => "nothing",
        };
        let mut held: Vec<&str> = hosts.iter().map(held).collect();
        held.dedup();
        Ok(held.join(", "))
    }

    /// Strikes, mends, waits until all is whole, and measures what the watched clients saw of it. The round is in the
    /// report, whatever came of it.
    ///
    /// # Errors
    /// When a client was answered with an error, or the cluster does not heal.
    pub fn round(
        &mut self,
        fault: &Fault<'_>,
        watched: &[&Load],
        strike: impl FnOnce(&mut Bench) -> Result<(), Failure>,
        mend: impl FnOnce(&mut Bench) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.blame();
        let began = unix_seconds();
        let mut round = Round {
            number: self.report.rounds.len() + 1,
            fault: fault.name.to_owned(),
            host: fault.hosts.join(", "),
            held: self.held(fault.hosts)?,
            limit_ms: fault.limit_ms,
            ..Round::default()
        };
        let done = self.measure(&mut round, watched, strike, mend);
        round.judge();
        round.broken.extend(self.new_findings());
        if let Err(failure) = &done {
            round.broken.push(failure.to_string());
        }
        if !round.broken.is_empty() {
            self.report.events.push(format!("round {}:", round.number));
            self.report.events.extend(self.cluster.events(began));
        }
        self.tell(&round);
        self.report.rounds.push(round);
        done
    }

    /// Adds to the last round what is worth knowing of it.
    pub fn note(&mut self, note: String) {
        eprintln!("trials: {note}");
        if let Some(round) = self.report.rounds.last_mut() {
            round.note = note;
        }
    }

    /// Lays findings that no round was told of to the last one.
    fn blame(&mut self) {
        let found = self.new_findings();
        if let Some(round) = self.report.rounds.last_mut() {
            round.broken.extend(found);
        }
    }

    /// In words, what was found since this was asked before.
    pub fn new_findings(&mut self) -> Option<String> {
        let (count, _) = self.ledger.findings();
        let new = count - std::mem::replace(&mut self.blamed, count);
        (new > 0).then(|| format!("{new} reads saw what cannot be"))
    }

    fn measure(
        &mut self,
        round: &mut Round,
        watched: &[&Load],
        strike: impl FnOnce(&mut Bench) -> Result<(), Failure>,
        mend: impl FnOnce(&mut Bench) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let disk = self.disk.clone();
        let copied = self.cluster.copied_bytes(&disk);
        watched.iter().for_each(|load| load.open_window());
        self.flushes.take();
        let opened = Instant::now();
        let struck = strike(self);
        round.stall = self.close(round, opened, watched);
        struck?;
        watched.iter().for_each(|load| load.open_window());
        let mended = Instant::now();
        // That all is whole may still be what was true before the fault: an owner that is just being replaced tells
        // nothing. Once clients are served again it is the truth.
        let whole = mend(self).and_then(|()| self.cluster.wait_until_whole(DISK));
        let whole = whole.and_then(|_| watched.iter().try_for_each(|load| load.catch_up()));
        let whole = whole.and_then(|()| self.cluster.wait_until_whole(DISK));
        round.whole_seconds = mended.elapsed().as_secs_f64();
        round.stall_after = self.close(round, mended, watched);
        round.copied_bytes = self.cluster.copied_bytes(&disk) - copied;
        whole?;
        watched.iter().try_for_each(|load| load.check())
    }

    /// What the watched clients saw of a stretch that began then, and what the file system took for flushes meanwhile.
    fn close(&self, round: &mut Round, opened: Instant, watched: &[&Load]) -> Stall {
        let stall = close(watched);
        let flushes = self.flushes.take();
        round.flush_ms = round.flush_ms.max(flushes.longest_ms());
        let of = |ms: f64| Duration::from_secs_f64(ms.max(0.0) / 1e3);
        let ended = opened + of(stall.longest_sent_ms + stall.longest_ms);
        let sent = ended.checked_sub(of(stall.longest_ms)).unwrap_or(opened);
        Stall { flush_beside_ms: flushes.beside_ms(sent, ended), ..stall }
    }

    /// One line while it runs.
    pub fn tell(&self, round: &Round) {
        let worst = round.worst();
        eprintln!(
            "trials: {} {}: {} {} ({}): silent {:.0} ms, longest I/O {:.0} ms (a flush by itself {:.0} ms, beside it {:.0} ms), {} KiB copied, whole after {:.1} s {}{}",
            self.report.scenario,
            round.number,
            round.fault,
            round.host,
            round.held,
            worst.silent_ms,
            worst.longest_ms,
            round.flush_ms,
            worst.flush_beside_ms,
            round.copied_bytes / 1024,
            round.whole_seconds,
            round.note,
            round.broken.iter().map(|rule| format!(" BROKEN: {rule}")).collect::<String>()
        );
    }

    /// Reads every block at a host while nothing else is under way, and holds the disk to what was seen.
    ///
    /// # Errors
    /// When a read fails.
    pub fn read_back(&mut self, host: &str) -> Result<(), Failure> {
        let reader = self.attach(host, &Shape::ordered(Pattern::ReadBack))?;
        let seen = reader.finish()?;
        self.ledger.settle(&seen);
        Ok(())
    }

    /// Writes every block once.
    ///
    /// # Errors
    /// When a write fails.
    pub fn fill(&mut self, host: &str) -> Result<(), Failure> {
        self.attach(host, &Shape::ordered(Pattern::Fill))?.finish().map(drop)
    }

    /// Runs the rounds of a scenario, reads everything back at every host, and gives the report.
    pub fn run(mut self, rounds: impl FnOnce(&mut Bench) -> Result<(), Failure>) -> Report {
        let done = rounds(&mut self)
            .and_then(|()| self.cluster.names().to_vec().iter().try_for_each(|host| self.read_back(host)));
        if let Err(failure) = done {
            self.report.failure = Some(failure.to_string());
        }
        self.blame();
        let mut report = std::mem::take(&mut self.report);
        report.costs = costs(&report.rounds);
        report.latency = summary(std::mem::take(&mut self.latencies_us));
        (report.finding_count, report.findings) = self.ledger.findings();
        if report.is_good() && !self.settings.keeps {
            self.finished = Some(PathBuf::from(&report.folder));
        }
        report
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if let Some(folder) = self.finished.take() {
            self.cluster.end();
            if let Err(error) = std::fs::remove_dir_all(&folder) {
                eprintln!("trials: remove {}: {error}", folder.display());
            }
        }
    }
}

fn close(watched: &[&Load]) -> Stall {
    watched.iter().map(|load| load.close_window()).fold(Stall::default(), Stall::worse)
}
