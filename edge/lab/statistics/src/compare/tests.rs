//! Verdicts, as they are printed.

use super::*;
use proptest::prelude::*;

fn check(a: &[f64], b: &[f64], better: Better, expected: &str) -> Comparison {
    let comparison = compare(a, b, &Question::new(better)).unwrap();
    assert_eq!(comparison.verdict.to_string(), expected, "{comparison:?}");
    comparison
}

#[test]
fn verdicts_are_words() {
    // Log ratio ln(115/100), error by hand: deviations of about 1 % on five runs each.
    let a = [99.0, 100.0, 101.0, 100.0, 100.0];
    let b = [114.0, 115.0, 116.0, 115.0, 115.0];
    check(&a, &b, Better::Higher, "faster by 14 % to 16 %");
    check(&b, &a, Better::Higher, "slower by 12 % to 14 %");
    check(&a, &b, Better::Lower, "slower by 14 % to 16 %");
    check(&b, &a, Better::Lower, "faster by 12 % to 14 %");
    check(&[100.0], &[150.0], Better::Higher, "one run per side is inconclusive: repeat it at least 3 times");
    check(&[100.0], &a, Better::Higher, "one run per side is inconclusive: repeat it at least 3 times");
}

#[test]
fn a_third_of_a_percent_is_no_difference() {
    // 830 against 833 us, each of five runs within a few tenths of a percent.
    let a = [830.0, 829.0, 831.0, 830.5, 829.5];
    let b = [833.0, 832.0, 834.0, 833.5, 832.5];
    let comparison = check(&a, &b, Better::Lower, "no difference larger than 0.51 %");
    assert!((comparison.change.unwrap().estimate - 0.0036).abs() < 1e-4);
}

#[test]
fn noise_that_hides_the_effect_asks_for_more_runs() {
    let a = [100.0, 110.0, 90.0];
    let b = [103.0, 113.0, 92.0];
    let comparison = compare(&a, &b, &Question::new(Better::Higher)).unwrap();
    assert!(comparison.noisy);
    let Verdict::CannotTell { more_runs } = comparison.verdict else { panic!("{comparison:?}") };
    // With s = 0.10 on the logarithm: n = 2 (1.96 + 0.84)^2 0.10^2 / 0.0198^2 = 400.
    assert!((350..450).contains(&more_runs), "{more_runs}");
    assert!(comparison.smallest_seen.unwrap() > 0.2);
}

#[test]
fn runs_without_any_spread_are_compared_exactly() {
    check(&[100.0, 100.0], &[100.0, 100.0], Better::Higher, "no difference larger than 0 %");
    check(&[100.0, 100.0], &[150.0, 150.0], Better::Higher, "faster by 50 % to 50 %");
}

#[test]
fn figures_without_a_ratio_are_refused() {
    let question = Question::new(Better::Higher);
    assert_eq!(compare(&[], &[1.0], &question), Err(CompareError::NoRuns));
    assert_eq!(compare(&[0.0], &[1.0], &question), Err(CompareError::NotPositive { value: 0.0 }));
    let odd = Question { effect: 0.0, ..question };
    assert!(matches!(compare(&[1.0], &[1.0], &odd), Err(CompareError::Question { .. })));
}

#[test]
fn the_interval_covers_the_truth_as_often_as_promised() {
    // B is 10 % faster than A; noise of two sizes. 400 experiments of four runs each.
    let mut state = 42u64;
    let mut even = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut noise = || (0..12).map(|_| even()).sum::<f64>() - 6.0;
    let mut inside = 0;
    for _ in 0..400 {
        let a: Vec<f64> = (0..4).map(|_| 100.0 * (0.02 * noise()).exp()).collect();
        let b: Vec<f64> = (0..4).map(|_| 110.0 * (0.05 * noise()).exp()).collect();
        let change = compare(&a, &b, &Question::new(Better::Higher)).unwrap().change.unwrap();
        inside += u32::from(change.low <= 0.1 && change.high >= 0.1);
    }
    assert!((365..=396).contains(&inside), "{inside} of 400");
}

#[test]
fn many_cells_are_adjusted_together() {
    // Example of Benjamini and Hochberg (1995), the first of their fifteen: 0.0001 * 15 / 1, 0.0004 * 15 / 2, ….
    let found = adjusted(&[0.0201, 0.0001, 0.0004, 0.0019]);
    for (found, expected) in found.iter().zip([0.0201, 0.0004, 0.0008, 0.0019 * 4.0 / 3.0]) {
        assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    }
    assert_eq!(adjusted(&[]), Vec::<f64>::new());
}

