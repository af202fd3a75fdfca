//! `policy`.

use crate::shell::Shell;
use crate::text;
use api::types::{CreatePolicy, PolicyView};
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
        #[arg(required = true)]
        rules: Vec<String>,
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
        PolicyCommand::Create { name, rules } => {
            let request = CreatePolicy { name, rules: rules.join(",") };
            let policy: PolicyView = shell.client.post("/api/v1/policies", &request).await?;
            shell.show(&policy, policy_text)
        }
        PolicyCommand::Delete { name } => {
            let () = shell.client.delete(&format!("/api/v1/policies/{name}")).await?;
            shell.show(&serde_json::json!({ "deleted": name }), |_| format!("deleted the policy {name}"))
        }
    }
}

fn policy_text(policy: &PolicyView) -> String {
    let row = |rule: &placement::Rule| {
        let value = policy.rules.get(rule.name).cloned().unwrap_or_default();
        vec![rule.name.to_owned(), value, rule.range.to_owned(), rule.meaning.to_owned()]
    };
    let rules = text::table(&["rule", "value", "range", "meaning"], &[], RULES.iter().map(row).collect());
    match &policy.unsupported {
        Some(reason) => format!("{}\n{rules}\nno disk can have it: {reason}", policy.name),
        None => format!("{}\n{rules}", policy.name),
    }
}
