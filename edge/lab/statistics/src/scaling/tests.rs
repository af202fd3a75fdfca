//! The law against figures that follow it, and against those that do not.

use super::*;
use crate::knee;
use proptest::prelude::*;

fn curve(lambda: f64, sigma: f64, kappa: f64, noise: f64) -> Vec<ScalePoint> {
    (1..=12)
        .map(|n| {
            let wobble = 1.0 + noise * f64::from((n * 7) % 5 - 2) / 2.0;
            let throughput = model([lambda.ln(), sigma, kappa], f64::from(n)) * wobble;
            ScalePoint { members: f64::from(n), throughput }
        })
        .collect()
}

proptest! {
    #[test]
    fn what_follows_the_law_is_found_again(lambda in 100.0f64..1e6, sigma in 0.0f64..0.5, kappa in 0.0f64..0.05) {
        let found = scalability(&curve(lambda, sigma, kappa, 0.0)).unwrap();
        prop_assert!((found.lambda.value / lambda - 1.0).abs() < 1e-4, "{:?}", found);
        prop_assert!((found.sigma.value - sigma).abs() < 1e-4 && (found.kappa.value - kappa).abs() < 1e-5, "{:?}", found);
        prop_assert!(found.error < 1e-4);
    }

    #[test]
    fn no_figures_make_it_panic(raw in prop::collection::vec((1u32..100, 1e-3f64..1e9), 0..20)) {
        let points: Vec<ScalePoint> = raw
            .iter()
            .map(|&(members, throughput)| ScalePoint { members: f64::from(members), throughput })
            .collect();
        if let Ok(found) = scalability(&points) {
            prop_assert!(found.error.is_finite() && !found.to_string().is_empty());
        }
        linearity(&points);
    }
}

/// Of every number of members one figure is too high and one as many times too low: the law was fitted below the middle.
#[test]
fn figures_that_are_off_by_the_same_factor_both_ways_do_not_pull_the_fit_down() {
    let off = |times: f64| {
        curve(1_000.0, 0.1, 0.01, 0.0)
            .into_iter()
            .map(move |point| ScalePoint { throughput: point.throughput * times, ..point })
    };
    let both: Vec<ScalePoint> = off(1.5).chain(off(1.0 / 1.5)).collect();
    let found = scalability(&both).unwrap();
    assert!((found.lambda.value / 1_000.0 - 1.0).abs() < 1e-6, "{found:?}");
    assert!((found.sigma.value - 0.1).abs() < 1e-6 && (found.kappa.value - 0.01).abs() < 1e-6, "{found:?}");
    assert!((found.error - 1.5f64.ln()).abs() < 1e-6, "{found:?}");
}

#[test]
fn a_peak_is_told_only_when_it_is_sure() {
    let found = scalability(&curve(1_000.0, 0.05, 0.02, 0.02)).unwrap();
    let peak = found.peak.expect("it falls clearly");
    assert!((peak - 6.9).abs() < 0.7, "{peak}");
    // Contention alone, with noise: an interval of kappa around zero.
    let found = scalability(&curve(1_000.0, 0.2, 0.0, 0.06)).unwrap();
    assert!(found.kappa.low <= 0.0 && found.kappa.high >= 0.0, "{found:?}");
    assert_eq!(found.peak, None);
    assert!(found.to_string().ends_with("no decline seen"), "{found}");
}

#[test]
fn a_sweep_over_depth_does_not_follow_the_law() {
    let points: Vec<ScalePoint> = knee::tests::diskspd()
        .iter()
        .map(|point| ScalePoint { members: point.outstanding, throughput: point.throughput })
        .collect();
    let found = scalability(&points).unwrap();
    assert!((0.11..0.18).contains(&found.error), "{found:?}");
    assert!(found.to_string().starts_with("the scalability law does not fit"), "{found}");
}

#[test]
fn a_scale_out_that_is_published_is_described() {
    // DiskSPD, 4 KiB random read, 1 to 12 VMs on four hosts.
    let throughput = [
        67_054.0, 134_719.0, 190_574.0, 181_728.0, 163_135.0, 222_893.0, 228_148.0, 234_629.0, 225_717.0,
        231_541.0, 229_075.0, 207_064.0,
    ];
    let points: Vec<ScalePoint> = (1..)
        .zip(throughput)
        .map(|(n, throughput)| ScalePoint { members: f64::from(n), throughput })
        .collect();
    let linear = linearity(&points);
    assert!((linear[1].1 - 1.0045).abs() < 1e-3 && (linear[11].1 - 0.257).abs() < 1e-3, "{linear:?}");
    let found = scalability(&points).unwrap();
    assert!(found.fits() && found.sigma.value > 0.0, "{found:?}");
    assert!((found.at(8.0) / 230_000.0 - 1.0).abs() < 0.1);
}

#[test]
fn too_few_members_are_refused() {
    let points = curve(100.0, 0.1, 0.0, 0.0);
    assert_eq!(scalability(&points[..3]), Err(ScalabilityError::TooFew { found: 3 }));
    let odd = ScalePoint { members: 0.0, throughput: 1.0 };
    assert_eq!(scalability(&[odd]), Err(ScalabilityError::NotPositive { index: 0 }));
    assert_eq!(linearity(&[]), []);
}
