//! Histograms against sorted lists of the raw values.

use super::*;
use proptest::prelude::*;

fn recorded(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::default();
    values.iter().for_each(|&value| histogram.record(value));
    histogram
}

/// Latencies of every size, and some above the last bucket's beginning.
fn latencies() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec((0u32..36, any::<u64>()).prop_map(|(bits, raw)| raw % (1 << bits)), 1..400)
}

fn exact_percentile(sorted: &[u64], p: f64) -> u64 {
    sorted[rank_of(p, sorted.len() as u64) as usize - 1]
}

fn check_percentile(histogram: &Histogram, sorted: &[u64], p: f64) -> Result<(), TestCaseError> {
    let exact = exact_percentile(sorted, p);
    let found = histogram.percentile(p).expect("there are values");
    // In the last bucket, which is open above, only the bucket is known.
    prop_assert!(
        bucket_of(found) == bucket_of(exact),
        "percentile {p}: {found} is not in the bucket of {exact}"
    );
    if exact < 1 << 34 {
        let error = found.abs_diff(exact) as f64;
        prop_assert!(error <= exact as f64 * PERCENTILE_ERROR, "percentile {p}: {found} for {exact}");
    }
    Ok(())
}

proptest! {
    #[test]
    fn percentiles_of_the_merged_are_those_of_the_pooled_values(parts in prop::collection::vec(latencies(), 1..6)) {
        let merged = Histogram::merged(&parts.iter().map(|part| recorded(part)).collect::<Vec<_>>());
        let mut pooled = parts.concat();
        prop_assert_eq!(&merged, &recorded(&pooled));
        pooled.sort_unstable();
        for p in [0.0, 0.01, 0.5, 0.9, 0.95, 0.99, 0.999, 0.9999, 1.0] {
            check_percentile(&merged, &pooled, p)?;
        }
        prop_assert_eq!(merged.min_ns(), pooled.first().copied());
        prop_assert_eq!(merged.max_ns(), pooled.last().copied());
        prop_assert_eq!(merged.sum_ns(), pooled.iter().map(|&ns| u128::from(ns)).sum::<u128>());
    }

    #[test]
    fn what_came_since_is_what_was_recorded_since(before in latencies(), after in latencies()) {
        let earlier = recorded(&before);
        let mut later = earlier.clone();
        after.iter().for_each(|&ns| later.record(ns));
        let since = later.difference(&earlier).expect("it only grew");
        let expected = recorded(&after);
        prop_assert_eq!(since.counts(), expected.counts());
        prop_assert_eq!((since.count(), since.sum_ns()), (expected.count(), expected.sum_ns()));
        prop_assert_eq!(since.min_ns().map(bucket_of), expected.min_ns().map(bucket_of));
        prop_assert_eq!(since.max_ns().map(bucket_of), expected.max_ns().map(bucket_of));
    }

    #[test]
    fn a_histogram_survives_being_written(values in latencies()) {
        let histogram = recorded(&values);
        let text = serde_json::to_string(&histogram).expect("it has a written form");
        prop_assert_eq!(serde_json::from_str::<Histogram>(&text).expect("it was just written"), histogram);
    }
}

#[test]
fn a_histogram_of_nothing_says_nothing() {
    let empty = Histogram::default();
    assert!(empty.is_empty());
    assert_eq!((empty.percentile(0.5), empty.mean_ns()), (None, None));
    let text = serde_json::to_string(&empty).unwrap();
    assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), empty);
}

#[test]
fn the_percentile_of_a_union_is_not_the_mean_of_percentiles() {
    // Two VMs, one all 1 ms, one all 10 ms: the mean of their p95 is 5.5 ms, and no I/O ever took that.
    let mut fast = Histogram::default();
    fast.record_many(1_000_000, 1_000);
    let mut slow = Histogram::default();
    slow.record_many(10_000_000, 1_000);
    fast.merge(&slow);
    assert_eq!(fast.percentile(0.95), Some(10_000_000));
    assert_eq!(fast.mean_ns(), Some(5_500_000.0));
}

#[test]
fn a_negative_difference_names_the_bucket() {
    let earlier = recorded(&[1_000, 5_000_000]);
    let error = recorded(&[1_000, 1_000]).difference(&earlier).unwrap_err();
    assert_eq!((error.later, error.earlier), (0, 1));
    assert!(error.from_ns <= 5_000_000 && error.to_ns > 5_000_000, "{error}");
}

#[test]
fn bins_of_a_fio_result_are_taken_by_their_middle() {
    let mut histogram = Histogram::from_fio_bins([(1_004, 3), (9_984, 1)]).unwrap();
    assert_eq!(histogram.count(), 4);
    assert_eq!(histogram.percentile(0.5), Some(1_004));
    assert!(histogram.set_extremes(1_001, 10_001, 3_250.0));
    assert_eq!((histogram.min_ns(), histogram.max_ns()), (Some(1_001), Some(10_001)));
    assert_eq!(histogram.mean_ns(), Some(3_250.0));
    assert!(
        !histogram.set_extremes(5, 10_001, 3_250.0),
        "5 ns is not in the first bucket that holds something"
    );
}

/// Programs before had no buckets beyond 17.2 s: their last one held all that was slower.
#[test]
fn a_histogram_of_an_older_program_with_slow_values_is_read() {
    let text = r#"{"buckets":[[317,1],[1855,2]],"min_ns":1000,"max_ns":30000000000,"sum_ns":50000001000}"#;
    let read: Histogram = serde_json::from_str(text).expect("it is one");
    assert_eq!((read.count(), read.max_ns()), (3, Some(30_000_000_000)));
    let mut slow = Histogram::default();
    [1_000, 20_000_000_000, 30_000_000_000].into_iter().for_each(|ns| slow.record(ns));
    let median = slow.percentile(0.5).expect("values");
    assert!((median as f64 / 20e9 - 1.0).abs() < crate::histogram::PERCENTILE_ERROR, "{median}");
}

#[test]
fn what_is_no_histogram_is_refused() {
    assert_eq!(Histogram::from_counts(&[1, 2]).unwrap_err(), HistogramError::Length { found: 2 });
    assert_eq!(
        Histogram::from_indexed([(2_624, 1)]).unwrap_err(),
        HistogramError::NoSuchBucket { index: 2_624 }
    );
    assert_eq!(Histogram::from_indexed([(1, u64::MAX), (2, 1)]).unwrap_err(), HistogramError::TooMany);
    for text in [
        r#"{"buckets":[[317,2]],"min_ns":1000,"max_ns":2000,"sum_ns":2100}"#,
        r#"{"buckets":[[317,2]],"min_ns":1000,"max_ns":1007,"sum_ns":9999}"#,
        r#"{"buckets":[],"min_ns":1,"max_ns":null,"sum_ns":0}"#,
        r#"{"buckets":[[9999,2]],"min_ns":1000,"max_ns":1007,"sum_ns":2001}"#,
    ] {
        assert!(serde_json::from_str::<Histogram>(text).is_err(), "{text}");
    }
}
