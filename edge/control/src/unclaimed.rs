//! Block devices of this machine that no disk group uses, and what holds those that cannot be taken.
//!
//! `lsblk` of util-linux, which every Debian has, knows them with their models, file systems and what is mounted; of its output all
//! is optional, for kernels and releases differ.

use crate::limits::LSBLK_WAIT;
use api::types::UnclaimedDevice;
use failure::Failure;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// What `lsblk` is asked for.
const COLUMNS: &str = "PATH,TYPE,SIZE,MODEL,SERIAL,ROTA,RO,FSTYPE,PTTYPE,MOUNTPOINTS";

/// Kinds that hold data of their own: not CD drives, and nothing that is only another way to a disk (multipath).
const KINDS: [&str; 5] = ["disk", "part", "crypt", "lvm", "loop"];

/// Devices in memory, which a group would lose with the next start.
const IN_MEMORY: [&str; 2] = ["/dev/ram", "/dev/zram"];

#[derive(Debug, Deserialize)]
struct Listing {
    blockdevices: Vec<Node>,
}

/// A device, with what stands on it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Node {
    path: PathBuf,
    r#type: String,
    size: Option<u64>,
    model: Option<String>,
    serial: Option<String>,
    rota: Option<bool>,
    ro: Option<bool>,
    fstype: Option<String>,
    pttype: Option<String>,
    mountpoints: Vec<Option<String>>,
    children: Vec<Node>,
}

/// Devices that no group uses; `taken`: those of groups.
///
/// # Errors
/// When `lsblk` is missing, breaks, or takes long, as it does where a device does not answer.
pub async fn unclaimed(taken: &[PathBuf]) -> Result<Vec<UnclaimedDevice>, Failure> {
    let mut lsblk = tokio::process::Command::new("lsblk");
    lsblk.args(["--json", "--bytes", "--output", COLUMNS]);
    lsblk.stdin(Stdio::null()).kill_on_drop(true);
    let what = "list block devices with lsblk";
    let done = tokio::time::timeout(LSBLK_WAIT, lsblk.output()).await;
    let done = done.map_err(|_| Failure::failed(what, format!("no answer in {} s", LSBLK_WAIT.as_secs())))?;
    let done = done.map_err(|error| Failure::failed(what, error).hint("install the package util-linux"))?;
    if !done.status.success() {
        return Err(Failure::failed(what, String::from_utf8_lossy(&done.stderr).trim()));
    }
    let listing: Listing =
        serde_json::from_slice(&done.stdout).map_err(|error| Failure::failed(what, error))?;
    let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    let found = of_listing(&listing, &taken.iter().map(real).collect());
    // A drive that hangs holds up its own thread alone.
    let looked = tokio::time::timeout(LSBLK_WAIT, tokio::task::spawn_blocking(|| with_clusters(found)));
    let looked = looked.await.map_err(|_| Failure::failed(what, "a device does not answer"))?;
    looked.map_err(|broken| Failure::failed(what, broken))
}

/// Devices of disk groups look blank to `lsblk`: what they say of themselves is told.
fn with_clusters(mut found: Vec<UnclaimedDevice>) -> Vec<UnclaimedDevice> {
    for device in found.iter_mut().filter(|device| device.held_by.is_none()) {
        let cluster = engine::cluster_on(Path::new(&device.path));
        device.held_by = cluster.map(|cluster| format!("holds data of a disk group of cluster {cluster}"));
    }
    found
}

