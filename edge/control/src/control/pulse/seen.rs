//! What is compared from beat to beat.

use crate::cluster::View;
use crate::control::Control;
use api::types::{Changed, TopicWord};
use base::HostId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// All that was known at a beat.
pub struct Seen {
    view: Arc<View>,
    /// How hosts seem to be: there, suspect, or away.
    conditions: BTreeMap<HostId, u8>,
    next_event: u64,
}

impl Seen {
    /// What is known now.
    pub fn of(control: &Control) -> Seen {
        let view = control.cluster.view();
        let conditions = control.cluster.liveness_classes(&view);
        Seen { view, conditions, next_event: control.events.next_number() }
    }

    /// What has changed since another one.
    pub fn since(&self, before: &Seen) -> Vec<Changed> {
        let mut changed = of_views(&before.view, &self.view);
        let hosts = differing(&before.conditions, &self.conditions, PartialEq::eq);
        changed.extend(hosts.iter().map(|host| about(TopicWord::Hosts, self.view.host_name(*host))));
        if self.next_event != before.next_event {
            changed.insert(Changed { topic: TopicWord::Events, key: None });
        }
        // Findings follow from these.
        let is_cause = |one: &Changed| {
            [TopicWord::Disks, TopicWord::Hosts, TopicWord::Settings, TopicWord::Policies]
                .contains(&one.topic)
        };
        if changed.iter().any(is_cause) || self.view.records.silences != before.view.records.silences {
            changed.insert(Changed { topic: TopicWord::Health, key: None });
        }
        changed.into_iter().collect()
    }
}

fn about(topic: TopicWord, key: String) -> Changed {
    Changed { topic, key: Some(key) }
}

fn of_views(before: &Arc<View>, now: &Arc<View>) -> BTreeSet<Changed> {
    if Arc::ptr_eq(before, now) {
        return BTreeSet::new();
    }
    let mut changed = BTreeSet::new();
    let disks = differing(&before.disks, &now.disks, Arc::ptr_eq);
    let attached = differing(&before.attached, &now.attached, |a, b| a.version == b.version);
    for disk in disks.into_iter().chain(attached) {
        // One that is gone has the name that it had; one that got another name is told by both.
        for view in [before, now] {
            let name = view.disks.get(&disk).map(|disk| disk.record.name.clone());
            changed.extend(name.map(|name| about(TopicWord::Disks, name)));
        }
    }
    for host in differing(&before.hosts, &now.hosts, |a, b| a.version == b.version) {
        let view = if now.hosts.contains_key(&host) { now } else { before };
        // A host's record tells of its devices.
        for topic in [TopicWord::Hosts, TopicWord::Devices] {
            changed.insert(about(topic, view.host_name(host)));
        }
    }
    for policy in differing(&before.records.policies, &now.records.policies, PartialEq::eq) {
        changed.insert(about(TopicWord::Policies, policy));
    }
    let is_settings = before.settings != now.settings
        || !differing(&before.programs, &now.programs, |a, b| a.0 == b.0).is_empty();
    if is_settings {
        changed.insert(Changed { topic: TopicWord::Settings, key: None });
    }
    if before.believed != now.believed || before.people != now.people {
        changed.insert(Changed { topic: TopicWord::People, key: None });
    }
    changed
}

/// The keys under which two maps hold different things.
fn differing<K: Ord + Clone, V>(
    before: &BTreeMap<K, V>,
    now: &BTreeMap<K, V>,
    is_same: impl Fn(&V, &V) -> bool,
) -> Vec<K> {
    let gone = before.keys().filter(|key| !now.contains_key(key));
    let new = now.iter().filter(|(key, value)| !before.get(key).is_some_and(|former| is_same(former, value)));
    gone.chain(new.map(|(key, _)| key)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_came_went_or_changed() {
        let before = BTreeMap::from([(1, "a"), (2, "b"), (3, "c")]);
        let now = BTreeMap::from([(2, "b"), (3, "d"), (4, "e")]);
        assert_eq!(differing(&before, &now, PartialEq::eq), [1, 3, 4]);
    }

    #[test]
    fn findings_may_have_changed_where_hosts_do_and_not_where_only_something_was_told() {
        let seen = |conditions: &[(u128, u8)], next_event| Seen {
            view: Arc::new(View::default()),
            conditions: conditions.iter().map(|(host, class)| (HostId(*host), *class)).collect(),
            next_event,
        };
        let topics = |before: &Seen, now: &Seen| -> Vec<TopicWord> {
            now.since(before).into_iter().map(|one| one.topic).collect()
        };
        let before = seen(&[(1, 0), (2, 0)], 5);
        assert_eq!(topics(&before, &seen(&[(1, 0), (2, 0)], 5)), []);
        assert_eq!(topics(&before, &seen(&[(1, 0), (2, 0)], 6)), [TopicWord::Events]);
        assert_eq!(topics(&before, &seen(&[(1, 0), (2, 1)], 5)), [TopicWord::Hosts, TopicWord::Health]);
    }
}
