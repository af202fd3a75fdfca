//! Why a layout is as it is, in lines for people.

use crate::check::{Breach, check};
use crate::device::{DeviceSpace, reservation};
use crate::disk::PlacedDisk;
use crate::limits::STRIPES_AUTO_MAX;
use crate::policy::{Percent, Policy, Stripes};
use crate::refusal::{DomainKind, named};
use base::units::{COMPONENT_SIZE_MAX, EXTENT_SIZE, format_bytes};
use layout::Layout;
use std::collections::{BTreeMap, BTreeSet};

/// Lines that say why a disk has its layout, and what it owes to its policy.
pub fn explain(disk: &PlacedDisk<'_>, devices: &[DeviceSpace]) -> Vec<String> {
    let breaches = check(disk, devices);
    let mut lines = vec![copies(disk)];
    if !breaches.iter().any(|breach| matches!(breach, Breach::SharedDomain { .. })) {
        lines.extend(domains(disk.layout, devices));
    }
    match disk.layout.parts() {
        [part] => lines.push(spread(part, disk.policy, disk.size, devices)),
        parts => {
            lines.push(format!(
                "{} parts one after the other: the disk was grown beyond what its first components can hold, \
                 and no block moves when a disk grows",
                parts.len()
            ));
            for (index, part) in parts.iter().enumerate() {
                let spread = spread(part, disk.policy, part.size(), devices);
                lines.push(format!("part {}: {spread}", index + 1));
            }
        }
    }
    lines.push(space(disk));
    lines.extend(breaches.iter().map(|breach| format!("debt: {breach}")));
    lines
}

