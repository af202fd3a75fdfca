//! The rates of a pass: from the space in use, or from the most that may be read.

use crate::limits::BLOCKS_PER_SAMPLE;
use crate::rate::Rate;

/// The rates of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates {
    /// Of the sample for compression.
    pub compression: Rate,
    /// Of the sample for deduplication.
    pub deduplication: Rate,
}

/// A percentage that no pass can have.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("a sample of {percent} % is not possible: use a percentage above 0 and up to 100, such as 1%")]
pub struct PercentError {
    /// What was asked for.
    pub percent: f64,
}

impl Rates {
    /// Rates with which each sample has as many blocks as its error asks for, where so many blocks are allocated on all hosts.
    pub fn for_blocks(blocks: u64, hosts: u64) -> Rates {
        let wanted = BLOCKS_PER_SAMPLE.saturating_mul(hosts.max(1));
        let rate = Rate::of(wanted as f64 / blocks.max(1) as f64);
        Rates { compression: rate, deduplication: rate }
    }

    /// Rates with which at most so many percent of the allocated blocks are read. Both samples have the same rate, and a block that is
    /// in both is read once.
    ///
    /// # Errors
    /// When the percentage is not above 0 and up to 100.
    pub fn for_percent(percent: f64) -> Result<Rates, PercentError> {
        if !(percent > 0.0 && percent <= 100.0) {
            return Err(PercentError { percent });
        }
        // Read are 1 − (1 − r)² of all blocks.
        let rate = Rate::of(1.0 - (1.0 - percent / 100.0).sqrt());
        Ok(Rates { compression: rate, deduplication: rate })
    }

    /// The share of blocks that is read.
    pub fn read_share(self) -> f64 {
        1.0 - (1.0 - self.compression.share()) * (1.0 - self.deduplication.share())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_reads_no_more_than_the_percentage_that_it_was_given() {
        for percent in [0.01, 1.0, 12.5, 50.0, 100.0] {
            let rates = Rates::for_percent(percent).expect("a percentage");
            assert!((rates.read_share() * 100.0 - percent).abs() < 1e-6, "{percent}: {}", rates.read_share());
        }
        for percent in [0.0, -1.0, 100.1, f64::NAN, f64::INFINITY] {
            let error = Rates::for_percent(percent).expect_err("no percentage").to_string();
            assert!(error.contains("above 0 and up to 100"), "{error}");
        }
    }

    #[test]
    fn few_blocks_are_all_read_and_of_many_a_fixed_number_for_each_host() {
        assert_eq!(Rates::for_blocks(1000, 1).compression, Rate::ALL);
        assert_eq!(Rates::for_blocks(0, 0).compression, Rate::ALL);
        let tebibyte = 1u64 << 28;
        let rates = Rates::for_blocks(3 * tebibyte, 3);
        let sampled = rates.deduplication.share() * 3.0 * tebibyte as f64;
        assert!((sampled - 3.0 * 65_536.0).abs() < 1.0, "{sampled}");
    }
}
