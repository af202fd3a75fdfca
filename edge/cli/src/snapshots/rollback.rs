//! `disk snapshot rollback`: a host copies, and this command tells how far it is.

use crate::shell::Shell;
use crate::transfer::bar;
use api::client::{disk_path, escaped};
use api::types::{DiskView, RollBack, RollbackView, RollbackWord};
use base::units::format_bytes;
use failure::{Code, Failure};
use std::time::Duration;

/// How often the host is asked how far it is.
const POLL: Duration = Duration::from_millis(200);
/// Questions in a row that may stay without an answer before the host counts as lost.
const UNANSWERED_MAX: u32 = 25;

/// Has a disk rolled back to a snapshot, and waits for the end.
///
/// # Errors
/// When there is no such snapshot, the disk is in use, or copying fails.
pub async fn run(
    shell: &mut Shell<'_>,
    (disk, snapshot): (&str, &str),
    request: RollBack,
) -> Result<(), Failure> {
    let view: DiskView = shell.client.get(&disk_path(disk)).await?;
    let name = view.summary.name;
    let path = format!("{}/snapshots/{}", disk_path(&name), escaped(snapshot));
    // Whoever mistypes the snapshot is not asked to confirm.
    let _: api::types::SnapshotView = shell.client.get(&path).await?;
    let what = format!("Rolling back replaces all that was written to {name} since snapshot {snapshot}");
    let confirm = shell.confirm(request.confirm.clone(), &what, &name)?;
    let request = RollBack { confirm: Some(confirm), ..request };
    let begun: RollbackView = shell.client.post(&format!("{path}/rollback"), &request).await?;
    let ended = follow(shell, &begun).await?;
    if ended.state != RollbackWord::Done {
        let why = ended.failure.unwrap_or_else(|| "its host was lost".to_owned());
        return Err(Failure::failed(format!("roll back {name}"), why).hint(way_out(&ended.disk, &begun)));
    }
    shell.show(&ended, |ended| {
        let kept = ended.kept.as_ref();
        let kept = kept.map_or_else(String::new, |kept| format!("; snapshot {kept} has what it held before"));
        format!(
            "{} is as it was in snapshot {}: {} copied back in {:.1} s{kept}",
            ended.disk,
            ended.snapshot,
            format_bytes(ended.copied_bytes),
            ended.seconds
        )
    })
}

/// Shows how far a rollback is until it has ended.
async fn follow(shell: &Shell<'_>, begun: &RollbackView) -> Result<RollbackView, Failure> {
    let path = format!("{}/rollback", disk_path(&begun.disk));
    let bar = bar("roll back", begun.changed_bytes.unwrap_or(0));
    let mut unanswered = 0;
    loop {
        match shell.client.get::<RollbackView>(&path).await {
            Ok(now) if now.state == RollbackWord::Copying => {
                unanswered = 0;
                bar.set_length(now.changed_bytes.unwrap_or(0));
                bar.set_position(now.copied_bytes);
            }
            Ok(ended) => {
                bar.finish_and_clear();
                return Ok(ended);
            }
            // The host may have ended and be back: then it knows of no rollback that it has carried out.
            Err(failure) if failure.code == Code::Unreachable && unanswered < UNANSWERED_MAX => {
                unanswered += 1
            }
            Err(failure) => {
                bar.finish_and_clear();
                return Err(failure.hint(way_out(&begun.disk, begun)));
            }
        }
        tokio::time::sleep(POLL).await;
    }
}

/// How far a rollback is, in a line.
pub fn text_of(one: &RollbackView) -> String {
    let copied = one.changed_bytes.map_or_else(String::new, |changed| {
        format!(", {} of {} copied", format_bytes(one.copied_bytes), format_bytes(changed))
    });
    let host = one.host.as_ref().map_or_else(String::new, |host| format!(" at host {host}"));
    match one.state {
        RollbackWord::Copying => {
            format!("to snapshot {}{host}{copied}; no client gets the disk meanwhile", one.snapshot)
        }
        _ => format!(
            "to snapshot {} was cut short{host}{copied}; no client gets the disk until it is repeated",
            one.snapshot
        ),
    }
}

/// What can be done when nobody goes on.
fn way_out(disk: &str, begun: &RollbackView) -> String {
    let back = begun.kept.as_ref().map_or_else(String::new, |kept| {
        format!(", or roll back to {kept}, which has what the disk held before")
    });
    format!(
        "`drystone disk show {disk}` says how far it is. If it was cut short, no client gets the disk until it is repeated: repeat it{back}"
    )
}
