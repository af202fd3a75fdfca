//! The rollback of a disk in its record, from level 4 on (docs/design/0047, "Rolling back").

use super::parsed;
use ::cluster::{Claim, Rollback};
use serde::{Deserialize, Serialize};

/// A rollback that is not done. Snapshots are named by their numbers.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredRollback {
    to: u32,
    since: u32,
    before: u32,
    #[serde(default, skip_serializing_if = "super::disk::is_false")]
    keeps: bool,
    #[serde(default, skip_serializing_if = "super::disk::is_false")]
    share: bool,
    /// The host that copies, and its incarnation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<(String, u64)>,
}

impl From<Rollback> for StoredRollback {
    fn from(rollback: Rollback) -> StoredRollback {
        let Rollback { to, since, before, keeps, is_shared, by } = rollback;
        let by = by.map(|claim| (claim.host.to_string(), claim.incarnation));
        StoredRollback { to, since, before, keeps, share: is_shared, by }
    }
}

impl StoredRollback {
    pub(super) fn rollback(self) -> Result<Rollback, String> {
        let claim =
            |(host, incarnation): (String, u64)| Ok::<_, String>(Claim { host: parsed(&host)?, incarnation });
        let by = self.by.map(claim).transpose()?;
        let StoredRollback { to, since, before, keeps, share, by: _ } = self;
        Ok(Rollback { to, since, before, keeps, is_shared: share, by })
    }
}