fn count_of(count: usize, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

fn copies(disk: &PlacedDisk<'_>) -> String {
    let (policy, wanted) = (disk.policy, disk.policy.copies());
    if let Some(code) = disk.layout.code() {
        return format!(
            "RAID-{} {}+{}: of each row of {} units any {} are enough to read it, the policy says method=parity, \
             failures_to_tolerate={}",
            if code.parity() == 1 { 5 } else { 6 },
            code.data(),
            code.parity(),
            code.members(),
            code.data(),
            policy.failures_to_tolerate,
        );
    }
    let count = |(_, copies): (usize, &[layout::Component])| copies.len();
    let fewest = disk.layout.places().map(count).min().unwrap_or(0);
    let most = disk.layout.places().map(count).max().unwrap_or(0);
    let has = match (fewest, most) {
        (1, 1) => "one copy".to_owned(),
        (fewest, most) if fewest == most => format!("{most} copies"),
        (fewest, most) => format!("{fewest} to {most} copies"),
    };
    let says = format!("the policy says failures_to_tolerate={}", policy.failures_to_tolerate);
    if fewest < wanted && policy.force_provisioning {
        return format!(
            "{has}: {says}, and force_provisioning=on lets the disk be without it until there are hosts for more"
        );
    }
    let more = if most > wanted { "; the copies beyond that replace others or go" } else { "" };
    format!("{has}: {says}{more}")
}

/// Where the copies stand that must not fail together; nothing for a disk of one copy.
fn domains(layout: &Layout, devices: &[DeviceSpace]) -> Option<String> {
    layout.places().find(|(_, copies)| copies.len() > 1)?;
    let known: BTreeMap<_, &DeviceSpace> = devices.iter().map(|device| (device.id, device)).collect();
    let used: Vec<&&DeviceSpace> =
        layout.components().filter_map(|(_, component)| known.get(&component.device)).collect();
    let kind = DomainKind::of(used.iter().copied().copied());
    let names: BTreeSet<String> = used.iter().map(|device| device.domain_name().to_owned()).collect();
    let names: Vec<String> = names.into_iter().collect();
    if layout.code().is_some() {
        return Some(format!(
            "no two units of a row stand in one {}, so that one failure takes at most one: {}",
            kind.singular(),
            named(&names)
        ));
    }
    Some(format!(
        "no two copies of a block stand in one {}, so that one failure takes at most one: {}",
        kind.singular(),
        named(&names)
    ))
}

fn spread(part: &Layout, policy: &Policy, size: u64, devices: &[DeviceSpace]) -> String {
    let used: BTreeSet<_> = part.components().map(|(_, component)| component.device).collect();
    let places = part.place_count();
    let copies = part.places().map(|(_, copies)| copies.len()).max().unwrap_or(1);
    let each = part.components().next().map_or(0, |(_, component)| component.size);
    let each = format_bytes(each);
    let what = match (places, copies) {
        (1, _) if part.code().is_some() => format!("{copies} members of {each}"),
        (_, _) if part.code().is_some() => format!("{places} columns of {copies} members of {each}"),
        (1, 1) => return format!("one component of {each}: {}", reason(part, policy, size, devices)),
        (_, 1) => format!("{places} components of {each}"),
        (1, _) => format!("{copies} copies of {each}"),
        (_, _) => format!("{places} columns of {copies} copies of {each}"),
    };
    let on = count_of(used.len(), "device", "devices");
    let striped = match places {
        1 => String::new(),
        _ => format!(", striped in units of {}", format_bytes(EXTENT_SIZE)),
    };
    format!("{what} on {on}{striped}: {}", reason(part, policy, size, devices))
}

/// Why a part has so many columns.
fn reason(part: &Layout, policy: &Policy, size: u64, devices: &[DeviceSpace]) -> String {
    let columns = part.place_count();
    let least = size.div_ceil(COMPONENT_SIZE_MAX).max(1) as usize;
    match policy.stripes {
        Stripes::Exactly(wanted) if least <= usize::from(wanted) => {
            format!("the policy says stripes={wanted}")
        }
        Stripes::Exactly(wanted) => format!(
            "the policy says stripes={wanted}, and a component holds at most {}",
            format_bytes(COMPONENT_SIZE_MAX)
        ),
        Stripes::Auto if least >= columns && least > 1 => format!(
            "a component holds at most {}, so {} takes {least}",
            format_bytes(COMPONENT_SIZE_MAX),
            format_bytes(size)
        ),
        Stripes::Auto if policy.keeps_to_one_host() => one_host(part, devices),
        Stripes::Auto => {
            let in_service = devices.iter().filter(|device| device.in_service);
            let groups: BTreeSet<_> = in_service.map(|device| (device.host, device.group)).collect();
            format!(
                "stripes=auto takes up to {STRIPES_AUTO_MAX} devices of different hosts or groups with comparable \
                 room for each copy, as far as that spreads the load, and there {} now {} such {}",
                if groups.len() == 1 { "is" } else { "are" },
                groups.len(),
                if groups.len() == 1 { "group" } else { "groups" }
            )
        }
    }
}

/// Why a part of a disk without redundancy stands where it does.
fn one_host(part: &Layout, devices: &[DeviceSpace]) -> String {
    let used: BTreeSet<_> = part.components().map(|(_, component)| component.device).collect();
    let hosts: BTreeSet<&str> =
        devices.iter().filter(|one| used.contains(&one.id)).map(|one| one.host_name.as_str()).collect();
    match hosts.len() {
        0 | 1 => format!(
            "without redundancy stripes=auto takes up to {STRIPES_AUTO_MAX} disk groups of one host, because the loss of \
             any other host would take the disk, too"
        ),
        count => {
            format!("the disk stands on {count} hosts and is lost with any of them: it has no redundancy")
        }
    }
}

fn space(disk: &PlacedDisk<'_>) -> String {
    let share = disk.space_reservation;
    if share == Percent::ZERO {
        return "thin: no space is set aside; an extent is taken when it is first written".to_owned();
    }
    let each = |(_, component): (usize, &layout::Component)| reservation(component.size, share);
    let aside: u64 = disk.layout.components().map(each).sum();
    let says = if share == disk.policy.space_reservation { "the policy says " } else { "" };
    let is_mirrored = disk.layout.component_count() > disk.layout.place_count();
    let of = if is_mirrored { " for each copy" } else { "" };
    format!(
        "{} set aside: {says}space_reservation={} of {}{of}",
        format_bytes(aside),
        share.get(),
        format_bytes(disk.size)
    )
}
