//! How far two histograms are from each other.

/// The Jensen-Shannon divergence of two histograms in bits: 0 for the same shares, 1 when no bucket holds something of both.
/// Counts of different totals compare by their shares. Nothing when one of them is empty.
pub fn divergence(one: &[u64], other: &[u64]) -> Option<f64> {
    let sum = |counts: &[u64]| counts.iter().map(|&count| count as f64).sum::<f64>();
    let (total, others) = (sum(one), sum(other));
    if total <= 0.0 || others <= 0.0 {
        return None;
    }
    let share = |counts: &[u64], index: usize, total: f64| {
        counts.get(index).map_or(0.0, |&count| count as f64 / total)
    };
    let term = |p: f64, middle: f64| if p > 0.0 { p * (p / middle).log2() } else { 0.0 };
    let divergence: f64 = (0..one.len().max(other.len()))
        .map(|index| {
            let (p, q) = (share(one, index, total), share(other, index, others));
            let middle = (p + q) / 2.0;
            (term(p, middle) + term(q, middle)) / 2.0
        })
        .sum();
    Some(divergence.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_shares_have_none_and_disjoint_ones_have_one_bit() {
        assert_eq!(divergence(&[1, 2, 3], &[10, 20, 30]), Some(0.0));
        assert_eq!(divergence(&[5, 0], &[0, 7]), Some(1.0));
        assert_eq!(divergence(&[0, 0], &[0, 7]), None);
        // H(3/4, 1/4) - (H(1, 0) + H(1/2, 1/2)) / 2 = 0.8113 - 0.5.
        assert!((divergence(&[4, 0], &[2, 2]).unwrap() - 0.311_278).abs() < 1e-6);
    }

    proptest! {
        #[test]
        fn it_is_symmetric_and_between_none_and_one(one in prop::collection::vec(0u64..50, 1..20), other in prop::collection::vec(0u64..50, 1..20)) {
            let (there, back) = (divergence(&one, &other), divergence(&other, &one));
            prop_assert_eq!(there.is_some(), back.is_some());
            if let (Some(there), Some(back)) = (there, back) {
                prop_assert!((there - back).abs() < 1e-12 && (0.0..=1.0).contains(&there));
            }
        }
    }
}
