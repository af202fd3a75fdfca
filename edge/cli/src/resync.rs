//! `resync`: what is copied for disks, how much is left, and what waits for what.

use crate::shell::Shell;
use crate::text;
use api::types::{ComponentResyncView, ResyncsView};
use base::units::format_bytes;
use failure::Failure;

/// Shows it.
///
/// # Errors
/// What the host says.
pub async fn run(shell: &mut Shell<'_>) -> Result<(), Failure> {
    let resyncs: ResyncsView = shell.client.get("/api/v1/resync").await?;
    shell.show(&resyncs, resync_text)
}

fn resync_text(resyncs: &ResyncsView) -> String {
    if resyncs.disks.is_empty() {
        return "nothing is copied, and nothing waits to be".to_owned();
    }
    let mut rows = Vec::new();
    for disk in &resyncs.disks {
        rows.extend(disk.components.iter().map(|one| row(&disk.disk, one)));
    }
    let headings = ["disk", "to", "cause", "copied", "left", "pace", "done in", "waits for"];
    let table = text::table(&headings, &[3, 4, 5, 6], rows);
    let pace = match resyncs.bytes_per_second > 0.0 {
        true => {
            let seconds = resyncs.left_bytes as f64 / resyncs.bytes_per_second;
            format!(" at {}: {}", text::rate(resyncs.bytes_per_second), text::duration(seconds))
        }
        false => String::new(),
    };
    format!(
        "{} left to copy for {} disks{pace}\n\n{table}",
        format_bytes(resyncs.left_bytes),
        resyncs.disks.len()
    )
}

fn row(disk: &str, one: &ComponentResyncView) -> Vec<String> {
    let or_nothing = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    vec![
        disk.to_owned(),
        one.device.clone(),
        one.cause.to_string(),
        format_bytes(one.copied_bytes),
        or_nothing(one.left_bytes.map(format_bytes)),
        or_nothing(one.bytes_per_second.map(text::rate)),
        or_nothing(one.seconds_left.map(text::duration)),
        one.waits_for.clone().unwrap_or_default(),
    ]
}
