//! What deduplication would save: an estimate of the number of distinct contents, from those that a hash has chosen.

use crate::estimate::Estimate;
use crate::rate::Rate;
use crate::sample::{ComponentSample, Content};

/// Blocks within which equal ones become one: a device, or all devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Domain(pub u128);

/// What deduplication would save.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Deduplication {
    /// The share of blocks that would be saved, 0..=1. An estimate may be slightly below 0 where nothing is saved.
    pub saved: Estimate,
    /// Distinct contents in the sample, each counted once in each domain.
    pub contents: u64,
}

/// What deduplication would save of the non-zero blocks of some components, each in its domain, where all samples have contents by at
/// least that rate. Nothing where there are no blocks, or none is in the sample.
pub fn deduplication<'a>(
    samples: impl Iterator<Item = (Domain, &'a ComponentSample)>,
    rate: Rate,
) -> Option<Deduplication> {
    let mut blocks = 0;
    let mut found: Vec<(Content, Domain)> = Vec::new();
    for (domain, sample) in samples {
        blocks += sample.data_blocks();
        let chosen = sample.contents.keys().filter(|content| rate.chooses_content(content.checksum));
        found.extend(chosen.map(|content| (*content, domain)));
    }
    found.sort_unstable();
    found.dedup();
    if blocks == 0 || found.is_empty() {
        return None;
    }
    // A content is chosen as a whole: once for all domains that it is in.
    let squares: u64 = found.chunk_by(|a, b| a.0 == b.0).map(|same| (same.len() as u64).pow(2)).sum();
    let (contents, share, blocks) = (found.len() as u64, rate.share(), blocks as f64);
    let distinct = contents as f64 / share;
    let error = ((1.0 - share).max(0.0) * squares as f64).sqrt() / share;
    let saved = Estimate { value: 1.0 - distinct / blocks, error: Some(error / blocks) };
    Some(Deduplication { saved, contents })
}

#[cfg(test)]
mod tests;
