//! The hosts of `drystone demo --bare --hosts N`, and what is done to them.
//!
//! Hosts are started by the demo; signals go to their processes directly, so that several are hit in the same moment.
//! Dropped, the demo is killed, and the kernel kills its hosts.

use crate::apart::{Apart, SPARE};
use crate::api::{Api, Disk, Event, Health, Local};
use crate::bench;
use crate::failure::Failure;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long anything may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// How often that is looked at.
const POLL: Duration = Duration::from_millis(20);
/// How often a disk is looked at until it is whole: asking costs the hosts something.
const WHOLE_POLL: Duration = Duration::from_millis(100);

/// Bytes that owners copied, over all owners that there were.
#[derive(Debug, Clone, Default)]
pub struct Copied {
    by_epoch: BTreeMap<u32, u64>,
}

impl Copied {
    /// An owner of that epoch says that it copied so many bytes since it began.
    pub fn note(&mut self, epoch: u32, bytes: u64) {
        let known = self.by_epoch.entry(epoch).or_default();
        *known = bytes.max(*known);
    }

    /// All bytes seen.
    pub fn total(&self) -> u64 {
        self.by_epoch.values().sum()
    }
}

/// What hosts run on.
enum Ground {
    /// One machine, with `drystone demo` as their parent.
    Demo(Child),
    /// Machines of their own.
    Apart(Box<Apart>),
    /// Nothing any more.
    Ended,
}

/// A running cluster.
pub struct Cluster {
    folder: PathBuf,
    names: Vec<String>,
    ground: Ground,
    /// Those that do not run, or stand still.
    away: BTreeSet<String>,
    copied: Copied,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.end();
    }
}

/// Waits until something is there.
///
/// # Errors
/// When it takes too long.
pub fn wait_for<T>(what: &str, found: impl FnMut() -> Result<Option<T>, Failure>) -> Result<T, Failure> {
    wait_looking(what, POLL, found)
}

/// The same, looking once in so long: each look is work for the hosts.
///
/// # Errors
/// As [`wait_for`].
pub fn wait_looking<T>(
    what: &str,
    every: Duration,
    mut found: impl FnMut() -> Result<Option<T>, Failure>,
) -> Result<T, Failure> {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = found()? {
            return Ok(found);
        }
        if Instant::now() >= until {
            return Err(Failure::Late { what: what.to_owned(), seconds: PATIENCE.as_secs() });
        }
        std::thread::sleep(every);
    }
}

/// What hosts are called.
fn names_of(count: usize) -> Vec<String> {
    (0..count).map(|index| char::from(b'a' + index as u8).to_string()).collect()
}

/// Makes the kernel kill a child when this process ends.
pub fn end_with_parent(command: &mut Command) -> &mut Command {
    // SAFETY: between fork and exec only `prctl` is called, which is async-signal-safe.
    unsafe {
        command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        })
    }
}

fn send_signal(process: u32, signal: libc::c_int) -> Result<(), Failure> {
    // SAFETY: `kill` touches no memory of ours; the process is a host that our demo started.
    match unsafe { libc::kill(process as libc::pid_t, signal) } {
        0 => Ok(()),
        _ => Err(Failure::machine(format!("signal process {process}"))(std::io::Error::last_os_error())),
    }
}

/// Whether a process has ended, waited for or not.
fn has_ended(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The state stands behind the name, which is in brackets; that of a process is the state of its first thread.
    let state = status.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next());
    let threads = fs::read_dir(format!("/proc/{process}/task")).map_or(0, Iterator::count);
    threads <= 1 && matches!(state, None | Some('Z' | 'X'))
}

