//! Disks that follow a named policy, once that policy has changed.
//!
//! Says of each disk how far it is, from records alone, so that every host says the same and nothing has to be remembered. What is
//! [`Following::Waiting`] is changed by the next attempt; what is refused needs people.

use crate::disk::{DiskRecord, DiskState};
use placement::{DeviceSpace, Policy};

/// How far a disk is with its named policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Following {
    /// It has the rules of the policy.
    Done,
    /// It has them, and components are on their way.
    Moving,
    /// It gets them next.
    Waiting,
    /// It does not get them; why.
    Refused(String),
}

impl Following {
    /// As people read it.
    pub fn name(&self) -> &'static str {
        match self {
            Following::Done => "done",
            Following::Moving => "moving",
            Following::Waiting => "waiting",
            Following::Refused(_) => "refused",
        }
    }

    /// Why it is refused.
    pub fn cause(&self) -> Option<&str> {
        match self {
            Following::Refused(cause) => Some(cause),
            Following::Done | Following::Moving | Following::Waiting => None,
        }
    }
}

/// How far a disk is with the rules of the policy that it follows. `devices` as for [`DiskRecord::change_rules`].
pub fn following(disk: &DiskRecord, policy: &Policy, devices: &[DeviceSpace]) -> Following {
    match disk.state {
        DiskState::Creating | DiskState::Deleting => return Following::Waiting,
        DiskState::Active => {}
    }
    if disk.policy == *policy {
        return if disk.incoming.is_empty() { Following::Done } else { Following::Moving };
    }
    match disk.change_rules(policy, disk.follows.clone(), devices) {
        Ok(_) => Following::Waiting,
        Err(objection) => Following::Refused(objection.to_string()),
    }
}
