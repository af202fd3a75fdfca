//! Rules of disks that change while guests use them: on their own, and with the named policy that they follow.
//!
//! Each change is one compare-and-set of the disk's record; hosts take it from there. Copies that a disk lacks then come with
//! repairs, and nodes delete components that its record no longer names. `core/cluster` says what changes, and why the rest does not.
//! Must hold no rule of its own.

use super::Cluster;
use super::change::{objection, restless, unknown};
use crate::directory::shared::record::ClusterDisk;
use crate::events::Kind;
use crate::limits::{FOLLOW_PERIOD, SIZE_POLL};
use crate::words;
use ::cluster::{Following, MovesUnderWay, Objection, following};
use api::types::FollowerView;
use base::DiskId;
use failure::Failure;
use placement::Policy;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How often a change is tried again that another one came before.
const ATTEMPTS: usize = 20;

/// The rules of a disk, and the named policy that they come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// The rules.
    pub policy: Policy,
    /// The named policy that the disk follows; none where it has rules of its own.
    pub follows: Option<String>,
}

impl Cluster {
    /// Gives a disk the rules that `wanted` makes of its present ones. Says which rules are other than before.
    ///
    /// # Errors
    /// What `wanted` says; or when a rule cannot be kept, or its change needs a move of the data.
    pub async fn change_rules(
        &self,
        id: DiskId,
        wanted: impl Fn(&Rules) -> Result<Rules, Failure>,
    ) -> Result<(), Failure> {
        for _ in 0..ATTEMPTS {
            let disk = self.changeable(id).await?;
            let record = &disk.record;
            let before = Rules { policy: record.policy, follows: record.follows.clone() };
            let Rules { policy, follows } = wanted(&before)?;
            if (policy, &follows) == (record.policy, &record.follows) {
                return Ok(());
            }
            if record.needs_move(&policy) {
                self.know_size(id).await?;
                match self.begin_move(&disk, &policy, follows).await? {
                    true => return Ok(()),
                    false => continue,
                }
            }
            if policy.copies() > record.policy.copies() {
                self.know_size(id).await?;
            }
            let (spaces, used_bytes) = (self.spaces().await?, self.keeper().facts.used(id).to_vec());
            let changed = record.change_rules(&policy, follows, &spaces, &used_bytes).map_err(|why| {
                let failure = with_way_out(why);
                Failure { error: format!("disk {}: {}", record.name, failure.error), ..failure }
            })?;
            let next = disk.with(changed.record);
            let committed = self.commit_disk(next, record.version).await;
            if let Some(next) = committed.map_err(|_| unknown(&record.name))? {
                return Ok(self.tell_disk(&next).await?);
            }
            tokio::time::sleep(SIZE_POLL).await;
        }
        Err(restless(id))
    }

    /// Sees that it is known how much data a disk has: further copies need room for that.
    async fn know_size(&self, id: DiskId) -> Result<(), Failure> {
        let is_known = !self.keeper().facts.used(id).is_empty();
        if !is_known {
            self.refresh_sizes(&self.state().await?, true).await;
        }
        Ok(())
    }

    /// How far the disks are that follow a policy, by name.
    pub fn followers(&self, name: &str, policy: &Policy) -> Vec<FollowerView> {
        let view = self.view();
        let keeper = self.keeper();
        let spaces = keeper.facts.spaces();
        let moves = MovesUnderWay::of(view.disks.values().map(|disk| &disk.record));
        let follow = view.disks.values().filter(|disk| disk.record.follows.as_deref() == Some(name));
        let follower = |disk: &Arc<ClusterDisk>| {
            let found = following(&disk.record, policy, &spaces, keeper.facts.used(disk.record.id), &moves);
            let (state, cause) = (words::follower(&found), found.cause().map(str::to_owned));
            FollowerView { disk: disk.record.name.clone(), state, cause }
        };
        let mut all: Vec<FollowerView> = follow.map(follower).collect();
        all.sort_by(|a, b| a.disk.cmp(&b.disk));
        all
    }

    /// Has disks follow their policies until the engine is gone; the host that decides what needs no owner does it.
    pub(super) async fn keep_following(self: Arc<Cluster>) {
        let mut changed = self.revision.subscribe();
        let mut told = BTreeMap::new();
        loop {
            if self.state().await.is_err() {
                return;
            }
            let decides = {
                let keeper = self.keeper();
                keeper.away_since.is_none() && keeper.coordinator() == Some(self.me)
            };
            if decides && let Err(failure) = self.follow_once(&mut told).await {
                tracing::debug!("{failure}");
            }
            let _ = tokio::time::timeout(FOLLOW_PERIOD, changed.changed()).await;
            tokio::time::sleep(SIZE_POLL).await;
        }
    }

    /// Changes the disks that wait for the rules of their policies, the smallest first; tells once of each that is refused. Those that need
    /// another layout begin to move only while few others move.
    async fn follow_once(&self, told: &mut BTreeMap<DiskId, String>) -> Result<(), Failure> {
        let view = self.view();
        let policies = &view.records.policies;
        let mut behind: Vec<(&Arc<ClusterDisk>, &str, Policy)> = view
            .disks
            .values()
            .filter_map(|disk| {
                let entry = policies.get(disk.record.follows.as_ref()?)?;
                (disk.record.policy != entry.policy).then_some((disk, entry.name.as_str(), entry.policy))
            })
            .collect();
        told.retain(|id, _| behind.iter().any(|(disk, ..)| disk.record.id == *id));
        if behind.is_empty() {
            return Ok(());
        }
        behind.sort_by_key(|(disk, ..)| disk.record.size);
        let mut moves = MovesUnderWay::of(view.disks.values().map(|disk| &disk.record));
        let spaces = self.spaces().await?;
        for (disk, name, policy) in behind {
            let id = disk.record.id;
            let used_bytes = self.keeper().facts.used(id).to_vec();
            match following(&disk.record, &policy, &spaces, &used_bytes, &moves) {
                Following::Done | Following::Moving | Following::Queued(_) => {}
                Following::Refused(cause) => {
                    if told.insert(id, cause.clone()).as_ref() != Some(&cause) {
                        self.log(id, Kind::DiskChanged, format!("it does not follow policy {name}: {cause}"));
                    }
                }
                Following::Waiting(_) => {
                    let follows = Some(name.to_owned());
                    let is_same = |now: &Rules| now.follows == follows;
                    let wanted = |now: &Rules| {
                        let next = Rules { policy, follows: now.follows.clone() };
                        Ok(if is_same(now) { next } else { now.clone() })
                    };
                    // One disk that does not change does not keep the others waiting.
                    if let Err(failure) = self.change_rules(id, wanted).await {
                        tracing::debug!("{failure}");
                        continue;
                    }
                    let text = match disk.record.needs_move(&policy) {
                        true => {
                            moves.add(&disk.record);
                            format!(
                                "it moves into the layout that policy {name} asks for: {}",
                                policy.short()
                            )
                        }
                        false => format!("it has the rules of policy {name}: {}", policy.short()),
                    };
                    self.log(id, Kind::DiskChanged, text);
                }
            }
        }
        Ok(())
    }
}

/// Why rules do not change, with what can be done instead.
fn with_way_out(why: Objection) -> Failure {
    let hint = match &why {
        Objection::Moving => {
            "wait until it has moved, or have it move back: `drystone disk set NAME move back`"
        }
        Objection::Cause(cause) => cause.remedy(),
        Objection::NoneServes(_) => "`drystone disk show` lists the copies and what is wrong with them",
        Objection::Growth(_) => "try again once the disk has its new size",
        _ => return objection(why),
    };
    objection(why).hint(hint)
}
