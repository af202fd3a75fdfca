//! The safety rules of a disk group, each of which the simulator removes in turn to show that it notices.

/// A safety rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// A write is acknowledged only once its batch is stable (note 0006).
    AcknowledgeOnlyStable,
    /// Log space is reused only once the pages that describe its data are stable (note 0001).
    FreeLogAfterDescriptors,
    /// Pages are written only once the capacity devices with the data that they describe are flushed (note 0001).
    FlushBeforePages,
    /// Every block that is read is compared with its checksum (note 0025).
    VerifyChecksums,
    /// Recovery drops the last batch if its data do not verify (`docs/formats/disk-group.md`, "Opening").
    DropTornBatch,
    /// A component that pages tell of outlasts older records that give its slot to others (note 0044).
    KeepNewerComponent,
    /// Recovery replays trims (`docs/formats/disk-group.md`, "Opening").
    ReplayTrims,
    /// A page that does not verify counts as torn only if the log holds the intent for that version (note 0001).
    TornOnlyByIntent,
    /// A freed extent is reused only once the record of its freeing is stable (note 0002).
    ReuseOnlyFreed,
    /// While a device is away, intents of completed checkpoints excuse no damaged page (note 0004).
    ExcuseOnlyUnfinished,
    /// The log keeps the records of a device that is away (note 0004).
    KeepLogForAway,
    /// The log keeps undecided changes (note 0022).
    KeepWindow,
    /// A copy takes the greatest id of what it replaces (note 0002).
    KeepReplacedId,
    /// So it does where only a page in memory still tells that id (note 0002).
    KeepDescribedId,
    /// A write over a hole takes no lesser id than the hole has (note 0002).
    KeepHoleId,
    /// A block that cannot be read leaves its device in service (note 0025).
    TolerateBadBlock,
    /// Log space is reused only once both copies of the anchor are stable (note 0025).
    AnchorInBothCopies,
    /// Recovery keeps the last batch if all of its blocks that can be read verify (note 0025).
    KeepUnreadableBatch,
    /// Where the log's version of a block is damaged, the older version at rest is not served (note 0025).
    HideOlderAtRest,
    /// After a restart, changes that a resync has undone do not count as having happened (note 0007).
    ForgetUndone,
    /// A change that a watermark told to have happened still counts as such after the next watermark (note 0007).
    KeepHappened,
    /// The log keeps room to tell all windows again (note 0022).
    LeaveRoomForWindows,
    /// A start writes the newer anchor over the older copy (note 0025).
    MendOlderAnchor,
    /// The slot of a component whose page is damaged is given to no other (note 0025).
    KeepLostSlot,
    /// A start reads the copy of a damaged header (note 0025).
    ReadHeaderCopy,
    /// A block that cannot be read where the next batch would begin is not taken for the end of the log without proof (note 0025).
    ProveUnreadableEnd,
    /// A start writes over what is left of a batch that it does not count, before another one gets its number
    /// (`docs/formats/disk-group.md`, "Opening").
    EraseRemains,
    /// A start writes the header of the last batch and its copy again, if not both of them verify (`docs/formats/disk-group.md`, "Opening").
    MendLastHeader,
    /// Scrubbing judges only extents that did not change while it read and verified them (`group/scrub.rs`).
    JudgeOnlyUnchanged,
    /// A device leaves only once no record on its way to the log names it (note 0026).
    LeaveAfterLastRecord,
    /// A fold is one batch: the write, and the end of what it counts (notes 0040 and 0042).
    FoldInOneBatch,
    /// Recovery replays the ends of held blocks (note 0042).
    ReplayEnds,
    /// Held blocks are written again before the log lets go of them (note 0042).
    CarryHeld,
    /// A held block that is promoted keeps its id (note 0042).
    KeepPromotedId,
    /// What a row write replaces stays until the row write is decided (note 0042).
    KeepUntilDecided,
    /// An extent is kept as long as blocks of its part are held (note 0042).
    KeepPromisedSpace,
    /// A snapshot's record begins a batch, as far as its component is concerned (note 0044).
    MarkBetweenBatches,
    /// What a deleted snapshot saw goes to the next older one that sees it, too (note 0044, rule 3).
    MoveDeleted,
    /// What the live disk replaces is kept for the snapshots that see it (note 0044, rule 2).
    KeepReplaced,
    /// A frame is used again only after a checkpoint whose pages do not name it (note 0044, rule 4).
    FreeLate,
    /// Pages of a checkpoint that did not end do not count (note 0044).
    CountFinishedPages,
    /// A page that changes while a checkpoint is to write it is written as it was (note 0044).
    WriteAsItWas,
    /// A page that is lost, and of which nobody knows what it told, is known as lost to later starts, too (note 0044).
    KeepLostPages,
    /// Where pages are lost, what a part has in an extent that only the log gives to it is not known (note 0044).
    DoubtClaims,
    /// What mends a damaged block has the checksum that the map tells of that, if it tells one (note 0052).
    MendWithTheSame,
    /// A part is taken back before anything is destaged to it that came behind the rollback (note 0044).
    RollBackFirst,
    /// A part that was taken back is not again after a crash (note 0044).
    RollBackOnce,
    /// What was written before a snapshot is kept apart from what comes behind it (note 0044).
    KeepSegments,
    /// Frames are promised to what is held of parts without an extent (note 0053).
    PromiseHeldFrames,
    /// What the log alone gives to a component that is being deleted takes no space after a start (note 0044).
    LeaveClaimsOfDeleted,
    /// Row writes are decided before a snapshot is made or rolled back to (note 0053).
    DecideRowsBeforeMark,
    /// A start settles no held block that a map page contains (note 0053).
    SettleOnce,
    /// A map page outlasts the promotions that the log has of its part (note 0053).
    KeepPagesOfPromotions,
    /// A block that became content behind the boundary of a round of destaging is left to the next one (note 0053).
    SettleInLaterRound,
    /// Promoted blocks whose content was changed by a later record of the log are written again (`held.rs`).
    RewriteOvertaken,
    /// A frame in which several compressed blocks stand is used again only once none of them does (note 0049).
    KeepSharedFrames,
    /// No slot of a compressed block crosses a frame (note 0049).
    KeepSlotsInFrames,
    /// A compressed block is compared with its checksum once it is decompressed (note 0049).
    VerifyUnpacked,
    /// A block that changed while its part was written anew stays as it is (note 0049).
    KeepNewerThanRewritten,
    /// A snapshot is given nothing before all that came before it is at rest in its part (note 0051).
    SettleBeforeBackfill,
    /// A snapshot is given a block only once the next older one has what both saw (note 0051).
    TellOlderApart,
    /// What a snapshot was given is told to be there only once pages on the device name it (note 0051).
    SyncBackfill,
}

