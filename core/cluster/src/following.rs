//! Disks that follow a named policy, once that policy has changed.
//!
//! Says of each disk how far it is, from records alone, so that every host says the same and nothing has to be remembered. What is
//! [`Following::Waiting`] is changed by the next attempt, or gets its copies from repairs; what is refused needs people.

use crate::disk::{DiskRecord, DiskState};
use crate::moves::MovesUnderWay;
use placement::{DeviceSpace, Policy};

/// How far a disk is with its named policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Following {
    /// It has the rules of the policy.
    Done,
    /// It has them, and components are on their way.
    Moving,
    /// It gets them next. Or it has them, and lacks copies that have not begun to come: what it lacks.
    Waiting(Option<String>),
    /// It has to move into another layout, and as many disks as may move at once do; why it waits.
    Queued(String),
    /// It does not get them; why.
    Refused(String),
}

impl Following {
    /// As people read it.
    pub fn name(&self) -> &'static str {
        match self {
            Following::Done => "done",
            Following::Moving => "moving",
            Following::Waiting(_) | Following::Queued(_) => "waiting",
            Following::Refused(_) => "refused",
        }
    }

    /// Why it is refused, or what it lacks.
    pub fn cause(&self) -> Option<&str> {
        match self {
            Following::Refused(cause) | Following::Queued(cause) => Some(cause),
            Following::Waiting(lacks) => lacks.as_deref(),
            Following::Done | Following::Moving => None,
        }
    }
}

/// How far a disk is with the rules of the policy that it follows, while these moves are under way. `devices` and
/// `used_bytes` as for [`DiskRecord::change_rules`].
pub fn following(
    disk: &DiskRecord,
    policy: &Policy,
    devices: &[DeviceSpace],
    used_bytes: &[u64],
    moves: &MovesUnderWay,
) -> Following {
    match disk.state {
        DiskState::Creating | DiskState::Deleting => return Following::Waiting(None),
        DiskState::Active => {}
    }
    if let Some(moving) = &disk.moving {
        return match moving.policy == *policy || disk.policy == *policy && moving.is_back {
            true => Following::Moving,
            false => Following::Waiting(Some("it is being moved into another layout".to_owned())),
        };
    }
    if disk.policy == *policy {
        let lacks = disk.debts.iter().find(|debt| debt.rule == "failures_to_tolerate");
        return match (disk.incoming.is_empty(), lacks) {
            (false, _) => Following::Moving,
            (true, Some(debt)) => Following::Waiting(Some(debt.to_string())),
            (true, None) => Following::Done,
        };
    }
    if disk.needs_move(policy) {
        if let Some(why) = moves.bound_on(disk) {
            return Following::Queued(why);
        }
        return match disk.plan_move(policy, devices, used_bytes) {
            Ok(_) => Following::Waiting(None),
            Err(objection) => Following::Refused(objection.to_string()),
        };
    }
    match disk.change_rules(policy, disk.follows.clone(), devices, used_bytes) {
        Ok(_) => Following::Waiting(None),
        Err(objection) => Following::Refused(objection.to_string()),
    }
}
