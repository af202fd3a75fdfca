//! `device` and `status`.

use super::sorting::DeviceSort;
use crate::shell::{Shell, size};
use crate::text;
use api::client::escaped;
use api::types::{
    AddDevices, AddedDevices, AllDevicesView, DeviceView, DirectoryView, EvacuateDevice, EvacuationView,
    HostDevicesView, HostShareView, HostView, KeepDevice, RemovedDevice, ReplaceDevice, ReplacementView,
    SpaceView, UnclaimedDevice,
};
use base::units::format_bytes;
use clap::{Args, Subcommand};
use failure::Failure;
use std::path::PathBuf;

/// What can be done with devices.
#[derive(Debug, Subcommand)]
pub enum DeviceCommand {
    /// List the devices of the host that is asked, or of all hosts.
    List {
        /// Include the devices of all hosts that answer.
        #[arg(long)]
        cluster: bool,
        /// List block devices that no disk group uses, with what holds them.
        #[arg(long)]
        unclaimed: bool,
        /// Column to sort by, the largest figure first.
        #[arg(long, value_enum, default_value = "group")]
        sort: DeviceSort,
        /// Reverse the order.
        #[arg(long)]
        reverse: bool,
    },
    /// Create a disk group of devices, or add capacity devices to a group.
    Add(AddOptions),
    /// Empty a capacity device: its components are copied to other devices while it keeps serving.
    Evacuate {
        /// Path of the device on this host, HOST:PATH on another host, or id of the device.
        device: String,
        /// Show what the evacuation would do, and change nothing.
        #[arg(long, conflicts_with = "cancel")]
        dry_run: bool,
        /// Keep the components that are left on it, and let it take new ones again.
        #[arg(long)]
        cancel: bool,
    },
    /// Replace a device that failed with a new one.
    ///
    /// A capacity device is replaced while its group is in use. Its components are rebuilt from other copies. A log device takes
    /// its group with it: a new group is created of the new log device and the remaining capacity devices.
    Replace(ReplaceOptions),
    /// Remove an empty device.
    Remove {
        /// Path or id of the device, or HOST:PATH on another host.
        device: String,
        /// Remove the whole group, if the device holds the log of an empty one.
        #[arg(long)]
        group: bool,
    },
}

/// Options of `device replace`.
#[derive(Debug, Args)]
pub struct ReplaceOptions {
    /// Path or id of the device that failed, or HOST:PATH; of a group that could not be opened, the path of its log device.
    old: String,
    /// Path of the new device, which may be the same path.
    new: PathBuf,
    /// Size of a file to create at the new path.
    #[arg(long, value_parser = size)]
    file_size: Option<u64>,
    /// Format the new device even if it holds other data, which is destroyed.
    #[arg(long)]
    force: bool,
    /// Show what would be lost, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Path or id of the old device once more, to give up data of which it holds the only copy.
    #[arg(long, value_name = "OLD")]
    confirm: Option<String>,
}

/// Options of `device add`.
#[derive(Debug, Args)]
pub struct AddOptions {
    /// Capacity devices; with neither --log nor --group, the one device of a new group.
    paths: Vec<PathBuf>,
    /// Log device of a new group.
    #[arg(long, conflicts_with = "group")]
    log: Option<PathBuf>,
    /// Host that has the devices [default: the one that is asked].
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Group to add capacity devices to (see `drystone status`).
    #[arg(long)]
    group: Option<String>,
    /// Size of the log region of a new group.
    #[arg(long, value_parser = size, conflicts_with = "group")]
    log_size: Option<u64>,
    /// Size of the files to create where paths do not exist.
    #[arg(long, value_parser = size)]
    file_size: Option<u64>,
    /// Format devices even if they hold other data, which is destroyed.
    #[arg(long)]
    force: bool,
}

