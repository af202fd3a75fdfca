//! `host maintenance`: begins or ends it, or shows what it would do.

use crate::shell::Shell;
use api::types::{BeginMaintenance, MaintenanceMode, MaintenanceView};
use base::units::format_bytes;
use clap::{Args, ValueEnum};
use failure::Failure;

/// Options of `host maintenance`.
#[derive(Debug, Clone, Args)]
pub struct MaintenanceOptions {
    /// Name or id of the host.
    name: String,
    /// Treatment of the disks that have components on the host.
    #[arg(long, required_unless_present = "end")]
    mode: Option<MaintenanceMode>,
    /// Show what would happen to every disk, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// End the maintenance.
    #[arg(long, conflicts_with_all = ["mode", "dry_run"])]
    end: bool,
    /// Do not ask for confirmation, even if disks are unavailable meanwhile.
    #[arg(long)]
    yes: bool,
}

/// Does it.
///
/// # Errors
/// What the host says.
pub async fn run(shell: &mut Shell<'_>, options: MaintenanceOptions) -> Result<(), Failure> {
    let MaintenanceOptions { name, mode, dry_run, end, yes } = options;
    let path = format!("/api/v1/hosts/{name}/maintenance");
    let Some(mode) = mode.filter(|_| !end) else {
        let () = shell.client.delete(&path).await?;
        return shell.show(&serde_json::json!({ "ended": name }), |_| {
            format!("maintenance of host {name} has ended")
        });
    };
    let ask = |dry_run, confirm| BeginMaintenance { mode, dry_run, confirm };
    let told: MaintenanceView = shell.client.post(&path, &ask(true, None)).await?;
    if dry_run {
        return shell.show(&told, maintenance_text);
    }
    if told.is_possible && !told.inaccessible.is_empty() {
        let disks = told.inaccessible.join(", ");
        shell
            .consent(yes, &format!("while host {} is away these disks cannot be used: {disks}", told.host))?;
    }
    let begun: MaintenanceView = shell.client.post(&path, &ask(false, Some(told.host))).await?;
    shell.show(&begun, maintenance_text)
}

/// What a maintenance does, or would do.
pub fn maintenance_text(view: &MaintenanceView) -> String {
    let mode = view.mode.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
    let first = match (view.is_begun, view.is_possible) {
        (true, _) if view.bytes_to_move == 0 => {
            format!("host {} enters maintenance ({mode}); nothing has to be copied first", view.host)
        }
        (true, _) => format!(
            "host {} enters maintenance ({mode}): {} are copied first; see `drystone host list`",
            view.host,
            format_bytes(view.bytes_to_move)
        ),
        (false, true) => format!(
            "possible: {} would be copied before host {} may go ({mode})",
            format_bytes(view.bytes_to_move),
            view.host
        ),
        (false, false) => format!("not possible ({mode})"),
    };
    let disks: Vec<String> =
        view.disks.iter().map(|touched| format!("disk {}: {}", touched.disk, touched.summary)).collect();
    let obstacles: Vec<String> = view.obstacles.iter().map(|why| format!("in the way: {why}")).collect();
    [vec![first], obstacles, disks].concat().join("\n")
}
