//! `disk snapshot`.

mod freeze;
pub mod rollback;

use crate::shell::Shell;
use crate::text;
use api::client::disk_path;
use api::types::{ChangeSnapshot, ChangesView, CreateSnapshot, CreateSnapshots, RollBack, SnapshotView};
use base::units::format_bytes;
use clap::Subcommand;
use failure::Failure;
use freeze::Step;

/// What can be done with snapshots of a disk.
#[derive(Debug, Subcommand)]
pub enum SnapshotCommand {
    /// Take a snapshot of a disk, or of several disks at one moment, while guests use them.
    ///
    /// It is crash-consistent: what a guest has acknowledged writes of is in it, as after a loss of power. Writes wait for a few milliseconds.
    /// Of several disks all have the snapshot, or none has: no disk lacks a write that was acknowledged before one that another disk has.
    Create {
        /// Name or id of the disk, and name of the snapshot; with --name, names or ids of up to 32 disks.
        #[arg(required = true, value_names = ["DISK", "SNAPSHOT"], num_args = 1..)]
        words: Vec<String>,
        /// Name of the snapshot, on each of the disks.
        #[arg(long, value_name = "SNAPSHOT")]
        name: Option<String>,
        /// Program that has the guest write out and hold still what it has in memory: it is run as `COMMAND freeze DISK SNAPSHOT` before, and as
        /// `COMMAND thaw DISK SNAPSHOT` after, whatever became of the snapshot. Each may take a minute.
        #[arg(long, value_name = "COMMAND")]
        freeze_by: Option<String>,
    },
    /// List the snapshots of a disk, the oldest first.
    List {
        /// Name or id of the disk.
        disk: String,
    },
    /// List what differs between a snapshot and an older one, or what a snapshot holds.
    ///
    /// Blocks that are not listed are the same, or read as zeroes. Backup programs read the same over NBD: `base:allocation` and
    /// `qemu:dirty-bitmap:SINCE` of the export DISK@SNAPSHOT.
    Changes {
        /// Name or id of the disk.
        disk: String,
        /// Name of the snapshot.
        name: String,
        /// Name of an older snapshot of the disk.
        #[arg(long, value_name = "SNAPSHOT")]
        since: Option<String>,
    },
    /// Restore a disk to what it was in a snapshot, while no client has it.
    ///
    /// What changed since is copied back; all snapshots stay. Another snapshot is taken first, which has what the disk held before. A host copies:
    /// the rollback goes on when this command ends. If that host is lost, no client gets the disk until the rollback is repeated.
    Rollback {
        /// Name or id of the disk.
        disk: String,
        /// Name of the snapshot.
        name: String,
        /// Name of the snapshot that is taken first [default: before-rollback- and the time]. Where a rollback that was cut short is repeated, that of
        /// the first attempt stays.
        #[arg(long, value_name = "SNAPSHOT")]
        keep: Option<String>,
        /// Delete the snapshot that is taken first when the rollback is done.
        #[arg(long, conflicts_with = "keep")]
        no_keep: bool,
        /// Name of the disk: confirms that what was written since is replaced.
        #[arg(long, value_name = "NAME")]
        confirm: Option<String>,
        /// End the connections of clients that have the disk, at any host.
        #[arg(long)]
        detach_clients: bool,
    },
    /// Rename a snapshot. One that a schedule took belongs to no schedule from then on, so that none deletes it.
    Rename {
        /// Name or id of the disk.
        disk: String,
        /// Name of the snapshot.
        name: String,
        /// Name that it gets.
        to: String,
    },
    /// Keep a snapshot that a schedule took: its schedule never deletes it, and keeps as many others as before.
    Pin {
        /// Name or id of the disk.
        disk: String,
        /// Name of the snapshot.
        name: String,
    },
    /// Leave a pinned snapshot to its schedule again, which deletes it once it keeps newer ones.
    Unpin {
        /// Name or id of the disk.
        disk: String,
        /// Name of the snapshot.
        name: String,
    },
    /// Delete a snapshot. Its space is given back in the background.
    Delete {
        /// Name or id of the disk.
        disk: String,
        /// Name of the snapshot.
        name: String,
        /// Name of the snapshot: confirms that what only it holds is destroyed.
        #[arg(long, value_name = "SNAPSHOT")]
        confirm: Option<String>,
    },
}

