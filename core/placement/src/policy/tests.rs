//! The text form of policies, and what is refused.

use super::*;
use proptest::prelude::*;

#[test]
fn the_table_says_what_the_default_policy_is() {
    for rule in RULES {
        assert_eq!(Policy::DEFAULT.get(rule.name).as_deref(), Some(rule.default), "{}", rule.name);
    }
    assert_eq!("".parse(), Ok(Policy::DEFAULT));
    assert_eq!("single".parse(), Ok(Policy::SINGLE));
}

#[test]
fn a_policy_is_read_from_a_name_and_rules() {
    let policy: Policy = "single, stripes=2 space_reservation=40%,iops_limit=500".parse().expect("a policy");
    assert_eq!(policy.failures_to_tolerate, 0);
    assert_eq!(policy.stripes, Stripes::Exactly(2));
    assert_eq!(policy.space_reservation.get(), 40);
    assert_eq!(policy.iops_limit, NonZeroU32::new(500));
    assert_eq!(policy.short(), "single,stripes=2,space_reservation=40,iops_limit=500");
    assert_eq!(Policy::DEFAULT.short(), "default");
    for (text, written) in
        [("64MiB/s", "64MiB/s"), ("1536K", "1536KiB/s"), ("2G", "2GiB/s"), ("5001", "5001B/s")]
    {
        let policy: Policy = format!("single,bytes_limit={text}").parse().expect("a policy");
        assert_eq!(policy.short(), format!("single,bytes_limit={written}"));
        assert!(policy.to_string().contains("bytes_limit"));
    }
    assert!(!Policy::DEFAULT.to_string().contains("bytes_limit"), "records below level 3 have no such rule");
}

#[test]
fn what_is_no_policy_is_refused_by_name() {
    for (text, found) in [
        ("mirrors=2", "there is no policy rule `mirrors`"),
        ("failures_to_tolerate=4", "`4` is not a value of the policy rule failures_to_tolerate: 0..=3"),
        ("stripes=0", "`0` is not a value of the policy rule stripes"),
        ("stripes=13", "auto, 1..=12"),
        ("space_reservation=101", "0..=100"),
        ("iops_limit=0", "none, 1.."),
        ("checksum=yes", "on, off"),
        ("bytes_limit=4095", "none, 4KiB/s.."),
        ("bytes_limit=fast", "none, 4KiB/s.."),
        ("snapshots=hourly", "`hourly` is not a value of the policy rule snapshots"),
        ("stripes=2,snapshots=hourly keep 2, gold,checksum=on", "`hourly keep 2 gold` is not a value"),
        ("snapshots=hourly keep 2 snapshots=none", "given twice"),
        ("gold", "`gold` is neither"),
        ("stripes=2,single", "`single` is neither"),
        ("stripes=2,stripes=3", "given twice"),
    ] {
        let error = text.parse::<Policy>().expect_err(text).to_string();
        assert!(error.contains(found), "{text}: {error}");
    }
}

#[test]
fn rules_of_later_versions_are_refused_with_a_reason() {
    for (text, rule) in [
        ("single,method=parity", "method=parity"),
        ("single,read_cache_reservation=5", "read_cache_reservation"),
        ("single,site_locality=preferred", "site_locality=preferred"),
    ] {
        let error = text.parse::<Policy>().expect("a policy").check_supported().expect_err(text).to_string();
        assert!(error.contains(rule), "{text}: {error}");
    }
    assert_eq!(Policy::SINGLE.check_supported(), Ok(()));
}

#[test]
fn a_schedule_may_stand_anywhere_among_the_rules() {
    let schedules = Schedules::read("hourly keep 24, daily keep 7").expect("a schedule");
    for text in [
        "single,snapshots=hourly keep 24, daily keep 7,stripes=2",
        "single snapshots=daily keep 7,hourly keep 24 stripes=2",
        "single,stripes=2,snapshots= hourly keep 24,daily keep 7",
    ] {
        let policy: Policy = text.parse().expect(text);
        assert_eq!((policy.snapshots, policy.stripes), (schedules, Stripes::Exactly(2)), "{text}");
        assert_eq!(policy.short(), "single,stripes=2,snapshots=hourly keep 24, daily keep 7");
        assert!(policy.to_string().contains("snapshots"));
    }
    assert!(!Policy::DEFAULT.to_string().contains("snapshots"), "records below level 4 have no such rule");
}

fn policies() -> impl Strategy<Value = Policy> {
    let schedules = prop::sample::select(vec![
        "none",
        "hourly keep 24, daily keep 7",
        "every 15m keep 8, monthly keep 1",
    ]);
    let site = prop::option::of(prop::sample::select(vec![Site::Preferred, Site::Secondary]));
    let stripes = (0u8..=12).prop_map(|count| match count {
        0 => Stripes::Auto,
        _ => Stripes::Exactly(count),
    });
    let reads = prop::sample::select(vec![ReadLocality::Auto, ReadLocality::Spread, ReadLocality::Local]);
    let method = prop::sample::select(vec![Method::Mirror, Method::Parity]);
    (
        0u8..=3,
        method,
        stripes,
        0u8..=100,
        0u8..=100,
        any::<bool>(),
        (any::<u32>(), 4096u64..),
        any::<bool>(),
        (
            site,
            reads,
            schedules,
            prop::sample::select(vec![Compression::Off, Compression::Lz4, Compression::Zstd]),
        ),
    )
        .prop_map(
            |(
                failures_to_tolerate,
                method,
                stripes,
                space,
                cache,
                checksum,
                (iops, bytes),
                force_provisioning,
                (site_locality, read_locality, schedules, compression),
            )| Policy {
                failures_to_tolerate,
                method,
                stripes,
                space_reservation: Percent(space),
                read_cache_reservation: Percent(cache),
                checksum,
                iops_limit: NonZeroU32::new(iops),
                bytes_limit: NonZeroU64::new(bytes).filter(|_| bytes % 2 == 0),
                force_provisioning,
                site_locality,
                read_locality,
                snapshots: Schedules::read(schedules).expect("a schedule"),
                compression,
            },
        )
}

proptest! {
    #[test]
    fn a_policy_is_read_back_as_it_was_written(policy in policies()) {
        prop_assert_eq!(policy.to_string().parse::<Policy>(), Ok(policy));
        prop_assert_eq!(policy.short().parse::<Policy>(), Ok(policy));
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[a-z_=0-9, %.]{0,60}") {
        let _ = text.parse::<Policy>();
    }
}
