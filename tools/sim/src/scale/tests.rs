//! A cluster of sixteen hosts: what must be true of it however many there are.

use super::*;

fn small(stand_ins: bool) -> Options {
    Options {
        hosts: 16,
        disks: 500,
        stand_ins,
        settings: cluster::Settings { delay: Duration::from_secs(20), ..cluster::Settings::default() },
        idle: Duration::from_secs(12),
        fill: Duration::from_millis(500),
        patience: Duration::from_secs(1200),
        ..Options::default()
    }
}

fn check(options: &Options) -> Report {
    let report = run(options).unwrap_or_else(|why| panic!("{why}"));
    let failure = &report.failure;
    assert!(failure.components > 0 && failure.owned > 0, "something was lost: {failure:?}");
    assert_eq!(failure.planned.count, failure.components, "all is planned anew");
    assert_eq!(failure.plans_max, 1, "nothing twice");
    assert_eq!(failure.replaced.count, failure.components, "all is replaced");
    assert_eq!(failure.claimed.count, failure.owned, "what it owned has another owner");
    let survivors = options.hosts - 1;
    assert_eq!((failure.suspect.count, failure.away.count), (survivors, survivors));
    assert!(failure.planned.first_ns >= report.delay_ns, "nothing is replaced before the delay is over");
    assert!(failure.coming_max <= 2 * options.settings.replacements_max, "{} at once", failure.coming_max);
    let idle = &report.idle.traffic;
    let written = [idle.disks, idle.names, idle.hosts, idle.beats];
    assert!(
        written.iter().all(|writes| writes.count == 0),
        "nothing is written when nothing happens: {idle:?}"
    );
    assert!(idle.clock.count <= 2);
    let after = &failure.after;
    assert_eq!((after.disks.count, after.hosts.count), (0, 0), "it comes to rest: {after:?}");
    report
}

#[test]
fn every_component_of_a_lost_host_is_planned_anew_once_and_nothing_is_written_without_need() {
    let report = check(&small(false));
    let failure = &report.failure;
    // Each component is taken out, planned, filled and seated; what the host owned is claimed besides.
    let most = 4 * failure.components as u64 + 2 * failure.owned as u64;
    let writes = failure.span.traffic.disks.count;
    assert!(writes <= most, "{writes} writes for {} components", failure.components);
    let conflicts = failure.span.traffic.conflicts;
    assert!(conflicts <= failure.disks as u64 / 10, "{conflicts} conflicts for {} disks", failure.disks);
}

#[test]
fn with_stand_ins_every_component_is_inherited_once_and_no_more_are_filled_at_once() {
    let report = check(&small(true));
    let failure = &report.failure;
    // Disks that the lost host owned have another owner only when it is away, and by then the delay is over.
    let with_owner = failure.components - failure.owned;
    assert!(failure.stood_in.count >= with_owner, "each got a stand-in: {failure:?}");
    let most = 6 * failure.components as u64 + 2 * failure.owned as u64;
    let writes = failure.span.traffic.disks.count;
    assert!(writes <= most, "{writes} writes for {} components", failure.components);
}

#[test]
fn what_nobody_writes_to_is_replaced_all_the_same() {
    let options = Options { written_percent: 0, ..small(false) };
    let report = check(&options);
    let before = report.failure.before_delay.disks.count;
    let most = 2 * report.failure.owned as u64;
    assert!(before <= most, "only what the lost host owned is changed before: {before} writes");
}
