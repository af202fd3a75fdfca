//! Which part of its full pace the work of a group's own may take: given by whoever knows what guests feel.

/// A part of a whole, in 256ths: never less than a sixteenth, so that whatever goes on comes to an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u16);

impl Share {
    /// All of it.
    pub const FULL: Share = Share(256);
    /// The least.
    pub const FLOOR: Share = Share(16);

    /// A quarter less.
    pub fn less(self) -> Share {
        Share((self.0 * 3 / 4).max(Share::FLOOR.0))
    }

    /// A sixteenth of the whole more.
    pub fn more(self) -> Share {
        Share((self.0 + 16).min(Share::FULL.0))
    }

    /// Twice as much.
    pub fn twice(self) -> Share {
        Share((self.0 * 2).min(Share::FULL.0))
    }

    /// So much of `whole`.
    pub fn of(self, whole: u64) -> u64 {
        (u128::from(whole) * u128::from(self.0) / 256) as u64
    }

    /// The share, above 0 and up to 1.
    pub fn fraction(self) -> f64 {
        f64::from(self.0) / f64::from(Share::FULL.0)
    }
}

/// What the work of a group's own may take now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// Of the pace of scrubbing.
    pub scrub: Share,
    /// Of what destaging keeps in flight while the log has room; when it has not, destaging takes what it needs.
    pub destage: Share,
}

impl Shares {
    /// Nobody is disturbed.
    pub const FULL: Shares = Shares { scrub: Share::FULL, destage: Share::FULL };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_ends_at_the_floor_and_at_all() {
        let mut share = Share::FULL;
        (0..20).for_each(|_| share = share.less());
        assert_eq!((share, share.of(1 << 20)), (Share::FLOOR, 1 << 16));
        assert_eq!(share.twice().of(256), 32);
        (0..20).for_each(|_| share = share.more());
        assert_eq!((share, share.of(u64::MAX), share.twice()), (Share::FULL, u64::MAX, Share::FULL));
    }
}
