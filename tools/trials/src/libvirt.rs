//! A daemon of libvirt of our own, and a machine that it runs: from the text that `drystone attach` prints for libvirt.
//!
//! The daemon has a mount namespace in which its folders are empty, so nothing of this machine's own libvirt is seen or changed;
//! it is asked at a socket in the trial's folder. Dropped, the machine is destroyed and the daemon ends.

use crate::cluster::{end_with_parent, wait_for};
use crate::failure::Failure;
use crate::machine::Image;
use crate::undo::Undo;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Folders that a daemon of libvirt writes to, and its configuration.
const FOLDERS: &str = "/run/libvirt /var/lib/libvirt /var/log/libvirt /var/cache/libvirt /etc/libvirt";
/// What it needs where there is no systemd, no virtlogd and no control groups.
const QEMU_CONF: &str = "user = \"root\"\ngroup = \"root\"\nsecurity_driver = \"none\"\nstdio_handler = \"file\"\n\
                         cgroup_controllers = []\nnamespaces = []\n";
/// The name of the machine.
const NAME: &str = "guest";

/// A daemon with at most one machine.
pub struct Libvirt {
    daemon: Child,
    folder: PathBuf,
    /// The machine's process outlives the daemon.
    _undo: Undo,
}

impl Drop for Libvirt {
    fn drop(&mut self) {
        let _ = self.virsh(&["destroy", NAME]);
        // Both fail only when it has ended already.
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

impl Libvirt {
    /// Starts the daemon with its files in a folder.
    ///
    /// # Errors
    /// When there is none, or it does not begin to answer.
    pub fn start(folder: &Path) -> Result<Libvirt, Failure> {
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).map_err(Failure::machine(format!("write {}", path.display())))
        };
        let at = folder.display();
        let access = "auth_unix_rw = \"none\"\nauth_unix_ro = \"none\"\n";
        write("libvirtd.conf", &format!("unix_sock_dir = \"{at}\"\n{access}"))?;
        write("qemu.conf", QEMU_CONF)?;
        let script = format!(
            "set -e; mount --make-rprivate /; mkdir -p {FOLDERS}; for one in {FOLDERS}; do mount -t tmpfs none $one; done; \
             cp '{at}/qemu.conf' /etc/libvirt/qemu.conf; exec libvirtd --config '{at}/libvirtd.conf' --pid-file '{at}/libvirtd.pid'"
        );
        let log = File::create(folder.join("libvirtd.log")).map_err(Failure::machine("make a log"))?;
        let errors = log.try_clone().map_err(Failure::machine("open a log twice"))?;
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &script]);
        command.stdin(Stdio::null()).stdout(log).stderr(errors);
        let daemon = end_with_parent(&mut command).spawn();
        let daemon = daemon.map_err(Failure::machine("run unshare, of the Debian package util-linux"))?;
        let undo = Undo::by(&["virsh", "-c", &uri(folder), "destroy", NAME]);
        let mut libvirt = Libvirt { daemon, folder: folder.to_owned(), _undo: undo };
        wait_for("libvirt answers", || match libvirt.daemon.try_wait() {
            Ok(None) => Ok(libvirt.virsh(&["version"]).is_ok().then_some(())),
            _ => Err(Failure::Refused(format!(
                "libvirtd ended (Debian packages libvirt-daemon and libvirt-clients): {}",
                fs::read_to_string(folder.join("libvirtd.log")).unwrap_or_default().trim()
            ))),
        })?;
        Ok(libvirt)
    }

    /// Starts a machine with the elements of a disk as they were printed.
    ///
    /// # Errors
    /// When libvirt refuses it.
    pub fn create(&self, image: &Image, printed: &str) -> Result<(), Failure> {
        let path = self.folder.join("domain.xml");
        let text = domain(image, &self.console(), printed);
        fs::write(&path, text).map_err(Failure::machine(format!("write {}", path.display())))?;
        self.virsh(&["create", "--validate", &path.display().to_string()])
    }

    /// Types a line at the guest's console.
    ///
    /// # Errors
    /// When the machine is gone.
    pub fn type_line(&self, line: &str) -> Result<(), Failure> {
        let typed = UnixStream::connect(self.console()).and_then(|mut console| writeln!(console, "{line}"));
        typed.map_err(Failure::machine("type at the console of the guest"))
    }

    /// Waits until the guest has turned the machine off.
    ///
    /// # Errors
    /// When it does not.
    pub fn wait_until_off(&self) -> Result<(), Failure> {
        wait_for("the guest turns its machine off", || {
            Ok(self.virsh(&["domstate", NAME]).is_err().then_some(()))
        })
    }

    fn console(&self) -> PathBuf {
        self.folder.join("console.sock")
    }

    fn virsh(&self, words: &[&str]) -> Result<(), Failure> {
        let done =
            Command::new("virsh").args(["-c", &uri(&self.folder)]).args(words).stdin(Stdio::null()).output();
        let done = done.map_err(Failure::machine("run virsh, of the Debian package libvirt-clients"))?;
        match done.status.success() {
            true => Ok(()),
            false => Err(Failure::Refused(format!(
                "virsh {}: {}",
                words.join(" "),
                String::from_utf8_lossy(&done.stderr).trim()
            ))),
        }
    }
}

/// Where a daemon with its files in that folder is asked.
fn uri(folder: &Path) -> String {
    format!("qemu+unix:///system?socket={}/libvirt-sock", folder.display())
}

/// A machine as libvirt describes it. An element of a disk goes among the devices, arguments of QEMU behind them.
fn domain(image: &Image, console: &Path, printed: &str) -> String {
    let (device, arguments) = match printed.trim_start().starts_with("<disk") {
        true => (printed, ""),
        false => ("", printed),
    };
    format!(
        "<domain type='qemu'><name>{NAME}</name><memory unit='MiB'>192</memory><vcpu>1</vcpu>\n\
         <os><type arch='x86_64' machine='pc'>hvm</type><kernel>{}</kernel><initrd>{}</initrd><cmdline>{}</cmdline></os>\n\
         <features><acpi/></features>\n\
         <on_poweroff>destroy</on_poweroff><on_reboot>destroy</on_reboot><on_crash>destroy</on_crash>\n\
         <devices><emulator>/usr/bin/qemu-system-x86_64</emulator>\n\
         <serial type='unix'><source mode='bind' path='{}'/><log file='{}' append='on'/></serial>\n{device}</devices>\n\
         {arguments}</domain>\n",
        image.kernel().display(),
        image.archive().display(),
        image.command_line(),
        console.display(),
        image.console_log().display()
    )
}
