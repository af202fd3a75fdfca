//! The rules that can be taken out of moves, one at a time.

/// A rule of moves (`docs/design/0041-changing-a-policy.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Blocks are read where the boundary of the record says (M1).
    ReadByRecord,
    /// The boundary passes a granule only once all of it is copied (M2).
    PassAfterCopied,
    /// The boundary passes a granule only once the other layout has what was acknowledged without it (M2).
    PassAfterTrailing,
    /// While the outcome of the transaction is unknown, writes go to both layouts (M2).
    BothUntilKnown,
    /// A transaction whose effect is not seen is ruled out before the owner goes on (M2).
    RuleOut,
    /// A guest's write to the granule under way goes to both layouts (M2).
    WriteBoth,
    /// An owner that took over copies the granule from its beginning (M3).
    StartOver,
    /// What is a hole in the one layout becomes a hole in the other (M3).
    CopyHoles,
    /// The former place of a granule is trimmed only once the record has passed it (M4).
    TrimAfterRecord,
    /// An owner trims by the boundary that it read itself, not by what the one before it expected (M4).
    TrimByRead,
    /// A granule that comes back is copied back, whatever its former place still holds (M4).
    CopyBack,
    /// A granule begins only once no trim of it is under way (M4).
    TrimBeforeCopy,
    /// A granule is copied only while no write to it is under way.
    CopyUnderLock,
    /// Who locks in both places locks in the old one first.
    LockOrder,
}

impl Rule {
    /// All of them, with the names that commands take.
    pub const ALL: [(&'static str, Rule); 14] = [
        ("read-by-record", Rule::ReadByRecord),
        ("pass-after-copied", Rule::PassAfterCopied),
        ("pass-after-trailing", Rule::PassAfterTrailing),
        ("both-until-known", Rule::BothUntilKnown),
        ("rule-out", Rule::RuleOut),
        ("write-both", Rule::WriteBoth),
        ("start-over", Rule::StartOver),
        ("copy-holes", Rule::CopyHoles),
        ("trim-after-record", Rule::TrimAfterRecord),
        ("trim-by-read", Rule::TrimByRead),
        ("copy-back", Rule::CopyBack),
        ("trim-before-copy", Rule::TrimBeforeCopy),
        ("copy-under-lock", Rule::CopyUnderLock),
        ("lock-order", Rule::LockOrder),
    ];
}
