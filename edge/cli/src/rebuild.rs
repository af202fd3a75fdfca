//! `cluster rebuild-directory`: what would come of it is shown first, always.

use crate::shell::Shell;
use crate::text;
use api::types::{RebuildDirectory, RebuildDisk, RebuildHost, RebuildView, RebuildWord};
use clap::Args;
use failure::Failure;

/// Options of `cluster rebuild-directory`.
#[derive(Debug, Clone, Args)]
pub struct RebuildOptions {
    /// Show the result, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Host that never comes back, or lost its copy of the directory: what only this host knew is lost. Once per host.
    #[arg(long, value_name = "HOST")]
    without: Vec<String>,
    /// Disk to keep although it is `unproven`: it may lack its last writes, and be damaged by that. Once per disk.
    #[arg(long, value_name = "DISK")]
    accept: Vec<String>,
    /// Disk to give up that is `unproven`: nothing brings it back. Once per disk.
    #[arg(long, value_name = "DISK")]
    leave_out: Vec<String>,
    /// Do not ask for confirmation.
    #[arg(long)]
    yes: bool,
}

const PATH: &str = "/api/v1/cluster/rebuild-directory";

/// Does it.
///
/// # Errors
/// What the host says.
pub async fn run(shell: &mut Shell<'_>, options: RebuildOptions) -> Result<(), Failure> {
    let RebuildOptions { dry_run, without, accept, leave_out, yes } = options;
    let ask = |dry_run| RebuildDirectory {
        dry_run,
        without: without.clone(),
        accept: accept.clone(),
        leave_out: leave_out.clone(),
    };
    let told: RebuildView = shell.client.post(PATH, &ask(true)).await?;
    if dry_run {
        return shell.show(&told, rebuild_text);
    }
    if told.obstacles.is_empty() {
        if !shell.json {
            shell.print(&rebuild_text(&told))?;
        }
        shell.consent(yes, &consequence(&told))?;
    }
    // With obstacles the host refuses, and says which.
    let made: RebuildView = shell.client.post(PATH, &ask(false)).await?;
    shell.show(&made, |made| {
        format!(
            "the directory of {} is there again, generation {}, with {} disks\nnow restart the service of each host, one after another: disks are served all the while",
            made.cluster,
            made.generation,
            taken(made)
        )
    })
}

fn taken(view: &RebuildView) -> usize {
    view.disks.iter().filter(|disk| disk.outcome != RebuildWord::Unproven).count()
}

fn consequence(view: &RebuildView) -> String {
    let lost = view.disks.len() - taken(view);
    let at_risk = view
        .disks
        .iter()
        .filter(|disk| [RebuildWord::AtRisk, RebuildWord::Accepted].contains(&disk.outcome))
        .count();
    let mut text = format!("the cluster {} gets a new directory with {} disks", view.cluster, taken(view));
    if at_risk > 0 {
        text.push_str(&format!("; of {at_risk} of them the last changes may be lost"));
    }
    if lost > 0 {
        text.push_str(&format!("; {lost} are given up for good"));
    }
    text
}

fn rebuild_text(view: &RebuildView) -> String {
    let host = |host: &RebuildHost| {
        let copy = host
            .copy
            .map_or_else(|| "none".to_owned(), |(generation, revision)| format!("{generation}.{revision}"));
        let state = match (&host.trouble, host.is_left_out) {
            (None, _) => "answers".to_owned(),
            (Some(why), true) => format!("left out: {why}"),
            (Some(why), false) => why.clone(),
        };
        vec![host.name.clone(), copy, state]
    };
    let disk = |disk: &RebuildDisk| vec![disk.name.clone(), disk.outcome.to_string(), disk.notes.join("; ")];
    let mut parts = vec![
        text::facts(&[
            ("cluster", view.cluster.clone()),
            ("generation", view.generation.to_string()),
            ("policies", view.policies.to_string()),
            ("authorities", view.authorities.to_string()),
            ("certificates that count no more", view.revoked.to_string()),
            ("join tokens that are dropped", view.tokens_dropped.to_string()),
        ]),
        text::table(&["host", "copy", "state"], &[], view.hosts.iter().map(host).collect()),
    ];
    if !view.disks.is_empty() {
        parts.push(text::table(&["disk", "outcome", "note"], &[], view.disks.iter().map(disk).collect()));
    }
    let unknown = view.unknown.iter();
    let unknown = unknown.map(|one| {
        format!(
            "components of disk {} stand on {}, and no record tells of it: they stay",
            one.id,
            one.hosts.join(", ")
        )
    });
    parts.extend(unknown);
    parts.extend(view.unreadable.iter().map(|why| format!("left out, as it cannot be read: {why}")));
    parts.extend(view.obstacles.iter().map(|why| format!("not possible yet: {why}")));
    parts.join("\n\n")
}
