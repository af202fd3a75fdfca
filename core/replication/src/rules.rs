//! The safety rules of replication. The simulator removes each of them to show that it notices: a mutant.
//!
//! Invariants have the numbers of `docs/design/0006-replication.md`; designs are notes of `docs/design`.

/// A rule that holds in every product build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// A change that a component misses is acknowledged only once the record has that component out of the active set
    /// (invariant 4).
    ShrinkBeforeAcknowledging,
    /// Components refuse messages of epochs older than the one that they promised (invariant 2).
    RefuseOlderEpochs,
    /// A new owner decides the windows before it serves (invariant 3).
    DecideBeforeServing,
    /// A disk starts from its active components alone, not from any copy that can be reached (invariant 10).
    StartFromActive,
    /// Reads need the leases of all components that may count (invariant 11).
    ReadUnderLeases,
    /// Reads wait for overlapping changes (invariant 6).
    ReadAfterWrites,
    /// A resync takes the changes in flight along (invariant 8).
    ResyncTakesInFlight,
    /// A component in resync is waited for before it counts, for each change that it was sent (invariant 8).
    WaitForResyncing,
    /// A component is asked to count only once it has what was acknowledged before (invariant 8, design 0021).
    JoinCaughtUp,
    /// Acknowledgements wait for a component of which the record was asked that it counts (invariant 8).
    WaitForJoining,
    /// A resync copies under the lock of the range (invariant 8).
    CopyUnderLock,
    /// Late messages of an old session are refused (invariant 2).
    RefuseOldSessions,
    /// A component in resync is told no watermark (invariant 7).
    SettleAfterResync,
    /// While a snapshot is taken, no change begins before all components that count have it (design 0047).
    HoldForSnapshot,
    /// A snapshot is taken once what is under way has ended (design 0047).
    DrainBeforeSnapshot,
    /// An attempt to take a snapshot has a number that none had before it (design 0047).
    NumberAttempts,
    /// A snapshot of several disks is taken of one of them once the owners of all hold changes back (design 0047).
    HoldTogether,
    /// A snapshot of several disks is taken by an owner that has held changes back since it said so (design 0047).
    MarkInOneHold,
    /// Views are read from components alone that have the snapshot as a whole (design 0047).
    ViewFromWhole,
    /// The delta includes what was changed on the target alone (invariant 9).
    DeltaIncludesTarget,
    /// The delta includes regions of equal versions (invariant 9).
    DeltaIncludesEqual,
    /// The delta includes regions that are newer on the target than on the source (invariant 9).
    DeltaIncludesOlder,
    /// A component that begins a new session before the disk is served is told the first watermark in that session.
    SettleNewSessions,
    /// An owner that is released before it has decided the windows tells no component a watermark.
    SettleOnlyDecided,
    /// A transaction of unknown outcome may take effect until another one rules that out, though the record is unchanged.
    RuleOutUnknownCommit,
    /// Components are looked for only in groups whose log has been read.
    AskRecoveredGroups,
    /// A change that has happened is not done again when its request is submitted again (design 0007).
    ApplyOnce,
    /// Acknowledgements wait for a stand-in (design 0013).
    WaitForStandIns,
    /// A stand-in counts only once what was changed until then is on it (design 0013).
    FillStandInFirst,
    /// The delta of a stand-in begins at the watermark at which the absent component left (design 0013).
    StandInDeltaFromBase,
    /// A disk without an active component is restored from an absent one only with its stand-in (design 0013).
    RestoreWithStandIn,
    /// A disk without an active component is not restored from a stand-in alone (design 0013).
    RestoreOntoCopy,
    /// A stand-in that missed a change is taken out of the record (design 0013).
    RecordFailedStandIns,
    /// A stand-in gets zeroes for a trim: a hole would say that nothing was changed there (design 0013).
    ZeroStandInsForTrims,
    /// A stand-in that becomes a copy is told of what was freed before it came (design 0013).
    FillWithHoles,
    /// Reads need the leases of stand-ins (design 0013).
    ReadUnderStandInLeases,
    /// An absent component that has changes which were decided without it does not restore a disk (design 0013).
    RestoreNothingVoid,
    /// An absent member of rows restores a disk only where it holds no small change that the others have folded without it (design 0040).
    RestoreNothingHeld,
    /// Members of rows that were put together from their stand-ins count in the place of the active ones that are lost, in one transaction: with
    /// those, what stands in what was put together could be dropped (design 0040).
    TakeOutLost,
    /// A restore gives nobody the number of a change of rows whose range nobody there tells: an active member that is away may tell it,
    /// if it is back before the restore has ended (design 0040).
    MarkOnlyKnown,
    /// A resync undoes changes of the component that may be void before it lets the component forget them (design 0013).
    UndoVoidFirst,
    /// Word that a process has ended does not count against one that was started on its node later (design 0015).
    SpareRestartedProcesses,
    /// A component that ends no change leaves (design 0020).
    TakeOutStuck,
    /// A component that is not heard leaves only once the directory was heard.
    AskBeforeTakingOut,
    /// A disk is not served by a record older than what a component has promised, or was told (design 0023).
    RefuseOlderRecords,
    /// A component whose watermark is of an older epoch must show what was decided in later ones (invariant 13).
    DoubtOlderEpochs,
    /// A component with acknowledged changes that those which count lack is not brought up to date (design 0023).
    KeepDivergedApart,
    /// Changes that a component which left lacks are acknowledged only once the others know durably that they are decided
    /// (design 0023).
    RaiseBarrier,
    /// A component of which the record was asked to count it out is told no watermark beyond its ceiling (design 0023).
    TellLeavingNothing,
    /// An owner whose node has just started takes nobody out before others may have started as well (design 0023).
    WaitForStarts,
    /// A read whose blocks are damaged on all members, though different ones, is read block by block (design 0025).
    ReadBlockByBlock,
    /// A copy of which no member can give all blocks is read block by block (design 0025).
    CopyBlockByBlock,
    /// What a member of rows lacks is told by the versions of the whole row, not of its own unit (design 0040).
    RowDecides,
    /// A change of rows that fewer members hold than there are data units is dropped at a take-over (design 0040, 18).
    DropWithTooFew,
    /// A row is decoded from members that count alone (design 0040).
    DecodeFromActive,
    /// Fewer members than there are data units never count alone (design 0040, 19).
    KeepEnough,
    /// Members hold what a change of rows replaces until that is decided (design 0040, 17).
    KeepReplaced,
    /// A small change is acknowledged once the members of the parity have it, too (design 0040, 14).
    WaitForParity,
    /// Members of rows are asked what they hold before anything is served (design 0040, 16).
    AskForHeld,
    /// What parity does not count is folded before columns are decoded (design 0040, 15).
    FoldBeforeDecoding,
    /// Bases go once every member of the parity has folded the columns (design 0040, 16).
    PromoteAfterFold,
    /// Columns of which members hold different changes are folded before they are changed (design 0040, 16).
    EvenBeforeChange,
    /// What a member that comes back holds is made anew (design 0040).
    RemakeHeld,
    /// Rows are compared while nobody changes them (design 0040, 22).
    CheckApart,
    /// The record is asked to pass a granule of a move once all of it is copied (design 0041, M2).
    PassCopied,
    /// Nothing changes in a granule while the record is asked to pass it (design 0041, M2).
    PassApart,
    /// The record passes a granule in a new epoch, which every component promises (design 0041, M8).
    PassInNewEpoch,
    /// What guests change in a granule that is copied happens on both sides (design 0041, M2).
    FollowInGranule,
    /// A hole of the truth becomes a hole of the other side (design 0041, M3).
    CopyHoles,
    /// A slice is copied while nobody changes its blocks (design 0041).
    CopyApart,
    /// An owner copies all of a granule, whatever the one before it has copied (design 0041, M3).
    CopyAnew,
    /// A request that waits when its session ends (for a limit, for congestion or for an owner) is dropped and never begun: its
    /// guest may have been started elsewhere meanwhile (design 0043).
    BeginNothingAbandoned,
    /// A block that a guest writes is trimmed only once its bytes were compared with zeroes, whatever its checksum (design 0045).
    CompareZeroes,
    /// A change that covers a region of a clone's origin in part writes all of it (design 0050).
    CopyUpWhole,
    /// The first block of a region stays allocated where it tells that the region is the clone's own (design 0050).
    KeepFirstBlocks,
    /// The first block of a region stays a hole in copies where it tells that the region is the origin's (design 0050).
    KeepFirstHoles,
    /// Other changes of a region wait while it is written as a whole (design 0050).
    CopyUpApart,
    /// What has changed of a clone is told by whole regions where these may have become its own (design 0050).
    TellWholeRegions,
    /// What a late snapshot may see otherwise than it should is asked of the component that gets it, too (design 0051).
    SurveyBoth,
    /// The record says that a component has a late snapshot only once that is stable there (design 0051).
    RecordStableBackfills,
    /// A member of rows is told of a snapshot that it lacks while no change is under way and nothing is held (design 0054).
    RestBeforeLateMark,
    /// A component deletes a snapshot that the record does not name only while no transaction may yet name it (note 0051).
    DropOnlyUnnamed,
    /// While a disk moves, its snapshots are read in the layout in which they were taken (note 0041).
    ViewWhereTaken,
}

