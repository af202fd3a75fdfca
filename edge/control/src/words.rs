//! The words of the API for what the core and the engine tell.

use ::cluster::{Encryption, Following, Group, Liveness, Motive, Severity};
use api::types::{
    CopyWord, DeviceRoleWord, EncryptionWord, FollowerWord, HealthGroupWord, HealthWord, HostWord, PhaseWord,
    SeverityWord, StandingWord,
};
use engine::DeviceState;
use replication::Standing;
use replication::owner::Phase;

/// How far the owner of a disk is.
pub fn phase(phase: Phase) -> PhaseWord {
    match phase {
        Phase::Claiming => PhaseWord::Claiming,
        Phase::Opening => PhaseWord::Opening,
        Phase::Serving => PhaseWord::Serving,
        Phase::Releasing => PhaseWord::Releasing,
        Phase::Ended => PhaseWord::Ended,
    }
}

/// The same back, as another host told it.
pub fn phase_of(word: PhaseWord) -> Option<Phase> {
    match word {
        PhaseWord::Claiming => Some(Phase::Claiming),
        PhaseWord::Opening => Some(Phase::Opening),
        PhaseWord::Serving => Some(Phase::Serving),
        PhaseWord::Releasing => Some(Phase::Releasing),
        PhaseWord::Ended => Some(Phase::Ended),
        PhaseWord::Unknown => None,
    }
}

/// What a component counts for.
pub fn standing(standing: Standing) -> StandingWord {
    match standing {
        Standing::Active => StandingWord::Active,
        Standing::Absent => StandingWord::Absent,
        Standing::Stale => StandingWord::Stale,
        Standing::StandIn => StandingWord::StandIn,
    }
}

/// Whether a host is there.
pub fn host(liveness: Liveness) -> HostWord {
    match liveness {
        Liveness::Alive => HostWord::Alive,
        Liveness::Suspect { .. } => HostWord::Suspect,
        Liveness::Away { .. } => HostWord::Away,
    }
}

/// How bad a finding is.
pub fn severity(severity: Severity) -> SeverityWord {
    match severity {
        Severity::Critical => SeverityWord::Critical,
        Severity::Warning => SeverityWord::Warning,
        Severity::Notice => SeverityWord::Notice,
    }
}

/// How a group of findings is by its worst one, if there is any.
pub fn health(worst: Option<SeverityWord>) -> HealthWord {
    match worst {
        None => HealthWord::Well,
        Some(SeverityWord::Notice) => HealthWord::Notice,
        Some(SeverityWord::Warning) => HealthWord::Warning,
        Some(SeverityWord::Critical) => HealthWord::Critical,
        Some(SeverityWord::Unknown) => HealthWord::Unknown,
    }
}

/// A group of findings.
pub fn group(group: Group) -> HealthGroupWord {
    match group {
        Group::Cluster => HealthGroupWord::Cluster,
        Group::Network => HealthGroupWord::Network,
        Group::Data => HealthGroupWord::Data,
        Group::Capacity => HealthGroupWord::Capacity,
        Group::Devices => HealthGroupWord::Devices,
        Group::Certificates => HealthGroupWord::Certificates,
    }
}

/// Why a component is copied.
pub fn copy(motive: Motive) -> CopyWord {
    match motive {
        Motive::Return => CopyWord::Return,
        Motive::Repair => CopyWord::Repair,
        Motive::Evacuation => CopyWord::Evacuation,
        Motive::Policy => CopyWord::Policy,
        Motive::Domain => CopyWord::Domain,
        Motive::Balance => CopyWord::Balance,
        Motive::StandIn => CopyWord::StandIn,
    }
}

/// How far a disk is with the policy that it follows.
pub fn follower(following: &Following) -> FollowerWord {
    match following {
        Following::Done => FollowerWord::Done,
        Following::Moving => FollowerWord::Moving,
        Following::Waiting(_) | Following::Queued(_) => FollowerWord::Waiting,
        Following::Refused(_) => FollowerWord::Refused,
    }
}

/// What a device is for.
pub fn device_role(device: &DeviceState) -> DeviceRoleWord {
    match (device.is_log, device.is_capacity) {
        (true, true) => DeviceRoleWord::LogAndCapacity,
        (true, false) => DeviceRoleWord::Log,
        (false, _) => DeviceRoleWord::Capacity,
    }
}

/// Encryption below a device.
pub fn encryption(encryption: Encryption) -> EncryptionWord {
    match encryption {
        Encryption::None => EncryptionWord::None,
        Encryption::Partly => EncryptionWord::Partly,
        Encryption::Luks2 => EncryptionWord::Luks2,
        Encryption::Luks1 => EncryptionWord::Luks1,
        Encryption::PlainDmCrypt => EncryptionWord::PlainDmCrypt,
        Encryption::Other => EncryptionWord::Other,
        Encryption::Unknown => EncryptionWord::Unknown,
    }
}
