//! `disk snapshot`.

use crate::shell::Shell;
use crate::text;
use api::client::disk_path;
use api::types::{CreateSnapshot, SnapshotView};
use base::units::format_bytes;
use clap::Subcommand;
use failure::Failure;

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
    },
    /// List the snapshots of a disk, the oldest first.
    List {
        /// Name or id of the disk.
        disk: String,
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
        SnapshotCommand::Create { disk, name } => {
            let address = format!("{}/snapshots", disk_path(&disk));
            let made: SnapshotView = shell.client.post(&address, &CreateSnapshot { name }).await?;
            shell.show(&made, |made| {
                format!(
                    "snapshot {} of {} was taken (crash-consistent); NBD clients read it as export {}",
                    made.name, made.disk, made.export
                )
            })
        }
        SnapshotCommand::List { disk } => {
            let all: Vec<SnapshotView> = shell.client.get(&format!("{}/snapshots", disk_path(&disk))).await?;
            shell.show(&all, |all| table(all))
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

fn table(all: &[SnapshotView]) -> String {
    if all.is_empty() {
        return "the disk has no snapshots".to_owned();
    }
    let row = |one: &SnapshotView| {
        vec![
            one.name.clone(),
            trust::text_of_nanoseconds(one.taken * 1_000_000_000),
            format_bytes(one.size),
            format!("{} of {}", one.copies, one.copies_wanted),
            one.export.clone(),
        ]
    };
    text::table(&["snapshot", "taken", "size", "copies", "export"], &[2], all.iter().map(row).collect())
}
