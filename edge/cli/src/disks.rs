//! `disk`.

use crate::disk_marks::{HandoverOptions, handover, label, label_pair, labels_text};
use crate::policies::explained_text;
use crate::shell::{Shell, seconds, size};
use crate::sorting::DiskSort;
use crate::{estimate, snapshots, text, transfer};
use api::client::disk_path;
use api::types::{
    AllowedView, AttachedView, BucketView, ChangeDisk, ClientView, CloneDisk, CompressedView, CreateDisk,
    DiskQuery, DiskSummary, DiskView, ExplainedPolicy, FlattenDisk, FlattenedView, HistogramView,
    HistogramWord, HistogramsView, HostRewriteView, LatencyView, LimitView, MoveAction, OperationsWord,
    RateView, RewriteView, RowChecksView, ScheduleView, SnapshotView,
};
use base::units::format_bytes;
use clap::{Args, Subcommand};
use failure::Failure;

/// What can be done with disks.
#[derive(Debug, Subcommand)]
pub enum DiskCommand {
    /// Create a virtual disk.
    Create(CreateOptions),
    /// Create a disk as a clone of another one, or of a snapshot of it: it is there at once, and takes space for what is written to it.
    ///
    /// The clone shows what the snapshot holds until it is written. Where it stands, its policy, and later changes of either disk are its own.
    /// The snapshot cannot be deleted as long as a clone shares anything with it.
    Clone(CloneOptions),
    /// Flatten a clone: copy all that it shares with what it was cloned from, while guests use it; then it is an ordinary disk.
    ///
    /// It goes on where it stands if it is stopped and called again.
    Flatten {
        /// Name or id of the clone.
        name: String,
    },
    /// List all disks.
    List {
        /// Part of the names of the disks that are listed.
        #[arg(long, value_name = "TEXT")]
        name: Option<String>,
        /// Policy that the listed disks follow, or their rules in short.
        #[arg(long, value_name = "POLICY")]
        policy: Option<String>,
        /// Label that the listed disks have: KEY=VALUE, or KEY with any value; once per label.
        #[arg(long, value_name = "LABEL")]
        label: Vec<String>,
        /// List only disks that something is wrong with, or that wait for something.
        #[arg(long)]
        trouble: bool,
        /// Disk, or snapshot `DISK@SNAPSHOT`, of which only the clones are listed.
        #[arg(long, value_name = "DISK")]
        clones_of: Option<String>,
        /// Column to sort by, the largest figure first.
        #[arg(long, value_enum, default_value = "name")]
        sort: DiskSort,
        /// Reverse the order.
        #[arg(long)]
        reverse: bool,
    },
    /// Show a disk: its layout and the reasons for it, space, clients, live figures.
    Show {
        /// Name or id of the disk.
        name: String,
    },
    /// Resize a disk: make it larger or smaller.
    Resize {
        /// Name or id of the disk.
        name: String,
        /// New size of the disk, e.g. 200GiB.
        #[arg(value_parser = size)]
        size: u64,
        /// Name of the disk: confirms that it is made smaller.
        #[arg(long, value_name = "NAME")]
        confirm: Option<String>,
        /// End the connections of clients that have the disk at any host, so that it can be made smaller.
        #[arg(long)]
        detach_clients: bool,
    },
    /// Rename a disk.
    Rename {
        /// Name or id of the disk.
        name: String,
        /// New name of the disk.
        new_name: String,
    },
    /// Set or remove labels of a disk: what people and programs say of it.
    Label {
        /// Name or id of the disk.
        name: String,
        /// Labels: KEY=VALUE sets one, KEY- removes it.
        #[arg(required = true, value_name = "KEY=VALUE | KEY-")]
        labels: Vec<String>,
    },
    /// Let one further host attach a disk for a while, so that a running guest can move there.
    ///
    /// The host that has the disk keeps it. The handover ends with its last client there, or with the time. Nothing else may have the disk at
    /// two hosts without `share`.
    Handover(HandoverOptions),
    /// Decide which copies of a disk that has diverged are kept.
    ///
    /// A disk has diverged when the directory was older than the devices, and a copy holds acknowledged writes that the others lack. Nothing is
    /// served until somebody decides. The copies of the other hosts are overwritten with what is kept.
    Resolve {
        /// Name or id of the disk.
        name: String,
        /// Host whose copies are kept.
        #[arg(long, value_name = "HOST")]
        keep: String,
        /// Name of the disk: confirms that acknowledged writes of the other copies are destroyed.
        #[arg(long, value_name = "NAME")]
        confirm: Option<String>,
    },
    /// Set who may attach to a disk over the network: the named people and hosts, and nobody else.
    Allow(AllowOptions),
    /// Change settings or rules of a disk, while guests use it.
    ///
    /// A setting is `read-only on|off`, `share on|off` or `move pause|resume|back|on`. Rules are `rule=value`, one or more; `policy=NAME` has the disk follow a named
    /// policy. Limits, read locality, checksums and reservations change at once. With `failures_to_tolerate`, copies of a mirrored disk are added
    /// or removed. With `method`, `stripes`, or `failures_to_tolerate` of a disk with parity, what the disk holds is moved into another
    /// layout in the background; `drystone disk show` tells how far it is, and `move` has it pause, go on, or move back. A disk that moves
    /// back follows its named policy no more. `drystone what-if set-policy` says what a move copies.
    Set {
        /// Name or id of the disk.
        name: String,
        /// A setting and its value, or rules: read-only on, move back, iops_limit=500 bytes_limit=64MiB/s, method=parity, policy=gold
        #[arg(required = true, value_name = "SETTING VALUE | RULE=VALUE")]
        settings: Vec<String>,
    },
    /// Delete a disk and all its data. The command is refused while clients have the disk.
    Delete {
        /// Name or id of the disk.
        name: String,
        /// Name of the disk: confirms that its data is destroyed.
        #[arg(long, value_name = "NAME")]
        confirm: Option<String>,
        /// End the connections of clients that have the disk, at any host.
        #[arg(long)]
        detach_clients: bool,
    },
    /// Import a disk image (raw, qcow2, …) into a disk, which is created if it does not exist; or apply what changed since then.
    Import(transfer::ImportOptions),
    /// Export a disk, or a snapshot of it, to an image file; or what changed since an older snapshot.
    Export(transfer::ExportOptions),
    /// Take, list, compare and delete snapshots of a disk, and roll back to one.
    #[command(subcommand)]
    Snapshot(snapshots::SnapshotCommand),
    /// Estimate what compression and deduplication would save of a disk, by the sample of `drystone cluster estimate --start`.
    Estimate {
        /// Name or id of the disk.
        name: String,
    },
    /// Rewrite a compressed disk in the background, so that what was written before it was compressed takes less space, too.
    Rewrite {
        /// Name or id of the disk.
        name: String,
    },
    /// Show the I/O histograms of a disk.
    Histogram(HistogramOptions),
}