/// Does it.
///
/// # Errors
/// What the host says.
pub async fn run(shell: &mut Shell<'_>, command: DeviceCommand) -> Result<(), Failure> {
    match command {
        DeviceCommand::List { cluster, unclaimed: true, .. } => unclaimed(shell, cluster).await,
        DeviceCommand::List { cluster: true, sort, reverse, .. } => {
            let mut all: AllDevicesView = shell.client.get("/api/v1/cluster/devices").await?;
            all.hosts.iter_mut().for_each(|host| sort.apply(&mut host.devices, reverse));
            shell.show(&all, |all| all_hosts_text(all, |host| device_table(&host.devices)))
        }
        DeviceCommand::List { cluster: false, sort, reverse, .. } => {
            let mut devices: Vec<DeviceView> = shell.client.get("/api/v1/devices").await?;
            sort.apply(&mut devices, reverse);
            shell.show(&devices, |devices| device_table(devices))
        }
        DeviceCommand::Add(options) => {
            let request = add_request(options)?;
            let added: AddedDevices = shell.client.post("/api/v1/devices", &request).await?;
            shell.show(&added, |added| format!("group {}\n{}", added.group, device_table(&added.devices)))
        }
        DeviceCommand::Evacuate { device, dry_run, cancel } => {
            evacuate(shell, &device, dry_run, cancel).await
        }
        DeviceCommand::Replace(options) => replace(shell, options).await,
        DeviceCommand::Remove { device, group } => remove(shell, &device, group).await,
    }
}

async fn unclaimed(shell: &mut Shell<'_>, cluster: bool) -> Result<(), Failure> {
    if !cluster {
        let found: Vec<UnclaimedDevice> = shell.client.get("/api/v1/devices/unclaimed").await?;
        return shell.show(&found, |found| unclaimed_table(found));
    }
    let all: AllDevicesView = shell.client.get("/api/v1/cluster/devices").await?;
    let table = |host: &HostDevicesView| match &host.unclaimed_unknown {
        Some(why) => format!("not known: {why}"),
        None => unclaimed_table(&host.unclaimed),
    };
    shell.show(&all, |all| all_hosts_text(all, table))
}

fn unclaimed_table(found: &[UnclaimedDevice]) -> String {
    if found.is_empty() {
        return "every block device is in use".to_owned();
    }
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let row = |one: &UnclaimedDevice| {
        vec![
            one.path.clone(),
            format_bytes(one.size),
            if one.is_rotational { "hard disk" } else { "flash" }.to_owned(),
            or_none(&one.model),
            or_none(&one.serial),
            one.held_by.clone().unwrap_or_else(|| "free".to_owned()),
        ]
    };
    let headings = ["device", "size", "kind", "model", "serial", "state"];
    text::table(&headings, &[1], found.iter().map(row).collect())
}

/// Paths of this host may be relative.
async fn evacuate(shell: &mut Shell<'_>, device: &str, dry_run: bool, cancel: bool) -> Result<(), Failure> {
    let is_path = std::path::Path::new(device).exists();
    let absolute =
        std::path::absolute(device).ok().filter(|_| is_path).map(|path| path.display().to_string());
    let name = absolute.unwrap_or_else(|| device.to_owned());
    if cancel {
        let request = KeepDevice { device: name.clone() };
        let () = shell.client.post("/api/v1/devices/keep", &request).await?;
        return shell.show(&serde_json::json!({ "kept": name }), |_| {
            format!("device {name} is not emptied any more")
        });
    }
    let told: EvacuationView =
        shell.client.post("/api/v1/devices/evacuate", &EvacuateDevice { device: name, dry_run }).await?;
    shell.show(&told, evacuation_text)
}

fn evacuation_text(view: &EvacuationView) -> String {
    let (device, bytes) =
        (format!("device {} of host {}", view.device, view.host), format_bytes(view.bytes_to_move));
    let first = match (view.is_begun, view.is_possible, view.bytes_to_move) {
        (true, _, 0) => format!("{device} is empty: `drystone device remove` takes it out"),
        (true, _, _) => format!("{device} is being emptied: {bytes} are copied; see `drystone device list`"),
        (false, true, _) => format!("possible: {bytes} would be copied from {device}"),
        (false, false, _) => "not possible".to_owned(),
    };
    let disks = view.disks.iter().map(|touched| format!("disk {}: {}", touched.disk, touched.summary));
    let obstacles = view.obstacles.iter().map(|why| format!("in the way: {why}"));
    std::iter::once(first).chain(obstacles).chain(disks).collect::<Vec<_>>().join("\n")
}

