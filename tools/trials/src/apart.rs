//! A cluster as users have one: hosts and three members of etcd, each on a machine of its own (a network namespace), made
//! by the commands that the guide tells, with certificates.
//!
//! Dropped, all its processes are killed.

use crate::bench::Ground;
use crate::cluster::{PATIENCE, end_with_parent};
use crate::device::{self, Device};
use crate::failure::Failure;
use crate::guide;
use crate::namespaces::Network;
use crate::room::Room;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Members of etcd.
pub const MEMBERS: [&str; 3] = ["e1", "e2", "e3"];
/// The machine that guests run on which reach hosts by a name.
pub const GUESTS: &str = "guests";
/// A machine that may become a host in the place of another.
pub const SPARE: &str = "spare";
/// Pause between attempts.
const POLL: Duration = Duration::from_millis(100);
/// The log device of a host, and its capacity device, with their bytes where they are virtual.
const DEVICES: [(&str, u64); 2] = [("log-device", 512 << 20), ("capacity-device", 8 << 30)];
/// The same with two capacity devices, and one that lies beside.
const PAIR: [(&str, u64); 4] = [DEVICES[0], DEVICES[1], ("second-device", 8 << 30), ("new-device", 8 << 30)];
/// How many of these a host has at first.
const PAIR_USED: usize = 3;
/// What the guide tells members of etcd where a host may be lost together with their leader.
const QUICK_ELECTIONS: [&str; 2] = ["--heartbeat-interval=50", "--election-timeout=500"];
/// Bytes of a host's data directory where it is small: what a host keeps there takes some MiB.
const ROOM_BYTES: u64 = 48 << 20;
/// Debian's libfaketime: what a program is told of the time is read from a file.
const CLOCK_LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";

/// The machines and what runs on them.
pub struct Apart {
    program: PathBuf,
    /// By host, those that run another one.
    programs: BTreeMap<String, PathBuf>,
    folder: PathBuf,
    /// Links that can be cut.
    pub network: Network,
    children: BTreeMap<String, Child>,
    ground: Ground,
    /// Whether these are two hosts and a witness.
    is_pair: bool,
    /// By host, those of [`DEVICES`] or [`PAIR`] where they are virtual. They go after the processes that have them open.
    devices: BTreeMap<String, Vec<Device>>,
    /// By host, what its data directory is on where that is small.
    rooms: BTreeMap<String, Room>,
}