impl Cluster {
    /// Starts so many hosts of a program in an empty folder, and waits until they see each other.
    ///
    /// # Errors
    /// When the demo says why not, or nothing.
    pub fn start(program: &Path, folder: &Path, count: usize) -> Result<Cluster, Failure> {
        fs::create_dir_all(folder).map_err(Failure::machine(format!("make {}", folder.display())))?;
        let log_path = folder.join("demo.log");
        let log =
            File::create(&log_path).map_err(Failure::machine(format!("make {}", log_path.display())))?;
        let mut demo = Command::new(program);
        demo.args(["demo", "--bare", "--hosts", &count.to_string(), "--dir"]).arg(folder);
        let errors = log.try_clone().map_err(Failure::machine("copy a descriptor"))?;
        demo.stdin(Stdio::null()).stdout(log).stderr(errors);
        let demo = end_with_parent(&mut demo)
            .spawn()
            .map_err(Failure::machine(format!("start {}; `./x build` makes it", program.display())))?;
        let mut cluster = Cluster {
            folder: folder.to_owned(),
            names: names_of(count),
            ground: Ground::Demo(demo),
            away: BTreeSet::new(),
            copied: Copied::default(),
        };
        wait_for("the hosts find each other", || {
            let said = fs::read_to_string(&log_path).unwrap_or_default();
            let Ground::Demo(demo) = &mut cluster.ground else { unreachable!("it was just started") };
            let ended = demo.try_wait().map_err(Failure::machine("wait for the demo"))?;
            match ended {
                Some(_) => Err(Failure::Refused(format!("the demo ended: {said}"))),
                None => Ok(said.contains("Try:").then_some(())),
            }
        })?;
        Ok(cluster)
    }

    /// The same with each host on a machine of its own, and an etcd.
    ///
    /// # Errors
    /// When the machine has no namespaces, or a host does not come.
    pub fn start_apart(
        program: &Path,
        folder: &Path,
        count: usize,
        on: bench::Ground,
    ) -> Result<Cluster, Failure> {
        fs::create_dir_all(folder).map_err(Failure::machine(format!("make {}", folder.display())))?;
        let names = names_of(count);
        let apart = Apart::start(program, folder, &names, on)?;
        let cluster = Cluster {
            folder: folder.to_owned(),
            names,
            ground: Ground::Apart(Box::new(apart)),
            away: BTreeSet::new(),
            copied: Copied::default(),
        };
        cluster.wait_until_reachable()?;
        Ok(cluster)
    }

    /// Kills all of it.
    pub fn end(&mut self) {
        if let Ground::Demo(mut demo) = std::mem::replace(&mut self.ground, Ground::Ended) {
            // Both fail only when it has ended already.
            let _ = demo.kill();
            let _ = demo.wait();
        }
    }

    /// The machines of hosts that have their own.
    ///
    /// # Errors
    /// When they share one.
    pub fn apart(&mut self) -> Result<&mut Apart, Failure> {
        match &mut self.ground {
            Ground::Apart(apart) => Ok(apart),
            Ground::Demo(_) | Ground::Ended => {
                Err(Failure::Refused("the hosts share one machine".to_owned()))
            }
        }
    }

    /// A host that was taken out is replaced by the spare machine.
    ///
    /// # Errors
    /// When that cannot join.
    pub fn replace(&mut self, lost: &str, token: &str) -> Result<(), Failure> {
        self.names.retain(|name| name != lost);
        self.apart()?.join_spare(token)?;
        self.names.push(SPARE.to_owned());
        self.wait_until_reachable()
    }

    /// The names of the hosts.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Where clients of NBD attach.
    pub fn socket(&self, host: &str) -> PathBuf {
        self.folder.join(host).join("d/nbd.sock")
    }

    /// The address of a disk for other programs.
    pub fn uri(&self, host: &str, disk: &str) -> String {
        format!("nbd+unix:///{disk}?socket={}", self.socket(host).display())
    }

    /// The API of a host.
    pub fn api(&self, host: &str) -> Api {
        Api::new(&self.folder.join(host).join("d/api.sock"))
    }

