//! Network namespaces, one for each host, on one bridge: links that can be cut without touching a process.
//!
//! Hosts let each other in on loopback addresses alone, so those of 127.1.0.0/24 are routed between the namespaces
//! (`route_localnet`). Everything stands in namespaces of this process's own naming and goes with them. Needs root, `ip` and
//! `nft`.

use crate::cluster::end_with_parent;
use crate::failure::Failure;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Which packets of a host are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// All.
    Both,
    /// Those that it sends.
    Sent,
    /// Those that it is sent.
    Received,
}

/// The namespaces of a cluster, and the processes in them.
pub struct Namespaces {
    program: PathBuf,
    /// Begins the names of all.
    prefix: String,
    hosts: Vec<String>,
    children: BTreeMap<String, Child>,
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for child in self.children.values_mut() {
            // Both fail only when it has ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
        for name in self.hosts.iter().map(|host| self.name(host)).chain([self.name("bridge")]) {
            if let Err(failure) = run("ip", &["netns", "delete", &name]) {
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

impl Namespaces {
    /// Makes them for these hosts.
    ///
    /// # Errors
    /// When the machine has no namespaces, or the programs are missing, or this is not root.
    pub fn new(program: &Path, hosts: &[String]) -> Result<Namespaces, Failure> {
        let mut namespaces = Namespaces {
            program: program.to_owned(),
            prefix: format!("trials{}", std::process::id()),
            hosts: Vec::new(),
            children: BTreeMap::new(),
        };
        let bridge = namespaces.name("bridge");
        run("ip", &["netns", "add", &bridge])?;
        run("ip", &["-n", &bridge, "link", "add", "bridge", "type", "bridge"])?;
        run("ip", &["-n", &bridge, "link", "set", "bridge", "up"])?;
        for (index, host) in hosts.iter().enumerate() {
            let name = namespaces.name(host);
            run("ip", &["netns", "add", &name])?;
            namespaces.hosts.push(host.clone());
            namespaces.connect(&bridge, host, &name, &address(index))?;
        }
        Ok(namespaces)
    }

    fn name(&self, host: &str) -> String {
        format!("{}-{host}", self.prefix)
    }

    fn connect(&self, bridge: &str, host: &str, name: &str, address: &str) -> Result<(), Failure> {
        run(
            "ip",
            &["-n", bridge, "link", "add", host, "type", "veth", "peer", "name", "link", "netns", name],
        )?;
        run("ip", &["-n", bridge, "link", "set", host, "master", "bridge", "up"])?;
        let local = |setting: &str| run("ip", &["netns", "exec", name, "sysctl", "-q", "-w", setting]);
        for setting in ["net.ipv4.conf.all.route_localnet=1", "net.ipv4.conf.link.route_localnet=1"] {
            local(setting)?;
        }
        run("ip", &["-n", name, "link", "set", "lo", "up"])?;
        run("ip", &["-n", name, "link", "set", "link", "up"])?;
        // All of 127.0.0.0/8 is this host's own; leave it 127.0.0.1 and its address, and find the others by the link.
        run("ip", &["-n", name, "address", "add", &format!("{address}/32"), "dev", "lo"])?;
        run("ip", &["-n", name, "route", "delete", "table", "local", "local", "127.0.0.0/8", "dev", "lo"])?;
        run(
            "ip",
            &["-n", name, "route", "add", "127.1.0.0/24", "dev", "link", "scope", "link", "src", address],
        )?;
        let rules = "add table inet cut; \
             add chain inet cut sent { type filter hook output priority 0; }; \
             add chain inet cut received { type filter hook input priority 0; }";
        run("ip", &["netns", "exec", name, "nft", rules])
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

    /// Drops packets of a host from now on.
    ///
    /// # Errors
    /// When `nft` refuses.
    pub fn cut(&self, host: &str, cut: Cut) -> Result<(), Failure> {
        let mut rules = Vec::new();
        if cut != Cut::Received {
            rules.push("add rule inet cut sent oifname \"link\" drop");
        }
        if cut != Cut::Sent {
            rules.push("add rule inet cut received iifname \"link\" drop");
        }
        run("ip", &["netns", "exec", &self.name(host), "nft", &rules.join("; ")])
    }

    /// Lets all packets of a host through again.
    ///
    /// # Errors
    /// When `nft` refuses.
    pub fn mend(&self, host: &str) -> Result<(), Failure> {
        run("ip", &["netns", "exec", &self.name(host), "nft", "flush table inet cut"])
    }
}

/// The address of the host of that number.
fn address(index: usize) -> String {
    format!("127.1.0.{}", index + 1)
}

/// Writes the configurations of hosts that listen for each other at addresses that are routed.
///
/// # Errors
/// When there is no room.
pub fn write_configs(folder: &Path, count: usize) -> Result<(), Failure> {
    for index in 0..count {
        let name = char::from(b'a' + index as u8).to_string();
        let own = folder.join(&name);
        fs::create_dir_all(&own).map_err(Failure::machine(format!("make {}", own.display())))?;
        let text = format!(
            "name = {name:?}\n\
             data_dir = \"d\"\n\
             [listen]\n\
             nbd = [\"unix:nbd.sock\"]\n\
             [cluster]\n\
             directory = \"unix:{}\"\n\
             peers = \"{}:0\"\n\
             [memory]\n\
             buffers = \"256MiB\"\n\
             tables = \"128MiB\"\n\
             [[group]]\n\
             log = \"log.img\"\n\
             capacity = [\"capacity.img\"]\n\
             log_size = \"512MiB\"\n\
             file_size = \"8GiB\"\n\
             create = \"if-blank\"\n",
            folder.join("demo.sock").display(),
            address(index)
        );
        let path = own.join("host.toml");
        fs::write(&path, text).map_err(Failure::machine(format!("write {}", path.display())))?;
    }
    Ok(())
}
