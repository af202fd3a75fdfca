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
    /// Acknowledgements do not wait for a component in resync (8).
    AcknowledgeWithoutResync,
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
}

impl Mutant {
    /// All of them.
    pub const ALL: [Mutant; 19] = [
        Mutant::AcknowledgeBeforeShrink,
        Mutant::AcceptOlderEpoch,
        Mutant::ServeUndecided,
        Mutant::StartAlone,
        Mutant::ReadWithoutLease,
        Mutant::ReadOverWrites,
        Mutant::ResyncMissesInFlight,
        Mutant::AcknowledgeWithoutResync,
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
    ];

    /// Whether `wanted` is broken in this run; never in a product build.
    pub fn is(this: Option<Mutant>, wanted: Mutant) -> bool {
        cfg!(feature = "mutants") && this == Some(wanted)
    }
}
