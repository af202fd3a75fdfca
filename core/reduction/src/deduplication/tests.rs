//! The estimate against populations that are known: is it right in the mean, and is its error what it is told to be?

use super::*;
use crate::choice::Measured;
use crate::plan::Rates;
use crate::sample::HostSample;
use base::{ComponentId, Random};
use std::collections::{BTreeMap, BTreeSet};

/// The contents of each component's blocks, by number.
type Population = Vec<Vec<u64>>;

/// A pass over components with known contents. Which checksum a content has is drawn anew for each seed.
fn pass(population: &Population, rate: Rate, seed: u64) -> Vec<ComponentSample> {
    let mut random = Random::new(seed);
    let mut checksums: BTreeMap<u64, u32> = BTreeMap::new();
    let mut sample = HostSample::new(Rates { compression: Rate::from_bits(0), deduplication: rate });
    for (index, blocks) in population.iter().enumerate() {
        let component = ComponentId(index as u64 + 1);
        for (part, blocks) in blocks.chunks(256).enumerate() {
            let all: Vec<Option<u32>> = blocks
                .iter()
                .map(|content| Some(*checksums.entry(*content).or_insert_with(|| random.bits() as u32)))
                .collect();
            for choice in sample.take_census(component, part as u32, &all) {
                let hash = Some(blocks[usize::from(choice.block)]);
                sample.take(component, choice, Measured { units: None, hash, has_changed: false });
            }
        }
    }
    sample.components.into_values().collect()
}

fn per_device(samples: &[ComponentSample], rate: Rate) -> Option<Deduplication> {
    deduplication((1..).map(Domain).zip(samples), rate)
}

fn together(samples: &[ComponentSample], rate: Rate) -> Option<Deduplication> {
    deduplication(samples.iter().map(|sample| (Domain(0), sample)), rate)
}

fn true_share(population: &Population, is_together: bool) -> f64 {
    let blocks: usize = population.iter().map(Vec::len).sum();
    let distinct = match is_together {
        true => population.iter().flatten().collect::<BTreeSet<_>>().len(),
        false => population.iter().map(|one| one.iter().collect::<BTreeSet<_>>().len()).sum(),
    };
    1.0 - distinct as f64 / blocks as f64
}

/// Runs many passes, as the test of compression does.
fn check(population: &Population, rate: f64, is_together: bool) {
    const PASSES: u64 = 500;
    let rate = Rate::of(rate);
    let truth = true_share(population, is_together);
    let (mut sum, mut within_one, mut within_two, mut errors) = (0.0, 0, 0, 0.0);
    for seed in 0..PASSES {
        let samples = pass(population, rate, seed);
        let found = if is_together { together(&samples, rate) } else { per_device(&samples, rate) };
        let saved = found.expect("some contents are in the sample").saved;
        let error = saved.error.expect("it is always known");
        let off = (saved.value - truth).abs();
        sum += saved.value;
        errors += error;
        within_one += u64::from(off <= error);
        within_two += u64::from(off <= 2.0 * error);
    }
    let (mean, error) = (sum / PASSES as f64, errors / PASSES as f64);
    assert!((310..=373).contains(&within_one), "within one error: {within_one} of {PASSES}");
    assert!((462..=490).contains(&within_two), "within two errors: {within_two} of {PASSES}");
    assert!((mean - truth).abs() < 0.15 * error, "bias: {mean} instead of {truth}, told error {error}");
}

/// Guests that share an image in part: contents of the image are on all components, the others on one.
fn guests(count: u64, shared: u64, own: u64) -> Population {
    (0..count)
        .map(|guest| (0..shared).chain((1..=own).map(|at| 1_000_000 * (guest + 1) + at)).collect())
        .collect()
}

#[test]
fn blocks_that_occur_once_save_nothing_in_the_mean() {
    check(&guests(1, 8_000, 0), 1.0 / 16.0, true);
}

#[test]
fn what_guests_share_is_saved_over_the_cluster() {
    check(&guests(5, 2_000, 1_500), 1.0 / 16.0, true);
}

#[test]
fn what_guests_share_is_not_saved_per_device_where_each_has_a_device_of_its_own() {
    assert!(true_share(&guests(5, 2_000, 500), false) < 1e-9);
    check(&guests(5, 2_000, 500), 1.0 / 16.0, false);
}

#[test]
fn one_content_that_fills_half_of_a_disk_does_not_spoil_the_error() {
    let mut blocks: Vec<u64> = (0..6_000).collect();
    blocks.extend(std::iter::repeat_n(77_777, 6_000));
    check(&vec![blocks], 1.0 / 16.0, true);
}

#[test]
fn a_sample_of_everything_is_exact() {
    let population = guests(3, 100, 50);
    let samples = pass(&population, Rate::ALL, 3);
    let found = together(&samples, Rate::ALL).expect("all are in the sample");
    assert!((found.saved.value - true_share(&population, true)).abs() < 1e-9);
    assert!(found.saved.error.expect("it is known") < 1e-9);
    assert_eq!(found.contents, 250);
    let found = per_device(&samples, Rate::ALL).expect("all are in the sample");
    assert!((found.saved.value - true_share(&population, false)).abs() < 1e-9);
}

#[test]
fn samples_with_a_higher_rate_are_taken_at_the_common_one() {
    let population = guests(2, 4_000, 0);
    let rate = Rate::of(0.125);
    let mut samples = pass(&population, Rate::ALL, 5);
    let low = pass(&population, rate, 5);
    samples[1] = low[1].clone();
    assert_eq!(together(&samples, rate), together(&low, rate));
}

#[test]
fn without_blocks_there_is_no_estimate() {
    assert_eq!(together(&[], Rate::ALL), None);
    assert_eq!(together(&[ComponentSample::default()], Rate::ALL), None);
}
