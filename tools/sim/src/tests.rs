//! The campaign that every test run goes through; longer ones are commands (`docs/TESTING.md`).

use crate::campaign::{STEPS, crash_everywhere, hunt, run_pinned, run_seed};
use crate::cluster::{self, Play};
use crate::features::Features;
use crate::world::World;
use diskgroup::Rule;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

mod stories;

/// Runs each of `all` on all cores, and gives what came of them in their order. Long tests do that, so that none is left alone on one core at the end.
fn on_all_cores<I: Sync, T: Send>(all: &[I], run: impl Fn(&I) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some((index, item)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            all.get(index).map(|item| (index, item))
        } {
            done.push((index, run(item)));
        }
        done
    };
    let mut done: Vec<(usize, T)> = std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads: Vec<_> = (0..cores.min(all.len())).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|one| one.join().expect("a run that fails says so above")).collect()
    });
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

/// The same of seeds.
fn seeds<T: Send>(all: std::ops::RangeInclusive<u64>, run: impl Fn(u64) -> T + Sync) -> Vec<T> {
    on_all_cores(&all.collect::<Vec<u64>>(), |seed| run(*seed))
}

/// The features of a pinned scenario of one host.
fn of_one(text: &str) -> Features {
    text.parse().expect("features as a finding prints them")
}

/// The features of a pinned scenario of several hosts.
fn of_hosts(text: &str) -> cluster::Features {
    text.parse().expect("features as a finding prints them")
}

/// The runs themselves hold much that once was otherwise. One sector that could not be read took its whole device out of service, and on the log device
/// the group: no device fails of it, and no more blocks are damaged than sectors were. A device that was lost for good, and a blank one in its place, were a
/// dead end: replaced in use, the new device serves, and what stood on the others is as it was, also after crashes.
#[test]
fn seeds_pass() {
    let all = seeds(1..=400, |seed| {
        run_seed(seed, None, None, STEPS).unwrap_or_else(|why| panic!("seed {seed}: {why}"))
    });
    let bad_sectors: u64 = all[..60].iter().map(|one| one.bad_sectors).sum();
    assert!(bad_sectors > 200, "{bad_sectors} bad sectors");
    let renewed: u64 = all[..120].iter().map(|one| one.renewed).sum();
    assert!(renewed >= 3, "{renewed} devices were replaced");
}

#[test]
fn seeds_of_several_hosts_pass() {
    let all = seeds(1..=360, |seed| {
        cluster::run(Play::Drawn, seed, None).unwrap_or_else(|why| panic!("seed {seed}: {why}"))
    });
    // One in thousands of seeds has such a write (docs/design/0007): this one.
    let has_repeated =
        |(seed, one): (u64, &cluster::Summary)| (one.repeated > 0).then_some((seed, one.repeated));
    let repeated: Vec<(u64, u64)> = (1..).zip(&all).filter_map(has_repeated).collect();
    assert_eq!(repeated, [(37, 1)], "seeds with writes that were done again, and how many");
}

/// The loss that stand-ins are there for: guests are answered from what came back and what stood in for it, before the last
/// active components return, and nothing that was acknowledged is missing.
#[test]
fn a_disk_whose_last_active_component_is_lost_goes_on_with_what_came_back_and_its_stand_in() {
    let run = |seed| {
        let run = cluster::run(Play::DoubleLoss, seed, None);
        run.unwrap_or_else(|why| panic!("seed {seed}: {why}"))
    };
    let is_served = |one: &cluster::Summary| one.restored > 0 && one.answered_without > 0;
    // Chance may keep the loss away from a seed.
    assert!((1..=12).map(run).filter(is_served).count() >= 10);
}

/// The same of rows with parity, of which as many members are lost as leave too few.
#[test]
fn a_disk_with_parity_that_loses_too_many_goes_on_with_what_came_back_and_its_stand_in() {
    let run = |play, seed| {
        let run = cluster::run(play, seed, None);
        run.unwrap_or_else(|why| panic!("seed {seed}: {why}"))
    };
    let lost: Vec<cluster::Summary> = (1..=24).map(|seed| run(Play::RowLoss, seed)).collect();
    assert!(lost.iter().filter(|one| one.restored > 0).count() >= 20);
    let is_served = |one: &&cluster::Summary| one.restored > 0 && one.answered_without > 0;
    // Chance may keep the loss away from a seed, or the guests.
    assert!(
        lost.iter().filter(is_served).count() >= 18,
        "guests are answered before those that were lost are back"
    );
    assert!((1..=6).map(|seed| run(Play::QuietRowLoss, seed)).filter(|one| one.restored > 0).count() >= 4);
}

/// A pinned scenario once was what its seed drew, so that a new feature, or another stream of an old one, made another run of it.
#[test]
fn a_pinned_scenario_is_the_same_whatever_a_feature_that_it_lacks_draws() {
    let run = |seed, features, drawn| {
        let (_, streams) = cluster::Features::draw(drawn);
        cluster::World::with_streams(seed, features, streams, None).run()
    };
    let (mut others, mut moved) = (0, 0);
    for seed in 1..=12 {
        let own = cluster::Features::drawn(seed);
        assert_eq!(
            run(seed, own, seed),
            cluster::run(Play::Drawn, seed, None),
            "seed {seed}: named or drawn"
        );
        let bare = run(seed, cluster::Features::default(), seed);
        for drawn in [seed + 1000, seed + 2000] {
            others += u32::from(cluster::Features::drawn(drawn) != own);
            assert_eq!(
                run(seed, cluster::Features::default(), drawn),
                bare,
                "seed {seed} with draws of {drawn}"
            );
        }
        moved += u32::from(run(seed, own, seed) != bare);
    }
    assert!(others > 12 && moved > 6, "{others} other draws, {moved} runs moved by their features");
    for seed in 1..=12 {
        let run = |features, drawn| {
            World::with_streams(seed, features, Features::draw(drawn).1, None, None).run(STEPS)
        };
        assert_eq!(run(Features::drawn(seed), seed), run_seed(seed, None, None, STEPS), "seed {seed}");
        let bare = run(Features::default(), seed);
        assert_eq!(run(Features::default(), seed + 1000), bare, "seed {seed}");
    }
}

