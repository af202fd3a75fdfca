//! Network namespaces, one for each host, on one bridge: links that can be cut without touching a process.
//!
//! Hosts let each other in on loopback addresses alone, so those of 127.1.0.0/24 are routed between the namespaces
//! (`route_localnet`). The directory is reached through a relay. Everything stands in namespaces of this process's own naming and goes with them. Needs root, `ip` and
//! `nft`.

use crate::cluster::end_with_parent;
use crate::failure::Failure;
use crate::relay::Relay;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// What of a host is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Everything.
    Both,
    /// What it sends.
    Sent,
    /// What it is sent.
    Received,
}

/// The namespaces of a cluster, and the processes in them.
pub struct Namespaces {
    program: PathBuf,
    /// Begins the names of all.
    prefix: String,
    hosts: Vec<String>,
    children: BTreeMap<String, Child>,
    /// The way of each host to the directory.
    relays: BTreeMap<String, Relay>,
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for child in self.children.values_mut() {
            // Both fail only when it has ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
        for name in self.hosts.iter().map(|host| self.name(host)).chain([self.name("bridge")]) {
            if let Err(failure) = ip(&format!("netns delete {name}")) {
                eprintln!("trials: {failure}");
            }
        }
    }
}

fn run(program: &str, arguments: &[&str]) -> Result<(), Failure> {
    let mut command = Command::new(program);
    // Tools of the administrator stand where only root looks.
    let path = std::env::var("PATH").unwrap_or_default();
    command.args(arguments).env("PATH", format!("{path}:/usr/sbin:/sbin"));
    let line = format!("{program} {}", arguments.join(" "));
    let done = command.output().map_err(Failure::machine(format!("run {line}")))?;
    if done.status.success() {
        return Ok(());
    }
    Err(Failure::Refused(format!("{line}: {}", String::from_utf8_lossy(&done.stderr).trim())))
}

/// Runs `ip` with the words of a line.
fn ip(line: &str) -> Result<(), Failure> {
    run("ip", &line.split(' ').collect::<Vec<_>>())
}

impl Namespaces {
    /// Makes them for so many hosts, and the hosts' configurations in a folder.
    ///
    /// # Errors
    /// When the machine has no namespaces, or the programs are missing, or this is not root.
    pub fn new(program: &Path, folder: &Path, count: usize) -> Result<Namespaces, Failure> {
        let mut namespaces = Namespaces {
            program: program.to_owned(),
            prefix: format!("trials{}", std::process::id()),
            hosts: Vec::new(),
            children: BTreeMap::new(),
            relays: BTreeMap::new(),
        };
        let bridge = namespaces.name("bridge");
        ip(&format!("netns add {bridge}"))?;
        ip(&format!("-n {bridge} link add name bridge type bridge"))?;
        ip(&format!("-n {bridge} link set dev bridge up"))?;
        for index in 0..count {
            let host = char::from(b'a' + index as u8).to_string();
            let name = namespaces.name(&host);
            ip(&format!("netns add {name}"))?;
            namespaces.hosts.push(host.clone());
            namespaces.connect(&bridge, &host, &name, &address(index))?;
            let socket = write_config(folder, &host, &address(index))?;
            namespaces.relays.insert(host, Relay::start(&socket, folder.join("demo.sock"))?);
        }
        Ok(namespaces)
    }

    fn name(&self, host: &str) -> String {
        format!("{}-{host}", self.prefix)
    }

    fn connect(&self, bridge: &str, host: &str, name: &str, address: &str) -> Result<(), Failure> {
        ip(&format!("-n {bridge} link add name port-{host} type veth peer name link netns {name}"))?;
        ip(&format!("-n {bridge} link set dev port-{host} master bridge up"))?;
        for place in ["all", "link"] {
            ip(&format!("netns exec {name} sysctl -q -w net.ipv4.conf.{place}.route_localnet=1"))?;
        }
        ip(&format!("-n {name} link set dev lo up"))?;
        ip(&format!("-n {name} link set dev link up"))?;
        // All of 127.0.0.0/8 is the host's own; leave it 127.0.0.1 and its address, and find the others by the link.
        ip(&format!("-n {name} address add {address}/32 dev lo"))?;
        ip(&format!("-n {name} route delete table local local 127.0.0.0/8 dev lo"))?;
        ip(&format!("-n {name} route add 127.1.0.0/24 dev link scope link src {address}"))?;
        self.rules(
            host,
            "add table inet cut; \
             add chain inet cut sent { type filter hook output priority 0; }; \
             add chain inet cut received { type filter hook input priority 0; }",
        )
    }

