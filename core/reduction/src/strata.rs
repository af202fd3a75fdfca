//! The ratio of compression: a mean over components, each of which is a stratum of its own.

use crate::estimate::Estimate;
use crate::packing;
use crate::sample::ComponentSample;
use crate::sizes::{Codec, Sizes, UNITS_PER_BLOCK};

/// A stratum with fewer blocks in the sample is joined with others: its variance would be a guess.
const STRATUM_MIN: u64 = 32;

/// What compression would save.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Compression {
    /// Bytes now for each byte then, without the gaps that packing leaves.
    pub ratio: Estimate,
    /// The same with these gaps: a model, without an error of its own.
    pub packed_ratio: f64,
    /// Blocks in the sample.
    pub sampled: u64,
}

/// Blocks of one or several components.
#[derive(Debug, Clone, Copy, Default)]
struct Stratum {
    blocks: u64,
    sampled: u64,
    units: f64,
    units_squared: f64,
}

impl Stratum {
    fn of(sample: &ComponentSample, codec: Codec) -> Stratum {
        let counts = sample.sizes.of(codec);
        let sum = |power: i32| {
            (1..).zip(counts).map(|(units, count)| f64::powi(units.into(), power) * *count as f64).sum()
        };
        let sampled = sample.sizes.count();
        // Blocks that were written meanwhile may be in the sample and not in the census.
        Stratum { blocks: sample.data_blocks().max(sampled), sampled, units: sum(1), units_squared: sum(2) }
    }

    fn join(&mut self, other: Stratum) {
        self.blocks += other.blocks;
        self.sampled += other.sampled;
        self.units += other.units;
        self.units_squared += other.units_squared;
    }

    fn mean(&self) -> f64 {
        self.units / self.sampled as f64
    }

    /// The variance of its mean.
    fn variance(&self) -> f64 {
        let sampled = self.sampled as f64;
        let of_blocks = (self.units_squared - sampled * self.mean().powi(2)).max(0.0) / (sampled - 1.0);
        of_blocks / sampled * (1.0 - sampled / self.blocks as f64)
    }
}

/// What compression would save of the non-zero blocks of some components; nothing where none is in the sample.
pub fn compression<'a>(
    samples: impl Iterator<Item = &'a ComponentSample>,
    codec: Codec,
) -> Option<Compression> {
    let mut sizes = Sizes::default();
    let mut all = Vec::new();
    for sample in samples {
        sizes.add(&sample.sizes);
        all.push(Stratum::of(sample, codec));
    }
    let strata = joined(all);
    let blocks: u64 = strata.iter().map(|one| one.blocks).sum();
    let sampled = sizes.count();
    if sampled == 0 {
        return None;
    }
    let weight = |one: &Stratum| one.blocks as f64 / blocks as f64;
    let mean: f64 = strata.iter().map(|one| weight(one) * one.mean()).sum();
    let can_tell = strata.iter().all(|one| one.sampled >= 2);
    let variance: f64 = strata.iter().map(|one| weight(one).powi(2) * one.variance()).sum();
    let whole = UNITS_PER_BLOCK as f64;
    let ratio = whole / mean;
    let error = can_tell.then(|| whole * variance.sqrt() / mean.powi(2));
    let fill = packing::fill(sizes.of(codec))?;
    Some(Compression { ratio: Estimate { value: ratio, error }, packed_ratio: ratio * fill, sampled })
}

/// The strata with enough blocks in the sample, and one of all others.
fn joined(all: Vec<Stratum>) -> Vec<Stratum> {
    let (mut strata, few): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| one.sampled >= STRATUM_MIN);
    let mut rest = Stratum::default();
    few.into_iter().for_each(|one| rest.join(one));
    match strata.last_mut() {
        // With so few blocks it has no mean of its own.
        Some(last) if rest.sampled < STRATUM_MIN => last.join(rest),
        _ if rest.sampled > 0 => strata.push(rest),
        _ => {}
    }
    strata
}

#[cfg(test)]
mod tests;