/// What a finding prints is what a test pins.
#[test]
fn features_are_read_as_they_are_written() {
    for seed in 1..=300 {
        assert_eq!(of_one(&Features::drawn(seed).to_string()), Features::drawn(seed));
        assert_eq!(of_hosts(&cluster::Features::drawn(seed).to_string()), cluster::Features::drawn(seed));
    }
    assert_eq!(of_hosts("none"), cluster::Features::default());
    assert!("hang".parse::<cluster::Features>().is_err() && "hangs".parse::<cluster::Features>().is_err());
    assert!("hangs=3".parse::<Features>().is_err());
}

#[test]
fn a_seed_of_several_hosts_gives_the_same_trace_twice() {
    for seed in 1..=5 {
        assert_eq!(
            cluster::run(Play::Drawn, seed, None),
            cluster::run(Play::Drawn, seed, None),
            "seed {seed}"
        );
    }
}

/// Mutants of the protocol, each with a scenario that notices it: the first seed found by `cargo xtask sim --cluster --mutants
/// --seeds 2000`, and its features. A change of the simulator's load or of the protocol moves these; a new feature does not.
const MUTANTS_NOTICED: &[(replication::Rule, u64, &str)] = &[
    (replication::Rule::ShrinkBeforeAcknowledging, 23, "none"),
    (replication::Rule::RefuseOlderEpochs, 5, "hangs=268"),
    (replication::Rule::NumberAttempts, 5, "snapshots=8000"),
    (replication::Rule::DecideBeforeServing, 5, "shaky-openings"),
    (replication::Rule::StartFromActive, 1, "watchers hangs=459 deaf=217 spoils=309"),
    (replication::Rule::ReadUnderLeases, 54, "watchers deaf=238"),
    (replication::Rule::ReadAfterWrites, 92, "watchers large-copies hangs=373 spoils=79"),
    (replication::Rule::ResyncTakesInFlight, 13, "watchers large-copies"),
    (replication::Rule::WaitForResyncing, 47, "late-joins watchers"),
    (replication::Rule::WaitForJoining, 303, "late-joins watchers"),
    (replication::Rule::CopyUnderLock, 1, "watchers large-copies deaf=303"),
    (replication::Rule::RefuseOldSessions, 10, "double-losses stand-ins=1000"),
    (replication::Rule::SettleAfterResync, 2, "watchers hangs=426"),
    (replication::Rule::DeltaIncludesTarget, 5652, "late-joins double-losses stand-ins=1000 hangs=258"),
    (replication::Rule::DeltaIncludesEqual, 7, "watchers hangs=426"),
    (replication::Rule::DeltaIncludesOlder, 6, "watchers hangs=426"),
    (replication::Rule::SettleNewSessions, 3, "shaky-openings"),
    (replication::Rule::SettleOnlyDecided, 174, "double-losses stand-ins=1000"),
    (replication::Rule::RuleOutUnknownCommit, 628, "late-joins watchers deaf=289"),
    (replication::Rule::AskRecoveredGroups, 4903, "double-losses stand-ins=1000 hangs=124"),
    (replication::Rule::ApplyOnce, 2174, "large-copies deaf=249 spoils=344"),
    (replication::Rule::WaitForStandIns, 10, "double-losses stand-ins=1000"),
    (replication::Rule::FillStandInFirst, 33, "double-losses watchers stand-ins=1000"),
    (replication::Rule::StandInDeltaFromBase, 33, "double-losses watchers stand-ins=1000"),
    (replication::Rule::RestoreWithStandIn, 17, "double-losses watchers stand-ins=1000 spoils=274"),
    (replication::Rule::RestoreOntoCopy, 67, "double-losses stand-ins=1000 hangs=188"),
    (replication::Rule::RecordFailedStandIns, 8, "double-losses stand-ins=1000 hangs=366"),
    (replication::Rule::ZeroStandInsForTrims, 131, "double-losses stand-ins=1000 hangs=178"),
    (replication::Rule::ReadUnderStandInLeases, 630, "double-losses stand-ins=1000"),
    (replication::Rule::TellLeavingNothing, 45, "watchers large-copies hangs=312"),
    (replication::Rule::RowDecides, 1, "parity=2"),
    (replication::Rule::DropWithTooFew, 25, "parity=2"),
    (replication::Rule::DecodeFromActive, 20, "parity=2"),
    (replication::Rule::KeepEnough, 1, "parity=2"),
    (replication::Rule::KeepReplaced, 2, "parity=2"),
    (replication::Rule::WaitForParity, 22, "parity=2 folds=200"),
    (replication::Rule::AskForHeld, 35, "parity=2 folds=200"),
    (replication::Rule::FoldBeforeDecoding, 11, "parity=2 folds=200"),
    (replication::Rule::PromoteAfterFold, 2, "parity=2 folds=200"),
    (replication::Rule::RestoreNothingHeld, 38, "parity=2 folds=2000 stand-ins=1000 double-losses"),
    (replication::Rule::EvenBeforeChange, 3, "parity=4 folds=200"),
    (replication::Rule::RemakeHeld, 22, "parity=2 folds=200"),
    (replication::Rule::CheckApart, 8, "parity=2 checks=8192"),
    (replication::Rule::PassCopied, 1, "parity=2 moving=402"),
    (replication::Rule::PassApart, 6, "parity=2 moving=402"),
    (replication::Rule::FollowInGranule, 5, "parity=2 moving=402"),
    (replication::Rule::CopyHoles, 3, "parity=2 moving=402"),
    (replication::Rule::CopyApart, 5, "parity=2 moving=1402 large-copies"),
    (replication::Rule::CopyAnew, 1, "parity=2 moving=402"),
    (replication::Rule::CompareZeroes, 1, "zeroes"),
    (replication::Rule::CopyUpWhole, 1, "snapshots=4000 clones zeroes"),
    (replication::Rule::KeepFirstBlocks, 1, "snapshots=4000 clones zeroes"),
    (replication::Rule::KeepFirstHoles, 3, "snapshots=4000 clones stand-ins=1000 double-losses"),
    (replication::Rule::CopyUpApart, 23, "snapshots=4000 clones zeroes"),
    (replication::Rule::TellWholeRegions, 23, "snapshots=6000 clones zeroes"),
    (replication::Rule::SurveyBoth, 2, "snapshots=4000"),
    (replication::Rule::ViewWhereTaken, 4, "moving=61 snapshots=4000"),
];