impl Rule {
    /// All of them.
    pub const ALL: [Rule; 62] = [
        Rule::AcknowledgeOnlyStable,
        Rule::FreeLogAfterDescriptors,
        Rule::FlushBeforePages,
        Rule::VerifyChecksums,
        Rule::DropTornBatch,
        Rule::ReplayTrims,
        Rule::TornOnlyByIntent,
        Rule::ReuseOnlyFreed,
        Rule::ExcuseOnlyUnfinished,
        Rule::KeepLogForAway,
        Rule::KeepWindow,
        Rule::KeepReplacedId,
        Rule::KeepDescribedId,
        Rule::KeepHoleId,
        Rule::TolerateBadBlock,
        Rule::AnchorInBothCopies,
        Rule::KeepUnreadableBatch,
        Rule::HideOlderAtRest,
        Rule::ForgetUndone,
        Rule::KeepHappened,
        Rule::LeaveRoomForWindows,
        Rule::MendOlderAnchor,
        Rule::KeepLostSlot,
        Rule::ReadHeaderCopy,
        Rule::ProveUnreadableEnd,
        Rule::EraseRemains,
        Rule::KeepNewerComponent,
        Rule::MendLastHeader,
        Rule::JudgeOnlyUnchanged,
        Rule::LeaveAfterLastRecord,
        Rule::FoldInOneBatch,
        Rule::ReplayEnds,
        Rule::CarryHeld,
        Rule::KeepPromotedId,
        Rule::KeepUntilDecided,
        Rule::KeepPromisedSpace,
        Rule::RewriteOvertaken,
        Rule::PromiseHeldFrames,
        Rule::LeaveClaimsOfDeleted,
        Rule::DecideRowsBeforeMark,
        Rule::SettleOnce,
        Rule::KeepPagesOfPromotions,
        Rule::SettleInLaterRound,
        Rule::MarkBetweenBatches,
        Rule::MoveDeleted,
        Rule::KeepReplaced,
        Rule::FreeLate,
        Rule::CountFinishedPages,
        Rule::WriteAsItWas,
        Rule::KeepSegments,
        Rule::KeepLostPages,
        Rule::DoubtClaims,
        Rule::MendWithTheSame,
        Rule::RollBackFirst,
        Rule::RollBackOnce,
        Rule::KeepSharedFrames,
        Rule::KeepSlotsInFrames,
        Rule::VerifyUnpacked,
        Rule::KeepNewerThanRewritten,
        Rule::SettleBeforeBackfill,
        Rule::TellOlderApart,
        Rule::SyncBackfill,
    ];
}
