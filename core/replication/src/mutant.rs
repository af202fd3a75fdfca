//! Safety rules that can be broken on purpose, to show that the simulator notices: the last table of the protocol, and
//! what the simulator itself found.

/// A rule, removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// A write is acknowledged before the record has the component that misses it out of the active set (4).
    AcknowledgeBeforeShrink,
    /// Components accept messages of older epochs (2).
    AcceptOlderEpoch,
    /// A new owner serves without deciding the window.
    ServeUndecided,
    /// Any copy that can be reached may start alone (10).
    StartAlone,
    /// Reads ask for no lease (11).
    ReadWithoutLease,
    /// Reads do not wait for overlapping writes (6).
    ReadOverWrites,
    /// A resync does not take the writes in flight along (8).
    ResyncMissesInFlight,
    /// What a component in resync was sent is never waited for (8).
    AcknowledgeWithoutResync,
    /// A component is asked to count although it lacks what was acknowledged before (8).
    JoinBeforeCaughtUp,
    /// Acknowledgements do not wait for a component of which the record was asked that it counts (8).
    AcknowledgeWhileJoining,
    /// A resync copies without the range lock (8).
    CopyWithoutLock,
    /// A late message of an old session is accepted (2).
    AcceptOldSession,
    /// The watermark is sent to a component in resync (7).
    SettleDuringResync,
    /// The delta is what is newer than the watermark on the source (9).
    DeltaBySource,
    /// The delta is what differs (9).
    DeltaByDifference,
    /// The delta is what is newer on the source than on the target (9).
    DeltaByNewer,
    /// A component that begins a new session before the disk is served is not told the first watermark in it.
    KeepReadiness,
    /// An owner that is released before it has decided the windows tells a component the watermark all the same.
    SettleUndecided,
    /// A record found unchanged after a transaction of unknown outcome counts as "it did not happen".
    TrustUnchangedRecord,
    /// Components are looked for in groups whose log has not been read.
    AskOpeningGroup,
    /// A change that has happened is done again when its request is submitted again.
    ApplyTwice,
    /// Acknowledgements do not wait for a stand-in (design 0013).
    AcknowledgeWithoutStandIn,
    /// A stand-in is recorded before what was changed until then is on it.
    StandInBeforeDelta,
    /// The delta of a stand-in begins at the watermark of now, not at that of the absent component's leaving.
    StandInDeltaFromNow,
    /// A disk without an active component is restored from an absent one without its stand-in.
    RestoreWithoutStandIn,
    /// A disk without an active component is restored from a stand-in alone.
    RestoreFromStandInAlone,
    /// A stand-in that missed a change is not taken out of the record.
    KeepFailedStandIn,
    /// A stand-in takes a trim as a hole: it reads as if nothing had been changed there.
    TrimStandIn,
    /// A stand-in that becomes a copy is not told of what was freed before it came.
    FillWithoutHoles,
    /// Reads ask for no lease of stand-ins.
    ReadWithoutStandInLease,
    /// What an absent component has of changes that were decided without it counts when a disk is restored.
    RestoreOverVoid,
    /// A resync lets the component forget which of its changes may be void before they are undone.
    ForgetVoid,
    /// Word that a node's process has ended counts against the process that was started after it, too.
    BuryTheLiving,
    /// A component that ends no change stays (design 0020).
    KeepTheStuck,
    /// A component that is not heard leaves although the directory is not heard either.
    TakeOutUnasked,
    /// A disk is served although its record is older than what a component has promised, or was told (design 0023).
    ServeOlderRecord,
    /// A component whose watermark is of an older epoch counts as one that has all that was decided in later ones.
    TrustEpochs,
    /// A component that holds acknowledged changes which those that count lack is brought up to date.
    JoinDiverged,
    /// Changes that a component which left lacks are acknowledged before the others know durably that they are decided.
    AcknowledgeBeforeBarrier,
    /// A component is told watermarks after the record was asked to count it out with what it had been told as its ceiling.
    TellLeaving,
    /// A component leaves before its disk is served although the owner's node has just started, as if nobody else were starting.
    TakeOutAtStart,
    /// A read whose blocks are damaged on all members, though different ones, is answered as damaged.
    ReadAllOrNothing,
    /// A copy of which no member can give all blocks is given up.
    CopyAllOrNothing,
}

impl Mutant {
    /// All of them.
    pub const ALL: [Mutant; 43] = [
        Mutant::AcknowledgeBeforeShrink,
        Mutant::AcceptOlderEpoch,
        Mutant::ServeUndecided,
        Mutant::StartAlone,
        Mutant::ReadWithoutLease,
        Mutant::ReadOverWrites,
        Mutant::ResyncMissesInFlight,
        Mutant::AcknowledgeWithoutResync,
        Mutant::JoinBeforeCaughtUp,
        Mutant::AcknowledgeWhileJoining,
        Mutant::CopyWithoutLock,
        Mutant::AcceptOldSession,
        Mutant::SettleDuringResync,
        Mutant::DeltaBySource,
        Mutant::DeltaByDifference,
        Mutant::DeltaByNewer,
        Mutant::KeepReadiness,
        Mutant::SettleUndecided,
        Mutant::TrustUnchangedRecord,
        Mutant::AskOpeningGroup,
        Mutant::ApplyTwice,
        Mutant::AcknowledgeWithoutStandIn,
        Mutant::StandInBeforeDelta,
        Mutant::StandInDeltaFromNow,
        Mutant::RestoreWithoutStandIn,
        Mutant::RestoreFromStandInAlone,
        Mutant::KeepFailedStandIn,
        Mutant::TrimStandIn,
        Mutant::FillWithoutHoles,
        Mutant::ReadWithoutStandInLease,
        Mutant::RestoreOverVoid,
        Mutant::ForgetVoid,
        Mutant::ReadAllOrNothing,
        Mutant::CopyAllOrNothing,
        Mutant::BuryTheLiving,
        Mutant::KeepTheStuck,
        Mutant::TakeOutUnasked,
        Mutant::ServeOlderRecord,
        Mutant::TrustEpochs,
        Mutant::JoinDiverged,
        Mutant::AcknowledgeBeforeBarrier,
        Mutant::TellLeaving,
        Mutant::TakeOutAtStart,
    ];

    /// Whether `wanted` is broken in this run; never in a product build.
    pub fn is(this: Option<Mutant>, wanted: Mutant) -> bool {
        cfg!(feature = "mutants") && this == Some(wanted)
    }
}