/// Owners find rows whose parity does not agree, and mend them; nothing disagrees before. In the first seed one place stayed without a whole
/// set of members, and the rows of the other were never compared.
#[test]
fn rows_that_disagree_are_found_and_mended() {
    let (mut compared, mut mended) = (0, 0);
    for (seed, features) in [
        (6, "parity=2 folds=200 checks=1024 disagreements=3"),
        (1, "parity=2 folds=200 checks=1024 disagreements=3"),
        (6, "parity=3 folds=200 checks=1024 disagreements=3"),
        (1, "parity=4 folds=200 checks=1024 disagreements=3"),
    ] {
        let summary = cluster::run_pinned(Play::Drawn, seed, of_hosts(features), None)
            .unwrap_or_else(|why| panic!("seed {seed} with {features}: {why}"));
        compared += summary.rows_checked;
        mended += summary.rows_mended;
    }
    assert!(compared > 1000 && mended >= 4, "{compared} rows compared, {mended} mended");
}

/// What hosts kept and components promised is enough to go on from, and each rule of it is needed.
#[test]
fn a_directory_that_is_lost_is_rebuilt_and_nothing_is_lost_with_it() {
    for seed in 1..=40 {
        let run = cluster::run_rebuild(seed, None).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        assert_eq!(run.rebuilt, 1, "seed {seed}");
    }
    for slip in [cluster::Slip::Oldest, cluster::Slip::ActsFirst, cluster::Slip::NoPromises] {
        let is_noticed = (1..=120).any(|seed| cluster::run_rebuild(seed, Some(slip)).is_err());
        assert!(is_noticed, "{slip:?}");
    }
}

/// Word that a process ended says nothing of the one that was started after it.
/// With etcd stopped just as a resync ended, a component was told no watermark for as long as etcd was away, and remembered every
/// change. Beyond 4,608 it could not be opened from elsewhere any more: its host's process ended in an assertion at each
/// attempt, and at each start.
#[test]
fn a_directory_that_leaves_as_a_component_joins_makes_no_window_too_long_to_tell() {
    let mut joins = 0;
    for seed in 1..=6 {
        let summary =
            cluster::run(Play::LongJoins, seed, None).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        joins += summary.long_joins;
    }
    assert!(joins >= 6, "the scene was played {joins} times");
}

#[test]
fn a_late_word_buries_nobody_who_lives() {
    for seed in 1..=20 {
        let run = cluster::run(Play::LateWords, seed, None);
        assert!(run.is_ok(), "seed {seed}: {run:?}");
    }
    let mutant = Some(replication::Rule::SpareRestartedProcesses);
    let is_noticed = (1..=40).any(|seed| cluster::run(Play::LateWords, seed, mutant).is_err());
    assert!(is_noticed, "a former owner that lives reads what is old");
}

#[test]
fn a_snapshot_of_all_disks_is_of_one_moment() {
    let run = |seed, features, removed| cluster::run_pinned(Play::Drawn, seed, of_hosts(features), removed);
    let mut taken = 0;
    for features in
        ["snapshots=6000 together=16000", "watchers hangs=300 deaf=200 snapshots=6000 together=16000"]
    {
        for seed in 1..=60 {
            taken += run(seed, features, None)
                .unwrap_or_else(|why| panic!("seed {seed}, {features}: {why}"))
                .together;
        }
    }
    assert!(taken > 60, "{taken} were taken");
    let mutant = Some(replication::Rule::HoldTogether);
    let is_noticed = (1..=40).any(|seed| run(seed, "snapshots=6000 together=16000", mutant).is_err());
    assert!(is_noticed, "one disk has a later write, and another lacks an earlier one");
}