/// A path that exists here, or as it was given: it may be an id, or a device that is not there any more.
fn absolute_or_name(name: &str) -> String {
    let looks_like_path = name.contains('/') || std::path::Path::new(name).exists();
    let path = std::path::absolute(name).ok().filter(|_| looks_like_path);
    path.map_or_else(|| name.to_owned(), |path| path.display().to_string())
}

async fn replace(shell: &mut Shell<'_>, options: ReplaceOptions) -> Result<(), Failure> {
    let with = std::path::absolute(&options.new)
        .map_err(|error| Failure::usage(format!("{} is not a path: {error}", options.new.display())))?;
    let (host, old) = host_and_path(&options.old);
    let confirm = options.confirm.as_deref().map(|name| absolute_or_name(host_and_path(name).1));
    let request = ReplaceDevice {
        host: host.map(str::to_owned),
        device: absolute_or_name(old),
        with: with.display().to_string(),
        file_size: options.file_size,
        force: options.force,
        dry_run: options.dry_run,
        confirm,
    };
    let told: ReplacementView = shell.client.post("/api/v1/devices/replace", &request).await?;
    shell.show(&told, replacement_text)
}

fn replacement_text(view: &ReplacementView) -> String {
    let (device, with) = (&view.device, &view.with);
    let first = match (&view.group, view.is_log) {
        (Some(group), false) => format!("{with} takes the place of {device} in group {group}"),
        (Some(group), true) => {
            format!("group {group} is made anew: its log device is {with} in the place of {device}")
        }
        (None, false) => format!("{with} would take the place of {device}"),
        (None, true) => {
            format!("the group of log device {device} would be made anew, with {with} as its log device")
        }
    };
    let again: Vec<&str> =
        view.disks.iter().filter(|disk| !view.lost_disks.contains(disk)).map(String::as_str).collect();
    let mut lines = vec![first];
    if !again.is_empty() {
        lines.push(format!("copies are rebuilt of: {}", again.join(", ")));
    }
    if !view.lost_disks.is_empty() {
        lines.push(format!("data is lost of: {}", view.lost_disks.join(", ")));
    }
    lines.extend(view.advice.clone());
    lines.join("\n")
}

/// `HOST:PATH` as its two parts; a path alone is of the host that is asked.
fn host_and_path(name: &str) -> (Option<&str>, &str) {
    match name.split_once(':') {
        Some((host, path)) if path.starts_with('/') && !host.contains('/') => (Some(host), path),
        _ => (None, name),
    }
}

async fn remove(shell: &mut Shell<'_>, device: &str, group: bool) -> Result<(), Failure> {
    let (host, path) = host_and_path(device);
    let absolute = std::path::absolute(path).map(|path| path.display().to_string()).unwrap_or_default();
    // A path cannot stand in an address; its id can.
    let devices: Vec<DeviceView> = match host {
        None => shell.client.get("/api/v1/devices").await?,
        Some(host) => {
            let all: AllDevicesView = shell.client.get("/api/v1/cluster/devices").await?;
            let of_host = all.hosts.into_iter().find(|one| one.host == host);
            of_host.map(|one| one.devices).unwrap_or_default()
        }
    };
    let found = devices.iter().find(|found| found.id == path || found.path == absolute);
    // An id may be of another host's device: the records tell.
    let is_id = host.is_none() && path.parse::<base::DeviceId>().is_ok();
    let (id, name) = match found {
        Some(found) => (found.id.as_str(), found.path.as_str()),
        None if is_id => (path, path),
        None => {
            return Err(Failure::new(failure::Code::NotFound, format!("there is no device `{device}`"))
                .hint("see `drystone device list --cluster`"));
        }
    };
    let at = host.map_or_else(String::new, |host| format!("&host={}", escaped(host)));
    let removed: RemovedDevice =
        shell.client.delete(&format!("/api/v1/devices/{id}?group={group}{at}")).await?;
    shell.show(&removed, |removed| {
        let advice = removed.advice.as_deref().unwrap_or_default();
        format!("removed {name}\n{advice}")
    })
}

