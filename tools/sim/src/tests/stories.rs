//! Seeds that found faults, each with what the fault was: of several hosts, and those of one host that `tests.rs` does not have.

use super::{of_hosts, of_one, on_all_cores};
use crate::campaign::{STEPS, run_pinned};
use crate::cluster::{self, Play};

/// Each of these once found a fault; what it was stands beside it.
#[test]
fn seeds_of_several_hosts_that_once_failed_pass() {
    let stories = [
        (
            72_000_087,
            "snapshots=4000 clones rots=20 stand-ins=200 large-copies watchers",
            "a late snapshot had got what one had that was deleted, and numbers told of what it saw: the engine ended",
        ),
        (
            621_000_910,
            "parity=2 folds=200 rots=30 checks=1024 snapshots=4000 compressed=2000",
            "reads of damaged snapshots held what memory there was and waited for more: none of them ever ended",
        ),
        (
            501_000_060,
            "parity=1 folds=200 rots=30 checks=1024 snapshots=4000 compressed=2000",
            "a late mark waited in the group while its attempt ended and the sweep found nothing to delete: the component kept the snapshot",
        ),
        (
            2305,
            "watchers",
            "the record changed under an owner that had been released while it claimed the disk",
        ),
        (
            2693,
            "hangs=277 deaf=103 spoils=205",
            "a component that was about to count had no room, and was not waited for though it did count",
        ),
        (
            158,
            "large-copies",
            "a component in resync had room for a change that was refused for want of it, and joined",
        ),
        (
            10016,
            "watchers hangs=430",
            "a write was rolled forward, overwritten, and done again after two take-overs",
        ),
        (83, "watchers", "the last active component was asked out after the record had taken the other out"),
        (294, "hangs=486", "a component was deleted a second time before its deletion was stable"),
        (
            392,
            "watchers",
            "a component that had been alone was taken for one that lost changes, and sent nothing any more",
        ),
        (
            1619,
            "watchers",
            "a trim alone in the log lost its version with a restart: a resync passed it over",
        ),
        (
            1275,
            "shaky-openings watchers large-copies hangs=363",
            "what a component told of its changes was out of order, which ends a node that makes it into bytes",
        ),
        (
            5778,
            "watchers",
            "a trim of a part that was not copied yet left no version: the copy brought a lesser one",
        ),
        (
            1964,
            "shaky-openings watchers large-copies stand-ins=200",
            "an heir was not told of what had been freed: a component that was brought up to date from it kept what it had there",
        ),
        (
            1773,
            "late-joins double-losses large-copies stand-ins=1000 hangs=484",
            "a component was gone before the record of a whole extent was, which had been on its way to a part of it",
        ),
        (
            2317,
            "watchers large-copies stand-ins=1000 spoils=298",
            "the component that a read was to go to after a damaged one left meanwhile: nobody was asked any more, without end",
        ),
        (
            386,
            "double-losses stand-ins=1000",
            "a component was restored by a record of which nobody knew whether it was written: it was held to what it had before",
        ),
        (
            12060,
            "watchers large-copies stand-ins=200 deaf=136",
            "a component that was alone was told no watermark: what its owner had found undecided was done again by the next",
        ),
        (
            301,
            "late-joins large-copies spoils=300 parity=4 folds=2000",
            "a component that did not count said what it held after it was given up: that was to be folded, over and over",
        ),
        (
            138,
            "parity=3 folds=20",
            "members of the parity left while a fold was computed: it waited for nobody's answer, without end",
        ),
        (
            127,
            "parity=4 folds=200 moving=406",
            "a component that was brought up to date held row writes for which nobody told it that they were decided, until it had no room",
        ),
        (
            1288,
            "shaky-openings watchers parity=3 moving=1021",
            "what only a barrier held back was not told to be decided, and filled the logs that the barrier waited for",
        ),
        (
            400321,
            "double-losses stand-ins=1000 parity=2 folds=20",
            "a link broke while a member folded: the next small change went onto the copy that the member had ended",
        ),
        (
            400394,
            "shaky-openings double-losses stand-ins=1000 parity=3 folds=2000",
            "an owner that was released before it had decided the windows folded what was not decided",
        ),
        (
            100100,
            "watchers deaf=200 parity=4 folds=2000",
            "a member told of copies that a row write had ended which it did not know to be decided: they were folded once more",
        ),
        (
            1928,
            "hangs=330 folds=20 limits=569 moving=178",
            "two disks waited for room in logs that each had filled with row writes for the other",
        ),
        (
            20580,
            "busy watchers large-copies hangs=300 deaf=200 parity=2 checks=1024 limits=600 moving=901",
            "of a write over the boundary of a move the first piece had happened, and all of it was taken to have, when it was submitted again",
        ),
        (
            11549,
            "late-joins double-losses busy watchers large-copies stand-ins=1000 deaf=200 spoils=200 parity=3 folds=200 checks=1024",
            "a restore that came to nothing gave a member the bare number of a change that it had a part in, as one that was away could tell",
        ),
        (
            41075,
            "double-losses watchers large-copies stand-ins=1000 parity=4 folds=2000 checks=1024",
            "what a member of the parity held was forgotten as it left, and what it had given was decoded as if it had held nothing",
        ),
        (
            60523,
            "shaky-openings large-copies hangs=300 parity=3 folds=2000 limits=600 moving=430",
            "a change that was to be made again for want of room was acknowledged as the member without room left, and begun again",
        ),
        (
            42507,
            "late-joins double-losses watchers stand-ins=1000 deaf=200 parity=2 folds=20 checks=64 limits=600",
            "a member put together from its stand-in counted beside a lost one, which came back and had a change dropped that stood in it",
        ),
        (
            51466,
            "late-joins double-losses watchers large-copies stand-ins=1000 hangs=300 deaf=200 spoils=200 parity=4 folds=20 checks=64 limits=600",
            "a component that had been told a watermark for a barrier, and came back, was recorded to know less, and then taken for one that has diverged",
        ),
        (
            107187,
            "late-joins watchers large-copies stand-ins=1000 deaf=200 parity=4 folds=2000 checks=64",
            "the same with a barrier for less than a change had told before it",
        ),
        (
            65128,
            "shaky-openings watchers large-copies stand-ins=1000 spoils=200 parity=3 folds=20 moving=208",
            "a small change came before a repair of what it is held over, and the repair ended it",
        ),
        (
            64702,
            "late-joins watchers stand-ins=1000 hangs=300 deaf=200 spoils=200 parity=3 folds=2000 moving=1456",
            "a small change for which a group had no room was taken back, and with it the one that it had taken the place of elsewhere",
        ),
        (
            1000716,
            "parity=3 folds=200 checks=64 stand-ins=1000",
            "a component of the owner's host that was gone refused its part in a fold at once, and the fold began again at once, without end",
        ),
        (
            1201858,
            "parity=3 folds=20 checks=1024 stand-ins=1000 hangs=300 late-joins",
            "the same with the watermark that a barrier makes stable",
        ),
        (
            110,
            "parity=2 folds=200 checks=1024 disagreements=3",
            "the simulator made a row disagree in a part without ids, which no owner looks at, and waited for it to be found",
        ),
    ];
    on_all_cores(&stories, |&(seed, features, story)| {
        let run = cluster::run_pinned(Play::Drawn, seed, of_hosts(features), None);
        run.unwrap_or_else(|why| panic!("seed {seed} ({story}): {why}"));
    });
}

