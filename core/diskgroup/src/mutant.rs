//! Safety rules that can be broken on purpose, to show that the simulator notices.

use crate::group::Group;

/// A safety rule, removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// Writes are answered when their batch is handed to the device.
    AcknowledgeBeforeStable,
    /// Log space is reused although the pages that describe its data are not written.
    FreeLogBeforeDescriptors,
    /// Log space is reused although the capacity devices were not flushed.
    SkipFlushBeforePages,
    /// What is read is not compared with its checksum.
    SkipChecksumVerification,
    /// Recovery takes a batch whose data does not verify.
    ReplayPastBadBatch,
    /// Recovery passes trims over.
    LoseTrim,
    /// A page that does not verify is taken for torn whatever the intents say.
    TrustOlderPage,
    /// A freed extent is taken again before the record of its freeing is stable.
    ReuseExtentEarly,
    /// While a device is away, intents of checkpoints that are through excuse damaged pages.
    ExcuseStablePages,
    /// The log does not keep what a device that is away has not got yet.
    ForgetAwayMember,
    /// The log lets go of changes that are not decided.
    ForgetWindow,
    /// A copy has its own id, whatever it takes the place of.
    ForgetReplacedId,
    /// A copy's record has the copy's id, whatever it replaces of what the log has let go of and no page tells yet.
    ForgetDescribedId,
    /// What is written where there was nothing goes by its own id, whatever was trimmed there.
    ForgetHole,
    /// A block that cannot be read takes its device out of service.
    RetireForBadBlock,
    /// Log space is reused when one copy of the anchor is stable.
    AnchorInOneCopy,
    /// Recovery takes a batch for torn of which a block cannot be read.
    DropUnreadableBatch,
    /// Where the log's version of a block is damaged, the older one at rest counts.
    KeepOlderAtRest,
    /// After a restart all that a watermark passed has happened, also what a resync has undone.
    RememberUndone,
    /// What a watermark says to have happened is forgotten if the next one comes before it is stable.
    TakeBackHappened,
    /// What the windows take when they are told again is not kept free in the log.
    LeaveNoRoomForWindows,
    /// A start leaves the older copy of the anchor as it is.
    KeepOlderAnchor,
    /// The slot of a component whose page is damaged is given to another.
    ReuseLostSlot,
    /// A start does not look for the copy of a header that is damaged.
    PassHeaderCopiesOver,
    /// Where the next batch would begin and nothing can be read, the log ends.
    TakeUnreadableForEnd,
    /// A device may leave although records that name its place are on their way to the log.
    LeaveBeforeLastRecord,
}

impl Mutant {
    /// All of them.
    pub const ALL: [Mutant; 26] = [
        Mutant::AcknowledgeBeforeStable,
        Mutant::FreeLogBeforeDescriptors,
        Mutant::SkipFlushBeforePages,
        Mutant::SkipChecksumVerification,
        Mutant::ReplayPastBadBatch,
        Mutant::LoseTrim,
        Mutant::TrustOlderPage,
        Mutant::ReuseExtentEarly,
        Mutant::ExcuseStablePages,
        Mutant::ForgetAwayMember,
        Mutant::ForgetWindow,
        Mutant::ForgetReplacedId,
        Mutant::ForgetDescribedId,
        Mutant::ForgetHole,
        Mutant::RetireForBadBlock,
        Mutant::AnchorInOneCopy,
        Mutant::DropUnreadableBatch,
        Mutant::KeepOlderAtRest,
        Mutant::RememberUndone,
        Mutant::TakeBackHappened,
        Mutant::LeaveNoRoomForWindows,
        Mutant::KeepOlderAnchor,
        Mutant::ReuseLostSlot,
        Mutant::PassHeaderCopiesOver,
        Mutant::TakeUnreadableForEnd,
        Mutant::LeaveBeforeLastRecord,
    ];
}

impl Group {
    /// Whether the rule is broken in this run; never in a product build.
    pub(crate) fn is_mutant(&self, mutant: Mutant) -> bool {
        cfg!(feature = "mutants") && self.settings.mutant == Some(mutant)
    }
}
