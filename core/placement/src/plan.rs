//! Choosing devices for a new disk, or for a new part of one.
//!
//! First how many components, then which devices, then which component on which device. Everything that could be
//! chosen either way is decided by the seed, so that a plan can be replayed. Must share no code with `check`.

use crate::candidate::{Candidate, candidates, spread};
use crate::device::{DeviceSpace, reservation};
use crate::limits::{STRIPES_AUTO_MAX, STRIPES_MAX};
use crate::policy::{Method, Percent, Policy, Stripes, Unsupported};
use crate::refusal::{Cause, Refusal};
use base::ComponentId;
use base::units::{DISK_SIZE_MAX, EXTENT_SIZE, SECTOR_SIZE, format_bytes};
use layout::{Component, Layout, striping};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt;

/// Where a disk's components shall stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The tree.
    pub layout: Layout,
    /// What the policy asked for and did not get; only with `force_provisioning`.
    pub debts: Vec<Debt>,
}

/// A rule that is kept in a weaker form than the policy says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Debt {
    /// The rule.
    pub rule: &'static str,
    /// What the policy says.
    pub wanted: String,
    /// What the disk got.
    pub got: String,
}

impl fmt::Display for Debt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}, the policy asks for {}", self.rule, self.got, self.wanted)
    }
}

/// Plans a disk of `size` bytes.
///
/// `ids` gives a fresh component id at every call. The same arguments give the same plan.
///
/// # Errors
/// What stands in the way, and the nearest policy that would fit.
pub fn plan(
    policy: &Policy,
    size: u64,
    devices: &[DeviceSpace],
    ids: &mut impl FnMut() -> ComponentId,
    seed: u64,
) -> Result<Plan, Refusal> {
    let cause = match attempt(policy, size, devices, seed) {
        Ok(places) => return Ok(Plan { layout: places.layout(devices, ids), debts: Vec::new() }),
        Err(cause) => cause,
    };
    if policy.force_provisioning
        && let Some((weaker, places)) =
            weaken_until_it_fits(policy, cause.clone(), force, size, devices, seed)
    {
        let debts = debts(policy, &weaker);
        return Ok(Plan { layout: places.layout(devices, ids), debts });
    }
    let nearest = weaken_until_it_fits(policy, cause.clone(), weaken, size, devices, seed);
    Err(Refusal { cause, devices: describe(devices), nearest: nearest.map(|(policy, _)| policy) })
}

/// How many columns of which size, and the device of each by its index.
struct Places {
    column_size: u64,
    columns: Vec<usize>,
}

impl Places {
    fn layout(&self, devices: &[DeviceSpace], ids: &mut impl FnMut() -> ComponentId) -> Layout {
        let component = |index: &usize| {
            Layout::Component(Component { id: ids(), device: devices[*index].id, size: self.column_size })
        };
        let layout = striping::stripe(self.columns.iter().map(component).collect());
        assert!(layout.validate().is_ok(), "a plan is a valid layout");
        layout
    }
}

fn attempt(policy: &Policy, size: u64, devices: &[DeviceSpace], seed: u64) -> Result<Places, Cause> {
    if size == 0 || !size.is_multiple_of(SECTOR_SIZE) || size > DISK_SIZE_MAX {
        return Err(Cause::Size { size });
    }
    policy.check_supported().map_err(Cause::Unsupported)?;
    let candidates = candidates(devices, seed)?;
    check_hosts(policy, &candidates)?;
    match policy.stripes {
        Stripes::Exactly(count) => place_exactly(usize::from(count), size, policy, &candidates),
        Stripes::Auto => place_auto(size, policy, &candidates),
    }
}

