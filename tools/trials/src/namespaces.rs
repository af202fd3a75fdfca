//! Network namespaces, one for each machine of a trial, on one bridge: links that can be cut without touching a process.
//!
//! The bridge has a namespace of its own, so nothing of it is seen outside, and two trials may run at a time. All goes when
//! this is dropped. Needs root, `ip` and `nft`.

use crate::failure::Failure;
use crate::undo::Undo;
use std::process::Command;

/// What of a machine is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Everything.
    Both,
    /// What it sends.
    Sent,
    /// What it receives.
    Received,
}

/// Bytes of the queue before a narrow link, at least: the kernel hands over packets of up to 64 KiB.
const QUEUE_BYTES_MIN: u32 = 128 << 10;

/// Machines on one bridge, each with a namespace and an address.
pub struct Network {
    /// Begins the names of all namespaces.
    prefix: String,
    machines: Vec<String>,
    /// Ends with the namespaces.
    left: Vec<Undo>,
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in self.machines.iter().map(|machine| self.name(machine)).chain([self.name("bridge")]) {
            if let Err(failure) = ip(&format!("netns delete {name}")) {
                eprintln!("trials: {failure}");
            }
            let _ = std::fs::remove_dir_all(settings_folder(&name)); // Most have none.
        }
    }
}

fn run(program: &str, arguments: &[&str]) -> Result<(), Failure> {
    let mut command = Command::new(program);
    command.args(arguments).env("PATH", administrators_path());
    let line = format!("{program} {}", arguments.join(" "));
    let done = command.output().map_err(Failure::machine(format!("run {line}")))?;
    if done.status.success() {
        return Ok(());
    }
    Err(Failure::Refused(format!("{line}: {}", String::from_utf8_lossy(&done.stderr).trim())))
}

/// Where programs are looked for: tools of the administrator stand where only root looks.
pub fn administrators_path() -> String {
    format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}

/// What `ip netns exec` puts in the place of files of `/etc`.
fn settings_folder(name: &str) -> std::path::PathBuf {
    std::path::Path::new("/etc/netns").join(name)
}

/// Runs `ip` with the words of a line.
fn ip(line: &str) -> Result<(), Failure> {
    run("ip", &line.split(' ').collect::<Vec<_>>())
}

impl Network {
    /// Makes it for machines of these names.
    ///
    /// # Errors
    /// When the machine has no namespaces, or the programs are missing, or this is not root.
    pub fn new(machines: &[String]) -> Result<Network, Failure> {
        let prefix = format!("trials{}", std::process::id());
        let mut network = Network { prefix, machines: Vec::new(), left: Vec::new() };
        let bridge = network.name("bridge");
        network.add_namespace(&bridge)?;
        ip(&format!("-n {bridge} link add name bridge type bridge"))?;
        ip(&format!("-n {bridge} link set dev bridge up"))?;
        for machine in machines {
            network.add_namespace(&network.name(machine))?;
            network.machines.push(machine.clone());
            network.connect(&bridge, machine)?;
        }
        Ok(network)
    }

    fn add_namespace(&mut self, name: &str) -> Result<(), Failure> {
        ip(&format!("netns add {name}"))?;
        self.left.push(Undo::by(&["rm", "-rf", &settings_folder(name).display().to_string()]));
        self.left.push(Undo::by(&["ip", "netns", "delete", name]));
        Ok(())
    }

    fn name(&self, machine: &str) -> String {
        format!("{}-{machine}", self.prefix)
    }

    fn connect(&self, bridge: &str, machine: &str) -> Result<(), Failure> {
        let (name, address) = (self.name(machine), self.address(machine));
        ip(&format!("-n {bridge} link add name port-{machine} type veth peer name link netns {name}"))?;
        ip(&format!("-n {bridge} link set dev port-{machine} master bridge up"))?;
        ip(&format!("-n {name} link set dev lo up"))?;
        ip(&format!("-n {name} link set dev link up"))?;
        ip(&format!("-n {name} address add {address}/24 dev link"))?;
        self.rules(
            machine,
            "add table inet cut; \
             add chain inet cut sent { type filter hook output priority 0; }; \
             add chain inet cut received { type filter hook input priority 0; }",
        )
    }

    /// The address of a machine.
    ///
    /// # Panics
    /// When there is no such machine.
    pub fn address(&self, machine: &str) -> String {
        let index = self.machines.iter().position(|name| name == machine);
        format!("10.88.0.{}", index.expect("a machine of this network") + 1)
    }

