//! Evening the devices out: which components should move where.
//!
//! Two reasons: a device is nearly full, or the fullest and the emptiest differ by too much. Every move makes the fuller
//! of its two devices emptier than it was, so that moves end and never go back and forth. Must never propose what breaks
//! a rule of a policy, and moves at most one copy of a place at a time.

use crate::candidate::lot;
use crate::device::DeviceSpace;
use crate::disk::PlacedDisk;
use crate::limits::{FULL, REBALANCE_FULL, REBALANCE_MOVES_MAX, REBALANCE_START, REBALANCE_STOP};
use crate::seats::Seats;
use base::units::format_bytes;
use base::{ComponentId, DeviceId, DiskId};
use layout::Layout;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt;

/// How even the devices are, and so what is done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Balance {
    /// Nothing is to be done.
    #[default]
    Even,
    /// The devices differ by too much.
    Proactive,
    /// A device is nearly full.
    Reactive,
}

/// A component that should move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// The disk.
    pub disk: DiskId,
    /// The place that the component answers for.
    pub place: usize,
    /// The component.
    pub component: ComponentId,
    /// Where it stands.
    pub source: DeviceId,
    /// Where it should stand.
    pub target: DeviceId,
    /// Bytes to be copied.
    pub bytes: u64,
    /// Why, in one line.
    pub reason: String,
}

/// What should move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rebalance {
    /// How even the devices are now; the next call takes it as `before`.
    pub balance: Balance,
    /// The moves, at most [`REBALANCE_MOVES_MAX`]. Each counts on those before it.
    pub moves: Vec<Move>,
    /// What remains uneven and cannot be helped within the rules, in one line.
    pub stuck: Option<String>,
}

/// Plans the next moves.
///
/// `before` is what the last call said: evening out goes on until the devices differ by 15 points, once they differed by
/// 30. `devices` tell of what is there, so the moves of the last call are to be done first. `disks` are those that are
/// whole: a disk that is being repaired is left out, and so none of its components moves. The same arguments give the
/// same plan.
pub fn rebalance(before: Balance, disks: &[PlacedDisk<'_>], devices: &[DeviceSpace], seed: u64) -> Rebalance {
    let balance = balance_of(devices, before);
    if balance == Balance::Even {
        return Rebalance { balance, moves: Vec::new(), stuck: None };
    }
    let mut state = State::new(disks, devices, seed);
    let mut now = balance;
    let mut moves = Vec::new();
    while now != Balance::Even && moves.len() < REBALANCE_MOVES_MAX {
        let Some(step) = state.best_step(now) else { break };
        moves.push(state.perform(step, now));
        now = balance_of(&state.devices, now);
    }
    let stuck = (now != Balance::Even && moves.len() < REBALANCE_MOVES_MAX).then(|| state.stuck(now));
    Rebalance { balance, moves, stuck }
}

impl fmt::Display for Balance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Balance::Even => "even",
            Balance::Proactive => "uneven",
            Balance::Reactive => "a device is nearly full",
        })
    }
}

/// How full the fullest and the emptiest device in service are.
fn extremes(devices: &[DeviceSpace]) -> (u64, u64) {
    let in_service = devices.iter().filter(|device| device.in_service);
    let fullness: Vec<u64> = in_service.map(DeviceSpace::fullness).collect();
    (fullness.iter().max().copied().unwrap_or(0), fullness.iter().min().copied().unwrap_or(0))
}

/// How even the devices are, if `before` is what was found last.
pub fn balance_of(devices: &[DeviceSpace], before: Balance) -> Balance {
    let (fullest, emptiest) = extremes(devices);
    let bound = match before {
        Balance::Even | Balance::Reactive => REBALANCE_START,
        Balance::Proactive => REBALANCE_STOP + 1,
    };
    match fullest {
        REBALANCE_FULL.. => Balance::Reactive,
        _ if fullest - emptiest >= bound => Balance::Proactive,
        _ => Balance::Even,
    }
}

/// The devices and the layouts as the moves planned so far leave them.
struct State<'a> {
    disks: &'a [PlacedDisk<'a>],
    layouts: Vec<Layout>,
    devices: Vec<DeviceSpace>,
    seed: u64,
    /// Places of which a copy moves: the index of the disk and of the place.
    moved: BTreeSet<(usize, usize)>,
}

/// A possible move, by the indices of its disk, place and devices.
#[derive(Clone, Copy)]
struct Step {
    disk: usize,
    place: usize,
    component: ComponentId,
    source: usize,
    target: usize,
    /// How full the fuller and the emptier of the two devices are afterwards.
    fuller: u64,
    target_fullness: u64,
}

/// Whether a disk without redundancy may stand on more hosts after a move than before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hosts {
    Same,
    More,
}

