//! What kinds of events there are. Programs rely on their texts.

use std::fmt;

/// What kind of event it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The host serves from now on.
    HostStarted,
    /// The host was told to end.
    HostStopping,
    /// A host does not come back.
    HostRemoved,
    /// A host is to be serviced.
    MaintenanceBegun,
    /// All that had to leave a host has left.
    MaintenanceReached,
    /// A host is not serviced any more.
    MaintenanceEnded,
    /// A disk was made.
    DiskCreated,
    /// A disk has another name, size or access.
    DiskChanged,
    /// A disk is to move into another layout.
    DiskMoving,
    /// A disk is to be written anew, to take less space.
    DiskRewriting,
    /// A disk was deleted.
    DiskDeleted,
    /// The content of a disk is being replaced by an image.
    DiskImporting,
    /// An import has ended, well or not.
    DiskImported,
    /// A disk is being rolled back to a snapshot.
    DiskRollingBack,
    /// A disk is rolled back to a snapshot.
    DiskRolledBack,
    /// A rollback cannot go on. The disk may be half rolled back.
    DiskRollbackFailed,
    /// The host owns a disk from now on.
    DiskServed,
    /// It owns it no more.
    DiskReleased,
    /// A copy of a disk has acknowledged writes that the others lack.
    DiskDiverged,
    /// Clients were cut off from a disk.
    DiskCutOff,
    /// Requests of clients that ask for errors ended with one, since the disk gave no answer.
    DiskTimedOut,
    /// A snapshot of a disk was taken.
    SnapshotTaken,
    /// A snapshot that was asked for could not be taken.
    SnapshotRefused,
    /// A copy of a disk got a snapshot that it had lacked.
    SnapshotCopied,
    /// A snapshot of a disk has another name, or is pinned, or is so no more.
    SnapshotChanged,
    /// A snapshot of a disk was deleted.
    SnapshotDeleted,
    /// A copy does not count any more.
    CopyLeft,
    /// A copy counts again.
    CopyJoined,
    /// A copy is to come.
    CopyComing,
    /// A copy that came has its place.
    CopySeated,
    /// A copy does not come after all.
    CopyCalledOff,
    /// What stood somewhere and was replaced is deleted.
    CopyDeleted,
    /// Damaged blocks of a copy were written again.
    CopyRepaired,
    /// Parity of a disk did not agree with its data.
    RowsDisagreed,
    /// A copy is being brought up to date.
    ResyncBegan,
    /// It cannot be.
    ResyncFailed,
    /// Something stands in for a missing copy, or does so no more.
    StandIn,
    /// A policy was made or deleted.
    PolicyChanged,
    /// Devices were added.
    DeviceAdded,
    /// A device was removed.
    DeviceRemoved,
    /// A device took the place of another.
    DeviceReplaced,
    /// A device is to be emptied, or not any more.
    DeviceLeaving,
    /// The cluster's settings are others.
    SettingsChanged,
    /// A host that stood alone became the first of a cluster of several.
    ClusterFounded,
    /// The level of the cluster's records was raised.
    ClusterUpgraded,
    /// A pass that samples the data of a host began.
    EstimateBegan,
    /// It has ended, or was stopped.
    EstimateEnded,
    /// Tokens or certificates were given, or count no more.
    CertificatesChanged,
    /// Somebody has logged in to the console.
    SessionBegun,
    /// The shared directory does not answer.
    DirectoryAway,
    /// It answers again.
    DirectoryBack,
    /// Another host runs a member of it, or one does so no more.
    DirectoryMembers,
    /// Something is wrong that was not.
    HealthFound,
    /// Something is to be known that was not so.
    HealthNoted,
    /// What was wrong, or to be known, is so no more.
    HealthEnded,
    /// Somebody silenced findings.
    HealthSilenced,
    /// Somebody ended a silence.
    HealthUnsilenced,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 57] = [
        Kind::HostStarted,
        Kind::HostStopping,
        Kind::HostRemoved,
        Kind::MaintenanceBegun,
        Kind::MaintenanceReached,
        Kind::MaintenanceEnded,
        Kind::DiskCreated,
        Kind::DiskChanged,
        Kind::DiskMoving,
        Kind::DiskRewriting,
        Kind::DiskDeleted,
        Kind::DiskImporting,
        Kind::DiskImported,
        Kind::DiskRollingBack,
        Kind::DiskRolledBack,
        Kind::DiskRollbackFailed,
        Kind::DiskServed,
        Kind::DiskReleased,
        Kind::DiskDiverged,
        Kind::DiskCutOff,
        Kind::DiskTimedOut,
        Kind::SnapshotTaken,
        Kind::SnapshotRefused,
        Kind::SnapshotCopied,
        Kind::SnapshotChanged,
        Kind::SnapshotDeleted,
        Kind::CopyLeft,
        Kind::CopyJoined,
        Kind::CopyComing,
        Kind::CopySeated,
        Kind::CopyCalledOff,
        Kind::CopyDeleted,
        Kind::CopyRepaired,
        Kind::RowsDisagreed,
        Kind::ResyncBegan,
        Kind::ResyncFailed,
        Kind::StandIn,
        Kind::PolicyChanged,
        Kind::DeviceAdded,
        Kind::DeviceRemoved,
        Kind::DeviceReplaced,
        Kind::DeviceLeaving,
        Kind::SettingsChanged,
        Kind::ClusterFounded,
        Kind::ClusterUpgraded,
        Kind::EstimateBegan,
        Kind::EstimateEnded,
        Kind::CertificatesChanged,
        Kind::SessionBegun,
        Kind::DirectoryAway,
        Kind::DirectoryBack,
        Kind::DirectoryMembers,
        Kind::HealthFound,
        Kind::HealthNoted,
        Kind::HealthEnded,
        Kind::HealthSilenced,
        Kind::HealthUnsilenced,
    ];

    /// The text that programs rely on.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::HostStarted => "host.started",
            Kind::HostStopping => "host.stopping",
            Kind::HostRemoved => "host.removed",
            Kind::MaintenanceBegun => "maintenance.begun",
            Kind::MaintenanceReached => "maintenance.reached",
            Kind::MaintenanceEnded => "maintenance.ended",
            Kind::DiskCreated => "disk.created",
            Kind::DiskChanged => "disk.changed",
            Kind::DiskMoving => "disk.moving",
            Kind::DiskRewriting => "disk.rewriting",
            Kind::DiskDeleted => "disk.deleted",
            Kind::DiskImporting => "disk.importing",
            Kind::DiskImported => "disk.imported",
            Kind::DiskRollingBack => "disk.rolling_back",
            Kind::DiskRolledBack => "disk.rolled_back",
            Kind::DiskRollbackFailed => "disk.rollback_failed",
            Kind::DiskServed => "disk.served",
            Kind::DiskReleased => "disk.released",
            Kind::DiskDiverged => "disk.diverged",
            Kind::DiskCutOff => "disk.cut_off",
            Kind::DiskTimedOut => "disk.timed_out",
            Kind::SnapshotTaken => "snapshot.taken",
            Kind::SnapshotRefused => "snapshot.refused",
            Kind::SnapshotCopied => "snapshot.copied",
            Kind::SnapshotChanged => "snapshot.changed",
            Kind::SnapshotDeleted => "snapshot.deleted",
            Kind::CopyLeft => "copy.left",
            Kind::CopyJoined => "copy.joined",
            Kind::CopyComing => "copy.coming",
            Kind::CopySeated => "copy.seated",
            Kind::CopyCalledOff => "copy.called_off",
            Kind::CopyDeleted => "copy.deleted",
            Kind::CopyRepaired => "copy.repaired",
            Kind::RowsDisagreed => "rows.disagreed",
            Kind::ResyncBegan => "resync.began",
            Kind::ResyncFailed => "resync.failed",
            Kind::StandIn => "stand_in.changed",
            Kind::PolicyChanged => "policy.changed",
            Kind::DeviceAdded => "device.added",
            Kind::DeviceRemoved => "device.removed",
            Kind::DeviceReplaced => "device.replaced",
            Kind::DeviceLeaving => "device.leaving",
            Kind::SettingsChanged => "settings.changed",
            Kind::ClusterFounded => "cluster.founded",
            Kind::ClusterUpgraded => "cluster.upgraded",
            Kind::EstimateBegan => "estimate.began",
            Kind::EstimateEnded => "estimate.ended",
            Kind::CertificatesChanged => "certificates.changed",
            Kind::SessionBegun => "session.begun",
            Kind::DirectoryAway => "directory.away",
            Kind::DirectoryBack => "directory.back",
            Kind::DirectoryMembers => "directory.members",
            Kind::HealthFound => "health.found",
            Kind::HealthNoted => "health.noted",
            Kind::HealthEnded => "health.ended",
            Kind::HealthSilenced => "health.silenced",
            Kind::HealthUnsilenced => "health.unsilenced",
        }
    }

    /// Whether somebody may want to look.
    pub fn is_bad(self) -> bool {
        matches!(
            self,
            Kind::CopyLeft
                | Kind::CopyRepaired
                | Kind::RowsDisagreed
                | Kind::ResyncFailed
                | Kind::DiskRollbackFailed
                | Kind::DirectoryAway
                | Kind::HealthFound
        )
    }

    /// Whether people mean a kind by `wanted`: its text, or what stands before the dot.
    pub fn is_meant(kind: &str, wanted: &str) -> bool {
        kind == wanted || kind.split_once('.').is_some_and(|(group, _)| group == wanted)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
