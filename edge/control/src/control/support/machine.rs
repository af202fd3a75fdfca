//! Facts of the machine, and what the host has logged. Reads what the kernel shows; asks `journalctl` for the log of a service.

use crate::limits::{JOURNAL_LINES, JOURNAL_WAIT, SUPPORT_FILE_BYTES_MAX};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// What is read, and the file that it becomes.
const FILES: [(&str, &str); 20] = [
    ("/proc/version", "machine/kernel.txt"),
    ("/etc/os-release", "machine/os-release.txt"),
    ("/proc/cmdline", "machine/kernel-options.txt"),
    ("/proc/uptime", "machine/uptime.txt"),
    ("/proc/loadavg", "machine/load.txt"),
    ("/proc/cpuinfo", "machine/processors.txt"),
    ("/proc/meminfo", "machine/memory.txt"),
    ("/proc/vmstat", "machine/vmstat.txt"),
    ("/proc/diskstats", "machine/diskstats.txt"),
    ("/proc/partitions", "machine/partitions.txt"),
    ("/proc/mounts", "machine/mounts.txt"),
    ("/proc/net/dev", "machine/network.txt"),
    ("/proc/net/snmp", "machine/network-counters.txt"),
    ("/proc/pressure/cpu", "machine/pressure-cpu.txt"),
    ("/proc/pressure/io", "machine/pressure-io.txt"),
    ("/proc/pressure/memory", "machine/pressure-memory.txt"),
    ("/proc/self/status", "process/status.txt"),
    ("/proc/self/limits", "process/limits.txt"),
    ("/proc/self/io", "process/io.txt"),
    ("/proc/self/cgroup", "process/cgroup.txt"),
];

/// What is read of every block device below `/sys/block`.
const OF_DEVICES: [&str; 11] = [
    "size",
    "device/model",
    "queue/rotational",
    "queue/scheduler",
    "queue/nr_requests",
    "queue/logical_block_size",
    "queue/physical_block_size",
    "queue/write_cache",
    "queue/discard_max_bytes",
    // Of a device of dm-crypt: its form, and the id of its header; no key.
    "dm/name",
    "dm/uuid",
];

/// The files that could be read, by the paths that they get.
pub(super) fn facts() -> Vec<(String, String)> {
    let read = |(from, to): &(&str, &str)| Some(((*to).to_owned(), std::fs::read_to_string(from).ok()?));
    let mut facts: Vec<(String, String)> = FILES.iter().filter_map(read).collect();
    facts.push(("machine/block-devices.txt".to_owned(), block_devices()));
    facts
}

fn block_devices() -> String {
    let entries = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    folders.sort();
    let mut text = String::new();
    for folder in folders {
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        for what in OF_DEVICES {
            if let Ok(value) = std::fs::read_to_string(folder.join(what)) {
                text += &format!("{name} {what}: {}\n", value.trim());
            }
        }
        let below = std::fs::read_dir(folder.join("slaves")).into_iter().flatten().flatten();
        let mut below: Vec<String> =
            below.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        below.sort();
        if !below.is_empty() {
            text += &format!("{name} slaves: {}\n", below.join(" "));
        }
    }
    text
}

/// What the host has logged last, and where that is from: the file that its messages go to, or the journal.
pub(super) async fn log() -> Result<(String, String), String> {
    let target = std::fs::read_link("/proc/self/fd/2").map_err(|error| error.to_string())?;
    if target.is_file() {
        let text = end_of(&target).map_err(|error| format!("{}: {error}", target.display()))?;
        return Ok((target.display().to_string(), text));
    }
    let unit = unit().ok_or("the messages of this host go to no file, and it is no service of systemd")?;
    let mut journal = tokio::process::Command::new("journalctl");
    journal.args([
        "--no-pager",
        "--output",
        "short-iso",
        "--lines",
        &JOURNAL_LINES.to_string(),
        "--unit",
        &unit,
    ]);
    journal.stdin(std::process::Stdio::null()).kill_on_drop(true);
    let done = tokio::time::timeout(JOURNAL_WAIT, journal.output()).await;
    let done = done.map_err(|_| "journalctl does not end".to_owned())?;
    let done = done.map_err(|error| format!("journalctl: {error}"))?;
    match done.status.success() {
        true => Ok((format!("journal of {unit}"), String::from_utf8_lossy(&done.stdout).into_owned())),
        false => Err(format!("journalctl: {}", String::from_utf8_lossy(&done.stderr).trim())),
    }
}

/// The end of a file, as much as is taken of one.
fn end_of(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(SUPPORT_FILE_BYTES_MAX as u64)))?;
    let mut bytes = Vec::new();
    file.take(SUPPORT_FILE_BYTES_MAX as u64).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The service that this process is, by its control group: `0::/system.slice/drystone.service`.
fn unit() -> Option<String> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let mut parts = groups.lines().flat_map(|line| line.rsplit('/'));
    parts.find(|part| part.ends_with(".service")).map(str::to_owned)
}