    /// What a host alone knows.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn local(&self, host: &str) -> Result<Local, Failure> {
        self.api(host).get("/api/v1/cluster/local")
    }

    /// The hosts that run, but these.
    pub fn others(&self, but: &[&str]) -> Vec<String> {
        let is_other = |name: &&String| !but.contains(&name.as_str()) && !self.away.contains(*name);
        self.names.iter().filter(is_other).cloned().collect()
    }

    /// The process of a host.
    fn process(&self, host: &str) -> Result<u32, Failure> {
        let demo = match &self.ground {
            Ground::Apart(apart) => {
                let found = apart.process(host);
                return found.ok_or_else(|| Failure::Refused(format!("host {host} was not started")));
            }
            Ground::Demo(demo) => demo.id(),
            Ground::Ended => return Err(Failure::Refused("the cluster has ended".to_owned())),
        };
        let config = self.folder.join(host).join("host.toml");
        let tasks = format!("/proc/{demo}/task");
        let failed = || Failure::machine(format!("look for the process of host {host} in {tasks}"));
        for task in fs::read_dir(&tasks).map_err(failed())? {
            let children = task.map_err(failed())?.path().join("children");
            // A thread may end while it is looked at.
            let children = fs::read_to_string(children).unwrap_or_default();
            for child in children.split_whitespace().filter_map(|text| text.parse::<u32>().ok()) {
                let line = fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
                let is_it =
                    line.split(|&byte| byte == 0).any(|word| word == config.as_os_str().as_encoded_bytes());
                if is_it && !has_ended(child) {
                    return Ok(child);
                }
            }
        }
        Err(Failure::Refused(format!(
            "host {host} has no process; {} may tell why",
            self.log(host).display()
        )))
    }

    /// Whether the process of a host runs.
    pub fn runs(&self, host: &str) -> bool {
        self.process(host).is_ok_and(|process| !has_ended(process))
    }

    /// Where a host writes its log.
    fn log(&self, host: &str) -> PathBuf {
        self.folder.join(host).join("log")
    }

    /// Kills hosts in one moment, and waits until they are gone.
    ///
    /// # Errors
    /// When one does not run.
    pub fn kill(&mut self, hosts: &[String]) -> Result<(), Failure> {
        let processes = self.signal(hosts, libc::SIGKILL)?;
        self.away.extend(hosts.iter().cloned());
        wait_for("the killed hosts are gone", || {
            Ok(processes.iter().all(|&process| has_ended(process)).then_some(()))
        })
    }

    /// Makes hosts stand still in one moment.
    ///
    /// # Errors
    /// When one does not run.
    pub fn pause(&mut self, hosts: &[String]) -> Result<(), Failure> {
        self.signal(hosts, libc::SIGSTOP)?;
        self.away.extend(hosts.iter().cloned());
        Ok(())
    }

    /// Lets hosts go on.
    ///
    /// # Errors
    /// When one does not run.
    pub fn go_on(&mut self, hosts: &[String]) -> Result<(), Failure> {
        self.signal(hosts, libc::SIGCONT)?;
        self.away.retain(|host| !hosts.contains(host));
        Ok(())
    }

    fn signal(&self, hosts: &[String], signal: libc::c_int) -> Result<Vec<u32>, Failure> {
        let processes = hosts.iter().map(|host| self.process(host)).collect::<Result<Vec<u32>, Failure>>()?;
        for &process in &processes {
            send_signal(process, signal)?;
        }
        Ok(processes)
    }

    /// Tells a host to end, and waits until it has.
    ///
    /// # Errors
    /// When it does not.
    pub fn stop(&mut self, host: &str) -> Result<(), Failure> {
        self.away.insert(host.to_owned());
        let process = self.process(host)?;
        send_signal(process, libc::SIGTERM)?;
        wait_for(&format!("host {host} has ended"), || Ok(has_ended(process).then_some(())))
    }

    /// Starts a host that does not run.
    ///
    /// # Errors
    /// When the demo cannot.
    pub fn start_host(&mut self, host: &str) -> Result<(), Failure> {
        if let Ground::Apart(apart) = &mut self.ground {
            apart.start_host(host)?;
        } else {
            let path = format!("/demo/v1/hosts/{host}/start");
            Api::new(&self.folder.join("demo.sock")).post::<String>(&path, None)?;
        }
        self.away.remove(host);
        Ok(())
    }

    /// Waits until all hosts that should run answer, and reach all of them.
    ///
    /// # Errors
    /// When they do not.
    pub fn wait_until_reachable(&self) -> Result<(), Failure> {
        #[derive(serde::Deserialize)]
        struct Host {
            name: String,
            is_reachable: bool,
        }
        let running = self.others(&[]);
        wait_for("all hosts reach each other", || {
            let sees_all = |host: &String| {
                let hosts: Vec<Host> = self.api(host).get("/api/v1/hosts").unwrap_or_default();
                running.iter().all(|name| hosts.iter().any(|one| &one.name == name && one.is_reachable))
            };
            Ok(running.iter().all(sees_all).then_some(()))
        })
    }

    /// Deletes a disk.
    ///
    /// # Errors
    /// When the cluster refuses.
    pub fn delete_disk(&mut self, name: &str) -> Result<(), Failure> {
        let host = self.names[0].clone();
        // A load that has just ended may still be on its way out.
        self.apart()?.say(&host, &["disk", "delete", name, "--confirm", name, "--detach-clients"]).map(drop)
    }

    /// Makes a disk of one place, which clients of several hosts may have at once, and waits until every host serves it.
    ///
    /// # Errors
    /// When the cluster refuses.
    pub fn create_disk(&mut self, name: &str, size: u64, policy: &str) -> Result<Disk, Failure> {
        self.create_disk_for(name, size, policy, true)
    }

    /// The same; `is_shared`: whether clients of several hosts may have it at once.
    ///
    /// # Errors
    /// When the cluster refuses.
    pub fn create_disk_for(
        &mut self,
        name: &str,
        size: u64,
        policy: &str,
        is_shared: bool,
    ) -> Result<Disk, Failure> {
        let body = json!({ "name": name, "size": size, "policy": policy, "share": is_shared });
        let disk: Disk = self.api(&self.names[0]).post("/api/v1/disks", Some(&body))?;
        for host in self.names.clone() {
            self.wait_until_served(&host, name)?;
        }
        Ok(disk)
    }

    /// Waits until a host lets clients attach to a disk.
    ///
    /// # Errors
    /// When it does not.
    pub fn wait_until_served(&self, host: &str, disk: &str) -> Result<(), Failure> {
        wait_for(&format!("host {host} serves disk {disk}"), || {
            let attached = crate::nbd::attach(&self.socket(host), disk).is_ok();
            // Clients are let in a moment before the API answers.
            Ok((attached && self.warnings(host).is_ok()).then_some(()))
        })
    }

    /// What a host that runs says of a disk.
    ///
    /// # Errors
    /// When none answers.
    pub fn disk(&self, name: &str) -> Result<Disk, Failure> {
        let mut last = Failure::Refused("no host runs".to_owned());
        for host in self.others(&[]) {
            match self.api(&host).get(&format!("/api/v1/disks/{name}")) {
                Ok(disk) => return Ok(disk),
                Err(failure) => last = failure,
            }
        }
        Err(last)
    }

    /// Waits until the owner of a disk is that host; gives how long it took.
    ///
    /// # Errors
    /// When it does not become so.
    pub fn wait_for_owner(&self, disk: &str, owner: &str) -> Result<Duration, Failure> {
        let began = Instant::now();
        wait_for(&format!("host {owner} owns disk {disk}"), || {
            let found = self.disk(disk).ok().and_then(|disk| disk.owner);
            Ok((found.as_deref() == Some(owner)).then_some(()))
        })?;
        Ok(began.elapsed())
    }

    /// Bytes that the owners of a disk have copied so far. Hosts that do not run tell nothing.
    pub fn copied_bytes(&mut self, disk: &Disk) -> u64 {
        for host in self.others(&[]) {
            // One that is just starting does not answer yet.
            let Ok(local) = self.local(&host) else { continue };
            for owned in local.owned.iter().filter(|owned| owned.disk == disk.id) {
                self.copied.note(owned.epoch, owned.copied_bytes);
            }
        }
        self.copied.total()
    }

    /// Whether all hosts that run say so: one that was cut off tells for a moment what was true before.
    fn is_whole_for_all(&self, name: &str) -> bool {
        let is_whole = |host: &String| {
            let disk: Result<Disk, Failure> = self.api(host).get(&format!("/api/v1/disks/{name}"));
            disk.is_ok_and(|disk| disk.is_whole())
        };
        self.others(&[]).iter().all(is_whole)
    }

    /// Waits until every copy of a disk counts; gives how long it took.
    ///
    /// # Errors
    /// When it does not become whole.
    pub fn wait_until_whole(&mut self, name: &str) -> Result<Duration, Failure> {
        let began = Instant::now();
        let until = began + PATIENCE;
        loop {
            let disk = self.disk(name);
            if let Ok(disk) = &disk {
                self.copied_bytes(disk);
                if disk.is_whole() && self.is_whole_for_all(name) {
                    return Ok(began.elapsed());
                }
            }
            if Instant::now() >= until {
                let what = match disk {
                    Ok(disk) => format!("disk {name} is whole ({})", disk.not_whole.join("; ")),
                    Err(failure) => format!("a host tells of disk {name} ({failure})"),
                };
                return Err(Failure::Late { what, seconds: PATIENCE.as_secs() });
            }
            std::thread::sleep(WHOLE_POLL);
        }
    }

    /// The causes of the findings of a kind, as a host tells them, each with its severity.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn findings(&self, host: &str, code: &str) -> Result<Vec<String>, Failure> {
        let health: Health = self.api(host).get("/api/v1/health")?;
        let meant = health.findings.into_iter().filter(|one| one.code == code);
        Ok(meant.map(|one| format!("{}: {}", one.severity, one.cause)).collect())
    }

    /// Whether any copy is being made or brought up to date.
    ///
    /// # Errors
    /// When the host does not answer.
    pub fn has_resyncs(&self, host: &str) -> Result<bool, Failure> {
        #[derive(serde::Deserialize)]
        struct Resyncs {
            disks: Vec<serde::de::IgnoredAny>,
        }
        self.api(host).get("/api/v1/resync").map(|found: Resyncs| !found.disks.is_empty())
    }

    /// What a host warns of, about itself.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn warnings(&self, host: &str) -> Result<Vec<String>, Failure> {
        #[derive(serde::Deserialize)]
        struct Host {
            warnings: Vec<String>,
        }
        self.api(host).get("/api/v1/host").map(|host: Host| host.warnings)
    }

    /// What the hosts that run say has happened since that second, oldest first.
    pub fn events(&self, since: u64) -> Vec<String> {
        let mut found: Vec<(u64, String)> = Vec::new();
        for host in self.others(&[]) {
            // A host without an answer has no events to tell.
            let events: Vec<Event> = self.api(&host).get("/api/v1/events").unwrap_or_default();
            let new = events.into_iter().filter(|event| event.time >= since);
            found.extend(
                new.map(|event| (event.time, format!("host {host}: {}: {}", event.disk, event.text))),
            );
        }
        found.sort();
        found.into_iter().map(|(_, text)| text).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copied_bytes_add_up_over_owners_that_each_count_from_zero() {
        let mut copied = Copied::default();
        for (epoch, bytes) in [(1, 100), (1, 300), (2, 0), (2, 50), (1, 200)] {
            copied.note(epoch, bytes);
        }
        assert_eq!(copied.total(), 350);
    }

    #[test]
    fn a_process_that_is_not_there_has_ended_and_this_one_has_not() {
        assert!(has_ended(u32::MAX));
        assert!(!has_ended(std::process::id()));
    }
}