/// Options of `disk create`.
#[derive(Debug, Args)]
pub struct CreateOptions {
    /// Name of the disk.
    name: String,
    /// Size of the disk, e.g. 100GiB.
    #[arg(value_parser = size)]
    size: u64,
    /// Name of a policy, rules, or both: single, gold,stripes=2 [default on a single host: single].
    #[arg(long)]
    policy: Option<String>,
    /// Label of the disk; once per label.
    #[arg(long, value_name = "KEY=VALUE", value_parser = label_pair)]
    label: Vec<(String, String)>,
    /// Let clients only read.
    #[arg(long)]
    read_only: bool,
    /// Let clients of several hosts have the disk at once.
    #[arg(long)]
    share: bool,
    /// Take a disk of this name that exists with the same size, rules and settings as created; the command can be repeated.
    #[arg(long)]
    unless_there: bool,
    /// Say where the disk would stand and what it would cost, and create nothing.
    #[arg(long, conflicts_with = "unless_there")]
    dry_run: bool,
}

/// Options of `disk clone`.
#[derive(Debug, Args)]
pub struct CloneOptions {
    /// Name of the disk; `DISK@SNAPSHOT` for a snapshot of it [default: a snapshot that is taken now, named for-CLONE].
    of: String,
    /// Name of the clone.
    name: String,
    /// Size of the clone, e.g. 100GiB; not smaller than what is cloned [default: as that].
    #[arg(long, value_parser = size)]
    size: Option<u64>,
    /// Name of a policy, rules, or both: gold,stripes=2; none with parity [default: as the disk that is cloned].
    #[arg(long)]
    policy: Option<String>,
    /// Let clients only read.
    #[arg(long)]
    read_only: bool,
    /// Let clients of several hosts have the clone at once.
    #[arg(long)]
    share: bool,
}

