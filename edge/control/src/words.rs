//! The words of the API for what the core and the engine tell.

use crate::sessions::BegunBy;
use ::cluster::{Change, Compliance, Condition, Encryption, Following, Group, Liveness, Motive, Severity};
use api::types::{
    ComplianceWord, ConditionWord, CopyWord, DeviceRoleWord, EncryptionWord, FollowerWord, HealthGroupWord,
    HealthWord, HistogramWord, HostWord, LogInWord, OperationsWord, PhaseWord, PolicyChangeWord, RightWord,
    RoleWord, SeverityWord, StandingWord,
};
use engine::DeviceState;
use iostats::{Kind, Operations};
use replication::Standing;
use replication::owner::Phase;
use trust::{Action, Role};

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

/// Whether a disk is as its policy says.
pub fn compliance(found: &Compliance) -> ComplianceWord {
    match found {
        Compliance::Compliant => ComplianceWord::Compliant,
        Compliance::NotCompliant(_) => ComplianceWord::NotCompliant,
        Compliance::Moving(_) => ComplianceWord::Moving,
    }
}

/// How a disk is.
pub fn condition(condition: Condition) -> ConditionWord {
    match condition {
        Condition::Whole => ConditionWord::Whole,
        Condition::Reduced => ConditionWord::Reduced,
        Condition::Inaccessible => ConditionWord::Inaccessible,
    }
}

/// How a disk gets another policy.
pub fn policy_change(change: &Change) -> PolicyChangeWord {
    match change {
        Change::Done => PolicyChangeWord::Done,
        Change::AtOnce => PolicyChangeWord::AtOnce,
        Change::Moves(_) => PolicyChangeWord::Moves,
        Change::Refused(_) => PolicyChangeWord::Refused,
    }
}

/// What a person is.
pub fn role_word(role: Role) -> RoleWord {
    match role {
        Role::Viewer => RoleWord::Viewer,
        Role::Operator => RoleWord::Operator,
        Role::Admin => RoleWord::Admin,
    }
}

/// How a session began.
pub fn log_in_word(begun_by: BegunBy) -> LogInWord {
    match begun_by {
        BegunBy::Link => LogInWord::Link,
        BegunBy::Password => LogInWord::Password,
        BegunBy::Issuer => LogInWord::Issuer,
    }
}

/// What somebody may do.
pub fn right_word(action: Action) -> RightWord {
    match action {
        Action::See => RightWord::See,
        Action::ChangeDisk => RightWord::ChangeDisks,
        Action::Operate => RightWord::Operate,
        Action::AttachDisk => RightWord::AttachDisks,
        Action::ChangeCluster => RightWord::ChangeCluster,
        Action::GiveCertificates => RightWord::GiveCertificates,
        Action::ActAsHost => RightWord::ActAsHost,
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

/// What a histogram counts.
pub fn histogram(kind: Kind) -> HistogramWord {
    match kind {
        Kind::Length => HistogramWord::Length,
        Kind::SeekDistance => HistogramWord::SeekDistance,
        Kind::SeekDistanceNearest => HistogramWord::SeekDistanceNearest,
        Kind::Latency => HistogramWord::Latency,
        Kind::Outstanding => HistogramWord::Outstanding,
        Kind::Interarrival => HistogramWord::Interarrival,
    }
}

/// Which I/Os a figure is about.
pub fn operations(operations: Operations) -> OperationsWord {
    match operations {
        Operations::Reads => OperationsWord::Reads,
        Operations::Writes => OperationsWord::Writes,
        Operations::Both => OperationsWord::Both,
    }
}
