//! What a group was asked for, until it is answered.

use crate::holding::Holding;
use crate::model::Key;
use crate::snapshots::OnSnapshot;
use base::WriteId;
use diskgroup::Origin;
use diskgroup::format::page::Compression;
use std::collections::BTreeMap;

/// One operation under way.
#[derive(Debug)]
pub(crate) enum Operation {
    /// A write or a trim of these blocks.
    Write {
        keys: Vec<Key>,
        id: WriteId,
        origin: Origin,
    },
    /// A question for what was changed, and what the answer must tell.
    Changed {
        component: u32,
        expected: BTreeMap<(u32, usize), WriteId>,
    },
    Read {
        first: Key,
        count: u16,
        began: u64,
    },
    Create {
        component: u32,
    },
    Delete {
        component: u32,
    },
    /// What takes less space then is to be written anew.
    Rewrite {
        component: u32,
    },
    /// Blocks that are destaged are to be stored in another way.
    Compress {
        component: u32,
        compression: Compression,
    },
    /// On layers of a component.
    Holding(Holding),
    /// On a snapshot, with the id of the change if it is one.
    OnSnapshot(OnSnapshot, Option<WriteId>),
}