/// Options of `disk allow`.
#[derive(Debug, Args)]
pub struct AllowOptions {
    /// Name or id of the disk.
    name: String,
    /// Person who may attach; once per person.
    #[arg(long, value_name = "NAME", required_unless_present_any = ["host", "anybody"], conflicts_with = "anybody")]
    person: Vec<String>,
    /// Host whose guests may attach; once per host.
    #[arg(long, value_name = "NAME", conflicts_with = "anybody")]
    host: Vec<String>,
    /// Let everybody attach who may attach to disks.
    #[arg(long)]
    anybody: bool,
}

/// Options of `disk histogram`.
#[derive(Debug, Args)]
pub struct HistogramOptions {
    /// Name or id of the disk.
    name: String,
    /// Length of the most recent window, e.g. 60s, 5m or 1h [default: since the host started].
    #[arg(long, value_parser = seconds)]
    since: Option<u64>,
    /// Kind to show alone: length, seek_distance, seek_distance_nearest, latency, outstanding, interarrival.
    #[arg(long)]
    kind: Option<String>,
}

/// Does it.
///
/// # Errors
/// What the host says.
pub async fn run(shell: &mut Shell<'_>, command: DiskCommand) -> Result<(), Failure> {
    match command {
        DiskCommand::Create(options) => create(shell, options).await,
        DiskCommand::Clone(options) => clone(shell, options).await,
        DiskCommand::Flatten { name } => flatten(shell, &name).await,
        DiskCommand::Label { name, labels } => label(shell, &name, &labels).await,
        DiskCommand::Handover(options) => handover(shell, options).await,
        DiskCommand::List { name, policy, label, trouble, clones_of, sort, reverse } => {
            let label = (!label.is_empty()).then(|| label.join(","));
            let query = DiskQuery { name, policy, trouble, label, ..DiskQuery::default() };
            let mut disks: Vec<DiskSummary> = shell.client.get(&query.path()).await?;
            if let Some(of) = clones_of {
                let is_of = |origin: &str| origin == of || origin.split('@').next() == Some(of.as_str());
                disks.retain(|disk| disk.clone_of.as_deref().is_some_and(is_of));
            }
            sort.apply(&mut disks, reverse);
            shell.show(&disks, |disks| disk_table(disks))
        }
        DiskCommand::Show { name } => {
            let disk: DiskView = shell.client.get(&disk_path(&name)).await?;
            shell.show(&disk, disk_text)
        }
        DiskCommand::Resize { name, size, confirm, detach_clients } => {
            resize(shell, &name, size, (confirm, detach_clients)).await
        }
        DiskCommand::Rename { name, new_name } => {
            let request = ChangeDisk { name: Some(new_name), ..ChangeDisk::default() };
            let disk: DiskView = shell.client.patch(&disk_path(&name), &request).await?;
            shell.show(&disk, |disk| format!("renamed {name} to {}", disk.summary.name))
        }
        DiskCommand::Set { name, settings } => set(shell, &name, &settings).await,
        DiskCommand::Resolve { name, keep, confirm } => {
            let request = ChangeDisk { keep: Some(keep.clone()), confirm, ..ChangeDisk::default() };
            let disk: DiskView = shell.client.patch(&disk_path(&name), &request).await?;
            shell.show(&disk, |disk| {
                format!(
                    "the copies of {} on {keep} are kept; the others are filled from them",
                    disk.summary.name
                )
            })
        }
        DiskCommand::Allow(AllowOptions { name, person, host, anybody }) => {
            let allowed = AllowedView { anybody, people: person, hosts: host };
            let request = ChangeDisk { allowed: Some(allowed), ..ChangeDisk::default() };
            let disk: DiskView = shell.client.patch(&disk_path(&name), &request).await?;
            shell.show(&disk, |disk| {
                format!(
                    "{} may be attached by {} from now on",
                    disk.summary.name,
                    allowed_text(&disk.summary)
                )
            })
        }
        DiskCommand::Delete { name, confirm, detach_clients } => {
            delete(shell, &name, (confirm, detach_clients)).await
        }
        DiskCommand::Import(options) => transfer::import(shell, options).await,
        DiskCommand::Export(options) => transfer::export(shell, options).await,
        DiskCommand::Snapshot(command) => snapshots::run(shell, command).await,
        DiskCommand::Estimate { name } => estimate::of_disk(shell, &name).await,
        DiskCommand::Rewrite { name } => rewrite(shell, &name).await,
        DiskCommand::Histogram(options) => histogram(shell, options).await,
    }
}

