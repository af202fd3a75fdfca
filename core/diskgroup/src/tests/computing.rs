//! Results of the processor that come late, twice, or for work of which nobody knows any more.

use super::{Bench, id, new_component};
use crate::format::batch::Origin;
use crate::format::page::ComponentRecord;
use crate::leaving::Lost;
use crate::{Completion, ComponentKey, ComputeId, Computed, Event, Input, Op, Settings};
use base::units::{BLOCK_SIZE, EXTENT_SIZE};
use base::{ComponentId, DeviceId, Instant};
use std::collections::BTreeSet;

/// Some seconds: more than scrubbing rests between two rounds.
const LONG: u64 = 60_000_000_000;

/// A component with data at rest whose scrubbing waits for checksums.
fn verifying() -> (Bench, ComponentKey, ComputeId) {
    let (mut bench, component) = Bench::at_rest();
    bench.holds_computing = true;
    // The page of the extent, and those of components, come first.
    for _ in 0..100 {
        bench.now += LONG;
        bench.settle(Vec::new());
        if let Some(id) = bench.computing.first().map(|(id, _)| *id) {
            return (bench, component, id);
        }
    }
    panic!("nothing is scrubbed");
}

/// Checksums that no block has.
fn wrong() -> Computed {
    Computed::Checksums([0xdead_beef; 128].into())
}

/// Whether rounds of scrubbing go on.
fn scrubs_on(bench: &mut Bench) -> bool {
    bench.holds_computing = false;
    let before = bench.group.state().counters.scrub_rounds;
    for _ in 0..100 {
        bench.now += LONG;
        bench.settle(Vec::new());
    }
    bench.group.state().counters.scrub_rounds > before
}

fn blames_nobody(bench: &Bench) -> bool {
    !bench.events.iter().any(|event| matches!(event, Event::BlockDamaged { .. }))
}

#[test]
fn an_extent_whose_checksums_do_not_match_is_read_again_and_then_is_damaged() {
    let (mut bench, _, id) = verifying();
    bench.ask(Input::Computed { id, computed: wrong() });
    assert!(blames_nobody(&bench), "it may have been misread");
    let (again, _) = bench.computing[1];
    bench.ask(Input::Computed { id: again, computed: wrong() });
    assert!(!blames_nobody(&bench));
}

#[test]
fn a_result_that_comes_after_the_component_was_deleted_blames_nobody() {
    let (mut bench, component, id) = verifying();
    bench.ask(Input::Delete { op: Op(10), component });
    // Another component has the extent when the result comes.
    let record = ComponentRecord { id: ComponentId(2), ..new_component() };
    bench.ask(Input::Create { op: Op(11), device: DeviceId(2), record });
    let Some(Ok(Completion::Component(other))) = bench.done.get(&11).cloned() else { panic!("it is made") };
    bench.write(12, other, BLOCK_SIZE, (super::id(1, 5), Origin::Copy));
    bench.group.drain();
    bench.settle(Vec::new());
    bench.ask(Input::Computed { id, computed: wrong() });
    assert!(blames_nobody(&bench));
    assert_eq!(bench.read(13, other, 0, 1), Ok(()));
    assert!(scrubs_on(&mut bench) && blames_nobody(&bench));
}

#[test]
fn a_result_that_comes_after_the_device_was_lost_does_no_harm() {
    let (mut bench, _, id) = verifying();
    let mut out = Vec::new();
    bench.group.fail_member(Instant(bench.now), 1, "it is gone", &mut out);
    bench.settle(out);
    bench.ask(Input::Computed { id, computed: wrong() });
    assert!(blames_nobody(&bench));
}

#[test]
fn a_result_that_comes_after_the_device_has_left_does_no_harm() {
    let (mut bench, _, id) = verifying();
    let mut out = Vec::new();
    bench.group.fail_member(Instant(bench.now), 1, "it is gone", &mut out);
    bench.settle(out);
    bench.group.begin_remove(DeviceId(2), Lost::GiveUp).expect("it may go");
    bench.settle(Vec::new());
    assert!(bench.group.finish_remove(DeviceId(2)), "what is computed holds no device");
    bench.ask(Input::Computed { id, computed: wrong() });
    assert!(blames_nobody(&bench));
}

#[test]
fn a_result_of_which_nobody_knows_and_one_that_comes_twice_are_dropped() {
    let (mut bench, _, id) = verifying();
    bench.ask(Input::Computed { id: ComputeId(id.0 + 1), computed: wrong() });
    let (_, task) = bench.computing[0].clone();
    bench.ask(Input::Computed { id, computed: task.perform() });
    bench.ask(Input::Computed { id, computed: wrong() });
    assert!(blames_nobody(&bench) && scrubs_on(&mut bench));
}

#[test]
fn opening_waits_for_the_checksums_of_the_last_batch_and_for_no_others() {
    let mut bench = Bench::new();
    let component = bench.create();
    bench.write(2, component, EXTENT_SIZE / 2, (id(1, 2), Origin::Copy));
    let mut bench = Bench::start(bench.devices, Settings::default(), BTreeSet::new(), true);
    let (expected, task) = bench.computing[0].clone();
    assert!(bench.group.is_opening() && bench.computing.len() == 1);
    bench.ask(Input::Computed { id: ComputeId(expected.0 - 1), computed: wrong() });
    assert!(bench.group.is_opening(), "an answer for an earlier opening");
    bench.ask(Input::Computed { id: expected, computed: task.perform() });
    assert!(bench.events.contains(&Event::Ready));
    let component = bench.group.component(ComponentId(1)).expect("it is there");
    assert_eq!(bench.read(3, component, 0, 128), Ok(()));
}