fn check_hosts(policy: &Policy, candidates: &[Candidate<'_>]) -> Result<(), Cause> {
    if policy.failures_to_tolerate == 0 {
        return Ok(());
    }
    assert!(policy.method == Method::Mirror, "parity was refused before");
    let hosts: BTreeSet<_> = candidates.iter().map(|candidate| candidate.device.host).collect();
    // A majority of 2f + 1 must remain to say which replica is current.
    let (failures, found) = (policy.failures_to_tolerate, hosts.len());
    let needed = 2 * usize::from(failures) + 1;
    if found < needed {
        return Err(Cause::Hosts { failures, needed, found });
    }
    let reason = "replicas on several hosts come with a later version";
    Err(Cause::Unsupported(Unsupported { rule: "failures_to_tolerate", value: "1..=3", reason }))
}

/// Columns on exactly `stripes` different devices.
fn place_exactly(
    stripes: usize,
    size: u64,
    policy: &Policy,
    candidates: &[Candidate<'_>],
) -> Result<Places, Cause> {
    if candidates.len() < stripes {
        return Err(Cause::Devices { needed: stripes, found: candidates.len() });
    }
    let count = (striping::component_count_min(size) as usize).next_multiple_of(stripes);
    let columns = Columns::new(size, count, policy);
    let able = candidates.iter().filter(|candidate| columns.room_on(candidate) > 0).collect();
    let spread_wide = spread(able, stripes, usize::MAX);
    let mut richest: Vec<&Candidate<'_>> = candidates.iter().collect();
    richest
        .sort_by_key(|candidate| (Reverse(columns.room_on(candidate)), candidate.lot, candidate.device.id));
    richest.truncate(stripes);
    for chosen in [&spread_wide, &richest] {
        if chosen.len() == stripes
            && chosen.iter().all(|candidate| columns.room_on(candidate) > 0)
            && let Some(places) = columns.deal(chosen)
        {
            return Ok(places);
        }
    }
    Err(columns.does_not_fit(&richest))
}

/// Columns on up to four devices of different hosts or groups, and on as many as are worth it when one component
/// could not hold the disk.
fn place_auto(size: u64, policy: &Policy, candidates: &[Candidate<'_>]) -> Result<Places, Cause> {
    let least = striping::component_count_min(size) as usize;
    let (chosen, count) = choose_auto(size, least, candidates);
    if let Some(places) = Columns::new(size, count, policy).deal(&chosen) {
        return Ok(places);
    }
    // A reservation that no device has room for in one piece may fit in several.
    let all = spread(candidates.iter().collect(), candidates.len(), usize::MAX);
    let counts = least..=least.max(usize::from(STRIPES_MAX));
    let places = counts.into_iter().find_map(|count| Columns::new(size, count, policy).deal(&all));
    places.ok_or_else(|| Columns::new(size, least, policy).does_not_fit(&all))
}

/// The devices that `stripes=auto` prefers, and the number of columns over them.
fn choose_auto<'a>(
    size: u64,
    least: usize,
    candidates: &'a [Candidate<'a>],
) -> (Vec<&'a Candidate<'a>>, usize) {
    // A device that is much fuller than the best would end the whole disk when it is full: it takes part only if it
    // could hold its column, or has at least half the room of the best.
    let best = candidates.iter().map(|candidate| candidate.device.available_bytes()).max().unwrap_or(0);
    let worth = |width: usize| -> Vec<&'a Candidate<'a>> {
        let column_size = striping::column_size(size, width as u64);
        let fits = |available: u64| available >= column_size || available >= best / 2;
        candidates.iter().filter(|candidate| fits(candidate.device.available_bytes())).collect()
    };
    let units = size.div_ceil(EXTENT_SIZE).try_into().unwrap_or(usize::MAX);
    // Fewer columns are larger, and fewer devices can hold them: go down until each has its own group.
    for width in (least.max(2)..=STRIPES_AUTO_MAX.min(units)).rev() {
        let chosen = spread(worth(width), width, 1);
        if chosen.len() == width {
            return (chosen, width);
        }
    }
    (spread(worth(least), least, usize::MAX), least)
}

/// The equal columns of a plan.
struct Columns {
    count: usize,
    size: u64,
    reserve: u64,
}

impl Columns {
    fn new(size: u64, count: usize, policy: &Policy) -> Columns {
        let size = striping::column_size(size, count as u64);
        Columns { count, size, reserve: reservation(size, policy.space_reservation) }
    }

    /// How many of them a device can take.
    fn room_on(&self, candidate: &Candidate<'_>) -> u64 {
        let reservations = candidate.device.available_bytes().checked_div(self.reserve).unwrap_or(u64::MAX);
        reservations.min(u64::from(candidate.device.component_room()))
    }

    /// One to each device, then each to the device that it fills least. Neighbours stand on different devices as
    /// far as the room allows.
    fn deal(&self, chosen: &[&Candidate<'_>]) -> Option<Places> {
        let mut dealt = vec![0u64; chosen.len()];
        let room: Vec<u64> = chosen.iter().map(|candidate| self.room_on(candidate)).collect();
        let mut columns = Vec::with_capacity(self.count);
        for _ in 0..self.count {
            let fill = |place: usize| u128::from(if dealt[place] > 0 { dealt[place] + 1 } else { 0 });
            let bytes = |place: usize| u128::from(chosen[place].device.available_bytes());
            let place = (0..chosen.len())
                .filter(|place| dealt[*place] < room[*place])
                .min_by(|a, b| (fill(*a) * bytes(*b)).cmp(&(fill(*b) * bytes(*a))))?;
            dealt[place] += 1;
            columns.push(chosen[place].index);
        }
        Some(Places { column_size: self.size, columns })
    }

    fn does_not_fit(&self, chosen: &[&Candidate<'_>]) -> Cause {
        let components =
            chosen.iter().map(|candidate| u64::from(candidate.device.component_room())).sum::<u64>();
        let needed = self.count as u64;
        if components < needed {
            return Cause::Components { needed: self.count, found: components as usize };
        }
        let held = chosen.iter().map(|candidate| self.room_on(candidate)).sum::<u64>().min(needed);
        // Enough in all, but not on as many devices as are asked for: the poorest lacks its one column.
        let missing = if held < needed { needed - held } else { 1 };
        Cause::Space { needed: self.reserve * needed, missing: self.reserve * missing }
    }
}

/// One step that `force_provisioning` allows: fewer copies, then fewer stripes. A reservation is a promise of space
/// and is never weakened.
fn force(policy: &Policy, cause: &Cause) -> Option<Policy> {
    match cause {
        Cause::Hosts { .. } | Cause::Unsupported(Unsupported { rule: "failures_to_tolerate", .. }) => {
            Some(Policy { failures_to_tolerate: policy.failures_to_tolerate.checked_sub(1)?, ..*policy })
        }
        Cause::Devices { .. } => fewer_stripes(policy),
        _ => None,
    }
}

/// One step towards a policy that fits.
fn weaken(policy: &Policy, cause: &Cause) -> Option<Policy> {
    match cause {
        Cause::Unsupported(unsupported) if unsupported.rule != "failures_to_tolerate" => {
            let mut weaker = *policy;
            let standard = Policy::DEFAULT.get(unsupported.rule)?;
            weaker.set(unsupported.rule, &standard).ok()?;
            Some(weaker)
        }
        Cause::Space { .. } => {
            let less = Percent::new(policy.space_reservation.get().checked_sub(1)?)?;
            Some(Policy { space_reservation: less, ..*policy })
        }
        Cause::Components { .. } => fewer_stripes(policy),
        _ => force(policy, cause),
    }
}

fn fewer_stripes(policy: &Policy) -> Option<Policy> {
    match policy.stripes {
        Stripes::Exactly(count) if count > 1 => {
            Some(Policy { stripes: Stripes::Exactly(count - 1), ..*policy })
        }
        _ => None,
    }
}

fn weaken_until_it_fits(
    policy: &Policy,
    mut cause: Cause,
    step: impl Fn(&Policy, &Cause) -> Option<Policy>,
    size: u64,
    devices: &[DeviceSpace],
    seed: u64,
) -> Option<(Policy, Places)> {
    let mut weaker = *policy;
    loop {
        weaker = step(&weaker, &cause)?;
        match attempt(&weaker, size, devices, seed) {
            Ok(places) => return Some((weaker, places)),
            Err(next) => cause = next,
        }
    }
}

fn debts(wanted: &Policy, got: &Policy) -> Vec<Debt> {
    let debt = |rule: &'static str| {
        let (wanted, got) = (wanted.get(rule)?, got.get(rule)?);
        (wanted != got).then_some(Debt { rule, wanted, got })
    };
    ["failures_to_tolerate", "stripes"].into_iter().filter_map(debt).collect()
}

/// The devices as a refusal names them.
pub(crate) fn describe(devices: &[DeviceSpace]) -> Vec<String> {
    let line = |device: &DeviceSpace| match (device.in_service, device.component_room()) {
        (false, _) => format!("{}: out of service", device.name),
        (true, 0) => format!("{}: holds {} components, all it can", device.name, device.component_count),
        (true, _) => format!("{}: {} available", device.name, format_bytes(device.available_bytes())),
    };
    devices.iter().map(line).collect()
}

#[cfg(test)]
mod tests;