    /// Changes what a host's packets are told.
    fn rules(&self, host: &str, rules: &str) -> Result<(), Failure> {
        run("ip", &["netns", "exec", &self.name(host), "nft", rules])
    }

    /// The process of a host, if it was started here.
    pub fn process(&self, host: &str) -> Option<u32> {
        self.children.get(host).map(Child::id)
    }

    /// Starts a host in its namespace. Its folder has its configuration.
    ///
    /// # Errors
    /// When the machine has no process left.
    pub fn start(&mut self, host: &str, folder: &Path) -> Result<(), Failure> {
        if let Some(mut former) = self.children.remove(host) {
            former.wait().map_err(Failure::machine(format!("wait for host {host}")))?;
        }
        let log = File::options().create(true).append(true).open(folder.join("log"));
        let log = log.map_err(Failure::machine(format!("open the log of host {host}")))?;
        let mut command = Command::new("ip");
        // `ip` becomes the host: the process keeps its number.
        command.args(["netns", "exec", &self.name(host)]).arg(&self.program);
        command.args(["host", "--config"]).arg(folder.join("host.toml"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let child = end_with_parent(&mut command).spawn();
        self.children.insert(host.to_owned(), child.map_err(Failure::machine(format!("start host {host}")))?);
        Ok(())
    }

    /// Cuts a host off from all others and from the directory: drops its packets, and holds up what its relay has.
    ///
    /// # Errors
    /// When `nft` refuses.
    pub fn cut(&self, host: &str, cut: Cut) -> Result<(), Failure> {
        self.relays.get(host).into_iter().for_each(|relay| relay.cut(cut));
        let mut rules = Vec::new();
        if cut != Cut::Received {
            rules.push("add rule inet cut sent oifname \"link\" drop");
        }
        if cut != Cut::Sent {
            rules.push("add rule inet cut received iifname \"link\" drop");
        }
        self.rules(host, &rules.join("; "))
    }

    /// Lets everything of a host through again.
    ///
    /// # Errors
    /// When `nft` refuses.
    pub fn mend(&self, host: &str) -> Result<(), Failure> {
        self.relays.get(host).into_iter().for_each(Relay::mend);
        self.rules(host, "flush table inet cut")
    }
}

/// The address of the host of that number.
fn address(index: usize) -> String {
    format!("127.1.0.{}", index + 1)
}

/// Writes the configuration of a host that listens for others at an address that is routed. Gives the socket of its relay to
/// the directory.
fn write_config(folder: &Path, name: &str, address: &str) -> Result<PathBuf, Failure> {
    let own = folder.join(name);
    fs::create_dir_all(&own).map_err(Failure::machine(format!("make {}", own.display())))?;
    let socket = own.join("directory.sock");
    let text = format!(
        "name = {name:?}\n\
         data_dir = \"d\"\n\
         [listen]\n\
         nbd = [\"unix:nbd.sock\"]\n\
         [cluster]\n\
         directory = \"unix:{}\"\n\
         peers = \"{address}:0\"\n\
         [memory]\n\
         buffers = \"256MiB\"\n\
         tables = \"128MiB\"\n\
         [[group]]\n\
         log = \"log.img\"\n\
         capacity = [\"capacity.img\"]\n\
         log_size = \"512MiB\"\n\
         file_size = \"8GiB\"\n\
         create = \"if-blank\"\n",
        socket.display(),
    );
    let path = own.join("host.toml");
    fs::write(&path, text).map_err(Failure::machine(format!("write {}", path.display())))?;
    Ok(socket)
}
