//! The rules that can be taken out of parity, one at a time.

/// A rule of parity. The numbers are those of its invariants (`docs/design/0040-parity.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// A small write is acknowledged once the parity members have it as a copy, too (14).
    CopiesBeforeAcknowledge,
    /// A decode takes a data member's base where parity holds a copy, not its newest version (15).
    DecodeWithBase,
    /// The new parity and the end of the copies are one batch (16).
    FoldInOneBatch,
    /// A base is dropped only once every parity member has folded (16).
    PromoteAfterFold,
    /// A fold's lock lasts until its bases are dropped (16).
    WriteWaitsForPromote,
    /// An owner that took over or attached a member asks for copies and bases before it changes the column (16).
    AskForSets,
    /// A column of which some parity members have a copy and others do not is folded before it is changed (16).
    EvenBeforeChange,
    /// A member keeps what a row write replaces (17).
    KeepReplaced,
    /// What a take-over puts on a member keeps what it replaces, too (17).
    PutKeepsReplaced,
    /// A row write is rolled forward only if enough members hold it to decode the rest (18).
    RowForwardWithEnough,
    /// A dropped row write gives back copies and bases, too (18).
    DropRestoresLayers,
    /// A new owner decides what was under way before it serves (18).
    DecideWindow,
    /// No transaction leaves fewer members than a decode needs (19).
    Enough,
    /// A small write that is taken back gives parity the copy back that it replaced.
    TakeBackFormerCopy,
    /// A fold excludes changes of its column (20).
    FoldExcludesChanges,
    /// A fold excludes decoding reads of its column (20).
    FoldExcludesDecoding,
    /// A unit is made anew if *any* member of its row has a version beyond the watermark of who comes back.
    RowDecides,
    /// Columns of which a parity member that comes back holds copies are made anew, whatever their versions.
    RemakeHeldCopies,
    /// Columns with a change under way at the attachment are made anew.
    RemakeUnderWay,
    /// A parity unit that is made anew ends the copies of its column.
    RemadeEndsCopies,
    /// A data unit is made anew only once parity holds no copy of its column.
    FoldBeforeRemaking,
    /// The base of a member in resync is not used by folds.
    NoBaseOfResyncing,
}

impl Rule {
    /// All of them, with the names that commands take.
    pub const ALL: [(&'static str, Rule); 22] = [
        ("copies-before-acknowledge", Rule::CopiesBeforeAcknowledge),
        ("decode-with-base", Rule::DecodeWithBase),
        ("fold-in-one-batch", Rule::FoldInOneBatch),
        ("promote-after-fold", Rule::PromoteAfterFold),
        ("write-waits-for-promote", Rule::WriteWaitsForPromote),
        ("ask-for-sets", Rule::AskForSets),
        ("even-before-change", Rule::EvenBeforeChange),
        ("keep-replaced", Rule::KeepReplaced),
        ("put-keeps-replaced", Rule::PutKeepsReplaced),
        ("row-forward-with-enough", Rule::RowForwardWithEnough),
        ("drop-restores-layers", Rule::DropRestoresLayers),
        ("decide-window", Rule::DecideWindow),
        ("enough", Rule::Enough),
        ("take-back-former-copy", Rule::TakeBackFormerCopy),
        ("fold-excludes-changes", Rule::FoldExcludesChanges),
        ("fold-excludes-decoding", Rule::FoldExcludesDecoding),
        ("row-decides", Rule::RowDecides),
        ("remake-held-copies", Rule::RemakeHeldCopies),
        ("remake-under-way", Rule::RemakeUnderWay),
        ("remade-ends-copies", Rule::RemadeEndsCopies),
        ("fold-before-remaking", Rule::FoldBeforeRemaking),
        ("no-base-of-resyncing", Rule::NoBaseOfResyncing),
    ];
}