fn add_request(options: AddOptions) -> Result<AddDevices, Failure> {
    let absolute = |path: PathBuf| match std::path::absolute(&path) {
        Ok(path) => Ok(path.display().to_string()),
        Err(error) => Err(Failure::usage(format!("{} is not a path: {error}", path.display()))),
    };
    let mut paths = options.paths.into_iter().map(absolute).collect::<Result<Vec<_>, _>>()?;
    let mut log = options.log.map(absolute).transpose()?;
    if log.is_none() && options.group.is_none() {
        if paths.len() != 1 {
            return Err(Failure::usage(
                "say which device is the log device with --log, or which --group they join",
            ));
        }
        log = paths.pop();
    }
    Ok(AddDevices {
        host: options.host,
        group: options.group,
        log,
        capacity: paths,
        log_size: options.log_size,
        file_size: options.file_size,
        force: options.force,
    })
}

fn all_hosts_text(all: &AllDevicesView, table: impl Fn(&HostDevicesView) -> String) -> String {
    let of = |one: &HostDevicesView| format!("host {}\n{}", one.host, table(one));
    let mut shown: Vec<String> = all.hosts.iter().map(of).collect();
    shown.extend(all.silent.iter().map(|host| format!("host {host} does not answer")));
    shown.join("\n\n")
}

/// What there is, and what is promised of it.
fn space_facts(space: &SpaceView) -> Vec<(&'static str, String)> {
    let free = space.capacity_bytes.saturating_sub(space.used_bytes);
    let copies = space.components_bytes.saturating_sub(space.disks_bytes);
    let mut provisioned = format!(
        "{} of disks and {} of further copies: {} % of the capacity",
        format_bytes(space.disks_bytes),
        format_bytes(copies),
        space.provisioned_percent
    );
    if space.components_bytes > space.capacity_bytes {
        provisioned += ", over-committed";
    }
    let host = |one: &HostShareView| {
        format!(
            "host {}: {} used of {}, {} provisioned",
            one.host,
            format_bytes(one.used_bytes),
            format_bytes(one.capacity_bytes),
            format_bytes(one.components_bytes)
        )
    };
    let mut lines = vec![provisioned];
    lines.extend(space.hosts.iter().map(host));
    vec![
        (
            "capacity",
            format!(
                "{} usable, {} used, {} free",
                format_bytes(space.capacity_bytes),
                format_bytes(space.used_bytes),
                format_bytes(free)
            ),
        ),
        ("provisioned", lines.join("\n")),
    ]
}

fn device_table(devices: &[DeviceView]) -> String {
    let row = |device: &DeviceView| {
        let free = device.capacity_bytes.saturating_sub(device.used_bytes);
        vec![
            device.path.clone(),
            device.role.to_string(),
            format_bytes(device.size),
            format_bytes(device.used_bytes),
            format_bytes(free),
            format_bytes(device.reserved_bytes),
            device.component_count.to_string(),
            device.encryption.to_string(),
            device.damaged_blocks.to_string(),
            device.read_errors.to_string(),
            device
                .failure
                .clone()
                .or_else(|| device.leaving.clone())
                .unwrap_or_else(|| "in service".to_owned()),
            device.id.clone(),
        ]
    };
    let headings = [
        "device",
        "role",
        "size",
        "used",
        "free",
        "reserved",
        "components",
        "encryption",
        "damaged",
        "read errors",
        "state",
        "id",
    ];
    text::table(&headings, &[2, 3, 4, 5, 6, 8, 9], devices.iter().map(row).collect())
}

/// `status`.
///
/// # Errors
/// What the host says.
pub async fn status(shell: &mut Shell<'_>) -> Result<(), Failure> {
    let host: HostView = shell.client.get("/api/v1/host").await?;
    shell.show(&host, status_text)
}

/// Memory in block buffers, and whether clients wait for it.
fn buffers_line(host: &HostView) -> String {
    let used = format!("{} of {}", format_bytes(host.buffer_bytes), format_bytes(host.buffer_bytes_max));
    match host.buffer_reads_waiting {
        0 => used,
        waiting => format!("{used}; reads that wait for some: {waiting}"),
    }
}

