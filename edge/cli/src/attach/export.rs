//! What a guest asks for, and how QEMU and libvirt name it.

use clap::{Args, ValueEnum};
use frontends::nbd;
use std::path::PathBuf;
use std::time::Duration;

/// Seconds that QEMU and libvirt keep a guest's requests while its host's daemon is restarted, before the guest sees errors.
pub const RECONNECT_SECONDS: u32 = 300;

/// Options of `attach`.
#[derive(Debug, Args)]
pub struct AttachOptions {
    /// Name or id of the disk.
    pub disk: String,
    /// Host that the guest runs on [default: the host that is asked].
    #[arg(long)]
    pub host: Option<String>,
    /// Name that stands for all hosts, so that the guest continues at another host when its own is lost [default without a
    /// value: host.drystone.internal].
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = trust::SHARED_NAME, conflicts_with = "host")]
    pub by_name: Option<String>,
    /// Folder of the certificate that the guest shows, with `--by-name` [default: that of the host that is asked, or yours].
    #[arg(long, value_name = "DIR", requires = "by_name")]
    pub credentials: Option<PathBuf>,
    /// Time without an answer after which a request ends with an I/O error, e.g. 30s or 5m (5s to 24h) [default: requests wait
    /// until the disk is served again].
    #[arg(long, value_name = "TIME", value_parser = nbd::parse_error_after)]
    pub error_after: Option<Duration>,
    /// Form to print alone, with nothing around it.
    #[arg(long, value_enum)]
    pub format: Option<Format>,
}

/// What the text is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The NBD URI.
    Uri,
    /// Options of QEMU.
    Qemu,
    /// A `<disk>` element of libvirt. The guest sees errors while the host's daemon restarts.
    Libvirt,
    /// Arguments of QEMU in libvirt's XML. The guest waits while the host's daemon restarts.
    LibvirtArguments,
    /// A line of a Proxmox machine's configuration.
    Proxmox,
    /// With `--by-name`: lines of `/etc/hosts` that give the name its addresses.
    Hosts,
}

/// A disk, and what a guest asks for with it.
#[derive(Debug, Clone)]
pub struct Export {
    /// The disk.
    pub disk: String,
    /// The name by which clients ask for it.
    pub name: String,
    /// What a guest sees when its disk gives no answer.
    pub errors: Option<Duration>,
}

impl Export {
    /// A disk as the options ask for it.
    pub fn of(options: &AttachOptions, disk: &str) -> Export {
        let errors = options.error_after;
        let name = errors.map_or_else(|| disk.to_owned(), |after| nbd::with_error_after(disk, after));
        Export { disk: disk.to_owned(), name, errors }
    }

    /// What is told in front of the texts.
    pub fn text(&self) -> String {
        match self.errors {
            None => "Requests wait while the disk gives no answer (--error-after changes this).".to_owned(),
            Some(after) => format!(
                "Requests end with an I/O error after {} s without an answer. They may take effect later all the same.",
                after.as_secs()
            ),
        }
    }
}

/// QEMU wants a letter first, and takes 31 characters.
pub fn node_name(disk: &str) -> String {
    format!("disk-{}", short(disk, 26))
}

/// What a guest finds the disk by (`/dev/disk/by-id/virtio-…`): virtio carries 20 bytes of it.
pub fn serial(disk: &str) -> String {
    short(disk, 20)
}

/// A name in so many characters: itself if it fits, or else its beginning and a hash of all of it, so that two disks whose names begin
/// alike differ.
fn short(name: &str, length: usize) -> String {
    const HASH_DIGITS: usize = 10;
    if name.len() <= length {
        return name.to_owned();
    }
    let hash = trust::Fingerprint::of(name.as_bytes()).to_string();
    format!("{}-{}", &name[..length - HASH_DIGITS - 1], &hash[..HASH_DIGITS])
}

/// Where a disk's device stands on the bus of a machine of libvirt. libvirt gives its own devices addresses from 2 on and does not know of
/// devices among arguments: without an address QEMU gives the disk the first free one, which libvirt gives to another. Each disk of
/// a guest needs an address of its own; these are taken by nothing on the machines `pc` and `q35`.
pub fn slot(disk: &str) -> u8 {
    const SLOTS: std::ops::Range<u8> = 0x10..0x19;
    let digest = trust::Fingerprint::of(disk.as_bytes()).to_string();
    let sum: u32 = digest.bytes().take(8).map(u32::from).sum();
    SLOTS.start + (sum % u32::from(SLOTS.end - SLOTS.start)) as u8
}

/// QEMU's options as an element of libvirt. libvirt 9.0 (Debian 12) has no word for a guest that waits while its host's daemon restarts.
pub fn libvirt_arguments(qemu: &str, disk: &str) -> String {
    let qemu = format!("{qemu},addr={:#x}", slot(disk));
    let arguments = qemu.split(' ').map(|word| format!("  <qemu:arg value='{}'/>\n", escaped(word)));
    let arguments: String = arguments.collect();
    format!(
        "<qemu:commandline xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>\n{arguments}</qemu:commandline>"
    )
}

/// As text of XML.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('\'', "&apos;")
}