impl<'a> State<'a> {
    fn new(disks: &'a [PlacedDisk<'a>], devices: &[DeviceSpace], seed: u64) -> State<'a> {
        State {
            disks,
            layouts: disks.iter().map(|disk| disk.layout.clone()).collect(),
            devices: devices.to_vec(),
            seed,
            moved: BTreeSet::new(),
        }
    }

    /// The devices in service by their index, the fullest first.
    fn by_fullness(&self) -> Vec<usize> {
        let mut order: Vec<usize> =
            (0..self.devices.len()).filter(|device| self.devices[*device].in_service).collect();
        let key = |device: &DeviceSpace| (Reverse(device.fullness()), lot(device, self.seed), device.id);
        order.sort_by_key(|device| key(&self.devices[*device]));
        order
    }

    /// The move that helps most: of the fullest device from which any component may move.
    fn best_step(&self, balance: Balance) -> Option<Step> {
        let emptiest = extremes(&self.devices).1;
        let qualifies = |device: &usize| {
            let fullness = self.devices[*device].fullness();
            match balance {
                Balance::Even => false,
                Balance::Proactive => fullness > emptiest + REBALANCE_STOP,
                Balance::Reactive => fullness >= REBALANCE_FULL,
            }
        };
        let sources: Vec<usize> = self.by_fullness().into_iter().filter(qualifies).collect();
        let best = |hosts| sources.iter().find_map(|source| self.best_step_from(*source, hosts));
        best(Hosts::Same).or_else(|| match balance {
            // A device that gets full fails writes at once, another host only if it fails.
            Balance::Reactive => best(Hosts::More),
            Balance::Even | Balance::Proactive => None,
        })
    }

    fn best_step_from(&self, source: usize, hosts: Hosts) -> Option<Step> {
        let id = self.devices[source].id;
        let mut best: Option<Step> = None;
        for (disk, layout) in self.layouts.iter().enumerate() {
            for (place, copies) in layout.places() {
                let Some(copy) = copies.iter().find(|copy| copy.device == id) else { continue };
                if self.disks[disk].footprint(place).data_bytes == 0 || self.moved.contains(&(disk, place)) {
                    continue;
                }
                let found = self.best_target((disk, place), copy.id, source, hosts);
                let key = |step: &Step| (step.fuller, step.target_fullness, step.disk, step.place);
                best = best.into_iter().chain(found).min_by_key(key);
            }
        }
        best
    }

    /// The device that leaves both ends of a move the emptiest, if the rules and the room allow any that helps.
    fn best_target(
        &self,
        (disk, place): (usize, usize),
        component: ComponentId,
        source: usize,
        hosts: Hosts,
    ) -> Option<Step> {
        let placed = PlacedDisk { layout: &self.layouts[disk], ..self.disks[disk] };
        let footprint = placed.footprint(place);
        let after_source = fullness_with(&self.devices[source], |device| device.remove(&footprint));
        let before = self.devices[source].fullness();
        let gone = BTreeSet::from([component]);
        let seats = Seats::new(&placed, &gone, &self.devices, self.seed);
        let step = |target: usize| {
            let target_fullness = fullness_with(&self.devices[target], |device| device.add(&footprint));
            let fuller = after_source.max(target_fullness);
            Step { disk, place, component, source, target, fuller, target_fullness }
        };
        let helps = |step: &Step| step.fuller < before && step.target_fullness < REBALANCE_FULL;
        let targets = (0..self.devices.len()).filter(|target| *target != source);
        let key = |step: &Step| {
            let device = &self.devices[step.target];
            (step.fuller, step.target_fullness, lot(device, self.seed), device.id)
        };
        let may_move = |step: &Step| {
            seats.may_move(step.target) && (hosts == Hosts::More || seats.keeps_hosts(step.target))
        };
        targets.map(step).filter(helps).filter(may_move).min_by_key(key)
    }

    /// Counts a move as done.
    fn perform(&mut self, step: Step, balance: Balance) -> Move {
        let footprint = self.disks[step.disk].footprint(step.place);
        let reason = self.reason(&step, balance);
        let (source, target) = (self.devices[step.source].id, self.devices[step.target].id);
        self.devices[step.source].remove(&footprint);
        self.devices[step.target].add(&footprint);
        let layout = &mut self.layouts[step.disk];
        let mut copies = layout.place(step.place).expect("the step is of this layout").to_vec();
        for copy in &mut copies {
            if copy.id == step.component {
                copy.device = target;
            }
        }
        *layout = layout.with_place(step.place, copies);
        self.moved.insert((step.disk, step.place));
        Move {
            disk: self.disks[step.disk].id,
            place: step.place,
            component: step.component,
            source,
            target,
            bytes: footprint.data_bytes,
            reason,
        }
    }

    fn reason(&self, step: &Step, balance: Balance) -> String {
        let (source, target) = (&self.devices[step.source], &self.devices[step.target]);
        let footprint = self.disks[step.disk].footprint(step.place);
        let why = match balance {
            Balance::Reactive => format!("devices are relieved from {} on", percent(REBALANCE_FULL)),
            Balance::Proactive | Balance::Even => {
                format!("devices may differ by {} points of percent", REBALANCE_STOP / 100)
            }
        };
        format!(
            "{} of host {} is {} full, and {why}; {} of data go to {} of host {}, which is then {} full",
            source.name,
            source.host_name,
            percent(source.fullness()),
            format_bytes(footprint.data_bytes),
            target.name,
            target.host_name,
            percent(step.target_fullness)
        )
    }

    fn stuck(&self, balance: Balance) -> String {
        let fullest = self.by_fullness().first().map(|device| &self.devices[*device]);
        let (name, fullness) = fullest.map_or(("none", 0), |device| (&*device.name, device.fullness()));
        match balance {
            Balance::Reactive => format!(
                "{name} is {} full, and nothing on it may move elsewhere: add capacity devices, or delete or trim disks",
                percent(fullness)
            ),
            Balance::Proactive | Balance::Even => format!(
                "{name} is {} full and the emptiest device {}, and no further move that the policies allow helps",
                percent(fullness),
                percent(extremes(&self.devices).1)
            ),
        }
    }
}

fn fullness_with(device: &DeviceSpace, change: impl FnOnce(&mut DeviceSpace)) -> u64 {
    let mut changed = device.clone();
    change(&mut changed);
    changed.fullness()
}

fn percent(hundredths: u64) -> String {
    assert!(hundredths <= FULL, "a device is at most full");
    format!("{} %", hundredths / 100)
}

#[cfg(test)]
mod tests;
