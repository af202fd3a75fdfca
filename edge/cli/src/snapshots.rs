//! `disk snapshot`.

mod freeze;

use crate::shell::Shell;
use crate::{text, transfer};
use api::client::disk_path;
use api::types::{ChangeSnapshot, ChangesView, CreateSnapshot, SnapshotView};
use base::units::format_bytes;
use clap::Subcommand;
use failure::Failure;
use freeze::Step;

/// What can be done with snapshots of a disk.
#[derive(Debug, Subcommand)]
pub enum SnapshotCommand {
    /// Take a snapshot of a disk while guests use it.
    ///
    /// It is crash-consistent: what a guest has acknowledged writes of is in it, as after a loss of power. Writes wait for a few milliseconds.
    Create {
        /// Name or id of the disk.
        disk: String,
        /// Name of the snapshot.
        name: String,
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
    /// What changed since is copied back; all snapshots stay. Another snapshot is taken first, which has what the disk held before.
    Rollback {
        /// Name or id of the disk.
        disk: String,
        /// Name of the snapshot.
        name: String,
        /// Name of the snapshot that is taken first [default: before-rollback- and the time].
        #[arg(long, value_name = "SNAPSHOT")]
        keep: Option<String>,
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
        SnapshotCommand::Create { disk, name, freeze_by } => {
            create(shell, (&disk, &name), freeze_by.as_deref()).await
        }
        SnapshotCommand::List { disk } => {
            let all: Vec<SnapshotView> = shell.client.get(&format!("{}/snapshots", disk_path(&disk))).await?;
            shell.show(&all, |all| table(all))
        }
        SnapshotCommand::Changes { disk, name, since } => {
            let all = changes(shell, (&disk, &name), since.as_deref()).await?;
            shell.show(&all, changes_text)
        }
        SnapshotCommand::Rollback { disk, name, keep, confirm, detach_clients } => {
            transfer::roll_back(shell, (&disk, &name), keep, (confirm, detach_clients)).await
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

async fn create(
    shell: &mut Shell<'_>,
    (disk, name): (&str, &str),
    freeze_by: Option<&str>,
) -> Result<(), Failure> {
    let address = format!("{}/snapshots", disk_path(disk));
    let request = CreateSnapshot { name: name.to_owned() };
    let Some(command) = freeze_by else {
        let made: SnapshotView = shell.client.post(&address, &request).await?;
        return tell(shell, &made, "crash-consistent");
    };
    let made: Result<SnapshotView, Failure> = match freeze::run(command, Step::Freeze, (disk, name)).await {
        Ok(()) => shell.client.post(&address, &request).await,
        Err(failure) => Err(failure.hint("no snapshot was taken")),
    };
    let thawed = freeze::run(command, Step::Thaw, (disk, name)).await;
    let made = made?;
    thawed.map_err(|failure| {
        failure
            .hint(format!("snapshot {name} was taken, but the guest may still hold still: thaw it by hand"))
    })?;
    tell(shell, &made, "frozen by the given program")
}

fn tell(shell: &mut Shell<'_>, made: &SnapshotView, how: &str) -> Result<(), Failure> {
    shell.show(made, |made| {
        format!(
            "snapshot {} of {} was taken ({how}); NBD clients read it as export {}",
            made.name, made.disk, made.export
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
            one.export.clone(),
        ]
    };
    text::table(
        &["snapshot", "taken", "size", "holds", "copies", "schedule", "export"],
        &[2, 3],
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
