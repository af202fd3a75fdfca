//! Choosing devices for a new disk, or for a new part of one.
//!
//! First how many columns, then which devices, then which copy of which column on which device. Everything that could
//! be chosen either way is decided by the seed, so that a plan can be replayed. Must share no code with `check`.

use crate::candidate::{Candidate, Spread, candidates, spread};
use crate::columns::{Columns, Places, Shape};
use crate::device::DeviceSpace;
use crate::limits::{STRIPES_AUTO_MAX, STRIPES_MAX};
use crate::one_host;
use crate::policy::{Method, Percent, Policy, Stripes};
use crate::refusal::{Cause, DomainKind, Refusal};
use crate::weaken;
use base::ComponentId;
use base::units::{DISK_SIZE_MAX, EXTENT_SIZE, SECTOR_SIZE};
use layout::{Code, Layout, striping};
use std::collections::BTreeSet;
use std::fmt;

/// Where a disk's components shall stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The tree.
    pub layout: Layout,
    /// The share of every component that is to be set aside: the policy's, or less when that is a debt.
    pub space_reservation: Percent,
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
/// `ids` gives a fresh component id at every call. The same arguments give the same plan. With `force_provisioning` a
/// policy that cannot be kept is kept as far as it can: fewer stripes come before less reservation, and that before
/// fewer copies.
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
    plan_with_reservation(policy, Percent::ZERO, size, devices, ids, seed)
}

/// [`plan`] that sets aside at least `least`, whatever is forced.
pub(crate) fn plan_with_reservation(
    policy: &Policy,
    least: Percent,
    size: u64,
    devices: &[DeviceSpace],
    ids: &mut impl FnMut() -> ComponentId,
    seed: u64,
) -> Result<Plan, Refusal> {
    let mut made = |kept: &Policy, places: &Places| Plan {
        layout: places.layout(devices, ids),
        space_reservation: kept.space_reservation,
        debts: debts(policy, kept),
    };
    let cause = match attempt(policy, size, devices, seed) {
        Ok(places) => return Ok(made(policy, &places)),
        Err(cause) => cause,
    };
    let try_policy = |weaker: &Policy| attempt(weaker, size, devices, seed);
    if policy.force_provisioning
        && let Some((weaker, places)) = weaken::nearest(policy, least, try_policy)
    {
        return Ok(made(&weaker, &places));
    }
    let supported = weaken::supported(policy);
    let nearest = weaken::nearest(&supported, Percent::ZERO, try_policy);
    Err(Refusal::new(cause, devices, nearest.map(|(policy, _)| policy)))
}

/// What the columns of a disk of a policy consist of on these devices.
pub(crate) fn shape_of(policy: &Policy, devices: &[DeviceSpace], seed: u64) -> Result<Shape, Cause> {
    policy.check_supported().map_err(Cause::Unsupported)?;
    shape(policy, &candidates(devices, seed)?)
}

/// Where a disk of so many bytes stands, if the policy is kept as it is.
pub(crate) fn attempt(
    policy: &Policy,
    size: u64,
    devices: &[DeviceSpace],
    seed: u64,
) -> Result<Places, Cause> {
    if size == 0 || !size.is_multiple_of(SECTOR_SIZE) || size > DISK_SIZE_MAX {
        return Err(Cause::Size { size });
    }
    policy.check_supported().map_err(Cause::Unsupported)?;
    let candidates = candidates(devices, seed)?;
    let shape = shape(policy, &candidates)?;
    match policy.stripes {
        Stripes::Exactly(count) => place_exactly(usize::from(count), size, (policy, shape), &candidates),
        Stripes::Auto if policy.keeps_to_one_host() => {
            one_host::place_on_fewest(&candidates, |some| place_auto(size, (policy, shape), some))
        }
        Stripes::Auto => place_auto(size, (policy, shape), &candidates),
    }
}