/// Does it.
///
/// # Errors
/// What the host says.
pub async fn run(shell: &mut Shell<'_>, command: SnapshotCommand) -> Result<(), Failure> {
    match command {
        SnapshotCommand::Create { words, name, freeze_by } => {
            let (disks, name) = disks_and_name(words, name)?;
            create(shell, (&disks, &name), freeze_by.as_deref()).await
        }
        SnapshotCommand::List { disk } => {
            let all: Vec<SnapshotView> = shell.client.get(&format!("{}/snapshots", disk_path(&disk))).await?;
            shell.show(&all, |all| table(all))
        }
        SnapshotCommand::Changes { disk, name, since } => {
            let all = changes(shell, (&disk, &name), since.as_deref()).await?;
            shell.show(&all, changes_text)
        }
        SnapshotCommand::Rollback { disk, name, keep, no_keep, confirm, detach_clients } => {
            let request = RollBack { confirm, detach_clients, keep, no_keep };
            rollback::run(shell, (&disk, &name), request).await
        }
        SnapshotCommand::Rename { disk, name, to } => {
            let request = ChangeSnapshot { name: Some(to), pinned: None };
            change(shell, (&disk, &name), &request, "is named").await
        }
        SnapshotCommand::Pin { disk, name } => {
            let request = ChangeSnapshot { name: None, pinned: Some(true) };
            change(shell, (&disk, &name), &request, "is pinned").await
        }
        SnapshotCommand::Unpin { disk, name } => {
            let request = ChangeSnapshot { name: None, pinned: Some(false) };
            change(shell, (&disk, &name), &request, "is not pinned").await
        }
        SnapshotCommand::Delete { disk, name, confirm } => {
            let what = format!("Deleting snapshot {name} of {disk} destroys what only it holds");
            let confirm = shell.confirm(confirm, &what, &name)?;
            let path = format!("{}/snapshots/{}", disk_path(&disk), api::client::escaped(&name));
            let () =
                shell.client.delete(&format!("{path}?confirm={}", api::client::escaped(&confirm))).await?;
            shell.show(&serde_json::json!({ "deleted": name }), |_| {
                format!("deleted snapshot {name} of {disk}")
            })
        }
    }
}

async fn change(
    shell: &mut Shell<'_>,
    (disk, name): (&str, &str),
    request: &ChangeSnapshot,
    what: &str,
) -> Result<(), Failure> {
    let path = format!("{}/snapshots/{}", disk_path(disk), api::client::escaped(name));
    let changed: SnapshotView = shell.client.patch(&path, request).await?;
    shell.show(&changed, |changed| match request.name {
        Some(_) => format!("snapshot {name} of {} {what} {}", changed.disk, changed.name),
        None => format!("snapshot {} of {} {what}", changed.name, changed.disk),
    })
}

/// The disks that the words of `create` name, and the snapshot's name: the second word where no option names it.
fn disks_and_name(mut words: Vec<String>, name: Option<String>) -> Result<(Vec<String>, String), Failure> {
    match (name, words.len()) {
        (Some(name), _) => Ok((words, name)),
        (None, 2) => {
            let name = words.remove(1);
            Ok((words, name))
        }
        (None, _) => Err(Failure::usage("name one disk and the snapshot, or disks and --name SNAPSHOT")),
    }
}

async fn create(
    shell: &mut Shell<'_>,
    (disks, name): (&[String], &str),
    freeze_by: Option<&str>,
) -> Result<(), Failure> {
    let Some(command) = freeze_by else {
        let made = take(shell, disks, name).await?;
        return tell(shell, disks, &made, "crash-consistent");
    };
    let (mut frozen, mut failed) = (Vec::new(), None);
    for disk in disks {
        // One that could not be frozen may be half frozen: it is thawed, too.
        frozen.push(disk);
        if let Err(failure) = freeze::run(command, Step::Freeze, (disk, name)).await {
            failed = Some(failure.hint("no snapshot was taken"));
            break;
        }
    }
    let made = match failed {
        None => take(shell, disks, name).await,
        Some(failure) => Err(failure),
    };
    let mut thawed = Ok(());
    for disk in frozen {
        thawed = thawed.and(freeze::run(command, Step::Thaw, (disk, name)).await);
    }
    let made = made?;
    thawed.map_err(|failure| {
        failure
            .hint(format!("snapshot {name} was taken, but the guest may still hold still: thaw it by hand"))
    })?;
    tell(shell, disks, &made, "frozen by the given program")
}

