//! `what-if`: what would become of the cluster.

use crate::shell::{Shell, size};
use crate::text;
use api::types::{AddHost, ForecastView, HostSpaceView, MoveRoomView, OutlookView, SetPolicy, WhatIf};
use base::units::format_bytes;
use clap::{Args, Subcommand};
use failure::Failure;

/// What can be asked.
#[derive(Debug, Subcommand)]
pub enum WhatIfCommand {
    /// Forecast the loss of hosts, all at once and for good.
    LoseHost {
        /// Names or ids of the hosts.
        #[arg(required = true)]
        hosts: Vec<String>,
    },
    /// Forecast the loss of all hosts of a fault domain at once.
    LoseDomain {
        /// Name of the fault domain.
        domain: String,
    },
    /// Forecast another host.
    AddHost(AddHostOptions),
    /// Forecast another policy for a disk, for all disks, or for those that follow a named policy.
    ///
    /// Each disk has it (`done`), gets it `at once`, `moves` into another layout, or is `refused`. The last table has the devices that moves
    /// copy to: what these hold at most meanwhile, if the written parts of disks lie together, and if they are scattered.
    SetPolicy(SetPolicyOptions),
}

/// Options of `what-if add-host`.
#[derive(Debug, Args)]
pub struct AddHostOptions {
    /// Host that the new one is like in size and fault domain.
    #[arg(long, value_name = "HOST", required_unless_present = "capacity", conflicts_with = "capacity")]
    like: Option<String>,
    /// Size of a capacity device of the new host; once per device.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    capacity: Vec<u64>,
    /// Fault domain of the new host.
    #[arg(long, value_name = "NAME")]
    fault_domain: Option<String>,
}

/// Options of `what-if set-policy`.
#[derive(Debug, Args)]
pub struct SetPolicyOptions {
    /// Name or id of the disk, and the policy; with --all or --followers the policy alone.
    #[arg(required = true, num_args = 1.., value_names = ["DISK", "POLICY"])]
    words: Vec<String>,
    /// Include all disks.
    #[arg(long, conflicts_with = "followers")]
    all: bool,
    /// Include all disks that follow this named policy.
    #[arg(long, value_name = "NAME")]
    followers: Option<String>,
}

/// Does it.
///
/// # Errors
/// What the host says.
pub async fn run(shell: &mut Shell<'_>, command: WhatIfCommand) -> Result<(), Failure> {
    let question = match command {
        WhatIfCommand::LoseHost { hosts } => WhatIf::LoseHosts(hosts),
        WhatIfCommand::LoseDomain { domain } => WhatIf::LoseDomain(domain),
        WhatIfCommand::AddHost(AddHostOptions { like, capacity, fault_domain }) => {
            WhatIf::AddHost(AddHost { like, capacities: capacity, fault_domain })
        }
        WhatIfCommand::SetPolicy(SetPolicyOptions { mut words, all, followers }) => {
            let policy = words.pop().unwrap_or_default();
            if words.is_empty() != (all || followers.is_some()) {
                return Err(Failure::usage(
                    "name the disks and then the policy, or --all or --followers and the policy alone",
                ));
            }
            WhatIf::SetPolicy(SetPolicy { disks: words, followers, policy })
        }
    };
    let forecast: ForecastView = shell.client.post("/api/v1/what-if", &question).await?;
    shell.show(&forecast, forecast_text)
}

fn forecast_text(forecast: &ForecastView) -> String {
    let mut shown = vec![forecast.verdict.clone(), space_table(forecast)];
    if !forecast.disks.is_empty() {
        shown.push(disk_table(&forecast.disks));
    }
    if !forecast.move_rooms.is_empty() {
        shown.push(room_table(&forecast.move_rooms));
    }
    let lacks =
        forecast.disks.iter().flat_map(|one| one.lacks.iter().map(|why| format!("{}: {why}", one.disk)));
    let lacks: Vec<String> = lacks.collect();
    if !lacks.is_empty() {
        shown.push(lacks.join("\n"));
    }
    shown.join("\n\n")
}

/// The hosts of now and then beside each other.
fn space_table(forecast: &ForecastView) -> String {
    let find = |all: &[HostSpaceView], name: &str| all.iter().find(|one| one.host == name).cloned();
    let mut names: Vec<&str> =
        forecast.before.iter().chain(&forecast.after).map(|one| one.host.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let cells = |one: Option<HostSpaceView>| match one {
        Some(one) => [one.used_bytes, one.free_bytes, one.largest_bytes].map(format_bytes),
        None => ["-", "-", "-"].map(str::to_owned),
    };
    let row = |name: &str| {
        let (before, after) = (find(&forecast.before, name), find(&forecast.after, name));
        let mut row = vec![name.to_owned()];
        row.extend(cells(before));
        row.extend(cells(after));
        row
    };
    let mut rows: Vec<Vec<String>> = names.into_iter().map(row).collect();
    let sum = |all: &[HostSpaceView]| HostSpaceView {
        host: String::new(),
        capacity_bytes: all.iter().map(|one| one.capacity_bytes).sum(),
        used_bytes: all.iter().map(|one| one.used_bytes).sum(),
        free_bytes: all.iter().map(|one| one.free_bytes).sum(),
        largest_bytes: all.iter().map(|one| one.largest_bytes).max().unwrap_or(0),
    };
    let mut total = vec!["in all".to_owned()];
    total.extend(cells(Some(sum(&forecast.before))));
    total.extend(cells(Some(sum(&forecast.after))));
    rows.push(total);
    let headings = ["host", "used", "free", "largest", "used then", "free then", "largest then"];
    text::table(&headings, &[1, 2, 3, 4, 5, 6], rows)
}

fn disk_table(disks: &[OutlookView]) -> String {
    let row = |one: &OutlookView| {
        let targets: Vec<String> = one
            .targets
            .iter()
            .map(|(device, bytes)| format!("{} to {device}", format_bytes(*bytes)))
            .collect();
        let mut row = vec![one.disk.clone()];
        row.extend(one.change.map(|change| change.to_string()));
        row.extend([one.now, one.at_once, one.then].map(|condition| condition.to_string()));
        row.push(shortened(&targets));
        row
    };
    // The question is about the policy of all of them, or of none.
    let headings: &[&str] = match disks.iter().all(|one| one.change.is_some()) {
        true => &["disk", "change", "now", "at once", "then", "copied"],
        false => &["disk", "now", "at once", "then", "copied"],
    };
    text::table(headings, &[], disks.iter().map(row).collect())
}

/// What moves into another layout use of devices.
fn room_table(rooms: &[MoveRoomView]) -> String {
    let row = |one: &MoveRoomView| {
        let mut row = vec![one.device.clone()];
        let bytes = [one.used_bytes, one.peak_bytes, one.scattered_peak_bytes, one.limit_bytes];
        row.extend(bytes.map(format_bytes));
        row
    };
    let headings = ["device", "used", "used at most", "if scattered", "limit"];
    text::table(&headings, &[1, 2, 3, 4], rooms.iter().map(row).collect())
}

/// Targets that a line of the table names.
const TARGETS_SHOWN: usize = 3;

fn shortened(targets: &[String]) -> String {
    match targets.len().checked_sub(TARGETS_SHOWN) {
        None | Some(0) => targets.join(", "),
        Some(more) => format!("{}, and {more} more", targets[..TARGETS_SHOWN].join(", ")),
    }
}