    /// A program to be run on a machine. `ip` becomes it: the process keeps its number.
    pub fn command(&self, machine: &str, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.env("PATH", administrators_path());
        command.args(["netns", "exec", &self.name(machine)]).arg(program);
        command
    }

    /// Gives a machine an `/etc/hosts` of its own.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn set_hosts(&self, machine: &str, lines: &str) -> Result<(), Failure> {
        let folder = settings_folder(&self.name(machine));
        let written = std::fs::create_dir_all(&folder)
            .and_then(|()| std::fs::write(folder.join("hosts"), format!("127.0.0.1 localhost\n{lines}\n")));
        written.map_err(Failure::machine(format!("write {}/hosts", folder.display())))
    }

    /// Sets a parameter of a machine's kernel, of those that each namespace has for itself.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn set_parameter(&self, machine: &str, name: &str, value: u32) -> Result<(), Failure> {
        let setting = format!("{name}={value}");
        run("ip", &["netns", "exec", &self.name(machine), "sysctl", "-qw", &setting])
    }

    /// Changes what a machine's packets are told.
    fn rules(&self, machine: &str, rules: &str) -> Result<(), Failure> {
        run("ip", &["netns", "exec", &self.name(machine), "nft", rules])
    }

    /// Cuts a machine off from all others: drops its packets.
    ///
    /// # Errors
    /// When `nft` refuses.
    pub fn cut(&self, machine: &str, cut: Cut) -> Result<(), Failure> {
        let mut rules = Vec::new();
        if cut != Cut::Received {
            rules.push("add rule inet cut sent oifname \"link\" drop");
        }
        if cut != Cut::Sent {
            rules.push("add rule inet cut received iifname \"link\" drop");
        }
        self.rules(machine, &rules.join("; "))
    }

    /// Cuts a machine off from some others, both ways.
    ///
    /// # Errors
    /// When `nft` refuses.
    pub fn part(&self, machine: &str, others: &[String]) -> Result<(), Failure> {
        for other in others {
            let address = self.address(other);
            self.rules(
                machine,
                &format!(
                    "add rule inet cut sent ip daddr {address} drop; add rule inet cut received ip saddr {address} drop"
                ),
            )?;
        }
        Ok(())
    }

    /// Makes the link of a machine narrow, both ways: so many kilobits a second, and a queue of a tenth of a second, as
    /// switches have; what finds it full is dropped. With `others`, only what goes to these and comes from them.
    ///
    /// # Errors
    /// When `tc` refuses.
    pub fn narrow(&self, machine: &str, others: &[String], kilobits: u32) -> Result<(), Failure> {
        let port = format!("port-{machine}");
        // What a machine sends is shaped where it sends; what it receives, where the bridge sends.
        let sides = [(self.name(machine), "link", "dst"), (self.name("bridge"), port.as_str(), "src")];
        let queue = QUEUE_BYTES_MIN.max(kilobits * 1000 / 8 / 10);
        for (space, device, side) in sides {
            let tc = |line: String| self.tc(&space, &line);
            let default = if others.is_empty() { 2 } else { 1 };
            tc(format!("qdisc add dev {device} root handle 1: htb default {default}"))?;
            tc(format!("class add dev {device} parent 1: classid 1:1 htb rate 10gbit quantum 60000"))?;
            tc(format!(
                "class add dev {device} parent 1: classid 1:2 htb rate {kilobits}kbit burst 64k quantum 1514"
            ))?;
            tc(format!("qdisc add dev {device} parent 1:2 handle 2: bfifo limit {queue}"))?;
            for other in others {
                let address = self.address(other);
                tc(format!(
                    "filter add dev {device} parent 1: protocol ip prio 1 u32 match ip {side} {address}/32 flowid 1:2"
                ))?;
            }
        }
        Ok(())
    }

    /// Makes the link of a machine wide again.
    ///
    /// # Errors
    /// When `tc` refuses, as when it was never narrow.
    pub fn widen(&self, machine: &str) -> Result<(), Failure> {
        self.tc(&self.name(machine), "qdisc del dev link root")?;
        self.tc(&self.name("bridge"), &format!("qdisc del dev port-{machine} root"))
    }

    /// Runs `tc` with the words of a line.
    fn tc(&self, space: &str, line: &str) -> Result<(), Failure> {
        let words: Vec<&str> = ["-n", space].into_iter().chain(line.split(' ')).collect();
        run("tc", &words)
    }

    /// Lets everything of a machine through again.
    ///
    /// # Errors
    /// When `nft` refuses.
    pub fn mend(&self, machine: &str) -> Result<(), Failure> {
        self.rules(machine, "flush table inet cut")
    }
}
