//! The rules that can be taken out of the protocol, one at a time.

/// A rule of the protocol. The numbers are those of its invariants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// A write is acknowledged without a component only after the record has that component out (4).
    ShrinkBeforeAcknowledge,
    /// Components refuse older epochs, reads and writes (2).
    Fence,
    /// A new owner decides what was under way before it serves (taking over).
    DecideWindow,
    /// A disk does not start from any copy that can be reached, but from those that the record names (10).
    NoSalvage,
    /// An owner reads only while all its components promise nothing to another (11).
    Lease,
    /// A read waits for a write under way to its block (6).
    ReadsWait,
    /// Writes under way when a component is attached go to it, too (8).
    AttachTakesWritesUnderWay,
    /// Acknowledgements wait for the component in resync (8): at its end, or all the time (`Config::is_early`).
    AcknowledgeWaitsForResync,
    /// The component in resync has what was acknowledged before they wait for it (8).
    CatchUpFirst,
    /// Resync copies a block only while no write to it is under way (8).
    CopyUnderLock,
    /// Messages of an earlier session of the same owner are refused (2).
    Sessions,
    /// The watermark is not sent to a component in resync (7).
    NoWatermarkInResync,
    /// A region is copied if the source *or the component itself* has a write beyond the component's watermark (9).
    DeltaLooksAtBoth,
    /// A region is not passed over because the greatest ids of source and component are the same (9).
    DeltaNotByDifference,
    /// A region is not passed over because the component's greatest id is not less than the source's (9).
    DeltaNotByOrder,
}

impl Rule {
    /// All of them, with the names that commands take.
    pub const ALL: [(&'static str, Rule); 15] = [
        ("shrink-before-acknowledge", Rule::ShrinkBeforeAcknowledge),
        ("fence", Rule::Fence),
        ("decide-window", Rule::DecideWindow),
        ("no-salvage", Rule::NoSalvage),
        ("lease", Rule::Lease),
        ("reads-wait", Rule::ReadsWait),
        ("attach-takes-writes-under-way", Rule::AttachTakesWritesUnderWay),
        ("acknowledge-waits-for-resync", Rule::AcknowledgeWaitsForResync),
        ("catch-up-first", Rule::CatchUpFirst),
        ("copy-under-lock", Rule::CopyUnderLock),
        ("sessions", Rule::Sessions),
        ("no-watermark-in-resync", Rule::NoWatermarkInResync),
        ("delta-looks-at-both", Rule::DeltaLooksAtBoth),
        ("delta-not-by-difference", Rule::DeltaNotByDifference),
        ("delta-not-by-order", Rule::DeltaNotByOrder),
    ];
}
