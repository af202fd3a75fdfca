//! The nearest policy that can be kept, where the one that was asked for cannot.
//!
//! Copies are worth more than a reservation, and a reservation more than stripes: the answer keeps the most copies that
//! are possible, of these policies the greatest reservation, and of these the most stripes.

use crate::policy::{Percent, Policy, Stripes};
use crate::refusal::Cause;

/// `policy` with the default value for each rule that this version cannot keep.
pub(crate) fn supported(policy: &Policy) -> Policy {
    let mut supported = *policy;
    while let Err(unsupported) = supported.check_supported() {
        let standard = Policy::DEFAULT.get(unsupported.rule).expect("it is one of the rules");
        supported.set(unsupported.rule, &standard).expect("a rule takes its default");
    }
    supported
}

/// The nearest weaker policy for which `attempt` finds something, with what it finds. It sets aside at least the share
/// `least`.
pub(crate) fn nearest<T>(
    policy: &Policy,
    least: Percent,
    attempt: impl Fn(&Policy) -> Result<T, Cause>,
) -> Option<(Policy, T)> {
    for failures_to_tolerate in (0..=policy.failures_to_tolerate).rev() {
        let mut best: Option<(Policy, T)> = None;
        for stripes in fewer_stripes(policy.stripes) {
            let weaker = Policy { failures_to_tolerate, stripes, ..*policy };
            let beaten = best.as_ref().map(|(best, _)| best.space_reservation);
            if let Some(found) = greatest_reservation(&weaker, least, beaten, &attempt) {
                let is_whole = found.0.space_reservation == policy.space_reservation;
                best = Some(found);
                if is_whole {
                    break;
                }
            }
        }
        if best.is_some() {
            return best;
        }
    }
    None
}

/// The number of stripes and all fewer ones.
fn fewer_stripes(stripes: Stripes) -> Vec<Stripes> {
    match stripes {
        Stripes::Auto => vec![Stripes::Auto],
        Stripes::Exactly(count) => (1..=count).rev().map(Stripes::Exactly).collect(),
    }
}

/// The policy with the greatest reservation from `least` on that fits and is more than `beaten`. What fits with some
/// reservation fits with any smaller one, so it is found by halving.
fn greatest_reservation<T>(
    policy: &Policy,
    least: Percent,
    beaten: Option<Percent>,
    attempt: impl Fn(&Policy) -> Result<T, Cause>,
) -> Option<(Policy, T)> {
    let try_share = |share: u8| {
        let weaker = Policy { space_reservation: Percent::new(share)?, ..*policy };
        attempt(&weaker).ok().map(|found| (weaker, found))
    };
    let most = policy.space_reservation.get();
    let first = beaten.map_or(least.get(), |share| share.get() + 1);
    if first > most {
        return None;
    }
    if let Some(found) = try_share(most) {
        return Some(found);
    }
    let mut best = try_share(first)?;
    let (mut fits, mut fails) = (first, most);
    while fails - fits > 1 {
        let middle = fits + (fails - fits) / 2;
        match try_share(middle) {
            Some(found) => (fits, best) = (middle, found),
            None => fails = middle,
        }
    }
    Some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The policy nearest to `wanted` of those that `fits` accepts.
    fn check(wanted: &str, fits: impl Fn(&Policy) -> bool, expected: Option<&str>) {
        let policy: Policy = wanted.parse().expect("a policy");
        let attempt = |policy: &Policy| if fits(policy) { Ok(()) } else { Err(Cause::Full) };
        let found = nearest(&policy, Percent::ZERO, attempt).map(|(policy, ())| policy);
        assert_eq!(found, expected.map(|text| text.parse().expect("a policy")), "{wanted}");
    }

    #[test]
    fn copies_are_kept_longest_and_stripes_given_up_first() {
        let columns = |policy: &Policy| match policy.stripes {
            Stripes::Auto => 1,
            Stripes::Exactly(count) => usize::from(count),
        };
        let devices = |policy: &Policy| columns(policy) * policy.copies();
        let wanted = "default,failures_to_tolerate=2,stripes=4,space_reservation=80";
        check(wanted, |_| true, Some(wanted));
        check(
            wanted,
            |policy| devices(policy) <= 6,
            Some("default,failures_to_tolerate=2,stripes=2,space_reservation=80"),
        );
        check(
            wanted,
            |policy| policy.space_reservation.get() * policy.copies() as u8 <= 100,
            Some("default,failures_to_tolerate=2,stripes=4,space_reservation=33"),
        );
        check(
            wanted,
            |policy| devices(policy) <= 4 && policy.copies() < 3 && policy.space_reservation.get() < 10,
            Some("default,stripes=2,space_reservation=9"),
        );
        check(wanted, |_| false, None);
    }

    #[test]
    fn a_greater_reservation_with_fewer_stripes_is_nearer() {
        let fits = |policy: &Policy| match policy.stripes {
            Stripes::Exactly(3) => policy.space_reservation.get() <= 20,
            Stripes::Exactly(2) => policy.space_reservation.get() <= 60,
            Stripes::Auto | Stripes::Exactly(_) => policy.space_reservation.get() <= 60,
        };
        let wanted = "single,stripes=3,space_reservation=100";
        check(wanted, fits, Some("single,stripes=2,space_reservation=60"));
    }

    #[test]
    fn rules_that_no_cluster_can_keep_get_their_defaults() {
        let policy: Policy =
            "default,failures_to_tolerate=3,method=parity,read_cache_reservation=5,site_locality=preferred,stripes=2"
                .parse()
                .expect("a policy");
        let expected = "default,failures_to_tolerate=3,stripes=2".parse().expect("a policy");
        assert_eq!(supported(&policy), expected);
    }
}
