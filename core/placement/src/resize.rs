//! Growing and shrinking: what a layout becomes when the disk's size changes.
//!
//! No block that remains changes its place. Columns grow together while none exceeds 255 GiB; beyond that a new part
//! is planned for the rest and stands behind the others in a concatenation. Moving blocks to widen a stripe instead
//! was rejected: a disk shall grow in an instant and while its guest runs.

use crate::device::{DeviceSpace, reservation};
use crate::disk::PlacedDisk;
use crate::one_host::home_of;
use crate::plan::plan_with_reservation;
use crate::policy::{Percent, Policy};
use crate::refusal::{Cause, Refusal};
use base::units::{COMPONENT_SIZE_MAX, DISK_SIZE_MAX, SECTOR_SIZE};
use base::{ComponentId, DeviceId};
use layout::{Component, Layout, striping};
use std::collections::BTreeMap;

/// The layout for a disk that grows to `size` bytes: the same components in front, the blocks in their places. A new
/// part has as many copies as the policy asks for; with `force_provisioning` fewer, if there must be. What the disk sets
/// aside stays the same share. A disk without redundancy stays on its host while that has room.
///
/// # Errors
/// What stands in the way, as for [`plan`](crate::plan).
pub fn extend(
    disk: &PlacedDisk<'_>,
    size: u64,
    devices: &[DeviceSpace],
    ids: &mut impl FnMut() -> ComponentId,
    seed: u64,
) -> Result<Layout, Refusal> {
    let layout = disk.layout;
    let refuse = |cause| Refusal::new(cause, devices, None);
    if !size.is_multiple_of(SECTOR_SIZE) || size > DISK_SIZE_MAX {
        return Err(refuse(Cause::Size { size }));
    }
    if size <= layout.size() {
        return Ok(layout.clone());
    }
    let mut parts = layout.parts().to_vec();
    let last = parts.pop().expect("a layout has a part");
    let before: u64 = parts.iter().map(Layout::size).sum();
    let columns = last.place_count() as u64;
    if (size - before).div_ceil(columns) <= COMPONENT_SIZE_MAX {
        let column_size = striping::column_size(size - before, columns);
        let grown = with_column_size(&last, column_size);
        check_growth(&last, &grown, disk.space_reservation, devices).map_err(refuse)?;
        parts.push(grown);
    } else {
        let rest = size - before - last.size();
        parts.push(last);
        let share = disk.space_reservation;
        let policy = Policy { space_reservation: share, ..*disk.policy };
        let home = if policy.keeps_to_one_host() { home_of(disk, rest, devices) } else { None };
        let at_home =
            home.and_then(|home| plan_with_reservation(&policy, share, rest, &home, ids, seed).ok());
        let plan = match at_home {
            Some(plan) => plan,
            None => plan_with_reservation(&policy, share, rest, devices, ids, seed)?,
        };
        parts.push(plan.layout);
    }
    Ok(joined(parts))
}

/// The layout for a disk that shrinks to `size` bytes, which must not be zero: parts and components beyond the end go.
pub fn shrink(layout: &Layout, size: u64) -> Layout {
    assert!(size > 0 && size.is_multiple_of(SECTOR_SIZE), "a disk has whole sectors");
    if size >= layout.size() {
        return layout.clone();
    }
    if let Layout::Moving { sides, boundary } = layout {
        let sides = Box::new([shrink(&sides[0], size), shrink(&sides[1], size)]);
        let boundary = (*boundary).min(sides[0].size()).min(sides[1].size());
        return Layout::Moving { sides, boundary };
    }
    let mut kept = Vec::new();
    let mut before = 0;
    for part in layout.parts() {
        if before >= size {
            break;
        }
        let part_size = part.size();
        if before + part_size > size {
            let column_size = striping::column_size(size - before, part.place_count() as u64);
            kept.push(with_column_size(part, column_size));
        } else {
            kept.push(part.clone());
        }
        before += part_size;
    }
    joined(kept)
}

/// Whether the devices that a disk stands on have room for it to set aside `share` of its size.
///
/// # Errors
/// What is missing.
pub fn check_reservation(
    disk: &PlacedDisk<'_>,
    share: Percent,
    devices: &[DeviceSpace],
) -> Result<(), Cause> {
    let mut more: Vec<(DeviceId, u64)> = Vec::new();
    for (place, copies) in disk.layout.places() {
        let footprint = disk.footprint(place);
        for copy in copies {
            let bytes = reservation(copy.size, share).saturating_sub(footprint.bytes());
            more.push((copy.device, bytes));
        }
    }
    check_room(more, devices)
}

/// Whether the devices have room for what a disk sets aside beyond what it does now. `before` and `after` are the layouts
/// that what it sets aside goes by.
///
/// # Errors
/// What is missing.
pub fn check_more(
    before: &Layout,
    after: &Layout,
    share: Percent,
    devices: &[DeviceSpace],
) -> Result<(), Cause> {
    let former: BTreeMap<ComponentId, u64> = before.components().map(|(_, one)| (one.id, one.size)).collect();
    let more = |one: &Component| {
        let set_aside = former.get(&one.id).map_or(0, |size| reservation(*size, share));
        (one.device, reservation(one.size, share).saturating_sub(set_aside))
    };
    check_room(after.components().map(|(_, one)| more(one)).collect(), devices)
}

fn joined(mut parts: Vec<Layout>) -> Layout {
    let layout = match parts.len() {
        1 => parts.remove(0),
        _ => Layout::Concatenation { parts },
    };
    assert!(layout.validate().is_ok(), "a changed size leaves a valid layout");
    layout
}

fn with_column_size(node: &Layout, size: u64) -> Layout {
    match node {
        Layout::Component(component) => Layout::Component(Component { size, ..*component }),
        Layout::Mirror { copies } => {
            Layout::Mirror { copies: copies.iter().map(|copy| Component { size, ..*copy }).collect() }
        }
        Layout::Parity { code, members } => {
            let size = striping::column_size(size, u64::from(code.data()));
            let members = members.iter().map(|member| Component { size, ..*member }).collect();
            Layout::Parity { code: *code, members }
        }
        Layout::Stripe { unit, columns } => Layout::Stripe {
            unit: *unit,
            columns: columns.iter().map(|column| with_column_size(column, size)).collect(),
        },
        Layout::Concatenation { .. } | Layout::Moving { .. } => unreachable!("these stand only at the root"),
    }
}

/// Whether the larger reservation fits the devices that the components already stand on.
fn check_growth(
    before: &Layout,
    after: &Layout,
    share: Percent,
    devices: &[DeviceSpace],
) -> Result<(), Cause> {
    let pairs = before.components().zip(after.components());
    let more = |((_, old), (_, new)): ((usize, &Component), (usize, &Component))| {
        (new.device, reservation(new.size, share).saturating_sub(reservation(old.size, share)))
    };
    check_room(pairs.map(more).collect(), devices)
}

/// Whether each device has room for what it is to set aside.
fn check_room(more: Vec<(DeviceId, u64)>, devices: &[DeviceSpace]) -> Result<(), Cause> {
    let mut sums: BTreeMap<DeviceId, u64> = BTreeMap::new();
    more.into_iter().for_each(|(device, bytes)| *sums.entry(device).or_default() += bytes);
    let available = |id| devices.iter().find(|d| d.id == id).map_or(0, DeviceSpace::available_bytes);
    let missing = sums.iter().map(|(device, bytes)| bytes.saturating_sub(available(*device))).sum();
    let needed = sums.values().sum();
    if missing > 0 { Err(Cause::Space { needed, missing }) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
