//! The kinds of findings, and the groups in which they are shown.

use std::fmt;

/// The kind of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// A place of the disk has no copy that can be used.
    DiskInaccessible,
    /// Copies of the disk are missing.
    DiskReduced,
    /// The disk is being deleted, and hosts with its components are not there.
    DiskDeleting,
    /// A component lost acknowledged changes.
    ComponentStale,
    /// A component is not resynced although it can be reached.
    ResyncStuck,
    /// No device can take a replacement.
    RepairBlocked,
    /// The settings forbid replacements.
    RepairOff,
    /// The disk is not compliant with its policy.
    PlacementDebt,
    /// Copies of the disk stand in one fault domain.
    DomainsShared,
    /// The move of the disk into another layout stands still.
    MoveStuck,
    /// The move of the disk into another layout has been paused for long.
    MovePaused,
    /// Parity of the disk did not agree with its data.
    RowsDisagree,
    /// The disk is half rolled back to a snapshot, and nobody goes on.
    RollbackUnfinished,
    /// Snapshots of the disk are on fewer copies than the disk has.
    SnapshotsReduced,
    /// Scheduled snapshots of the disk are not taken.
    SnapshotsMissing,
    /// A host is away.
    HostAway,
    /// A host is suspect.
    HostSuspect,
    /// Hosts do not reach each other.
    LinkDown,
    /// A host is in maintenance, or enters it.
    HostMaintenance,
    /// A device failed.
    DeviceFailed,
    /// A device is away.
    DeviceAway,
    /// Blocks of a device were found damaged.
    DeviceDamaged,
    /// The log device of a disk group is out of service.
    LogFailed,
    /// A disk group has a log device and no capacity device.
    GroupNoCapacity,
    /// Some devices are encrypted at rest, and others are not.
    EncryptionMixed,
    /// A device is being emptied, or is empty and can be taken out: it is slow or damages data, or somebody asked for it.
    DeviceLeaving,
    /// A device is nearly full.
    SpaceLow,
    /// The data of the fullest host would find no room on the others.
    SpaceAfterFailure,
    /// Disks are over-committed: they may take more than all devices have.
    SpaceOverCommitted,
    /// Hosts have no capacity devices.
    DevicesNone,
    /// Devices are unevenly filled and cannot be rebalanced.
    SpaceUneven,
    /// A device has few free slots for components.
    ComponentsLow,
    /// There are too few fault domains for a policy in use, or for a repair.
    DomainsTooFew,
    /// The directory does not answer.
    DirectoryUnreachable,
    /// Members of the directory do not answer, though the directory does.
    DirectoryMember,
    /// A host cannot write its data directory, or soon cannot.
    HostDataDir,
    /// A host's clock is off.
    ClockSkew,
    /// Hosts run different releases.
    VersionsMixed,
    /// All hosts understand a later level of the records than the cluster writes.
    LevelBehind,
    /// A host's program does not understand the level of the records.
    HostOutdated,
    /// Records of the directory cannot be read.
    RecordsUnreadable,
    /// A host's certificate ends soon, or has ended, and is not renewed.
    CertificateEnding,
    /// The certificate of an authority ends soon, or has ended.
    AuthorityEnding,
}

/// The group of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Hosts: their directory, clocks, releases, maintenance.
    Cluster,
    /// Whether hosts reach each other.
    Network,
    /// Virtual disks and their copies.
    Data,
    /// Room, and places for copies.
    Capacity,
    /// Devices.
    Devices,
    /// Certificates.
    Certificates,
}

impl Group {
    /// All groups, in the order in which they are shown.
    pub const ALL: [Group; 6] =
        [Group::Cluster, Group::Network, Group::Data, Group::Capacity, Group::Devices, Group::Certificates];