/// The same of one host, beside damaged pages and compression.
#[test]
fn seeds_of_one_host_with_damage_or_compression_that_once_failed_pass() {
    let stories = [
        (
            700116,
            "renewals busy snapshots restless compression",
            "a part's map page was lost, and the extent that it had left, which the log still named, was taken for a new one: holes were read where data had been",
        ),
        (
            160,
            "held-back renewals holding zeroes restless compression",
            "a map page told that it had less of the log than before: after a crash blocks were promised frames a second time",
        ),
        (
            1_400_514,
            "snapshots rollbacks restless",
            "blocks that were damaged in the log needed no frames when they were destaged: others were promised these, and after a crash there were two promises of each",
        ),
        (
            1_200_912,
            "compression snapshots restless busy renewals",
            "an extent was freed and became a pool; a start forgot that its descriptor was to be cleared, which named its part again when the pool was dissolved",
        ),
        (
            100491,
            "bad-sectors bad-pages snapshots rollbacks restless compression",
            "a rollback went to the log behind the deletion of its snapshot: what was destaged between the two was not kept for it",
        ),
        (
            100871,
            "bad-sectors bad-pages compression",
            "a trim that the log told again gave its region an older version after a start than a later trim had given it",
        ),
        (
            43,
            "bad-sectors bad-pages renewals",
            "the page of a component was damaged, and its older copy counted: versions of holes went back",
        ),
        (
            200717,
            "bad-sectors bad-pages compression",
            "a part left its extent to be compressed while a trim that named the extent was not destaged: a start took the trim for void",
        ),
        (
            300764,
            "bad-sectors bad-pages snapshots rollbacks restless compression",
            "a page of a checkpoint that had not ended was not written over, and would have counted after the next one",
        ),
        (
            300088,
            "bad-sectors bad-pages snapshots rollbacks",
            "a bad sector at the start of the ring was taken to hide the copy of a header at its end: the group stayed closed",
        ),
        (
            300347,
            "bad-sectors bad-pages snapshots rollbacks",
            "a snapshot was refused beside a rollback that had ended when the answer came: the simulator called that unfair",
        ),
        (
            500355,
            "bad-sectors bad-pages snapshots rollbacks restless compression",
            "a snapshot was refused behind a rollback that waited for its place in the log: the simulator called that unfair",
        ),
        (
            500504,
            "bad-sectors bad-pages snapshots rollbacks restless compression",
            "while a device was away, an intent excused damage to a page of another one that was stable since: a chunk was gone, holes were read",
        ),
        (
            500690,
            "bad-sectors bad-pages snapshots rollbacks restless compression",
            "no checkpoint began, for a list of snapshots had lost its page on a device without room for another: writes waited for ever",
        ),
    ];
    on_all_cores(&stories, |&(seed, features, story)| {
        let run = run_pinned(seed, of_one(features), None, STEPS);
        run.unwrap_or_else(|why| panic!("seed {seed} ({story}): {why}"));
    });
}