/// Creates a disk, or shows how it would be created.
async fn create(shell: &mut Shell<'_>, options: CreateOptions) -> Result<(), Failure> {
    let CreateOptions { name, size, policy, label, read_only, share, unless_there, dry_run } = options;
    let labels = label.into_iter().collect();
    let request = CreateDisk { name, size, policy, labels, read_only, share, unless_there, dry_run };
    if dry_run {
        let plan: ExplainedPolicy = shell.client.post("/api/v1/disks", &request).await?;
        return shell.show(&plan, explained_text);
    }
    let disk: DiskView = shell.client.post("/api/v1/disks", &request).await?;
    if !shell.json {
        disk.warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
    }
    shell.show(&disk, disk_text)
}

/// Has a disk written anew.
async fn rewrite(shell: &mut Shell<'_>, name: &str) -> Result<(), Failure> {
    let begun: RewriteView = shell.client.post(&format!("{}/rewrite", disk_path(name)), &()).await?;
    shell.show(&begun, rewrite_text)
}

fn rewrite_text(begun: &RewriteView) -> String {
    let host = |host: &HostRewriteView| match &host.trouble {
        Some(trouble) => format!("host {}: not begun: {trouble}", host.host),
        None if host.components == 1 => format!("host {}: 1 component", host.host),
        None => format!("host {}: {} components", host.host, host.components),
    };
    let mut lines = vec![format!(
        "{} is rewritten in the background; `drystone disk show {}` tells what its compressed blocks take",
        begun.disk, begun.disk
    )];
    lines.extend(begun.hosts.iter().map(host));
    lines.join("\n")
}

/// What compressed blocks take.
fn compressed_text(found: &CompressedView) -> String {
    let mut text = match found.ratio {
        Some(ratio) => format!(
            "{} stored in {} with all copies ({ratio:.2}:1)",
            format_bytes(found.compressed_bytes),
            format_bytes(found.packed_bytes)
        ),
        None => "nothing yet".to_owned(),
    };
    match found.rewriting {
        0 => {}
        1 => text.push_str("; 1 component is being rewritten"),
        count => text.push_str(&format!("; {count} components are being rewritten")),
    }
    text
}

/// Makes a clone.
async fn clone(shell: &mut Shell<'_>, options: CloneOptions) -> Result<(), Failure> {
    let CloneOptions { of, name, size, policy, read_only, share } = options;
    let (disk, snapshot) = match of.split_once('@') {
        Some((disk, snapshot)) => (disk, Some(snapshot.to_owned())),
        None => (of.as_str(), None),
    };
    let request = CloneDisk { name, snapshot, size, policy, read_only, share };
    let made: DiskView = shell.client.post(&format!("{}/clones", disk_path(disk)), &request).await?;
    if !shell.json {
        made.warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
    }
    shell.show(&made, disk_text)
}

/// Has a clone copy what it shares.
async fn flatten(shell: &mut Shell<'_>, name: &str) -> Result<(), Failure> {
    let address = format!("{}/flatten", disk_path(name));
    let bar = transfer::bar("copy", 1);
    let mut from = 0;
    loop {
        let told: FlattenedView = shell.client.post(&address, &FlattenDisk { from }).await?;
        bar.set_length(told.size);
        let Some(next) = told.next else {
            bar.finish_and_clear();
            return shell
                .show(&told, |told| format!("{} shares nothing with {} any more", told.disk, told.clone_of));
        };
        bar.set_position(next);
        from = next;
    }
}