fn of_listing(listing: &Listing, taken: &BTreeSet<PathBuf>) -> Vec<UnclaimedDevice> {
    let mut found = Vec::new();
    for node in &listing.blockdevices {
        collect(node, None, taken, &mut found);
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    // A device that stands on two is listed under each.
    found.dedup_by(|a, b| a.path == b.path);
    found
}

/// Adds a device and what stands on it; whether a group uses any of them. What is known of a drive is known of its partitions.
fn collect(
    node: &Node,
    drive: Option<&Node>,
    taken: &BTreeSet<PathBuf>,
    found: &mut Vec<UnclaimedDevice>,
) -> bool {
    let drive = drive.unwrap_or(node);
    let inner: Vec<bool> =
        node.children.iter().map(|child| collect(child, Some(drive), taken, found)).collect();
    let path = node.path.canonicalize().unwrap_or_else(|_| node.path.clone());
    if taken.contains(&path) || taken.contains(&node.path) {
        return true;
    }
    let is_ours = inner.contains(&true);
    let text = node.path.display().to_string();
    let size = node.size.unwrap_or(0);
    let is_fit = KINDS.contains(&node.r#type.as_str()) && size > 0;
    if is_fit && !is_ours && !IN_MEMORY.iter().any(|prefix| text.starts_with(prefix)) {
        let trimmed = |text: &Option<String>| {
            text.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
        };
        found.push(UnclaimedDevice {
            path: text,
            size,
            model: trimmed(&node.model).or_else(|| trimmed(&drive.model)),
            serial: trimmed(&node.serial).or_else(|| trimmed(&drive.serial)),
            is_rotational: node.rota.unwrap_or(false),
            held_by: holder(node),
        });
    }
    is_ours
}

/// What keeps a device from being taken, in words; nothing where it can be.
fn holder(node: &Node) -> Option<String> {
    let mounted: Vec<&str> = node.mountpoints.iter().flatten().map(String::as_str).collect();
    if mounted.contains(&"[SWAP]") {
        return Some("used for swap".to_owned());
    }
    if !mounted.is_empty() {
        return Some(format!("mounted at {}", mounted.join(", ")));
    }
    if node.ro == Some(true) {
        return Some("read-only".to_owned());
    }
    if !node.children.is_empty() {
        let name = |child: &Node| child.path.display().to_string();
        return Some(format!("has {}", node.children.iter().map(name).collect::<Vec<_>>().join(", ")));
    }
    let kind = |kind: &Option<String>| kind.clone().filter(|kind| !kind.is_empty());
    let file_system = kind(&node.fstype).map(|kind| format!("holds data ({kind})"));
    file_system.or_else(|| kind(&node.pttype).map(|kind| format!("has an empty partition table ({kind})")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTING: &str = r#"{"blockdevices": [
        {"path": "/dev/nvme0n1", "type": "disk", "size": 1000, "model": "Fast 1 ", "serial": "S1", "rota": false, "ro": false,
         "fstype": null, "pttype": "gpt", "mountpoints": [null], "children": [
            {"path": "/dev/nvme0n1p1", "type": "part", "size": 100, "model": null, "serial": null, "rota": false, "ro": false,
             "fstype": "ext4", "pttype": "gpt", "mountpoints": ["/", "/home"]},
            {"path": "/dev/nvme0n1p2", "type": "part", "size": 900, "model": null, "rota": false, "ro": false, "mountpoints": [null]}]},
        {"path": "/dev/sda", "type": "disk", "size": 4000, "model": "Big", "serial": "B1", "rota": true, "ro": false, "mountpoints": [null]},
        {"path": "/dev/sdb", "type": "disk", "size": 4000, "rota": true, "ro": false, "fstype": "xfs", "mountpoints": [null]},
        {"path": "/dev/sdc", "type": "disk", "size": 4000, "rota": true, "ro": true, "mountpoints": [null]},
        {"path": "/dev/sdd", "type": "disk", "size": 4000, "rota": true, "ro": false, "pttype": "dos", "mountpoints": [null]},
        {"path": "/dev/sde", "type": "disk", "size": 4000, "mountpoints": ["[SWAP]"]},
        {"path": "/dev/sdf", "type": "disk", "size": 4000, "mountpoints": [null], "children": [
            {"path": "/dev/mapper/drystone", "type": "crypt", "size": 3990, "mountpoints": [null]}]},
        {"path": "/dev/sdg", "type": "disk", "size": 0, "mountpoints": [null]},
        {"path": "/dev/sr0", "type": "rom", "size": 4000, "mountpoints": [null]},
        {"path": "/dev/zram0", "type": "disk", "size": 4000, "mountpoints": [null]},
        {"path": "/dev/sdh"}
    ]}"#;

    #[test]
    fn what_holds_a_device_is_told_and_what_groups_use_is_not_there() {
        let listing: Listing = serde_json::from_str(LISTING).expect("a listing");
        let taken = BTreeSet::from([PathBuf::from("/dev/mapper/drystone")]);
        let found = of_listing(&listing, &taken);
        let told: Vec<(&str, Option<&str>)> =
            found.iter().map(|one| (one.path.as_str(), one.held_by.as_deref())).collect();
        assert_eq!(
            told,
            [
                ("/dev/nvme0n1", Some("has /dev/nvme0n1p1, /dev/nvme0n1p2")),
                ("/dev/nvme0n1p1", Some("mounted at /, /home")),
                ("/dev/nvme0n1p2", None),
                ("/dev/sda", None),
                ("/dev/sdb", Some("holds data (xfs)")),
                ("/dev/sdc", Some("read-only")),
                ("/dev/sdd", Some("has an empty partition table (dos)")),
                ("/dev/sde", Some("used for swap")),
            ]
        );
        assert_eq!((found[2].model.as_deref(), found[2].serial.as_deref()), (Some("Fast 1"), Some("S1")));
        assert!(found[3].is_rotational && !found[2].is_rotational);
    }
}
