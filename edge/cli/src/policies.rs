//! `policy`.

use crate::shell::Shell;
use crate::text;
use api::types::{ChangePolicy, CreatePolicy, FollowerView, PolicyView};
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