#[test]
fn what_may_be_chance_among_many_is_taken_back() {
    let question = Question::new(Better::Higher);
    let narrow = compare(&[100.0, 101.0, 99.0], &[120.0, 121.0, 119.0], &question).unwrap();
    let weak = compare(&[100.0, 103.0, 97.0], &[108.0, 111.0, 105.0], &question).unwrap();
    assert!(matches!(weak.verdict, Verdict::Faster { .. }), "{weak:?}");
    let none = compare(&[100.0, 104.0, 96.0], &[100.0, 104.0, 96.0], &question).unwrap();
    let mut cells = vec![narrow, weak];
    cells.extend(vec![none; 10]);
    assert_eq!(control_chance(&mut cells, 0.05), 1);
    assert!(matches!(cells[0].verdict, Verdict::Faster { .. }));
    assert!(matches!(cells[1].verdict, Verdict::CannotTell { .. }));
}

/// Published with one digit: 0.5 and 0.5 against 0.6 and 0.6 ms was "slower by 20 % to 20 %", with a p-value of 0.
#[test]
fn figures_that_were_rounded_are_no_surer_than_their_digits() {
    let question = Question { steps: [0.1, 0.1], ..Question::new(Better::Lower) };
    let coarse = compare(&[0.5, 0.5], &[0.6, 0.6], &question).unwrap();
    assert!(coarse.p_welch.unwrap() > 0.05, "{coarse:?}");
    assert_eq!(
        coarse.verdict.sentence("A", "B"),
        "cannot tell whether B differs from A: the figures were rounded to steps of 20 %; take figures with more digits"
    );
    assert_eq!(coarse.more_runs, None, "no number of runs helps");
    let same = compare(&[0.5, 0.5], &[0.5, 0.5], &question).unwrap();
    assert!(matches!(same.verdict, Verdict::Rounded { .. }), "{same:?}");
    // With a digit more, the same figures tell.
    let fine = Question { steps: [0.01, 0.01], ..question };
    let found = compare(&[0.5, 0.5], &[0.6, 0.6], &fine).unwrap();
    assert_eq!(found.verdict.to_string(), "slower by 16 % to 24 %");
}

/// Thirty figures were compared, and what was missing was told as if each stood alone: with so few, the next 29 would hide it again.
#[test]
fn the_runs_that_are_missing_are_those_for_the_level_of_many_comparisons() {
    let question = Question::new(Better::Higher);
    let noisy = compare(&[100.0, 104.0, 96.0], &[101.0, 105.0, 97.0], &question).unwrap();
    let alone = noisy.more_runs.unwrap();
    let mut one = [noisy.clone()];
    control_chance(&mut one, 0.05);
    assert_eq!(one[0].more_runs, Some(alone));
    let mut many = vec![noisy; 30];
    control_chance(&mut many, 0.05);
    let needed = many[0].more_runs.unwrap();
    // z grows from 1.96 + 0.84 to 3.14 + 0.84: twice as many.
    assert!(needed as f64 > 1.9 * alone as f64, "{alone} {needed}");
    assert_eq!(many[0].verdict, Verdict::CannotTell { more_runs: needed });
}

proptest! {
    #[test]
    fn exchanging_the_sides_turns_the_verdict(
        a in prop::collection::vec(100.0f64..300.0, 2..6),
        b in prop::collection::vec(100.0f64..300.0, 2..6),
    ) {
        let question = Question { effect: 1e-12, ..Question::new(Better::Higher) };
        let forth = compare(&a, &b, &question).unwrap();
        let back = compare(&b, &a, &question).unwrap();
        let (forth_change, back_change) = (forth.change.unwrap(), back.change.unwrap());
        prop_assert!(((1.0 + forth_change.low) * (1.0 + back_change.high) - 1.0).abs() < 1e-6);
        prop_assert_eq!(
            matches!(forth.verdict, Verdict::Faster { .. }),
            matches!(back.verdict, Verdict::Slower { .. })
        );
    }
}

#[test]
fn every_verdict_is_a_whole_sentence() {
    for (verdict, expected) in [
        (Verdict::Faster { low: 0.12, high: 0.19 }, "B is faster by 12 % to 19 %"),
        (Verdict::Slower { low: 0.012, high: 0.05 }, "B is slower by 1.2 % to 5 %"),
        (Verdict::NoDifference { larger_than: 0.015 }, "A and B: no difference larger than 1.5 %"),
        (
            Verdict::CannotTell { more_runs: 6 },
            "cannot tell whether B differs from A: needs 6 more runs of each",
        ),
        (
            Verdict::CannotTell { more_runs: 1 },
            "cannot tell whether B differs from A: needs 1 more run of each",
        ),
        (
            Verdict::CannotTell { more_runs: RUNS_MAX },
            "cannot tell whether B differs from A: needs more than 1000 more runs of each; find out first why runs differ",
        ),
        (Verdict::OneRun, "one run per side is inconclusive: repeat it at least 3 times"),
    ] {
        assert_eq!(verdict.sentence("A", "B"), expected);
    }
}
