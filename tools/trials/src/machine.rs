//! A virtual machine of QEMU: its process, its orders by QMP, its console.
//!
//! Emulated (`accel=tcg`), so that it runs wherever trials run. Dropped, the process is killed.

use crate::archive::Archive;
use crate::cluster::{end_with_parent, wait_for};
use crate::failure::Failure;
use crate::guest;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How long an order may take.
const ORDER_WAIT: Duration = Duration::from_secs(60);
/// The most that a machine may stand still while it moves, milliseconds: QEMU's own usual.
const DOWNTIME_MS: u64 = 300;

/// What every machine of a trial is started from.
#[derive(Debug, Clone)]
pub struct Image {
    folder: PathBuf,
    kernel: PathBuf,
    archive: PathBuf,
    campaign: u64,
}

/// A migration that is over.
#[derive(Debug, Clone, Copy)]
pub struct Moved {
    /// How long the guest stood still, milliseconds.
    pub downtime_ms: f64,
    /// How long all of it took, milliseconds.
    pub total_ms: f64,
}

/// A machine.
pub struct Machine {
    process: Child,
    orders: BufReader<UnixStream>,
    console: PathBuf,
    /// Where it listens for a machine that moves here.
    incoming: PathBuf,
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Image {
    /// Makes the guest's file system in a folder, of this program and the modules of a kernel below `root`.
    ///
    /// # Errors
    /// When there is no such kernel.
    pub fn make(folder: &Path, root: &Path, campaign: u64) -> Result<Image, Failure> {
        let (kernel, version) = find_kernel(root)?;
        let mut archive = Archive::default();
        for path in ["dev", "proc", "sys", "modules"] {
            archive.directory(path);
        }
        for (index, module) in guest::MODULES.iter().enumerate() {
            let path = root.join(format!("lib/modules/{version}/kernel/drivers/{module}"));
            archive.file(&format!("modules/{index}"), &read(&path)?);
        }
        let own = std::env::current_exe().map_err(Failure::machine("find this program"))?;
        archive.file(guest::NAME.trim_start_matches('/'), &read(&own)?);
        let mut known: Vec<String> = Vec::new();
        for library in libraries(&own)? {
            let path = library.trim_start_matches('/').to_owned();
            for (at, _) in path.match_indices('/') {
                if !known.iter().any(|known| known == &path[..at]) {
                    archive.directory(&path[..at]);
                    known.push(path[..at].to_owned());
                }
            }
            archive.file(&path, &read(Path::new(&library))?);
        }
        let path = folder.join("guest.cpio");
        fs::write(&path, archive.finish()).map_err(Failure::machine(format!("write {}", path.display())))?;
        Ok(Image { folder: folder.to_owned(), kernel, archive: path, campaign })
    }

    /// Where all machines write what the guest says.
    pub fn console_log(&self) -> PathBuf {
        self.folder.join("console.log")
    }

    /// The kernel.
    pub fn kernel(&self) -> &Path {
        &self.kernel
    }

    /// The guest's file system.
    pub fn archive(&self) -> &Path {
        &self.archive
    }

    /// What the kernel is told.
    pub fn command_line(&self) -> String {
        format!("console=ttyS0 quiet panic=-1 no_timer_check {}{}", guest::CAMPAIGN, self.campaign)
    }

    /// Starts a machine with a disk at an NBD socket; one that waits for another to move here does nothing yet.
    ///
    /// # Errors
    /// When QEMU is not there or refuses.
    pub fn start(
        &self,
        number: usize,
        socket: &Path,
        disk: &str,
        is_target: bool,
    ) -> Result<Machine, Failure> {
        let at = |what: &str| self.folder.join(format!("machine-{number}.{what}"));
        let (orders, console, incoming) = (at("qmp"), at("console"), at("incoming"));
        let log = File::create(at("log")).map_err(Failure::machine("make a log"))?;
        let mut command = Command::new("qemu-system-x86_64");
        command.args([
            "-machine",
            "pc,accel=tcg",
            "-m",
            "192M",
            "-smp",
            "1",
            "-nodefaults",
            "-display",
            "none",
        ]);
        command.args(["-no-reboot", "-no-user-config"]);
        command.arg("-kernel").arg(&self.kernel).arg("-initrd").arg(&self.archive);
        command.args(["-append", &self.command_line()]);
        let drive = format!(
            "driver=nbd,node-name=disk,server.type=unix,server.path={},export={disk},cache.direct=on",
            socket.display()
        );
        command.args(["-blockdev", &drive, "-device", "virtio-blk-pci,drive=disk"]);
        let serial = format!(
            "socket,id=console,server=on,wait=off,path={},logfile={},logappend=on",
            console.display(),
            self.console_log().display()
        );
        command.args(["-chardev", &serial, "-serial", "chardev:console"]);
        command.args(["-qmp", &format!("unix:{},server=on,wait=off", orders.display())]);
        if is_target {
            command.args(["-incoming", &format!("unix:{}", incoming.display())]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let process = end_with_parent(&mut command).spawn();
        let mut process = process
            .map_err(Failure::machine("run qemu-system-x86_64, of the Debian package qemu-system-x86"))?;
        let stream = wait_for("QEMU listens", || match process.try_wait() {
            Ok(None) => Ok(UnixStream::connect(&orders).ok()),
            _ => Err(Failure::Refused(format!(
                "QEMU ended: {}",
                fs::read_to_string(at("log")).unwrap_or_default().trim()
            ))),
        })?;
        stream.set_read_timeout(Some(ORDER_WAIT)).map_err(Failure::machine("set a timeout"))?;
        let mut machine = Machine { process, orders: BufReader::new(stream), console, incoming };
        machine.order("qmp_capabilities", json!({}))?;
        Ok(machine)
    }
}

impl Machine {
    /// Gives an order and waits for its answer.
    ///
    /// # Errors
    /// When QEMU refuses or is gone.
    fn order(&mut self, name: &str, arguments: Value) -> Result<Value, Failure> {
        let failed = |why: String| Failure::Refused(format!("QEMU, told to {name}: {why}"));
        let order = json!({ "execute": name, "arguments": arguments }).to_string();
        let sent = self.orders.get_mut().write_all(order.as_bytes());
        sent.map_err(|error| failed(error.to_string()))?;
        loop {
            let mut line = String::new();
            let count = self.orders.read_line(&mut line).map_err(|error| failed(error.to_string()))?;
            if count == 0 {
                return Err(failed("it is gone".to_owned()));
            }
            let mut answer: Value = serde_json::from_str(&line).map_err(|error| failed(error.to_string()))?;
            // Greetings and events have neither.
            if !answer["error"].is_null() {
                return Err(failed(answer["error"].to_string()));
            }
            if answer.get("return").is_some() {
                return Ok(answer["return"].take());
            }
        }
    }

    /// Moves the guest to a machine that waits for it, while it runs.
    ///
    /// # Errors
    /// When it does not arrive.
    pub fn migrate(&mut self, target: &mut Machine) -> Result<Moved, Failure> {
        let parameters = json!({ "downtime-limit": DOWNTIME_MS, "max-bandwidth": 1_u64 << 30 });
        self.order("migrate-set-parameters", parameters)?;
        self.order("migrate", json!({ "uri": format!("unix:{}", target.incoming.display()) }))?;
        let moved = wait_for("the guest has moved", || {
            let state = self.order("query-migrate", json!({}))?;
            match state["status"].as_str() {
                Some("completed") => Ok(Some(Moved {
                    downtime_ms: state["downtime"].as_f64().unwrap_or_default(),
                    total_ms: state["total-time"].as_f64().unwrap_or_default(),
                })),
                Some("failed" | "cancelled") => {
                    Err(Failure::Refused(format!("the migration failed: {state}")))
                }
                _ => Ok(None),
            }
        })?;
        wait_for("the guest runs where it moved to", || {
            let state = target.order("query-status", json!({}))?;
            Ok((state["status"] == "running").then_some(()))
        })?;
        Ok(moved)
    }

    /// Types a line at the guest's console.
    ///
    /// # Errors
    /// When QEMU is gone.
    pub fn type_line(&self, line: &str) -> Result<(), Failure> {
        let typed = UnixStream::connect(&self.console).and_then(|mut console| writeln!(console, "{line}"));
        typed.map_err(Failure::machine("type at the console of the guest"))
    }

    /// Waits until the guest has turned the machine off.
    ///
    /// # Errors
    /// When it does not.
    pub fn wait_until_off(&mut self) -> Result<(), Failure> {
        wait_for("the guest turns its machine off", || {
            let ended = self.process.try_wait().map_err(Failure::machine("wait for QEMU"))?;
            Ok(ended.map(drop))
        })
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(Failure::machine(format!("read {}", path.display())))
}

/// The newest of Debian's kernels for machines in clouds below a folder, and its version.
fn find_kernel(root: &Path) -> Result<(PathBuf, String), Failure> {
    let entries = fs::read_dir(root.join("boot")).into_iter().flatten().flatten();
    let version = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.strip_prefix("vmlinuz-")?.to_owned();
        name.ends_with("cloud-amd64").then_some((path, name))
    };
    entries.map(|entry| entry.path()).filter_map(version).max().ok_or_else(|| {
        Failure::Usage(format!(
            "there is no {}/boot/vmlinuz-*-cloud-amd64: `apt-get download` the package that linux-image-cloud-amd64 \
             depends on, `dpkg-deb -x` it into a folder, and name that with --kernel",
            root.display().to_string().trim_end_matches('/')
        ))
    })
}

/// The libraries that a program needs.
fn libraries(program: &Path) -> Result<Vec<String>, Failure> {
    let done = Command::new("ldd").arg(program).output().map_err(Failure::machine("run ldd"))?;
    Ok(paths_in(&String::from_utf8_lossy(&done.stdout)))
}

fn paths_in(said: &str) -> Vec<String> {
    let path = |line: &str| line.split_whitespace().find(|word| word.starts_with('/')).map(str::to_owned);
    said.lines().filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_libraries_are_read_from_what_ldd_says() {
        let said = "\tlinux-vdso.so.1 (0x00007ffc)\n\
                    \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        assert_eq!(paths_in(said), ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"]);
    }
}