impl Drop for Apart {
    fn drop(&mut self) {
        for child in self.children.values_mut() {
            // Both fail only when it has ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Apart {
    /// Makes a cluster of these hosts, each with a folder below `folder`, and starts all.
    ///
    /// # Errors
    /// When a program is missing, or a command of the guide fails.
    pub fn start(program: &Path, folder: &Path, hosts: &[String], ground: Ground) -> Result<Apart, Failure> {
        let members = MEMBERS.iter().map(|name| (*name).to_owned());
        let machines: Vec<String> =
            hosts.iter().cloned().chain(members).chain([GUESTS, SPARE].map(str::to_owned)).collect();
        let network = Network::new(&machines)?;
        let mut apart = Apart {
            program: program.to_owned(),
            programs: BTreeMap::new(),
            folder: folder.to_owned(),
            network,
            children: BTreeMap::new(),
            ground,
            is_pair: hosts.len() == 2,
            devices: BTreeMap::new(),
            rooms: BTreeMap::new(),
        };
        for member in MEMBERS {
            apart.start_member(member, false)?;
        }
        for host in hosts {
            apart.write_config(host)?;
            apart.prepare(host)?;
        }
        apart.make(hosts)?;
        Ok(apart)
    }

    /// The guide's commands: the first host makes the cluster, the others join.
    fn make(&mut self, hosts: &[String]) -> Result<(), Failure> {
        let typed = guide::commands(guide::CLUSTER, "Make it")?;
        let join = typed.iter().position(|line| line.starts_with("drystone host join "));
        let join = join.ok_or_else(|| Failure::Refused("the guide lets no host join".to_owned()))?;
        let (first, others) = hosts.split_first().expect("a cluster has a host");
        let mut token = self.type_all(first, &typed[..join], "")?;
        for (index, host) in others.iter().enumerate() {
            if index > 0 {
                token = self.say_soon(first, &["host", "token"])?;
            }
            self.type_all(host, &typed[join..], token.trim())?;
        }
        Ok(())
    }

    /// Makes the spare machine a host, by the guide's commands.
    ///
    /// # Errors
    /// What one of them says.
    pub fn join_spare(&mut self, token: &str) -> Result<(), Failure> {
        self.write_config(SPARE)?;
        self.prepare(SPARE)?;
        let typed = guide::commands(guide::CLUSTER, "Make it")?;
        let joins = typed.iter().skip_while(|line| !line.starts_with("drystone host join "));
        let joins: Vec<String> = joins.cloned().collect();
        self.type_all(SPARE, &joins, token).map(drop)
    }

    /// Types commands of the guide on a host; gives what the last one printed.
    fn type_all(&mut self, host: &str, typed: &[String], token: &str) -> Result<String, Failure> {
        let config = self.config(host);
        let mut said = String::new();
        for line in typed {
            let replaced = [("/etc/drystone/host.toml", config.as_str()), ("drystone-join-1/", token)];
            let words = guide::words(line, &replaced)?;
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            if words == ["host", "--config", &config, "&"] {
                self.start_host(host)?;
            } else {
                said = self.say_soon(host, &words)?;
            }
        }
        Ok(said)
    }

    /// The same as [`Apart::say`], with patience: members of etcd may still be looking for one another, a host may just be
    /// starting.
    fn say_soon(&self, host: &str, words: &[&str]) -> Result<String, Failure> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.say(host, words) {
                Err(_) if Instant::now() < until => std::thread::sleep(POLL),
                ended => return ended,
            }
        }
    }

    /// What a host needs besides its configuration.
    fn prepare(&mut self, host: &str) -> Result<(), Failure> {
        match self.ground {
            Ground::Any | Ground::Apart => Ok(()),
            Ground::Clocks if !Path::new(CLOCK_LIBRARY).is_file() => Err(Failure::Refused(format!(
                "there is no {CLOCK_LIBRARY}: Debian's package libfaketime has it"
            ))),
            Ground::Clocks => self.set_clock(host, 0),
            Ground::Small => {
                let room = Room::mount(&self.folder.join(host).join("d"), ROOM_BYTES)?;
                self.rooms.insert(host.to_owned(), room);
                Ok(())
            }
            Ground::Virtual | Ground::Pair => {
                let own = self.folder.join(host);
                let mounted = self.kinds().iter().map(|(name, size)| Device::mount(&own.join(name), *size));
                self.devices.insert(host.to_owned(), mounted.collect::<Result<_, _>>()?);
                Ok(())
            }
        }
    }