#[test]
fn every_removed_rule_of_the_protocol_is_noticed() {
    let is_listed = |mutant| {
        MUTANTS_NOTICED.iter().any(|(listed, ..)| *listed == mutant)
            || mutant == replication::Rule::UndoVoidFirst // `core/replication/src/owner/tests.rs`; seeds are rare
            || mutant == replication::Rule::RestoreNothingVoid // `what_was_read_as_void_does_not_come_back`
            || mutant == replication::Rule::SpareRestartedProcesses // `a_late_word_buries_nobody_who_lives`
            || SURVIVORS.iter().any(|(_, listed)| *listed == mutant)
            || mutant == replication::Rule::TakeOutStuck // `devices_that_hang_stall_nobody_for_long`
            || mutant == replication::Rule::AskBeforeTakingOut // `an_owner_that_hears_nothing_gives_way`
            || mutant == replication::Rule::KeepDivergedApart // `what_an_old_directory_does_not_know_of_is_found_and_kept`
            || mutant == replication::Rule::RaiseBarrier // the same
            || mutant == replication::Rule::PassInNewEpoch // `a_directory_that_is_set_back_while_a_disk_moves_…`
            || mutant == replication::Rule::WaitForStarts // `a_directory_that_is_set_back_is_never_served_…`
            // Each of these two covers for the other: `core/replication/src/owner/tests.rs` removes them one by one.
            || mutant == replication::Rule::RefuseOlderRecords
            || mutant == replication::Rule::DoubtOlderEpochs
            || mutant == replication::Rule::TakeOutLost // `core/replication/src/owner/tests/row_restore.rs`; seeds are rare
            || mutant == replication::Rule::MarkOnlyKnown // the same
            || mutant == replication::Rule::ReadBlockByBlock // `blocks_that_cannot_be_read_…`
            || mutant == replication::Rule::CopyBlockByBlock // `core/replication/src/owner/tests/mending.rs`
            // What is sent again, or begins meanwhile, is rare: `core/replication/src/owner/tests/snapshots.rs` removes these one by one.
            || mutant == replication::Rule::HoldForSnapshot
            || mutant == replication::Rule::DrainBeforeSnapshot
            || mutant == replication::Rule::ViewFromWhole
            || mutant == replication::Rule::MarkInOneHold
            || mutant == replication::Rule::RecordStableBackfills
            || mutant == replication::Rule::RestBeforeLateMark // `core/replication/src/owner/tests/row_snapshots.rs`
            || mutant == replication::Rule::DropOnlyUnnamed
            || mutant == replication::Rule::HoldTogether // `a_snapshot_of_all_disks_is_of_one_moment`
            || mutant == replication::Rule::BeginNothingAbandoned // `what_waits_for_a_limit_…`
    };
    assert!(replication::Rule::ALL.into_iter().all(is_listed), "each has a seed that notices it");
    on_all_cores(MUTANTS_NOTICED, |&(mutant, seed, features)| {
        let run = cluster::run_pinned(Play::Drawn, seed, of_hosts(features), Some(mutant));
        assert!(
            run.is_err(),
            "{mutant:?}: hunt again with `cargo xtask sim --cluster --mutants --seeds 2000`"
        );
    });
}

/// What is left alone in these ways lacks something without the rule.
const SURVIVORS: &[(Play, replication::Rule)] =
    &[(Play::CaughtUp, replication::Rule::JoinCaughtUp), (Play::Heir, replication::Rule::FillWithHoles)];

/// A component that counts has all that was acknowledged, and knows all that was trimmed.
#[test]
fn a_component_that_counts_may_be_all_that_is_left() {
    for &(kind, rule) in SURVIVORS {
        let mut left_alone = 0;
        for seed in 1..=8 {
            let run = cluster::run(kind, seed, None);
            let run = run.unwrap_or_else(|why| panic!("{kind:?}, seed {seed}: {why}"));
            left_alone += run.left_alone;
        }
        assert!(left_alone > 8, "{kind:?}: {left_alone} times");
        let is_noticed = (1..=40).any(|seed| cluster::run(kind, seed, Some(rule)).is_err());
        assert!(is_noticed, "{rule:?}");
    }
}