/// Has the snapshot taken: of one disk, or of several at one moment.
async fn take(shell: &Shell<'_>, disks: &[String], name: &str) -> Result<Vec<SnapshotView>, Failure> {
    if let [disk] = disks {
        let request = CreateSnapshot { name: name.to_owned() };
        let made = shell.client.post(&format!("{}/snapshots", disk_path(disk)), &request).await?;
        return Ok(vec![made]);
    }
    let request = CreateSnapshots { disks: disks.to_vec(), name: name.to_owned() };
    shell.client.post("/api/v1/snapshots", &request).await
}

fn tell(shell: &mut Shell<'_>, disks: &[String], made: &[SnapshotView], how: &str) -> Result<(), Failure> {
    if let ([_], [made]) = (disks, made) {
        return shell.show(made, |made| {
            format!(
                "snapshot {} of {} was taken ({how}); NBD clients read it as export {}",
                made.name, made.disk, made.export
            )
        });
    }
    shell.show(&made.to_vec(), |made| {
        let exports: Vec<&str> = made.iter().map(|one| one.export.as_str()).collect();
        format!(
            "a snapshot of {} disks was taken at one moment ({how}); NBD clients read it as {}",
            made.len(),
            exports.join(", ")
        )
    })
}

/// All pages of what changed.
async fn changes(
    shell: &mut Shell<'_>,
    (disk, name): (&str, &str),
    since: Option<&str>,
) -> Result<ChangesView, Failure> {
    let path = format!("{}/snapshots/{}/changes", disk_path(disk), api::client::escaped(name));
    let since = since.map_or_else(String::new, |since| format!("&since={}", api::client::escaped(since)));
    let mut all: Option<ChangesView> = None;
    loop {
        let from = all.as_ref().and_then(|all| all.next).unwrap_or(0);
        let mut page: ChangesView = shell.client.get(&format!("{path}?from={from}{since}")).await?;
        if let Some(before) = all.take() {
            let mut runs = before.runs;
            for run in page.runs {
                match runs.last_mut() {
                    Some(last) if last.offset + last.length == run.offset => last.length += run.length,
                    _ => runs.push(run),
                }
            }
            page.runs = runs;
        }
        match page.next {
            Some(next) if next > from => all = Some(page),
            _ => return Ok(page),
        }
    }
}

fn changes_text(all: &ChangesView) -> String {
    let bytes: u64 = all.runs.iter().map(|run| run.length).sum();
    let what = match &all.since {
        Some(since) => format!("of {} may differ from {since}", format_bytes(all.size)),
        None => format!("of {} are allocated", format_bytes(all.size)),
    };
    let total = format!("{}@{}: {} {what}", all.disk, all.snapshot, format_bytes(bytes));
    if all.runs.is_empty() {
        return total;
    }
    let rows =
        all.runs.iter().map(|run| vec![run.offset.to_string(), run.length.to_string()]).collect::<Vec<_>>();
    format!("{}\n{total}", text::table(&["offset", "length"], &[0, 1], rows))
}

fn table(all: &[SnapshotView]) -> String {
    if all.is_empty() {
        return "the disk has no snapshots".to_owned();
    }
    let row = |one: &SnapshotView| {
        vec![
            one.name.clone(),
            trust::text_of_nanoseconds(one.taken * 1_000_000_000),
            format_bytes(one.size),
            format_bytes(one.bytes),
            format!("{} of {}", one.copies, one.copies_wanted),
            kept_text(one),
            if one.clones > 0 { one.clones.to_string() } else { "-".to_owned() },
            one.export.clone(),
        ]
    };
    text::table(
        &["snapshot", "taken", "size", "holds", "copies", "schedule", "clones", "export"],
        &[2, 3, 6],
        all.iter().map(row).collect(),
    )
}

/// The schedule of a snapshot, and whether it deletes it.
fn kept_text(one: &SnapshotView) -> String {
    match (&one.schedule, one.pinned) {
        (Some(schedule), false) => schedule.clone(),
        (Some(schedule), true) => format!("{schedule}, pinned"),
        (None, true) => "pinned".to_owned(),
        (None, false) => "-".to_owned(),
    }
}
