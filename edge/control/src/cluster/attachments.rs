//! The clients of this host that have disks, or wait for them.

use base::DiskId;
use engine::{Ticket, Visitor};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The clients of this host.
#[derive(Debug, Default)]
pub(super) struct Attachments {
    pub(super) disks: BTreeMap<DiskId, Local>,
}

/// Those of one disk.
#[derive(Debug, Default)]
pub(super) struct Local {
    pub(super) clients: BTreeMap<Ticket, Client>,
    /// Why clients are kept from it, while they are.
    pub(super) lock: Option<String>,
    /// One change of the disk's claims at a time.
    pub(super) turn: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Debug)]
pub(super) struct Client {
    pub(super) visitor: Visitor,
    /// Whether it comes by the export that a lock leaves open.
    pub(super) has_lock: bool,
    pub(super) stage: Stage,
}

/// How far a client has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Waits,
    Attached,
    /// Its connection is being ended.
    CutOff,
}