/// What the owner's component alone has got, and was read as never written, does not come back with it and its stand-in.
#[test]
fn what_was_read_as_void_does_not_come_back() {
    for seed in 9..=12 {
        let run = cluster::run(Play::QuietLoss, seed, None);
        run.unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
    let mutant = Some(replication::Rule::RestoreNothingVoid);
    let is_noticed = (1..=12).any(|seed| cluster::run(Play::QuietLoss, seed, mutant).is_err());
    assert!(is_noticed, "a restored component keeps what was read as void");
}

/// What a component alone has got, and was read as never written, it does not forget before that is undone.
#[test]
fn what_may_be_void_is_not_forgotten_before_it_is_undone() {
    for seed in 16..=19 {
        let run = cluster::run(Play::Relapse, seed, None);
        let run = run.unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        assert!(run.struck > 0, "seed {seed}");
    }
}

/// A device that hangs is waited for as long as a host may be silent, and no longer; a read, half as long.
#[test]
fn devices_that_hang_stall_nobody_for_long() {
    let mut stuck = 0;
    for seed in 1..=8 {
        let run = cluster::run(Play::Hanging, seed, None);
        let run = run.unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        assert!(run.longest_ns < 1_500_000_000, "seed {seed}: {} ms", run.longest_ns / 1_000_000);
        stuck += run.stuck;
    }
    assert!(stuck > 8, "{stuck} components were left behind");
    let without = cluster::run(Play::Hanging, 2, Some(replication::Rule::TakeOutStuck));
    assert!(without.is_ok_and(|run| run.longest_ns > 1_500_000_000), "the rule is needed");
}

/// With a block on each of two copies that could not be read, different ones, reads of both failed, and a third copy was never
/// made, although every block had a good copy.
#[test]
fn blocks_that_cannot_be_read_on_any_host_are_read_and_written_again_from_another() {
    let (mut sectors, mut repaired, mut joined) = (0, 0, 0);
    for seed in 1..=8 {
        let run = cluster::run(Play::BadSectors, seed, None);
        let run = run.unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        sectors += run.bad_sectors;
        repaired += run.repaired;
        joined += run.joined;
    }
    println!("{sectors} bad sectors, {repaired} repairs, {joined} components came");
    assert!(sectors > 200 && repaired > 20 && joined > 4);
    // Without `CopyBlockByBlock` a copy waits until the blocks are mended (`core/replication/src/owner/tests/mending.rs`).
    let rule = replication::Rule::ReadBlockByBlock;
    let is_noticed = (1..=40).any(|seed| cluster::run(Play::BadSectors, seed, Some(rule)).is_err());
    assert!(is_noticed, "{rule:?}");
}

/// A write that waited for the limit of its disk took effect seconds after its guest was started elsewhere, over what the guest wrote
/// there.
#[test]
fn what_waits_for_a_limit_does_not_begin_once_its_guest_is_gone() {
    let (mut changed, mut held_back) = (0, 0);
    for seed in 1..=4 {
        let run = cluster::run(Play::Limits, seed, None);
        let run = run.unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        changed += run.rules_changed;
        held_back += run.held_back;
    }
    println!("rules changed {changed} times, {held_back} requests waited meanwhile");
    assert!(changed > 40 && held_back > 100);
    let mutant = Some(replication::Rule::BeginNothingAbandoned);
    let is_noticed = (1..=80).any(|seed| cluster::run(Play::Limits, seed, mutant).is_err());
    assert!(is_noticed, "the rule is needed");
}

/// An owner that hears nothing, and is heard, took the other copies out of the record, and nobody could serve until it heard again.
#[test]
fn an_owner_that_hears_nothing_gives_way() {
    for seed in 1..=8 {
        let run = cluster::run(Play::Deaf, seed, None).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        assert!(run.take_overs > 2, "seed {seed}: {} take-overs", run.take_overs);
        assert!(run.longest_ns < 4_500_000_000, "seed {seed}: {} ms", run.longest_ns / 1_000_000);
    }
    let longest = |seed| {
        cluster::run(Play::Deaf, seed, Some(replication::Rule::AskBeforeTakingOut)).map(|run| run.longest_ns)
    };
    assert!((1..=8).any(|seed| longest(seed).is_ok_and(|ns| ns > 4_500_000_000)), "the rule is needed");
}

#[test]
fn a_seed_gives_the_same_trace_twice() {
    for seed in 1..=5 {
        let first = run_seed(seed, None, None, STEPS);
        assert!(first.is_ok(), "seed {seed}: {first:?}");
        assert_eq!(first, run_seed(seed, None, None, STEPS), "seed {seed}");
    }
    assert_ne!(run_seed(1, None, None, STEPS), run_seed(2, None, None, STEPS));
}

/// What layers hold beside the content of parts, in more seeds than draw it; each order takes effect as a whole or not at all.
#[test]
fn layers_hold_what_they_were_given_whatever_happens() {
    seeds(1..=60, |seed| {
        let features = Features { holding: true, ..Features::drawn(seed) };
        run_pinned(seed, features, None, STEPS)
            .unwrap_or_else(|why| panic!("seed {seed}, {features}: {why}"));
    });
}

#[test]
fn a_crash_at_every_step_of_a_trace_loses_nothing() {
    for seed in 1..=3 {
        crash_everywhere(seed, 120).unwrap_or_else(|why| panic!("trace {seed}: {why}"));
    }
}

/// Checksums that scrubbing asked for, or a start: before they are back, the device is lost or the component deleted.
#[test]
fn work_of_the_processor_that_comes_back_late_does_no_harm() {
    let (mut late_for_device, mut late_for_component) = (0, 0);
    for seed in 1..=60 {
        let run = World::new(seed, None, None).with_late_results(seed).run(STEPS);
        let summary = run.unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        late_for_device += summary.computed_after_loss;
        late_for_component += summary.computed_after_deletion;
    }
    assert!(late_for_device > 0 && late_for_component > 0, "{late_for_device}, {late_for_component}");
}

/// Rules of one host whose removal is seldom noticed, each with a scenario that notices it.
const SELDOM_NOTICED: &[(Rule, u64, &str)] = &[
    (Rule::ExcuseOnlyUnfinished, 4717, "bad-sectors bad-pages renewals"),
    (Rule::LeaveAfterLastRecord, 1713, "renewals"),
    (Rule::FoldInOneBatch, 36, "renewals holding restless"),
    (Rule::ReplayEnds, 3, "held-back bad-pages renewals holding"),
    (Rule::CarryHeld, 1, "bad-pages renewals holding"),
    (Rule::KeepPromotedId, 2, "bad-pages renewals holding"),
    (Rule::KeepUntilDecided, 2, "bad-pages renewals holding"),
    (Rule::KeepPromisedSpace, 5, "held-back bad-pages renewals holding"),
    (Rule::RewriteOvertaken, 9, "held-back renewals holding restless"),
    (Rule::LeaveClaimsOfDeleted, 50590, "holding snapshots compression rollbacks restless renewals"),
    (Rule::PromiseHeldFrames, 17, "holding snapshots rollbacks restless"),
    (Rule::DecideRowsBeforeMark, 4, "holding snapshots rollbacks restless"),
    (Rule::SettleOnce, 1, "holding snapshots rollbacks restless"),
    (Rule::SettleInLaterRound, 105, "holding snapshots rollbacks restless"),
    (Rule::MarkBetweenBatches, 26, "snapshots"),
    (Rule::MoveDeleted, 2, "snapshots"),
    (Rule::KeepReplaced, 1, "snapshots"),
    (Rule::CountFinishedPages, 2, "snapshots"),
    (Rule::WriteAsItWas, 4, "snapshots"),
    (Rule::KeepSegments, 1, "snapshots"),
    (Rule::KeepDescribedId, 149, "bad-pages renewals restless"),
    (Rule::FreeLate, 55, "snapshots restless"),
    (Rule::KeepNewerComponent, 5, "renewals holding snapshots restless"),
    (Rule::KeepSharedFrames, 1, "compression"),
    (Rule::KeepSlotsInFrames, 1, "compression"),
    (Rule::VerifyUnpacked, 236, "compression"),
    (Rule::KeepNewerThanRewritten, 156, "compression busy"),
    (Rule::RollBackOnce, 6, "holding snapshots compression rollbacks restless renewals"),
];

/// Blocks that are compressed read as they were, by whatever algorithm and however often that changes, beside crashes, damage and full devices.
#[test]
fn what_is_compressed_reads_as_it_was() {
    for (which, features) in
        [(1..=60, "compression"), (1..=40, "compression snapshots rollbacks restless renewals busy")]
    {
        let rewritten = AtomicU64::new(0);
        seeds(which, |seed| {
            let run = run_pinned(seed, of_one(features), None, STEPS);
            let run = run.unwrap_or_else(|why| panic!("seed {seed}, {features}: {why}"));
            rewritten.fetch_add(run.rewritten, Ordering::Relaxed);
        });
        assert!(rewritten.into_inner() > 0, "{features}: nothing was written anew");
    }
}

/// Copies agree, and views stay what they were, whatever each component has compressed; and blocks that rot are mended.
#[test]
fn disks_of_several_hosts_are_compressed_and_what_rots_is_mended() {
    let features = of_hosts("snapshots=3000 compressed=2000 rots=20 watchers");
    let (compressed, rotted, mended) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    seeds(1..=12, |seed| {
        let run = cluster::run_pinned(Play::Drawn, seed, features, None)
            .unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        compressed.fetch_add(run.compressed, Ordering::Relaxed);
        rotted.fetch_add(run.rotted, Ordering::Relaxed);
        mended.fetch_add(run.repaired, Ordering::Relaxed);
    });
    // What was damaged at rest below something newer in the log was told for the live disk, which had nothing to mend.
    for seed in [3080, 3131] {
        let run = cluster::run_pinned(Play::Drawn, seed, of_hosts("snapshots=4000 rots=30"), None);
        run.unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
    let counts = [compressed, rotted, mended].map(AtomicU64::into_inner);
    println!("{counts:?}");
    assert!(counts[0] > 100 && counts[1] > 50 && counts[2] > 30, "{counts:?}");
}

/// Components with layers have snapshots, too, are rolled back and compressed.
#[test]
fn what_layers_hold_of_components_with_snapshots_is_what_was_held() {
    seeds(1..=60, |seed| {
        let features = if seed % 2 == 0 {
            "holding snapshots rollbacks restless"
        } else {
            "holding snapshots rollbacks compression"
        };
        let run = run_pinned(seed, of_one(features), None, STEPS);
        run.unwrap_or_else(|why| panic!("seed {seed}, {features}: {why}"));
    });
    // A part was written as a whole while what layers held of it became content.
    let run = run_pinned(8059, of_one("holding snapshots"), None, STEPS);
    run.unwrap_or_else(|why| panic!("seed 8059: {why}"));
    // What was promised of a part in a log that began behind the hold; a rollback behind such a block; versions of blocks whose hold ended in a round.
    // And: a version that a start lost, and a group that it could not open, as the log gave an extent to a component that was deleted.
    for seed in [81, 198, 322, 396, 10_881, 40_564] {
        let run = run_pinned(seed, of_one("holding snapshots rollbacks restless"), None, STEPS);
        run.unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
}

/// Snapshots of rows with parity read the same whoever is lost, all members show rows that agree, and who lacks one gets it.
#[test]
fn rows_have_snapshots() {
    let (taken, given, mended) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let mixes = [
        "parity=2 folds=200 snapshots=4000 rots=30",
        "parity=3 folds=2000 snapshots=4000 stand-ins=1000 double-losses watchers",
        "parity=4 folds=20 snapshots=4000 checks=1024 hangs=300",
    ];
    for (first, features) in (1..).step_by(100).zip(mixes) {
        seeds(first..=first + 7, |seed| {
            let run = cluster::run_pinned(Play::Drawn, seed, of_hosts(features), None)
                .unwrap_or_else(|why| panic!("seed {seed}, {features}: {why}"));
            taken.fetch_add(run.snapshots, Ordering::Relaxed);
            given.fetch_add(run.backfilled, Ordering::Relaxed);
            mended.fetch_add(run.repaired, Ordering::Relaxed);
        });
    }
    let counts = [taken, given, mended].map(AtomicU64::into_inner);
    println!("{counts:?}");
    assert!(counts.iter().all(|count| *count > 20), "{counts:?}");
}

/// Each view of a snapshot stays what it was when that was made, over crashes, conversions of the format, rot, and devices that are full, dead or away.
#[test]
fn snapshots_stay_what_they_were() {
    seeds(1..=60, |seed| {
        let run = run_pinned(seed, of_one("snapshots"), None, STEPS);
        run.unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    });
}

#[test]
fn every_removed_rule_is_noticed() {
    on_all_cores(SELDOM_NOTICED, |&(rule, seed, features)| {
        let run = run_pinned(seed, of_one(features), Some(rule), STEPS);
        assert!(
            run.is_err(),
            "{rule:?}: hunt again with `cargo xtask sim --mutants --seeds 20000 --features …`"
        );
    });
    let is_hunted = |rule: &Rule| match rule {
        // `windows_that_fill_the_log_…` in `core/diskgroup/src/tests.rs`, and seed 102 of `Play::Rollback`.
        Rule::LeaveRoomForWindows => false,
        // `core/diskgroup/src/tests/mapped.rs`.
        Rule::KeepLostPages => false,
        // `core/diskgroup/src/tests.rs`.
        Rule::KeepLostSlot => false,
        // `core/diskgroup/src/tests/backfill.rs`: no snapshot comes late where there is one host.
        Rule::SettleBeforeBackfill | Rule::TellOlderApart | Rule::SyncBackfill => false,
        // `core/diskgroup/src/tests/mending.rs`: nobody mends damage where there is one host.
        Rule::MendWithTheSame => false,
        // It takes a tail between a write and the promotion behind it of a part that was emptied: no seed has been found yet.
        Rule::KeepPagesOfPromotions => false,
        // Their seeds moved, and hundreds of others do not notice: to be hunted again.
        Rule::MendOlderAnchor | Rule::DoubtClaims => false,
        // `core/diskgroup/src/tests/held_mapped.rs`.
        Rule::RollBackFirst => false,
        // Headers and their copies, damaged just so: `core/diskgroup/src/tests/headers.rs`.
        Rule::ProveUnreadableEnd | Rule::EraseRemains | Rule::MendLastHeader => false,
        _ => SELDOM_NOTICED.iter().all(|(listed, ..)| listed != rule),
    };
    let hunted: Vec<Rule> = Rule::ALL.into_iter().filter(is_hunted).collect();
    on_all_cores(&hunted, |rule| {
        let noticed = hunt(Features::drawn, *rule, (1, 300));
        println!("{rule:?} is noticed by seed {:?}", noticed.as_ref().map(|(seed, _)| seed));
        assert!(noticed.is_some(), "{rule:?} was not noticed by 300 seeds");
    });
}

/// Each of these once found a fault; what it was stands beside it.
#[test]
fn seeds_that_once_failed_pass() {
    let stories = [
        (
            303000278,
            "snapshots rollbacks bad-sectors bad-pages",
            "a lost page was written over its damaged copy by a checkpoint that did not end: the older copy counted at the next start, and the group stayed closed",
        ),
        (
            300000272,
            "holding snapshots compression rollbacks restless renewals",
            "a block that became content before a mark went to its part's extent: a write between hold and promotion had the last word after the next crash",
        ),
        (
            403000199,
            "snapshots rollbacks bad-sectors bad-pages",
            "a start found two rollbacks in the log, and pages from before the first: the second took its parts from it",
        ),
        (
            400000076,
            "holding snapshots compression rollbacks restless renewals",
            "the same: regions told versions from before the first",
        ),
        (
            400000283,
            "holding snapshots compression rollbacks restless renewals",
            "the map page of a part that had been written as a whole behind the boundary of the round did not tell so: a start made the page void",
        ),
        (
            405000588,
            "compression snapshots restless busy renewals",
            "a copy found a hole of its own version, which no page told yet: after a crash its regions counted as older",
        ),
        (
            61000917,
            "holding snapshots rollbacks restless",
            "an extent of a deleted component was found to be free and became a chunk: after a crash a page of it was written over with the component's blocks",
        ),
        (
            208000072,
            "holding compression snapshots",
            "a read of a snapshot that was deleted meanwhile found its blocks' frames taken by others, and told that they are damaged",
        ),
        (
            55000040,
            "compression snapshots restless busy renewals",
            "of an extent that a lost page had told of, the log told a write: all else in it counted as empty",
        ),
        (
            206000016,
            "compression bad-sectors bad-pages renewals",
            "the same where the older copy of that page told of another part",
        ),
        (
            106,
            "renewals",
            "of an extent whose page was damaged the log told a trim alone: it was taken for free, its blocks for zeroes",
        ),
        (
            165,
            "renewals",
            "a copy with a lesser id took the place of a guest's change in the log: after a crash its region counted as older",
        ),
        (
            22,
            "bad-pages renewals",
            "a second round of destaging chose a boundary behind that of a checkpoint under way",
        ),
        (
            310,
            "bad-sectors bad-pages renewals",
            "damage to a page was excused by an intent for its next version: acknowledged blocks read as zeroes",
        ),
        (
            1157,
            "renewals",
            "a page torn in one life looked damaged in the life after next, its intent being forgotten",
        ),
        (
            1488,
            "renewals",
            "a copy with a lesser id came upon a change that had been destaged and stood in no page yet: a crash, and the log let go of it",
        ),
        (
            2632,
            "held-back renewals",
            "while a device was away, an intent of a checkpoint long through excused damage to its page: acknowledged blocks read as zeroes",
        ),
        (
            5826,
            "renewals",
            "a torn batch hid its successor, which had the same number and stood at the start of the ring",
        ),
        (
            1484,
            "bad-sectors renewals",
            "power failed between the copies of the anchor; the newer one could not be read later, and the older one led into reused log",
        ),
        (
            1578,
            "bad-sectors bad-pages renewals",
            "a component was made in the slot of one whose page was damaged: the next start found extents of nobody",
        ),
        (
            1554,
            "bad-pages renewals holding",
            "a copy came upon a row write that became content in the same batch: with that gone from the log, its region counted as older",
        ),
        (
            246,
            "renewals snapshots restless",
            "a visit of destaging had waited for a page: once a chunk was made, another one was, of an extent that was promised to frames",
        ),
        (
            228,
            "renewals snapshots restless",
            "a torn batch that a start had dropped was completed by the next one, sector by sector: a snapshot was deleted after all",
        ),
        (
            181,
            "bad-sectors renewals snapshots restless",
            "of the last header only the copy was torn, and the header could not be read later: the group stayed closed",
        ),
        (
            24,
            "held-back renewals holding snapshots zeroes restless",
            "records of the component that had a slot before removed the newer one with its map pages",
        ),
        (
            62,
            "compression",
            "frames that compressed blocks did not need were promised to others, and after a crash to these blocks again",
        ),
        (
            224,
            "busy renewals snapshots rollbacks restless compression",
            "the record of a change made a component anew whose page was lost: holes were read where data had been",
        ),
        (
            59,
            "busy renewals snapshots rollbacks restless compression",
            "a trim of a part that had just been emptied lost its version with a crash",
        ),
        (
            81,
            "held-back renewals holding snapshots zeroes restless",
            "a component was gone whose parts had left their extents for frames: the log told of extents of nobody",
        ),
        (
            74,
            "held-back renewals busy snapshots restless",
            "a record that freed the former extent of a part made the map page void that contained it",
        ),
        (
            177,
            "held-back renewals busy snapshots restless",
            "what came behind a snapshot that was being deleted was not destaged, and the log let go of it",
        ),
        (
            27,
            "renewals snapshots restless",
            "a component whose page was lost came back as of long ago, by the copy of a checkpoint that had not ended",
        ),
        (
            388,
            "bad-sectors bad-pages snapshots restless",
            "the page was lost that told what a snapshot sees: a rollback to it left what it had made void",
        ),
        (
            112,
            "renewals snapshots",
            "the log let go of what a rollback had made void before the version that it raised was at rest",
        ),
    ];
    on_all_cores(&stories, |&(seed, features, story)| {
        let run = run_pinned(seed, of_one(features), None, STEPS);
        run.unwrap_or_else(|why| panic!("seed {seed} ({story}): {why}"));
    });
}

/// A write of a whole extent waited for log space that was kept for a device away, in a log not full enough to give it up.
#[test]
fn a_log_kept_for_a_device_that_is_away_never_blocks_a_large_write() {
    let world = World::with_features(7, of_one("renewals"), None, Some(45));
    world.run(400).expect("the crash at that step of that trace");
}

/// A device that takes 2,000 random writes a second, under writers that could do ten times as many, for a minute.
#[test]
fn a_full_log_slows_writers_smoothly() {
    use crate::overload::Overload;
    for writers in [4, 64] {
        let overload =
            Overload { writers, seek_ns: 400_000, bandwidth: 100 << 20, log_size: 64 << 20, seconds: 60 };
        let outcome = overload.run();
        let tail = &outcome.per_second[30..];
        let (least, most) = (tail.iter().min().copied(), tail.iter().max().copied());
        println!(
            "{writers} writers: a second {least:?}..{most:?} writes, longest {} ms",
            outcome.latency_max_ns / 1_000_000
        );
        assert!(
            outcome.latency_max_ns < 1_000_000_000,
            "{writers} writers: a write took {} ns",
            outcome.latency_max_ns
        );
        assert!(
            outcome.silence_max_ns < 500_000_000,
            "{writers} writers: {} ns of silence",
            outcome.silence_max_ns
        );
        assert!(least > Some(500), "{writers} writers: {:?}", outcome.per_second);
    }
}

/// An old snapshot of etcd was restored, and hosts were restarted: a component that had missed writes was served, and the other one came
/// back with nothing copied.
#[test]
fn a_directory_that_is_set_back_is_never_served_by_what_it_has_forgotten() {
    let runs = seeds(1..=60, |seed| {
        cluster::run(Play::Rollback, seed, None).unwrap_or_else(|why| panic!("seed {seed}: {why}"))
    });
    let rolled_back: u64 = runs.iter().map(|one| one.rolled_back).sum();
    assert!(rolled_back >= 50, "{rolled_back} snapshots were restored");
    // Where all hosts restart, whoever is first waits for the others before it takes them out: they are a second away, and may have the newer copy.
    let hasty = seeds(1..=40, |seed| {
        let run = cluster::run(Play::Rollback, seed, Some(replication::Rule::WaitForStarts));
        run.map_or(0, |run| run.left)
    });
    let (with, without) = (runs[..40].iter().map(|one| one.left).sum::<u64>(), hasty.iter().sum::<u64>());
    assert!(with * 5 < without * 4, "{with} components left, {without} without the rule");
    for (seed, features, story) in [
        (102, "deaf=303", "windows did not fit into what was left of a log"),
        (
            292,
            "late-joins watchers stand-ins=1000",
            "a tail stayed because its move would gain too little, and a large write waited behind it for ever",
        ),
    ] {
        let run = cluster::run_pinned(Play::Rollback, seed, of_hosts(features), None);
        assert!(run.is_ok(), "seed {seed}, {story}: {run:?}");
    }
}

/// A record from before a granule passed says that the other side counts, which has nothing that was written since.
#[test]
fn a_directory_that_is_set_back_while_a_disk_moves_is_known_to_be_old() {
    for (seed, features) in [(1, "moving=402 parity=2"), (3, "moving=61")] {
        let run = |removed| cluster::run_pinned(Play::Rollback, seed, of_hosts(features), removed);
        assert!(run(None).is_ok(), "seed {seed} with {features}");
        assert!(run(Some(replication::Rule::PassInNewEpoch)).is_err(), "seed {seed} notices nothing");
    }
}

/// The same where a component that missed writes is all that starts: what the others have is found, and nothing is laid over it.
#[test]
fn what_an_old_directory_does_not_know_of_is_found_and_kept() {
    let diverged = |mutant| {
        let run = |seed| {
            cluster::run(Play::LeftBehind, seed, mutant).unwrap_or_else(|why| panic!("seed {seed}: {why}"))
        };
        (1..=20).map(run).map(|run| run.diverged).sum::<u64>()
    };
    assert!(diverged(None) >= 15, "of 20 seeds");
    for mutant in [replication::Rule::KeepDivergedApart, replication::Rule::RaiseBarrier] {
        let caught = (1..=40).find_map(|seed| cluster::run(Play::LeftBehind, seed, Some(mutant)).err());
        assert!(caught.is_some(), "{mutant:?} is not noticed");
    }
}
