//! Plans that are written for fio and read again: the same work, but for what the losses tell.
//!
//! `PROPTEST_CASES` asks for more plans than 64.

#[path = "roundtrip/plans.rs"]
mod plans;

use jobs::{Dialect, Options, Source, difference, export, import_as};
use plan::Plan;
use plans::{any_plan, in_words_of_fio};
use proptest::prelude::*;

fn cases() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(64);
    let rng_seed = proptest::test_runner::RngSeed::Fixed(17);
    ProptestConfig { cases, failure_persistence: None, rng_seed, ..ProptestConfig::default() }
}

/// Any plan can be written for fio; the text can be read again; and where nothing is lost, it is the same work. What is
/// lost is told by the writer, which knows what it leaves out, and never found out by reading again.
fn writes_any(plan: &Plan) -> Result<(), TestCaseError> {
    let exported = export(plan).map_err(|error| TestCaseError::fail(error.to_string()))?;
    for loss in &exported.losses {
        prop_assert!(!loss.what.contains("again"), "{loss}\n{}", exported.text);
    }
    let again = import_as(Dialect::Fio, &Source::new("again", exported.text.as_str()), &Options::default())
        .map_err(|error| {
        TestCaseError::fail(format!("{error}\n{}\n{:?}", exported.text, exported.losses))
    })?;
    if exported.losses.is_empty() {
        prop_assert_eq!(difference(plan, &again.plan), None, "{}", exported.text);
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn fio_says_any_plan_or_tells_what_it_loses(plan in any_plan()) {
        writes_any(&plan)?;
    }

    #[test]
    fn a_plan_in_the_words_of_fio_loses_nothing(plan in any_plan()) {
        let plan = in_words_of_fio(plan);
        prop_assert_eq!(plan.problems(), Vec::new());
        writes_any(&plan)?;
        let exported = export(&plan).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(&exported.losses, &Vec::new(), "{}", exported.text);
    }
}