    /// The devices that each host has.
    fn kinds(&self) -> &'static [(&'static str, u64)] {
        if self.ground == Ground::Pair { &PAIR } else { &DEVICES }
    }

    /// The log device of a host, and its capacity devices, where they are virtual.
    ///
    /// # Errors
    /// When they are not.
    pub fn devices(&self, host: &str) -> Result<&[Device], Failure> {
        self.devices
            .get(host)
            .map(Vec::as_slice)
            .ok_or_else(|| Failure::Refused(format!("host {host} has no virtual devices")))
    }

    /// What a host's data directory is on.
    ///
    /// # Errors
    /// When it is not on a file system of its own.
    pub fn room(&self, host: &str) -> Result<&Room, Failure> {
        self.rooms.get(host).ok_or_else(|| Failure::Refused(format!("host {host} has room without end")))
    }

    /// The paths of these, as the host's configuration has them.
    pub fn device_paths(&self, host: &str) -> Vec<String> {
        let path = |name: &str| self.folder.join(host).join(name).join(device::NAME).display().to_string();
        self.kinds().iter().map(|(name, _)| path(name)).collect()
    }

    /// Writes a host's configuration with another path in the place of one.
    ///
    /// # Errors
    /// When it does not name that one, or cannot be written.
    pub fn replace_in_config(&self, host: &str, former: &str, new: &str) -> Result<(), Failure> {
        let (path, own) = (self.config(host), self.folder.join(host));
        let failed = || Failure::machine(format!("change {path}"));
        let text = fs::read_to_string(&path).map_err(failed())?;
        // It names devices as they stand from where it is.
        let relative = |path: &str| match Path::new(path).strip_prefix(&own) {
            Ok(relative) => format!("{:?}", relative.display().to_string()),
            Err(_) => format!("{path:?}"),
        };
        let changed = text.replace(&relative(former), &relative(new));
        match changed == text {
            true => Err(Failure::Refused(format!("{path} does not name {former}"))),
            false => fs::write(&path, changed).map_err(failed()),
        }
    }

    /// Sets a host's clock that many seconds before that of this machine, or behind it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn set_clock(&self, host: &str, ahead_seconds: i64) -> Result<(), Failure> {
        let path = self.clock(host);
        let failed = || Failure::machine(format!("write {}", path.display()));
        // The program may read it at any moment: whole or not at all.
        let new = path.with_extension("new");
        fs::write(&new, format!("{ahead_seconds:+}\n")).map_err(failed())?;
        fs::rename(&new, &path).map_err(failed())
    }

    fn clock(&self, host: &str) -> PathBuf {
        self.folder.join(host).join("clock")
    }

    fn config(&self, host: &str) -> String {
        self.folder.join(host).join("host.toml").display().to_string()
    }

    /// From its next start on a host runs another program, and its commands are those of that one.
    pub fn use_program(&mut self, host: &str, program: &Path) {
        self.programs.insert(host.to_owned(), program.to_owned());
    }

    fn program(&self, host: &str) -> &Path {
        self.programs.get(host).unwrap_or(&self.program)
    }

    /// Runs a command of the program on a host, and gives what it prints.
    ///
    /// # Errors
    /// When it fails, with what it said.
    pub fn say(&self, host: &str, words: &[&str]) -> Result<String, Failure> {
        let done = self.run(host, words)?;
        match done.status.success() {
            true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
            false => Err(Failure::Refused(format!(
                "drystone {} on host {host}: {}",
                words.join(" "),
                String::from_utf8_lossy(&done.stderr).trim()
            ))),
        }
    }

    /// The same, however it ends: `health` ends with 1 where something is wrong.
    ///
    /// # Errors
    /// When it cannot be run.
    pub fn say_whatever(&self, host: &str, words: &[&str]) -> Result<String, Failure> {
        let done = self.run(host, words)?;
        let said = [done.stdout, done.stderr].concat();
        Ok(String::from_utf8_lossy(&said).into_owned())
    }

    fn run(&self, host: &str, words: &[&str]) -> Result<std::process::Output, Failure> {
        let api = format!("unix:{}", self.folder.join(host).join("d/api.sock").display());
        let mut command = self.network.command(host, self.program(host));
        let done = command.args(words).env("DRYSTONE_API", api).stdin(Stdio::null()).output();
        done.map_err(Failure::machine(format!("run drystone {}", words.join(" "))))
    }

    /// The process of a host or a member, if it was started.
    pub fn process(&self, machine: &str) -> Option<u32> {
        self.children.get(machine).map(Child::id)
    }

    /// Starts a host. Its folder has its configuration.
    ///
    /// # Errors
    /// When the machine has no process left.
    pub fn start_host(&mut self, host: &str) -> Result<(), Failure> {
        let mut command = self.network.command(host, self.program(host));
        command.args(["host", "--config", &self.config(host)]);
        if self.ground == Ground::Clocks {
            command.env("LD_PRELOAD", CLOCK_LIBRARY).env("FAKETIME_TIMESTAMP_FILE", self.clock(host));
            command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        self.spawn(host, &mut command)
    }

    /// Starts a member of etcd; `is_again`: with the data that it had.
    ///
    /// # Errors
    /// When there is no etcd.
    pub fn start_member(&mut self, member: &str, is_again: bool) -> Result<(), Failure> {
        let url = |name: &str, port: u16| format!("http://{}:{port}", self.network.address(name));
        let all = MEMBERS.map(|name| format!("{name}={}", url(name, 2380)));
        let mut command = self.network.command(member, "etcd");
        command.arg("--data-dir").arg(self.folder.join(member).join("data")).args(["--name", member]);
        command.args([
            "--listen-client-urls",
            &url(member, 2379),
            "--advertise-client-urls",
            &url(member, 2379),
        ]);
        command.args([
            "--listen-peer-urls",
            &url(member, 2380),
            "--initial-advertise-peer-urls",
            &url(member, 2380),
        ]);
        command.args(["--initial-cluster", &all.join(","), "--log-level", "error"]);
        // Without it a member that sees only some of the others keeps asking for elections; later releases have it always.
        command.arg("--pre-vote=true");
        if self.is_pair {
            command.args(QUICK_ELECTIONS);
        }
        command.args(["--initial-cluster-state", if is_again { "existing" } else { "new" }]);
        self.spawn(member, &mut command)
    }

    /// Kills members of etcd in one moment, and waits until they are gone.
    ///
    /// # Errors
    /// When the machine does not let this.
    pub fn kill_members(&mut self, members: &[&str]) -> Result<(), Failure> {
        for member in members {
            let Some(child) = self.children.get_mut(*member) else { continue };
            child.kill().map_err(Failure::machine(format!("kill {member}")))?;
        }
        for member in members {
            let Some(mut child) = self.children.remove(*member) else { continue };
            child.wait().map_err(Failure::machine(format!("wait for {member}")))?;
        }
        Ok(())
    }

    /// Puts the data of all members aside: they start with none.
    ///
    /// # Errors
    /// When files cannot be moved.
    pub fn set_data_aside(&self) -> Result<(), Failure> {
        MEMBERS.iter().try_for_each(|member| {
            let data = self.folder.join(member).join("data");
            fs::rename(&data, data.with_extension("kept")).map_err(Failure::machine("put etcd's data aside"))
        })
    }

    /// Brings the data back that was put aside; what came in its place is removed.
    ///
    /// # Errors
    /// When files cannot be moved.
    pub fn bring_data_back(&self) -> Result<(), Failure> {
        MEMBERS.iter().try_for_each(|member| {
            let data = self.folder.join(member).join("data");
            let kept = data.with_extension("kept");
            let moved = fs::remove_dir_all(&data).and_then(|()| fs::rename(kept, &data));
            moved.map_err(Failure::machine("bring etcd's data back"))
        })
    }

    /// Copies the data of all members, which do not run: a snapshot.
    ///
    /// # Errors
    /// When files cannot be copied.
    pub fn copy_data(&self) -> Result<(), Failure> {
        self.copy_all("data", "snapshot")
    }

    /// Restores the snapshot of all members, which do not run.
    ///
    /// # Errors
    /// When files cannot be copied.
    pub fn restore_data(&self) -> Result<(), Failure> {
        self.copy_all("snapshot", "data")
    }

    /// Removes the data of all members, which do not run.
    ///
    /// # Errors
    /// When files cannot be removed.
    pub fn forget_data(&self) -> Result<(), Failure> {
        MEMBERS.iter().try_for_each(|member| {
            let data = self.folder.join(member).join("data");
            fs::remove_dir_all(data).map_err(Failure::machine("remove etcd's data"))
        })
    }

    fn copy_all(&self, from: &str, to: &str) -> Result<(), Failure> {
        MEMBERS.iter().try_for_each(|member| {
            let (from, to) = (self.folder.join(member).join(from), self.folder.join(member).join(to));
            if to.exists() {
                fs::remove_dir_all(&to).map_err(Failure::machine("remove etcd's data"))?;
            }
            let done = Command::new("cp").arg("-a").args([from, to]).status();
            match done.map_err(Failure::machine("copy etcd's data"))?.success() {
                true => Ok(()),
                false => {
                    Err(Failure::Refused(format!("the data of etcd's member {member} cannot be copied")))
                }
            }
        })
    }

    /// Starts a program on the machine of guests.
    ///
    /// # Errors
    /// When it is not there.
    pub fn start_guest(&mut self, program: &str, words: &[String]) -> Result<(), Failure> {
        let mut command = self.network.command(GUESTS, program);
        command.args(words);
        self.spawn(GUESTS, &mut command)
    }

    /// Kills the program on the machine of guests.
    ///
    /// # Errors
    /// When the machine does not let this.
    pub fn end_guest(&mut self) -> Result<(), Failure> {
        let Some(mut child) = self.children.remove(GUESTS) else { return Ok(()) };
        let ended = child.kill().and_then(|()| child.wait());
        ended.map(drop).map_err(Failure::machine("end the guest"))
    }

    fn spawn(&mut self, machine: &str, command: &mut Command) -> Result<(), Failure> {
        if let Some(mut former) = self.children.remove(machine) {
            former.wait().map_err(Failure::machine(format!("wait for {machine}")))?;
        }
        let own = self.folder.join(machine);
        fs::create_dir_all(&own).map_err(Failure::machine(format!("make {}", own.display())))?;
        let log = File::options().create(true).append(true).open(own.join("log"));
        let log = log.map_err(Failure::machine(format!("open the log of {machine}")))?;
        let out = log.try_clone().map_err(Failure::machine("copy a descriptor"))?;
        command.stdin(Stdio::null()).stdout(out).stderr(log);
        let child = end_with_parent(command).spawn();
        self.children
            .insert(machine.to_owned(), child.map_err(Failure::machine(format!("start {machine}")))?);
        Ok(())
    }

    fn write_config(&self, host: &str) -> Result<(), Failure> {
        let own = self.folder.join(host);
        fs::create_dir_all(&own).map_err(Failure::machine(format!("make {}", own.display())))?;
        let address = self.network.address(host);
        let endpoints = MEMBERS.map(|name| format!("\"http://{}:2379\"", self.network.address(name)));
        let in_folder = |(name, _): &(&str, u64)| format!("{:?}", format!("{name}/{}", device::NAME));
        let devices: Vec<String> = match self.ground {
            Ground::Virtual => DEVICES.iter().map(in_folder).collect(),
            Ground::Pair => PAIR[..PAIR_USED].iter().map(in_folder).collect(),
            Ground::Any | Ground::Apart | Ground::Clocks | Ground::Small => {
                DEVICES.iter().map(|(name, _)| format!("\"{name}.img\"")).collect()
            }
        };
        let (log, capacity) = devices.split_first().expect("a host has a log device");
        let capacity = capacity.join(", ");
        let sizes = match self.ground {
            Ground::Virtual | Ground::Pair => "",
            Ground::Small => "log_size = \"128MiB\"\nfile_size = \"512MiB\"\n",
            Ground::Any | Ground::Apart | Ground::Clocks => "log_size = \"512MiB\"\nfile_size = \"8GiB\"\n",
        };
        let text = format!(
            "name = {host:?}\n\
             data_dir = \"d\"\n\
             [listen]\n\
             nbd = [\"unix:nbd.sock\", \"{address}:10809\"]\n\
             http = [\"unix:api.sock\", \"{address}:7443\"]\n\
             [cluster]\n\
             directory = \"etcd\"\n\
             peers = \"{address}:7400\"\n\
             [cluster.etcd]\n\
             endpoints = [{}]\n\
             prefix = \"/drystone/trial/\"\n\
             [memory]\n\
             buffers = \"256MiB\"\n\
             tables = \"128MiB\"\n\
             [[group]]\n\
             log = {log}\n\
             capacity = [{capacity}]\n\
             {sizes}\
             create = \"if-blank\"\n",
            endpoints.join(", ")
        );
        let path = own.join("host.toml");
        fs::write(&path, text).map_err(Failure::machine(format!("write {}", path.display())))
    }
}