/// The directory in a line: where it stands, and whether its members answer.
fn directory_line(directory: &DirectoryView) -> String {
    let silent = directory.members.iter().filter(|member| !member.answers);
    let silent: Vec<&str> = silent.map(|member| member.host.as_deref().unwrap_or(&member.address)).collect();
    let place = match (directory.is_managed, directory.members.is_empty()) {
        (true, _) => {
            let hosts = directory.members.iter().filter_map(|member| member.host.as_deref());
            format!("etcd of its own, on {}", hosts.collect::<Vec<_>>().join(", "))
        }
        (false, true) => directory.place.clone(),
        (false, false) if directory.members.len() == 1 => "etcd with one member".to_owned(),
        (false, false) => format!("etcd with {} members", directory.members.len()),
    };
    match silent.is_empty() {
        true => place,
        false => format!("{place}; does not answer: {}", silent.join(", ")),
    }
}

fn status_text(host: &HostView) -> String {
    let health = match (host.unavailable.len(), host.warnings.len()) {
        (0, _) if !host.not_whole.is_empty() => {
            format!("all disks can be used; {} of {} are not whole", host.not_whole.len(), host.disk_count)
        }
        (0, 0) => "all disks can be used".to_owned(),
        (0, _) => "all disks can be used; see the warnings".to_owned(),
        (count, _) => format!("{count} of {} disks cannot be used", host.disk_count),
    };
    let mut facts = vec![
        ("host", format!("{} (drystone {})", host.name, host.version)),
        ("health", health),
        ("cluster", host.cluster.clone()),
        ("running for", text::duration(host.uptime_seconds)),
        ("disks", host.disk_count.to_string()),
        ("directory", host.directory.as_ref().map_or_else(String::new, directory_line)),
        ("", String::new()),
        ("buffers", buffers_line(host)),
        ("nbd", host.nbd.join("\n")),
        ("api", host.http.join("\n")),
    ];
    let at = facts.iter().position(|(name, _)| name.is_empty()).expect("its place is marked");
    facts.splice(at..=at, host.space.iter().flat_map(space_facts));
    let unavailable: Vec<String> =
        host.unavailable.iter().map(|(name, reason)| format!("{name}: {reason}")).collect();
    let not_whole: Vec<String> =
        host.not_whole.iter().map(|(name, lines)| format!("{name}: {}", lines.join("; "))).collect();
    let under_way: Vec<String> =
        host.under_way.iter().map(|(name, line)| format!("{name}: {line}")).collect();
    let lists = [
        ("unavailable", unavailable),
        ("not whole", not_whole),
        ("under way", under_way),
        ("warnings", host.warnings.clone()),
    ];
    for (name, lines) in lists {
        if !lines.is_empty() {
            facts.push((name, lines.join("\n")));
        }
    }
    let mut shown = text::facts(&facts);
    if !host.hosts.is_empty() {
        shown += &format!("\n\n{}", super::hosts::host_table(&host.hosts));
    }
    for group in &host.groups {
        shown += &format!(
            "\n\ngroup {}: log {} of {} in use, congestion {} of 255, {} to destage, scrub round {} at {:.0} %\n{}",
            group.id,
            format_bytes(group.log_used_bytes),
            format_bytes(group.log_bytes),
            group.congestion,
            format_bytes(group.destage_pending_bytes),
            group.scrub_rounds + 1,
            group.scrub_progress * 100.0,
            device_table(&group.devices)
        );
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host of an earlier release tells nothing of encryption.
    #[test]
    fn the_table_of_devices_says_which_are_encrypted() {
        let device = |path: &str| {
            serde_json::json!({
                "id": "d1", "path": path, "group": "g", "role": "capacity", "size": 1, "capacity_bytes": 1, "used_bytes": 0,
                "reserved_bytes": 0, "component_count": 0, "component_count_max": 1, "failure": null, "damaged_blocks": 0,
            })
        };
        let mut encrypted = device("/dev/mapper/store1");
        encrypted["encryption"] = "luks2".into();
        let devices: Vec<DeviceView> = [encrypted, device("/dev/sdb")]
            .into_iter()
            .map(|one| serde_json::from_value(one).expect("a device"))
            .collect();
        let table = device_table(&devices);
        let line = |start: &str| table.lines().find(|line| line.contains(start)).expect("its row").to_owned();
        assert!(line("COMPONENTS").contains("ENCRYPTION"), "{table}");
        assert!(line("/dev/mapper/store1").contains("luks2"), "{table}");
        assert!(line("/dev/sdb").contains("unknown"), "{table}");
    }
}
