//! Why a layout is as it is, in lines for people.

use crate::check::check;
use crate::device::{DeviceSpace, reservation};
use crate::limits::STRIPES_AUTO_MAX;
use crate::policy::{Policy, Stripes};
use base::units::{COMPONENT_SIZE_MAX, EXTENT_SIZE, format_bytes};
use layout::Layout;
use std::collections::BTreeSet;

/// Lines that say why a disk of `size` bytes with `policy` has this layout, and what it owes to its policy.
pub fn explain(layout: &Layout, policy: &Policy, size: u64, devices: &[DeviceSpace]) -> Vec<String> {
    let mut lines = vec![copies(policy)];
    match layout {
        Layout::Concatenation { parts } => {
            lines.push(format!(
                "{} parts one after the other: the disk was grown beyond what its first components can hold, \
                 and no block moves when a disk grows",
                parts.len()
            ));
            for (index, part) in parts.iter().enumerate() {
                lines.push(format!("part {}: {}", index + 1, spread(part, policy, part.size(), devices)));
            }
        }
        Layout::Component(_) | Layout::Mirror { .. } | Layout::Stripe { .. } => {
            lines.push(spread(layout, policy, size, devices))
        }
    }
    lines.push(space(layout, policy, size));
    let breaches = check(layout, policy, size, devices);
    lines.extend(breaches.iter().map(|breach| format!("debt: {breach}")));
    lines
}

fn copies(policy: &Policy) -> String {
    match (policy.failures_to_tolerate, policy.force_provisioning) {
        (0, _) => "one copy: the policy says failures_to_tolerate=0".to_owned(),
        (wanted, _) => format!(
            "one copy: the policy says failures_to_tolerate={wanted}, and force_provisioning=on lets the disk be \
             without it until there are hosts for more"
        ),
    }
}

fn spread(part: &Layout, policy: &Policy, size: u64, devices: &[DeviceSpace]) -> String {
    let count = part.component_count();
    let used: BTreeSet<_> = part.components().map(|(_, component)| component.device).collect();
    let groups: BTreeSet<_> = devices.iter().filter(|d| d.in_service).map(|d| (d.host, d.group)).collect();
    let least = size.div_ceil(COMPONENT_SIZE_MAX).max(1) as usize;
    let each = part.components().next().map_or(0, |(_, component)| component.size);
    let shape = match count {
        1 => format!("one component of {}", format_bytes(each)),
        _ => format!(
            "{count} components of {} on {} {}, striped in units of {}",
            format_bytes(each),
            used.len(),
            if used.len() == 1 { "device" } else { "devices" },
            format_bytes(EXTENT_SIZE)
        ),
    };
    let reason = match policy.stripes {
        Stripes::Exactly(wanted) if least <= usize::from(wanted) => {
            format!("the policy says stripes={wanted}")
        }
        Stripes::Exactly(wanted) => format!(
            "the policy says stripes={wanted}, and a component holds at most {}",
            format_bytes(COMPONENT_SIZE_MAX)
        ),
        Stripes::Auto if least >= count && least > 1 => format!(
            "a component holds at most {}, so {} takes {least}",
            format_bytes(COMPONENT_SIZE_MAX),
            format_bytes(size)
        ),
        Stripes::Auto => format!(
            "stripes=auto takes up to {STRIPES_AUTO_MAX} devices of different hosts or groups with comparable room, \
             and there {} now {} such {}",
            if groups.len() == 1 { "is" } else { "are" },
            groups.len(),
            if groups.len() == 1 { "group" } else { "groups" }
        ),
    };
    format!("{shape}: {reason}")
}

fn space(layout: &Layout, policy: &Policy, size: u64) -> String {
    match policy.space_reservation.get() {
        0 => "thin: no space is set aside; an extent is taken when it is first written".to_owned(),
        share => {
            let aside: u64 =
                layout.components().map(|(_, c)| reservation(c.size, policy.space_reservation)).sum();
            format!(
                "{} set aside: the policy says space_reservation={share} of {}",
                format_bytes(aside),
                format_bytes(size)
            )
        }
    }
}