/// Changes a setting, or rules.
async fn set(shell: &mut Shell<'_>, name: &str, settings: &[String]) -> Result<(), Failure> {
    let request = change_of(settings)?;
    let disk: DiskView = shell.client.patch(&disk_path(name), &request).await?;
    let (read_only, share) = (disk.summary.read_only, disk.summary.share);
    shell.show(&disk, |disk| {
        let summary = &disk.summary;
        match (request.read_only, request.share) {
            _ if request.steer.is_some() => {
                let state = format!("{}: {}", summary.name, summary.compliance.text());
                disk.warnings.iter().fold(state, |text, warning| format!("{text}\n{warning}"))
            }
            (Some(_), _) => {
                let access = if read_only { "only be read" } else { "be read and written" };
                format!("{} may {access} from now on", summary.name)
            }
            (None, Some(_)) => {
                let hosts = if share { "several hosts" } else { "one host" };
                format!("{hosts} at a time may have {} from now on", summary.name)
            }
            (None, None) if summary.moving.is_some() => format!(
                "{} moves into another layout: {}",
                summary.name,
                summary.under_way.clone().unwrap_or_default()
            ),
            (None, None) => match &summary.follows {
                Some(policy) => format!("{} follows policy {policy}: {}", summary.name, summary.policy),
                None => format!("{} has the policy {}", summary.name, summary.policy),
            },
        }
    })
}

/// What is to become of a move, by the word for it.
fn action_of(word: &str) -> Option<MoveAction> {
    match word {
        "pause" => Some(MoveAction::Pause),
        "resume" => Some(MoveAction::Resume),
        "back" => Some(MoveAction::Back),
        "on" => Some(MoveAction::On),
        _ => None,
    }
}

/// The change that the words of `disk set` ask for.
fn change_of(settings: &[String]) -> Result<ChangeDisk, Failure> {
    let mut request = ChangeDisk::default();
    if settings.iter().all(|word| word.contains('=')) {
        // The name of a policy comes first: rules change it.
        let (names, rules): (Vec<&String>, Vec<&String>) =
            settings.iter().partition(|word| word.starts_with("policy="));
        let names = names.iter().filter_map(|word| word.strip_prefix("policy="));
        let words: Vec<&str> = names.chain(rules.into_iter().map(String::as_str)).collect();
        request.policy = Some(words.join(","));
        return Ok(request);
    }
    let value = match settings {
        [_, value] if value == "on" => Some(true),
        [_, value] if value == "off" => Some(false),
        _ => None,
    };
    match (settings.first().map(String::as_str), value) {
        (Some("read-only"), Some(_)) => request.read_only = value,
        (Some("share"), Some(_)) => request.share = value,
        (Some("move"), None) if settings.len() == 2 && action_of(&settings[1]).is_some() => {
            request.steer = action_of(&settings[1]);
        }
        _ => {
            return Err(Failure::usage(format!(
                "`{}` is no setting: use read-only on|off, share on|off, move pause|resume|back|on, or rules such as iops_limit=500",
                settings.join(" ")
            )));
        }
    }
    Ok(request)
}

async fn resize(
    shell: &mut Shell<'_>,
    name: &str,
    size: u64,
    (confirm, detach_clients): (Option<String>, bool),
) -> Result<(), Failure> {
    let before: DiskView = shell.client.get(&disk_path(name)).await?;
    let is_smaller = size < before.summary.size;
    let confirm = match is_smaller {
        true => {
            let what = format!("Making {name} smaller destroys what stands beyond {}", format_bytes(size));
            Some(shell.confirm(confirm, &what, &before.summary.name)?)
        }
        false => None,
    };
    let request = ChangeDisk {
        size: Some(size),
        confirm,
        detach_clients: detach_clients && is_smaller,
        ..ChangeDisk::default()
    };
    let disk: DiskView = shell.client.patch(&disk_path(name), &request).await?;
    shell.show(&disk, |disk| {
        let (before, after) = (format_bytes(before.summary.size), format_bytes(disk.summary.size));
        format!("{} was {before} and is {after}", disk.summary.name)
    })
}