    /// The text that programs rely on.
    pub fn as_str(self) -> &'static str {
        match self {
            Group::Cluster => "cluster",
            Group::Network => "network",
            Group::Data => "data",
            Group::Capacity => "capacity",
            Group::Devices => "devices",
            Group::Certificates => "certificates",
        }
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Code {
    /// All codes.
    pub const ALL: [Code; 43] = [
        Code::DiskInaccessible,
        Code::DiskReduced,
        Code::DiskDeleting,
        Code::ComponentStale,
        Code::ResyncStuck,
        Code::RepairBlocked,
        Code::RepairOff,
        Code::PlacementDebt,
        Code::DomainsShared,
        Code::MoveStuck,
        Code::MovePaused,
        Code::RowsDisagree,
        Code::RollbackUnfinished,
        Code::SnapshotsReduced,
        Code::SnapshotsMissing,
        Code::HostAway,
        Code::HostSuspect,
        Code::LinkDown,
        Code::HostMaintenance,
        Code::DeviceFailed,
        Code::DeviceAway,
        Code::DeviceDamaged,
        Code::LogFailed,
        Code::GroupNoCapacity,
        Code::EncryptionMixed,
        Code::DeviceLeaving,
        Code::SpaceLow,
        Code::SpaceAfterFailure,
        Code::SpaceOverCommitted,
        Code::DevicesNone,
        Code::SpaceUneven,
        Code::ComponentsLow,
        Code::DomainsTooFew,
        Code::DirectoryUnreachable,
        Code::DirectoryMember,
        Code::HostDataDir,
        Code::ClockSkew,
        Code::VersionsMixed,
        Code::LevelBehind,
        Code::HostOutdated,
        Code::RecordsUnreadable,
        Code::CertificateEnding,
        Code::AuthorityEnding,
    ];

    /// The text that programs rely on.
    pub fn as_str(self) -> &'static str {
        match self {
            Code::DiskInaccessible => "disk.inaccessible",
            Code::DiskReduced => "disk.reduced",
            Code::DiskDeleting => "disk.deleting",
            Code::ComponentStale => "component.stale",
            Code::ResyncStuck => "resync.stuck",
            Code::RepairBlocked => "repair.blocked",
            Code::RepairOff => "repair.off",
            Code::PlacementDebt => "placement.debt",
            Code::DomainsShared => "domains.shared",
            Code::MoveStuck => "move.stuck",
            Code::MovePaused => "move.paused",
            Code::RowsDisagree => "rows.disagree",
            Code::RollbackUnfinished => "rollback.unfinished",
            Code::SnapshotsReduced => "snapshots.reduced",
            Code::SnapshotsMissing => "snapshots.missing",
            Code::HostAway => "host.away",
            Code::HostSuspect => "host.suspect",
            Code::LinkDown => "link.down",
            Code::HostMaintenance => "host.maintenance",
            Code::DeviceFailed => "device.failed",
            Code::DeviceAway => "device.away",
            Code::DeviceDamaged => "device.damaged",
            Code::LogFailed => "log.failed",
            Code::GroupNoCapacity => "group.no_capacity",
            Code::EncryptionMixed => "encryption.mixed",
            Code::DeviceLeaving => "device.leaving",
            Code::SpaceLow => "space.low",
            Code::SpaceAfterFailure => "space.after_failure",
            Code::SpaceOverCommitted => "space.over_committed",
            Code::DevicesNone => "devices.none",
            Code::SpaceUneven => "space.uneven",
            Code::ComponentsLow => "components.low",
            Code::DomainsTooFew => "domains.too_few",
            Code::DirectoryUnreachable => "directory.unreachable",
            Code::DirectoryMember => "directory.member",
            Code::HostDataDir => "host.data_dir",
            Code::ClockSkew => "clock.skew",
            Code::VersionsMixed => "versions.mixed",
            Code::LevelBehind => "level.behind",
            Code::HostOutdated => "host.outdated",
            Code::RecordsUnreadable => "records.unreadable",
            Code::CertificateEnding => "certificate.ending",
            Code::AuthorityEnding => "authority.ending",
        }
    }

    /// The code of a text.
    pub fn read(text: &str) -> Option<Code> {
        Code::ALL.into_iter().find(|code| code.as_str() == text)
    }

    /// The group that it belongs to.
    pub fn group(self) -> Group {
        match self {
            Code::DiskInaccessible
            | Code::DiskReduced
            | Code::DiskDeleting
            | Code::ComponentStale
            | Code::ResyncStuck
            | Code::RepairBlocked
            | Code::RepairOff
            | Code::PlacementDebt
            | Code::DomainsShared
            | Code::MoveStuck
            | Code::MovePaused
            | Code::RowsDisagree
            | Code::RollbackUnfinished
            | Code::SnapshotsReduced
            | Code::SnapshotsMissing => Group::Data,
            Code::HostAway | Code::HostSuspect | Code::LinkDown => Group::Network,
            Code::HostMaintenance
            | Code::DirectoryUnreachable
            | Code::DirectoryMember
            | Code::HostDataDir
            | Code::ClockSkew
            | Code::VersionsMixed
            | Code::LevelBehind
            | Code::HostOutdated
            | Code::RecordsUnreadable => Group::Cluster,
            Code::DeviceFailed
            | Code::DeviceAway
            | Code::DeviceDamaged
            | Code::LogFailed
            | Code::GroupNoCapacity
            | Code::EncryptionMixed
            | Code::DeviceLeaving
            | Code::DevicesNone => Group::Devices,
            Code::SpaceLow
            | Code::SpaceAfterFailure
            | Code::SpaceOverCommitted
            | Code::SpaceUneven
            | Code::ComponentsLow
            | Code::DomainsTooFew => Group::Capacity,
            Code::CertificateEnding | Code::AuthorityEnding => Group::Certificates,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_read_back_and_every_group_has_some() {
        for code in Code::ALL {
            assert_eq!(Code::read(code.as_str()), Some(code));
        }
        assert_eq!(Code::read("disk"), None);
        for group in Group::ALL {
            assert!(Code::ALL.iter().any(|code| code.group() == group), "{group}");
        }
    }
}