/// What the columns of a disk consist of: the widest rows that there are fault domains for.
fn shape(policy: &Policy, candidates: &[Candidate<'_>]) -> Result<Shape, Cause> {
    // Which copy is current is written in the directory, so no majority of hosts is needed and no witness.
    let found = candidates.iter().map(|one| one.domain).collect::<BTreeSet<_>>().len();
    let shapes: Vec<Shape> = match policy.method {
        Method::Mirror => vec![Shape::Mirror(policy.copies())],
        Method::Parity => {
            let survives = |code: &Code| code.parity() == policy.failures_to_tolerate;
            let mut codes: Vec<Code> = Code::ALL.into_iter().filter(survives).collect();
            codes.sort_by_key(|code| std::cmp::Reverse(code.members()));
            codes.into_iter().map(Shape::Parity).collect()
        }
    };
    if let Some(shape) = shapes.iter().find(|shape| shape.components() <= found) {
        return Ok(*shape);
    }
    let names: BTreeSet<&str> = candidates.iter().map(|one| one.device.domain_name()).collect();
    Err(Cause::Domains {
        failures: policy.failures_to_tolerate,
        needed: policy.domains_min(),
        kind: DomainKind::of(candidates.iter().map(|one| one.device)),
        found: names.into_iter().map(str::to_owned).collect(),
    })
}

/// Every replica on exactly `stripes` different devices, and no two replicas on one.
fn place_exactly(
    stripes: usize,
    size: u64,
    (policy, shape): (&Policy, Shape),
    candidates: &[Candidate<'_>],
) -> Result<Places, Cause> {
    let count = shape.columns_min(size).next_multiple_of(stripes);
    let columns = Columns::new(size, count, shape, policy);
    let needed = stripes * shape.components();
    let wide = Spread { count: needed, per_group: usize::MAX, per_domain: count };
    let found = spread(candidates.iter().collect(), wide).len();
    if found < needed {
        return Err(Cause::Devices { stripes, copies: shape.components(), found });
    }
    let able = candidates.iter().filter(|candidate| columns.room_on(candidate) > 0).collect();
    let spread_wide = spread(able, wide);
    let richest = columns.richest(candidates, needed);
    for chosen in [&spread_wide, &richest] {
        if chosen.len() == needed
            && chosen.iter().all(|candidate| columns.room_on(candidate) > 0)
            && let Some(places) = columns.deal(chosen)
        {
            return Ok(places);
        }
    }
    Err(columns.does_not_fit(&richest))
}

/// Columns on as few devices as hold the disk, or on up to four devices of different hosts or groups for each replica
/// when that spreads the load further.
fn place_auto(
    size: u64,
    (policy, shape): (&Policy, Shape),
    candidates: &[Candidate<'_>],
) -> Result<Places, Cause> {
    let least = shape.columns_min(size);
    let units = size.div_ceil(EXTENT_SIZE * shape.data()).try_into().unwrap_or(usize::MAX);
    let wider = (least.max(2)..=STRIPES_AUTO_MAX.min(units)).map(|width| (width, 1));
    let mut best: Option<(usize, Places)> = None;
    for (width, per_group) in std::iter::once((least, usize::MAX)).chain(wider) {
        let how = Spread { count: width * shape.components(), per_group, per_domain: width };
        let chosen = spread(worth(size, width as u64 * shape.data(), candidates), how);
        let Some(places) = Columns::new(size, width, shape, policy).deal(&chosen) else { continue };
        // The busiest device has `busiest` of `width` columns, the share of the disk's load that it bears.
        let is_better =
            |(best_width, best): &(usize, Places)| places.busiest() * best_width < best.busiest() * width;
        if best.as_ref().is_none_or(is_better) {
            best = Some((width, places));
        }
    }
    if let Some((_, places)) = best {
        return Ok(places);
    }
    // A reservation that no device has room for in one piece may fit in several.
    let everything = Spread { count: candidates.len(), per_group: usize::MAX, per_domain: usize::MAX };
    let all = spread(candidates.iter().collect(), everything);
    let counts = least..=least.max(usize::from(STRIPES_MAX));
    let places = counts.into_iter().find_map(|count| Columns::new(size, count, shape, policy).deal(&all));
    places.ok_or_else(|| Columns::new(size, least, shape, policy).does_not_fit(&all))
}

/// The devices that `stripes=auto` prefers for so many columns. A device that is much fuller than the best would end
/// the whole disk when it is full: it takes part only if it could hold its column, or has at least half the room of the
/// best.
fn worth<'a>(size: u64, width: u64, candidates: &'a [Candidate<'a>]) -> Vec<&'a Candidate<'a>> {
    let best = candidates.iter().map(|candidate| candidate.device.available_bytes()).max().unwrap_or(0);
    let column_size = striping::column_size(size, width);
    let fits = |available: u64| available >= column_size || available >= best / 2;
    candidates.iter().filter(|candidate| fits(candidate.device.available_bytes())).collect()
}

fn debts(wanted: &Policy, got: &Policy) -> Vec<Debt> {
    let debt = |rule: &'static str| {
        let (wanted, got) = (wanted.get(rule)?, got.get(rule)?);
        (wanted != got).then_some(Debt { rule, wanted, got })
    };
    ["failures_to_tolerate", "stripes", "space_reservation"].into_iter().filter_map(debt).collect()
}

#[cfg(test)]
mod tests;