async fn delete(
    shell: &mut Shell<'_>,
    name: &str,
    (confirm, detach_clients): (Option<String>, bool),
) -> Result<(), Failure> {
    let disk: DiskView = shell.client.get(&disk_path(name)).await?;
    let what = format!("Deleting {name} destroys {} of data", format_bytes(disk.summary.allocated_bytes));
    let confirm = shell.confirm(confirm, &what, &disk.summary.name)?;
    let escaped = disk_path(&confirm);
    let escaped = escaped.rsplit('/').next().unwrap_or_default();
    let detach = if detach_clients { "&detach_clients=true" } else { "" };
    let () = shell.client.delete(&format!("{}?confirm={escaped}{detach}", disk_path(name))).await?;
    shell.show(&serde_json::json!({ "deleted": name }), |_| format!("deleted {name}"))
}

async fn histogram(shell: &mut Shell<'_>, options: HistogramOptions) -> Result<(), Failure> {
    let since = options.since.map_or_else(String::new, |seconds| format!("?since={seconds}"));
    let address = format!("{}/histograms{since}", disk_path(&options.name));
    let mut all: HistogramsView = shell.client.get(&address).await?;
    if let Some(kind) = options.kind {
        if !all.histograms.iter().any(|histogram| histogram.kind.as_str() == kind) {
            let mut kinds: Vec<&str> = all.histograms.iter().map(|found| found.kind.as_str()).collect();
            kinds.dedup();
            return Err(Failure::usage(format!(
                "unknown histogram `{kind}`: use one of {}",
                kinds.join(", ")
            )));
        }
        all.histograms.retain(|histogram| histogram.kind.as_str() == kind);
    }
    shell.show(&all, histograms_text)
}

fn disk_table(disks: &[DiskSummary]) -> String {
    let row = |disk: &DiskSummary| {
        let short = match (&disk.unavailable, disk.debts.len()) {
            (Some(_), _) => "unavailable".to_owned(),
            (None, _) if !disk.not_whole.is_empty() => format!("{}, not whole", disk.state),
            (None, _) => disk.state.to_string(),
        };
        let state = match &disk.trouble {
            Some(trouble) => format!("{short}: {}", trouble.trim_start_matches("cannot be used: ")),
            None => short,
        };
        vec![
            disk.name.clone(),
            format_bytes(disk.size),
            format_bytes(disk.allocated_bytes),
            disk.follows.clone().unwrap_or_else(|| disk.policy.clone()),
            disk.compliance.text(),
            disk.client_count.to_string(),
            state,
        ]
    };
    let headings = ["disk", "size", "allocated", "policy", "compliance", "clients", "state"];
    text::table(&headings, &[1, 2, 5], disks.iter().map(row).collect())
}

fn rate_text(rate: &RateView) -> String {
    format!(
        "{:.0} IOPS, {}, latency p50 {} p99 {}",
        rate.iops,
        text::rate(rate.bytes_per_second),
        text::latency(rate.latency_us_p50),
        text::latency(rate.latency_us_p99)
    )
}

/// `limited: 31 requests wait, 99 % of waits below 32 ms, 8,214 waited`.
fn limit_text(limit: &LimitView) -> String {
    let LimitView { is_limited, waiting, waited, wait_us_p99 } = limit;
    match is_limited {
        false => format!("not limited now, {waited} requests waited so far"),
        true => format!(
            "limited: {waiting} requests wait, p99 of waits {}, {waited} waited so far",
            text::latency(*wait_us_p99)
        ),
    }
}

fn snapshots_text(snapshots: &[SnapshotView]) -> String {
    let Some(newest) = snapshots.last() else { return String::new() };
    let held: u64 = snapshots.iter().map(|one| one.bytes).sum();
    format!("{}, the newest {}; they hold {} in one copy", snapshots.len(), newest.name, format_bytes(held))
}

