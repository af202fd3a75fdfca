//! What a run of several hosts came to, in figures.

/// How a run ended well.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// Checksum over everything that happened, in order.
    pub trace: u64,
    /// Events worked off.
    pub events: u64,
    /// Guests' requests answered.
    pub answered: u64,
    /// Owners that began to serve.
    pub take_overs: u64,
    /// Changes rolled forward by them.
    pub rolled: u64,
    /// Components that left an active set.
    pub left: u64,
    /// Those of them whose devices hung.
    pub stuck: u64,
    /// Components that joined one.
    pub joined: u64,
    /// Bytes copied for them.
    pub copied_bytes: u64,
    /// Damaged ranges written again.
    pub repaired: u64,
    /// Blocks that could not be read until they were written again.
    pub bad_sectors: u64,
    /// Components that records began to name.
    pub came: u64,
    /// Components that they name no more.
    pub went: u64,
    /// Directories that were lost and made anew.
    pub rebuilt: u64,
    /// Components that stood in for others.
    pub stood_in: u64,
    /// Places that were put together from a component and its stand-in.
    pub restored: u64,
    /// Times that all active components of a place were lost while an absent one had a stand-in.
    pub struck: u64,
    /// Times that a component which had just been brought up to date was all that was left.
    pub left_alone: u64,
    /// Times that the directory went away as a component was to count.
    pub long_joins: u64,
    /// Times that the directory was set back to an old snapshot.
    pub rolled_back: u64,
    /// Components that held acknowledged changes which those that counted lacked.
    pub diverged: u64,
    /// The most answers that guests got while all components that had been active in a place were away.
    pub answered_without: u64,
    /// Times that the limits of a disk changed, or which of its copies are read.
    pub rules_changed: u64,
    /// Moves into another layout, or back, that came to their end.
    pub moved_over: u64,
    /// Rows of which owners compared the parity with the data, in passes that came to their end.
    pub rows_checked: u64,
    /// Rows that were made to disagree, and were found and mended.
    pub rows_mended: u64,
    /// Blocks that were compressed since hosts started last.
    pub compressed: u64,
    /// Blocks that rotted once all was quiet.
    pub rotted: u64,
    /// Writes that were done again, since those who knew of them were replaced before they were answered.
    pub repeated: u64,
    /// Requests that waited for a limit as it changed.
    pub held_back: u64,
    /// Snapshots that were taken.
    pub snapshots: u64,
    /// Snapshots of all disks at one moment among them.
    pub together: u64,
    /// The longest that changes waited for one, in nanoseconds.
    pub held_ns: u64,
    /// Snapshots that components got which had lacked them.
    pub backfilled: u64,
    /// Bytes that were given for that.
    pub backfilled_bytes: u64,
    /// The longest that a guest's request took while faults came and went, in nanoseconds.
    pub longest_ns: u64,
}

impl Summary {
    /// Adds the figures of another run.
    pub fn add(&mut self, other: &Summary) {
        self.events += other.events;
        self.answered += other.answered;
        self.take_overs += other.take_overs;
        self.rolled += other.rolled;
        self.left += other.left;
        self.stuck += other.stuck;
        self.joined += other.joined;
        self.copied_bytes += other.copied_bytes;
        self.repaired += other.repaired;
        self.bad_sectors += other.bad_sectors;
        self.came += other.came;
        self.went += other.went;
        self.stood_in += other.stood_in;
        self.restored += other.restored;
        self.struck += other.struck;
        self.left_alone += other.left_alone;
        self.long_joins += other.long_joins;
        self.rolled_back += other.rolled_back;
        self.diverged += other.diverged;
        self.answered_without = self.answered_without.max(other.answered_without);
        self.rules_changed += other.rules_changed;
        self.moved_over += other.moved_over;
        self.held_back += other.held_back;
        self.rows_checked += other.rows_checked;
        self.rows_mended += other.rows_mended;
        self.compressed += other.compressed;
        self.rotted += other.rotted;
        self.repeated += other.repeated;
        self.snapshots += other.snapshots;
        self.together += other.together;
        self.held_ns = self.held_ns.max(other.held_ns);
        self.backfilled += other.backfilled;
        self.backfilled_bytes += other.backfilled_bytes;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} events, {} requests, {} take-overs, {} changes rolled forward, {} components left ({} hung) and {} joined \
             ({} MiB copied), {} came and {} went, {} stood in, {} places restored (at most {} requests answered before \
             the lost were back), {} bad sectors, {} blocks compressed, {} rotted at the end, {} ranges repaired, {} directories set back, {} components diverged, {} rows compared and {} mended, {} writes done again, {} snapshots taken, {} of all disks (changes waited for {} us at most), {} given later ({} MiB)",
            self.events,
            self.answered,
            self.take_overs,
            self.rolled,
            self.left,
            self.stuck,
            self.joined,
            self.copied_bytes >> 20,
            self.came,
            self.went,
            self.stood_in,
            self.restored,
            self.answered_without,
            self.bad_sectors,
            self.compressed,
            self.rotted,
            self.repaired,
            self.rolled_back,
            self.diverged,
            self.rows_checked,
            self.rows_mended,
            self.repeated,
            self.snapshots,
            self.together,
            self.held_ns / 1000,
            self.backfilled,
            self.backfilled_bytes >> 20
        )
    }
}
