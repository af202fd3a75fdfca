//! A stage over time: its seconds, joined until they are few enough for a chart.

use measured::StageRun;
use statistics::Histogram;
use std::collections::BTreeMap;

/// A stretch of time of a stage.
#[derive(Debug, Clone)]
pub struct Slot {
    /// When it begins, in seconds after the stage started to count; below 0 in the ramp.
    pub at: f64,
    /// How much of it was measured, in seconds.
    pub seconds: f64,
    /// I/Os and bytes of each group and operation: index of the group times 3 plus that of the operation.
    pub counts: Vec<(u64, u64)>,
    /// I/Os of all groups and operations that failed.
    pub errors: u64,
    /// Latencies of all groups and operations.
    pub latency: Histogram,
}

/// The seconds of a stage as at most `slots_max` slots of `width` whole seconds each.
#[derive(Debug, Clone)]
pub struct Slots {
    /// Seconds in a slot.
    pub width: u64,
    /// In order of time; slots without anything are left out.
    pub slots: Vec<Slot>,
}

/// Joins the seconds of all groups. A last slot that is less than half there is left out: its rates would mislead.
pub fn slots(stage: &StageRun, slots_max: usize) -> Slots {
    let times = || stage.groups.iter().flat_map(|group| &group.intervals).map(|interval| interval.at);
    let times = || times().filter(|at| at.is_finite());
    let (first, last) = (times().fold(0.0, f64::min).floor(), times().fold(0.0, f64::max).floor());
    let width = ((last - first + 1.0) / slots_max.max(1) as f64).ceil().max(1.0);
    let mut found: BTreeMap<i64, Slot> = BTreeMap::new();
    for (index, group) in stage.groups.iter().enumerate() {
        for interval in group.intervals.iter().filter(|interval| interval.at.is_finite()) {
            let slot = found.entry((interval.at / width).floor() as i64).or_insert_with_key(|number| Slot {
                at: *number as f64 * width,
                seconds: 0.0,
                counts: vec![(0, 0); stage.groups.len() * 3],
                errors: 0,
                latency: Histogram::default(),
            });
            slot.errors += interval.errors.iter().sum::<u64>();
            for (operation, latency) in interval.latency.iter().enumerate() {
                let counted = &mut slot.counts[index * 3 + operation];
                counted.0 += interval.ios[operation];
                counted.1 += interval.bytes[operation];
                if latency.count() > 0 {
                    slot.latency.merge(&latency.histogram());
                }
            }
        }
    }
    let mut slots: Vec<Slot> = found.into_values().collect();
    for slot in &mut slots {
        slot.seconds = width.min(stage.seconds - slot.at);
    }
    slots.retain(|slot| slot.seconds >= width / 2.0);
    Slots { width: width as u64, slots }
}
