//! Policies: the built-in ones and those that people make.

use super::Control;
use crate::directory::PolicyEntry;
use crate::events::Kind;
use crate::limits::POLICIES_MAX;
use api::name::check_name;
use api::types::{CreatePolicy, PolicyView};
use failure::{Code, Failure};
use placement::{Policy, RULES};
use std::collections::BTreeMap;

impl Control {
    /// The policy of a text: a name, rules, or both. Nothing: what is kept as a rule: one copy on a single host, two among several.
    pub(super) fn resolve_policy(&self, text: Option<&str>) -> Result<Policy, Failure> {
        let standard = if self.cluster.stands_alone() { Policy::SINGLE } else { Policy::DEFAULT };
        let Some(text) = text else { return Ok(standard) };
        let name = text.split([',', ' ']).next().unwrap_or_default();
        let records = self.records();
        let (base, rules) = match records.policies.get(name) {
            Some(entry) => (entry.policy.to_string(), &text[name.len()..]),
            None => (String::new(), text),
        };
        if base.is_empty() {
            return rules.parse().map_err(|error: placement::PolicyError| {
                let unknown = matches!(error, placement::PolicyError::UnknownName { .. });
                let failure =
                    Failure::new(if unknown { Code::NotFound } else { Code::Usage }, error.to_string());
                failure.hint("see `drystone policy list`")
            });
        }
        let mut policy: Policy = base.parse().expect("a policy reads its own text");
        for word in rules.split([',', ' ']).filter(|word| !word.is_empty()) {
            let (rule, value) = word
                .split_once('=')
                .ok_or_else(|| Failure::usage(format!("`{word}` is not `rule=value`")))?;
            policy.set(rule, value).map_err(|error| Failure::usage(error.to_string()))?;
        }
        Ok(policy)
    }

    /// All policies, the built-in ones first.
    pub fn policies(&self) -> Vec<PolicyView> {
        let built_in = Policy::BUILT_IN.iter().map(|(name, policy, _)| policy_view(name, policy, true));
        let records = self.records();
        let made = records.policies.values().map(|entry| policy_view(&entry.name, &entry.policy, false));
        built_in.chain(made).collect()
    }

    /// One policy.
    ///
    /// # Errors
    /// When there is none of this name.
    pub fn policy(&self, name: &str) -> Result<PolicyView, Failure> {
        let found = self.policies().into_iter().find(|policy| policy.name == name);
        found.ok_or_else(|| Failure::new(Code::NotFound, format!("there is no policy `{name}`")))
    }

    /// Makes a policy. Rules that this version cannot keep are allowed: no disk can have it until then.
    ///
    /// # Errors
    /// When the name or a rule makes no sense, or the name is taken.
    pub async fn create_policy(&self, request: CreatePolicy) -> Result<PolicyView, Failure> {
        check_name(&request.name)?;
        let policy = self.resolve_policy(Some(&request.rules))?;
        let _change = self.changes.lock().await;
        if Policy::built_in(&request.name).is_some() {
            return Err(Failure::new(Code::Conflict, format!("`{}` is a built-in policy", request.name)));
        }
        if self.records().policies.len() >= POLICIES_MAX {
            return Err(Failure::refused(format!(
                "there are {POLICIES_MAX} policies already, the most possible"
            )));
        }
        let entry = PolicyEntry { name: request.name.clone(), policy };
        self.cluster.add_policy(&entry).await?;
        let made = self.policy(&request.name)?;
        let text = format!("made: {}", made.short);
        self.events.other(Kind::PolicyChanged, format!("policy {}", made.name), text);
        Ok(made)
    }

    /// Deletes a policy. Disks keep the rules that they were made with.
    ///
    /// # Errors
    /// When it is built in, or there is none of this name.
    pub async fn delete_policy(&self, name: &str) -> Result<(), Failure> {
        let _change = self.changes.lock().await;
        if Policy::built_in(name).is_some() {
            return Err(Failure::refused(format!("`{name}` is a built-in policy and stays")));
        }
        match self.cluster.remove_policy(name).await? {
            true => {
                self.events.other(Kind::PolicyChanged, format!("policy {name}"), "deleted");
                Ok(())
            }
            false => Err(Failure::new(Code::NotFound, format!("there is no policy `{name}`"))),
        }
    }
}

/// Every rule with its value.
pub(super) fn rules_of(policy: &Policy) -> BTreeMap<String, String> {
    RULES.iter().filter_map(|rule| Some((rule.name.to_owned(), policy.get(rule.name)?))).collect()
}

fn policy_view(name: &str, policy: &Policy, built_in: bool) -> PolicyView {
    PolicyView {
        name: name.to_owned(),
        built_in,
        rules: rules_of(policy),
        short: policy.short(),
        unsupported: policy.check_supported().err().map(|unsupported| unsupported.to_string()),
    }
}
