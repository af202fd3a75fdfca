//! Requests about disks: to list, make and change them.

use super::AllowedView;
use crate::client::escaped;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// Which disks are listed: all, or those of which all holds that is given; page by page where `limit` is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct DiskQuery {
    /// A part of their names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The named policy that they follow, or their rules in short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Whether only those are listed that something is wrong with, or that wait for something.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trouble: bool,
    /// Labels that they have, with commas between them: `team=db,env`. Without a value, any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Only those whose names come after this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The most that are listed. If there are more, the answer has a `Link` with `rel="next"` to those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

impl DiskQuery {
    /// Where the disks are that it asks for.
    pub fn path(&self) -> String {
        let DiskQuery { name, policy, trouble, label, after, limit } = self;
        let texts = [("name", name), ("policy", policy), ("label", label), ("after", after)];
        let texts =
            texts.into_iter().filter_map(|(key, text)| Some(format!("{key}={}", escaped(text.as_deref()?))));
        let trouble = trouble.then(|| "trouble=true".to_owned());
        let pairs: Vec<String> =
            texts.chain(trouble).chain(limit.map(|limit| format!("limit={limit}"))).collect();
        if pairs.is_empty() {
            "/api/v1/disks".to_owned()
        } else {
            format!("/api/v1/disks?{}", pairs.join("&"))
        }
    }
}

/// A disk to be made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateDisk {
    /// Name.
    pub name: String,
    /// Size in bytes, a multiple of 512.
    pub size: u64,
    /// A policy's name, rules, or both: `single`, `gold,stripes=2`. Left out: `single` on a single host, `default` in a cluster.
    #[serde(default)]
    pub policy: Option<String>,
    /// Whether clients may only read.
    #[serde(default)]
    pub read_only: bool,
    /// Whether clients of several hosts may have it at once. In a cluster; on a host alone it says nothing.
    #[serde(default)]
    pub share: bool,
    /// Labels: what people and programs say of it, by key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Whether a disk of this name that is there already, with this size, these rules and settings, is the answer: then the request can be repeated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unless_there: bool,
    /// Whether nothing is made, and the answer is where the disk would stand and what it would cost; with `unless_there`, unless such a disk is there: then that is the answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// A disk to be changed; what is left out stays.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeDisk {
    /// A new name. Clients must attach by it from then on.
    #[serde(default)]
    pub name: Option<String>,
    /// A new size.
    #[serde(default)]
    pub size: Option<u64>,
    /// A named policy that it follows from now on, or rules, or both: `gold`, `iops_limit=500`, `gold,checksum=off`. Rules that are not
    /// named stay where no policy is. With rules, it follows no policy any more.
    #[serde(default)]
    pub policy: Option<String>,
    /// Whether clients may only read.
    #[serde(default)]
    pub read_only: Option<bool>,
    /// Whether clients of several hosts may have it at once.
    #[serde(default)]
    pub share: Option<bool>,
    /// Who may attach to it over the network; for admins to say.
    #[serde(default)]
    pub allowed: Option<AllowedView>,
    /// Labels that are set, by key; `null` removes one. Others stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, Option<String>>>,
    /// Of a disk that has diverged: the host whose copies are kept. What the others hold beyond that is overwritten.
    #[serde(default)]
    pub keep: Option<String>,
    /// Of a disk that is being moved into another layout, because its `method`, `stripes` or rows change: what becomes of the move.
    #[serde(default, rename = "move")]
    pub steer: Option<MoveAction>,
    /// The disk's name: needed to make it smaller, and to choose which copies are kept.
    #[serde(default)]
    pub confirm: Option<String>,
    /// To make it smaller: whether the connections of clients that have it are ended. Otherwise a disk with clients is refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub detach_clients: bool,
}

/// What becomes of a move into another layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MoveAction {
    /// It pauses.
    Pause,
    /// It goes on.
    Resume,
    /// It moves back into the layout that it had.
    Back,
    /// It moves on into the new layout.
    On,
}
