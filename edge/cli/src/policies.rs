//! `policy`.

use crate::shell::{Shell, size};
use crate::text;
use api::types::{
    ChangePolicy, CreatePolicy, ExplainPolicy, ExplainedPolicy, FollowerView, PlannedDisk, PolicyView,
};
use base::units::format_bytes;
use clap::Subcommand;
use failure::Failure;
use placement::RULES;

/// What can be done with policies.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// List all policies.
    List,
    /// Show every rule of a policy, with its meaning.
    Show {
        /// Name of the policy.
        name: String,
    },
    /// Explain a policy: what it survives, what it costs, how much disks of it can still take, and where a disk would stand.
    Explain {
        /// Rules as `rule=value`, after the name of a policy to build on, if any: gold stripes=2 [default: what a new disk gets]
        rules: Vec<String>,
        /// Size of a disk, of which is shown where it would stand, e.g. 2TiB.
        #[arg(long, value_parser = size)]
        size: Option<u64>,
    },
    /// Create a policy.
    Create {
        /// Name of the policy.
        name: String,
        /// Rules as `rule=value`, after the name of a policy to build on, if any: single stripes=2
        #[arg(required_unless_present = "snapshots")]
        rules: Vec<String>,
        /// Schedule of snapshots (UTC): `hourly keep 24, daily keep 7`; also every 15m, weekly, monthly. The same as the rule `snapshots=`.
        #[arg(long, value_name = "SCHEDULE")]
        snapshots: Option<String>,
    },
    /// Change rules of a policy, and of the disks that follow it: those that were created with its name alone.
    ///
    /// Limits, read locality, checksums and reservations change at once, while guests use the disks. With `failures_to_tolerate`, copies
    /// of mirrored disks are added or removed. With other rules, what the disks hold is moved into another layout. A disk that cannot follow keeps its rules, and says why.
    Set {
        /// Name of the policy.
        name: String,
        /// Rules that change, as `rule=value`: iops_limit=500 read_locality=auto
        #[arg(required_unless_present = "snapshots")]
        rules: Vec<String>,
        /// Schedule of snapshots (UTC), or `none`: `hourly keep 24, daily keep 7`. The same as the rule `snapshots=`.
        #[arg(long, value_name = "SCHEDULE")]
        snapshots: Option<String>,
    },
    /// Delete a policy. Disks keep the rules that they were created with.
    Delete {
        /// Name of the policy.
        name: String,
    },
}

/// Does it.
///
/// # Errors
/// What the host says.
pub async fn run(shell: &mut Shell<'_>, command: PolicyCommand) -> Result<(), Failure> {
    match command {
        PolicyCommand::List => {
            let policies: Vec<PolicyView> = shell.client.get("/api/v1/policies").await?;
            shell.show(&policies, |policies| {
                let row = |policy: &PolicyView| {
                    let kind = if policy.built_in { "built in" } else { "made" };
                    vec![policy.name.clone(), kind.to_owned(), policy.short.clone()]
                };
                text::table(&["name", "kind", "rules"], &[], policies.iter().map(row).collect())
            })
        }
        PolicyCommand::Show { name } => {
            let policy: PolicyView = shell.client.get(&format!("/api/v1/policies/{name}")).await?;
            shell.show(&policy, policy_text)
        }
        PolicyCommand::Explain { rules, size } => {
            let policy = (!rules.is_empty()).then(|| rules.join(","));
            let request = ExplainPolicy { policy, size };
            let explained: ExplainedPolicy = shell.client.post("/api/v1/policies/explain", &request).await?;
            shell.show(&explained, explained_text)
        }
        PolicyCommand::Create { name, rules, snapshots } => {
            let request = CreatePolicy { name, rules: rules_of(rules, snapshots) };
            let policy: PolicyView = shell.client.post("/api/v1/policies", &request).await?;
            shell.show(&policy, policy_text)
        }
        PolicyCommand::Set { name, rules, snapshots } => {
            let request = ChangePolicy { rules: rules_of(rules, snapshots) };
            let policy: PolicyView =
                shell.client.patch(&format!("/api/v1/policies/{name}"), &request).await?;
            shell.show(&policy, policy_text)
        }
        PolicyCommand::Delete { name } => {
            let () = shell.client.delete(&format!("/api/v1/policies/{name}")).await?;
            shell.show(&serde_json::json!({ "deleted": name }), |_| format!("deleted the policy {name}"))
        }
    }
}

/// The rules as one text, with the schedule behind them.
fn rules_of(mut rules: Vec<String>, snapshots: Option<String>) -> String {
    rules.extend(snapshots.map(|schedule| format!("snapshots={schedule}")));
    rules.join(",")
}

fn policy_text(policy: &PolicyView) -> String {
    let row = |rule: &placement::Rule| {
        let value = policy.rules.get(rule.name).cloned().unwrap_or_default();
        vec![rule.name.to_owned(), value, rule.range.to_owned(), rule.meaning.to_owned()]
    };
    let rules = text::table(&["rule", "value", "range", "meaning"], &[], RULES.iter().map(row).collect());
    let row = |one: &FollowerView| {
        vec![one.disk.clone(), one.state.to_string(), one.cause.clone().unwrap_or_default()]
    };
    let mut shown = format!("{}\n{rules}", policy.name);
    if let Some(reason) = &policy.unsupported {
        shown += &format!("\nno disk can have it: {reason}");
    }
    if !policy.disks.is_empty() {
        let followers = text::table(&["disk", "state", "cause"], &[], policy.disks.iter().map(row).collect());
        shown += &format!("\n\n{followers}");
    }
    shown
}

/// What a policy gives and costs, and where a disk of it would stand.
pub(crate) fn explained_text(explained: &ExplainedPolicy) -> String {
    let survives = match explained.failures_to_tolerate {
        0 => "no failure: what its device or host loses is lost".to_owned(),
        1 => "one failure".to_owned(),
        failures => format!("{failures} failures at once"),
    };
    let domains = format!("{} needed, {} there", explained.domains_needed, explained.domains);
    let mut facts =
        vec![("rules", explained.short.clone()), ("survives", survives), ("fault domains", domains)];
    if let Some(capacity) = &explained.capacity {
        let available = format!(
            "{} of {} in all",
            format_bytes(capacity.available_bytes),
            format_bytes(capacity.total_bytes)
        );
        facts.push(("costs", format!("{:.2} bytes on devices for each byte of a disk", capacity.cost)));
        facts.push(("disks can take", available));
        facts.push(("largest full disk", format_bytes(capacity.largest_bytes)));
    }
    if let Some(refusal) = &explained.refusal {
        facts.push(("refused", refusal.cause.clone()));
        facts.push(("what helps", refusal.hint.clone()));
    }
    let mut shown = text::facts(&facts);
    if let Some(disk) = &explained.disk {
        shown += &format!("\n\n{}", planned_text(disk));
    }
    shown
}

fn planned_text(disk: &PlannedDisk) -> String {
    let row = |one: &api::types::PlannedComponent| vec![one.device.clone(), format_bytes(one.size)];
    let components = text::table(&["device", "component"], &[1], disk.components.iter().map(row).collect());
    let why: Vec<String> = disk.reasons.iter().map(|reason| format!("  {reason}")).collect();
    format!(
        "a disk of {} would stand so, and take {} once it is full ({} set aside at once):\n{components}\nwhy:\n{}",
        format_bytes(disk.size),
        format_bytes(disk.full_bytes),
        format_bytes(disk.reserved_bytes),
        why.join("\n")
    )
}
