//! Policies: the built-in ones and those that people make.

use super::Control;
use crate::cluster::Rules;
use crate::directory::PolicyEntry;
use crate::events::Kind;
use crate::limits::POLICIES_MAX;
use ::cluster::Level;
use api::name::check_name;
use api::types::{ChangePolicy, CreatePolicy, PolicyView};
use failure::{Code, Failure};
use placement::{Policy, RULES, policy_words};
use std::collections::{BTreeMap, BTreeSet};

impl Control {
    /// The policy of a text: a name, rules, or both. Nothing: what is kept as a rule: one copy on a single host, two among several.
    pub(super) fn resolve_policy(&self, text: Option<&str>) -> Result<Policy, Failure> {
        Ok(self.resolve_rules(text, None)?.policy)
    }

    /// The rules of a text, with the policy that a disk with them follows. Rules that stand alone change those of `before`, the present
    /// ones of a disk, or of the policy `default`.
    pub(super) fn resolve_rules(&self, text: Option<&str>, before: Option<&Rules>) -> Result<Rules, Failure> {
        let level = self.cluster.view().level.level;
        let standard = if self.cluster.stands_alone() { Policy::SINGLE } else { Policy::DEFAULT };
        let Some(text) = text else { return Ok(Rules { policy: level.usual(standard), follows: None }) };
        let words = policy_words(text);
        let mut words = words.iter().map(String::as_str).peekable();
        let name = words.next_if(|word| !word.contains('='));
        let records = self.records();
        let (mut policy, made) = match (name, name.and_then(|name| records.policies.get(name)), before) {
            (_, Some(entry), _) => (entry.policy, Some(entry.name.clone())),
            (Some(name), None, _) => (level.usual(built_in(name)?), None),
            (None, None, Some(before)) => (before.policy, None),
            (None, None, None) => (level.usual(Policy::DEFAULT), None),
        };
        let mut given = BTreeSet::new();
        for word in words {
            let (rule, value) = word
                .split_once('=')
                .ok_or_else(|| Failure::usage(format!("`{word}` is not `rule=value`")))?;
            if !given.insert(rule) {
                return Err(Failure::usage(format!("the policy rule {rule} is given twice")));
            }
            policy
                .set(rule, value)
                .map_err(|error| Failure::usage(error.to_string()).hint("see `drystone policy list`"))?;
        }
        level.check(&policy).map_err(|early| {
            Failure::refused(early.to_string())
                .hint("`drystone cluster upgrade` raises the level once all hosts run this release")
        })?;
        let has_same = before.is_some_and(|before| before.policy == policy && name.is_none());
        let follows = match has_same {
            true => before.and_then(|before| before.follows.clone()),
            false => made.filter(|_| given.is_empty() && level >= Level::LIMITS),
        };
        Ok(Rules { policy, follows })
    }

    /// All policies, the built-in ones first.
    pub fn policies(&self) -> Vec<PolicyView> {
        let level = self.cluster.view().level.level;
        let built_in =
            Policy::BUILT_IN.iter().map(|(name, policy, _)| policy_view(name, &level.usual(*policy), true));
        let records = self.records();
        let made = records.policies.values().map(|entry| PolicyView {
            disks: self.cluster.followers(&entry.name, &entry.policy),
            ..policy_view(&entry.name, &entry.policy, false)
        });
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

    /// Changes rules of a policy. The disks that follow it get those that change at once; of the others it is told why not.
    ///
    /// # Errors
    /// When it is built in, there is none of this name, or a rule makes no sense.
    pub async fn change_policy(&self, name: &str, request: &ChangePolicy) -> Result<PolicyView, Failure> {
        if Policy::built_in(name).is_some() {
            return Err(Failure::refused(format!("`{name}` is a built-in policy and does not change")).hint(
                format!(
                    "create one of your own: `drystone policy create NAME {name} {}`",
                    request.rules.replace(',', " ")
                ),
            ));
        }
        let _change = self.changes.lock().await;
        let changed = |before| {
            let before = Rules { policy: before, follows: None };
            let next = self.resolve_rules(Some(&request.rules), Some(&before))?;
            Ok(next.policy)
        };
        let entry = self.cluster.change_policy(name, changed).await?;
        let text = format!("changed: {}", entry.policy.short());
        self.events.other(Kind::PolicyChanged, format!("policy {name}"), text);
        self.policy(name)
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

fn built_in(name: &str) -> Result<Policy, Failure> {
    Policy::built_in(name).ok_or_else(|| {
        let unknown = placement::PolicyError::UnknownName { word: name.to_owned() };
        Failure::new(Code::NotFound, unknown.to_string()).hint("see `drystone policy list`")
    })
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
        disks: Vec::new(),
        unsupported: policy.check_supported().err().map(|unsupported| unsupported.to_string()),
    }
}