impl Rule {
    /// All of them.
    pub const ALL: [Rule; 83] = [
        Rule::ShrinkBeforeAcknowledging,
        Rule::RefuseOlderEpochs,
        Rule::DecideBeforeServing,
        Rule::StartFromActive,
        Rule::ReadUnderLeases,
        Rule::ReadAfterWrites,
        Rule::ResyncTakesInFlight,
        Rule::WaitForResyncing,
        Rule::JoinCaughtUp,
        Rule::WaitForJoining,
        Rule::CopyUnderLock,
        Rule::RefuseOldSessions,
        Rule::SettleAfterResync,
        Rule::HoldForSnapshot,
        Rule::DrainBeforeSnapshot,
        Rule::NumberAttempts,
        Rule::HoldTogether,
        Rule::MarkInOneHold,
        Rule::ViewFromWhole,
        Rule::DeltaIncludesTarget,
        Rule::DeltaIncludesEqual,
        Rule::DeltaIncludesOlder,
        Rule::SettleNewSessions,
        Rule::SettleOnlyDecided,
        Rule::RuleOutUnknownCommit,
        Rule::AskRecoveredGroups,
        Rule::ApplyOnce,
        Rule::WaitForStandIns,
        Rule::FillStandInFirst,
        Rule::StandInDeltaFromBase,
        Rule::RestoreWithStandIn,
        Rule::RestoreOntoCopy,
        Rule::RecordFailedStandIns,
        Rule::ZeroStandInsForTrims,
        Rule::FillWithHoles,
        Rule::ReadUnderStandInLeases,
        Rule::RestoreNothingVoid,
        Rule::RestoreNothingHeld,
        Rule::MarkOnlyKnown,
        Rule::TakeOutLost,
        Rule::UndoVoidFirst,
        Rule::ReadBlockByBlock,
        Rule::CopyBlockByBlock,
        Rule::BeginNothingAbandoned,
        Rule::CompareZeroes,
        Rule::SpareRestartedProcesses,
        Rule::TakeOutStuck,
        Rule::AskBeforeTakingOut,
        Rule::RefuseOlderRecords,
        Rule::DoubtOlderEpochs,
        Rule::KeepDivergedApart,
        Rule::RaiseBarrier,
        Rule::TellLeavingNothing,
        Rule::WaitForStarts,
        Rule::RowDecides,
        Rule::DropWithTooFew,
        Rule::DecodeFromActive,
        Rule::KeepEnough,
        Rule::KeepReplaced,
        Rule::WaitForParity,
        Rule::AskForHeld,
        Rule::FoldBeforeDecoding,
        Rule::PromoteAfterFold,
        Rule::EvenBeforeChange,
        Rule::RemakeHeld,
        Rule::CheckApart,
        Rule::PassCopied,
        Rule::PassApart,
        Rule::PassInNewEpoch,
        Rule::FollowInGranule,
        Rule::CopyHoles,
        Rule::CopyApart,
        Rule::CopyAnew,
        Rule::CopyUpWhole,
        Rule::KeepFirstBlocks,
        Rule::KeepFirstHoles,
        Rule::CopyUpApart,
        Rule::TellWholeRegions,
        Rule::SurveyBoth,
        Rule::RecordStableBackfills,
        Rule::RestBeforeLateMark,
        Rule::DropOnlyUnnamed,
        Rule::ViewWhereTaken,
    ];
}