/// When schedules take the next snapshots, one line each.
fn schedules_text(schedules: &[ScheduleView]) -> String {
    let line = |one: &ScheduleView| {
        let when = match &one.late {
            Some(why) => format!("not taken: {why}"),
            None => format!("next {}", trust::text_of_nanoseconds(one.next.saturating_mul(1_000_000_000))),
        };
        format!("{} keep {}: {} taken, {when}", one.every, one.keep, one.taken)
    };
    schedules.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn row_checks_text(checks: &RowChecksView) -> String {
    let RowChecksView { checked_rows, disagreeing_rows, mended_rows, skipped_rows, passed_seconds } = checks;
    let rows = |count: u64| if count == 1 { "1 row".to_owned() } else { format!("{count} rows") };
    let passed = match passed_seconds {
        Some(seconds) => format!("last pass ended {} ago", text::duration(*seconds as f64)),
        None => "first pass under way".to_owned(),
    };
    format!(
        "{} checked, {disagreeing_rows} disagreed ({mended_rows} mended), {skipped_rows} skipped; {passed}",
        rows(*checked_rows)
    )
}

fn disk_text(disk: &DiskView) -> String {
    let summary = &disk.summary;
    let access = match (summary.read_only, summary.share) {
        (false, false) => "",
        (true, false) => ", read-only",
        (false, true) => ", shared",
        (true, true) => ", read-only, shared",
    };
    let mut facts = vec![
        ("disk", summary.name.clone()),
        ("id", summary.id.clone()),
        (
            "size",
            format!(
                "{}, {} allocated{access}",
                format_bytes(summary.size),
                format_bytes(summary.allocated_bytes)
            ),
        ),
        (
            "policy",
            match &summary.follows {
                Some(name) => format!("{name}: {}", summary.policy),
                None => summary.policy.clone(),
            },
        ),
        ("labels", if summary.labels.is_empty() { String::new() } else { labels_text(summary) }),
        ("clone of", summary.clone_of.clone().unwrap_or_default()),
        ("compliance", summary.compliance.text()),
        (
            "state",
            match &summary.trouble {
                Some(trouble) => format!("{}: {trouble}", summary.state),
                None => summary.state.to_string(),
            },
        ),
        ("attached", attached_text(disk)),
        ("allowed", summary.allowed.as_ref().map_or_else(String::new, |_| allowed_text(summary))),
        ("clients", clients_text(&disk.clients)),
        ("reads", rate_text(&disk.figures.read)),
        ("writes", rate_text(&disk.figures.write)),
        ("limits", disk.limit.as_ref().map_or_else(String::new, limit_text)),
        ("compressed", disk.compressed.as_ref().map_or_else(String::new, compressed_text)),
        ("snapshots", snapshots_text(&disk.snapshots)),
        ("schedules", schedules_text(&disk.schedules)),
        ("rollback", disk.rollback.as_ref().map_or_else(String::new, snapshots::rollback::text_of)),
        ("row checks", disk.row_checks.as_ref().map_or_else(String::new, row_checks_text)),
        ("owner", disk.owner.clone().unwrap_or_default()),
        ("read from", disk.reads_from.clone()),
        ("layout", shorten(&disk.layout)),
        ("why", disk.why.join("\n")),
        ("attach", disk.addresses.join("\n")),
    ];
    let under_way: Vec<String> = summary.under_way.iter().cloned().collect();
    let lists = [("debts", &summary.debts), ("under way", &under_way)];
    for (name, lines) in lists {
        if !lines.is_empty() {
            facts.push((name, lines.join("\n")));
        }
    }
    facts.retain(|(_, value)| !value.is_empty());
    text::facts(&facts)
}

/// Who has it here.
fn clients_text(clients: &[ClientView]) -> String {
    let text = |client: &ClientView| {
        let tls = if client.tls { ", encrypted" } else { "" };
        let errors = client.error_after_seconds;
        let errors = errors.map_or_else(String::new, |after| format!(", I/O errors after {after} s"));
        format!("{} for {}{tls}{errors}", client.peer, text::duration(client.attached_seconds))
    };
    match clients {
        [] => "none".to_owned(),
        clients => clients.iter().map(text).collect::<Vec<_>>().join("\n"),
    }
}

/// Where clients have it.
fn attached_text(disk: &DiskView) -> String {
    let text = |one: &AttachedView| match one.clients {
        None => format!("at host {}, which does not answer", one.host),
        Some(1) => format!("at host {}, 1 client", one.host),
        Some(count) => format!("at host {}, {count} clients", one.host),
    };
    let handed = disk.handover.as_ref().map(|one| format!("being handed over to host {}", one.host));
    disk.attached.iter().map(text).chain(handed).collect::<Vec<_>>().join("\n")
}

/// Who may attach to it.
fn allowed_text(disk: &DiskSummary) -> String {
    let Some(allowed) = &disk.allowed else { return "whoever may attach to disks".to_owned() };
    let people = allowed.people.iter().map(|name| format!("person {name}"));
    people.chain(allowed.hosts.iter().map(|name| format!("host {name}"))).collect::<Vec<_>>().join(", ")
}

/// Lines of a layout that a person still reads.
const LAYOUT_LINES_MAX: usize = 20;

fn shorten(lines: &[String]) -> String {
    match lines.len().checked_sub(LAYOUT_LINES_MAX) {
        None | Some(0) => lines.join("\n"),
        Some(more) => {
            format!("{}\n… and {more} more (--json shows all)", lines[..LAYOUT_LINES_MAX].join("\n"))
        }
    }
}

/// Characters of the longest bar.
const BAR_LENGTH: u64 = 40;

/// All histograms: reads and writes beside each other, with a bar of both.
pub fn histograms_text(all: &HistogramsView) -> String {
    let period = match all.seconds {
        Some(seconds) => format!("the last {}", text::duration(seconds)),
        None => "since the host started".to_owned(),
    };
    let mut shown = vec![format!("{}, {period}", all.disk), latency_table(all)];
    let mut kinds: Vec<HistogramWord> = all.histograms.iter().map(|histogram| histogram.kind).collect();
    kinds.dedup();
    for kind in kinds {
        let of = |operations: OperationsWord| {
            all.histograms.iter().find(|found| found.kind == kind && found.operations == operations)
        };
        if let Some(both) = of(OperationsWord::Both).filter(|both| both.count > 0) {
            shown.push(histogram_text(both, of(OperationsWord::Reads), of(OperationsWord::Writes)));
        }
    }
    shown.join("\n\n")
}

fn latency_table(all: &HistogramsView) -> String {
    let row = |name: &str, view: &LatencyView| {
        vec![
            name.to_owned(),
            view.count.to_string(),
            format_bytes(view.bytes),
            view.errors.to_string(),
            text::latency(view.latency_us_mean),
            text::latency(view.latency_us_p50),
            text::latency(view.latency_us_p90),
            text::latency(view.latency_us_p99),
            text::latency(view.latency_us_p999),
        ]
    };
    let headings = ["", "ios", "bytes", "errors", "mean", "p50", "p90", "p99", "p99.9"];
    let rows = vec![row("reads", &all.read), row("writes", &all.write)];
    let others = format!("trims {}, flushes {}", all.trims, all.flushes);
    format!("{}\n{others}", text::table(&headings, &[1, 2, 3, 4, 5, 6, 7, 8], rows))
}

fn histogram_text(
    both: &HistogramView,
    reads: Option<&HistogramView>,
    writes: Option<&HistogramView>,
) -> String {
    let used = |bucket: &BucketView| bucket.count > 0;
    let first = both.buckets.iter().position(used).unwrap_or(0);
    let last = both.buckets.iter().rposition(used).unwrap_or(0);
    let most = both.buckets.iter().map(|bucket| bucket.count).max().unwrap_or(1).max(1);
    let count = |view: Option<&HistogramView>, index: usize| {
        view.map_or_else(String::new, |view| view.buckets[index].count.to_string())
    };
    let row = |index: usize| {
        let bucket = &both.buckets[index];
        let limit = match bucket.limit {
            Some(limit) => format!("<= {limit}"),
            None => format!("> {}", both.buckets[index - 1].limit.unwrap_or_default()),
        };
        let bar = "#".repeat((bucket.count * BAR_LENGTH).div_ceil(most) as usize);
        vec![limit, count(reads, index), count(writes, index), bucket.count.to_string(), bar]
    };
    let headings = [both.unit.as_str(), "reads", "writes", "all", ""];
    let rows = (first..=last).map(row).collect();
    format!("{}\n{}", both.title, text::table(&headings, &[0, 1, 2, 3], rows))
}
