//! The verdict in words.

use statistics::words::{milliseconds, number, percent};

use super::evidence::evidence;
use super::figures::{Change, EFFECT_MIN, Role};
use super::relation::{Incident, Interference, Relation, RelationKind, Verdict};

pub(super) fn sentences(found: &Interference, names: &[&str]) -> Vec<String> {
    let mut sentences: Vec<String> =
        found.relations.iter().map(|relation| of_relation(relation, &found.events, names)).collect();
    let told = |change: &Change| {
        let disk = change.disk;
        found.relations.iter().any(|relation| relation.one == disk || relation.other == disk)
    };
    for event in &found.events {
        // What a relation does not tell of.
        if !event.changes.iter().any(|change| change.role.is_change() && told(change)) {
            sentences.push(of_event(event, names));
        }
    }
    sentences.push(
        match (found.verdict, names.len()) {
            (Verdict::Interference, _) => return sentences,
            (Verdict::CannotTell, 0 | 1) => "Cannot tell: interference needs at least two disks in one capture.",
            (Verdict::CannotTell, _) if found.events.is_empty() => {
                "Cannot tell: no disk changed its load, so no effect of one on another can show. Start or stop the load of one disk."
            }
            (Verdict::CannotTell, _) => {
                "Cannot tell who slows whom. Change the load of one disk at a time while the others are busy."
            }
            (Verdict::NoInterference, _) => "No disk slows another in this capture.",
        }
        .to_owned(),
    );
    sentences
}

/// `NaN` and the like never come here: figures are of windows with I/O.
fn iops(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { number(value) }
}

/// `-81 %`, `+110 %`, and where percent say nothing, `160 times`.
fn relative(before: f64, after: f64) -> String {
    const TIMES_MIN: f64 = 10.0;
    let change = after / before - 1.0;
    if after / before >= TIMES_MIN {
        return format!("{} times", number(after / before));
    }
    format!("{}{}", if change > 0.0 { "+" } else { "" }, percent(change))
}

fn own_change(change: &Change, name: &str, at_s: f64) -> String {
    let at = format!("at {} s", number(at_s));
    match change.role {
        Role::Started => format!("{name}'s start {at}"),
        Role::Stopped => format!("{name}'s stop {at}"),
        Role::MoreLoad => format!("{name}'s load increase to {} IOPS {at}", iops(change.after.iops)),
        Role::LessLoad => format!("{name}'s load decrease to {} IOPS {at}", iops(change.after.iops)),
        _ => format!("{name}'s change of pattern {at}"),
    }
}

/// "cut VM1 from 600 to 117 IOPS (-81 %)".
fn consequence(change: &Change, name: &str) -> String {
    let (before, after) = (&change.before, &change.after);
    let pace = (after.iops / before.iops).ln().abs();
    if pace >= EFFECT_MIN {
        let verb = if after.iops < before.iops { "cut" } else { "let" };
        let to = if after.iops < before.iops { "from" } else { "rise from" };
        let relative = relative(before.iops, after.iops);
        return format!("{verb} {name} {to} {} to {} IOPS ({relative})", iops(before.iops), iops(after.iops));
    }
    let verb = if change.effect > 0.0 { "slowed" } else { "sped up" };
    let (Some(old), Some(new)) = (before.latency_s, after.latency_s) else { return format!("{verb} {name}") };
    format!("{verb} {name} from {} to {} ({})", milliseconds(old), milliseconds(new), relative(old, new))
}

/// How far sizes and distances moved, and which of them are known.
fn pattern_moved(change: &Change) -> Option<(f64, &'static str)> {
    match (change.length_moved, change.distance_moved) {
        (Some(length), Some(distance)) => Some((length.max(distance), "size and distance histograms")),
        (Some(moved), None) | (None, Some(moved)) => Some((moved, "pattern")),
        (None, None) => None,
    }
}

fn unchanged(pattern: Option<(f64, &'static str)>, name: &str) -> String {
    match pattern {
        Some((moved, what)) => format!("{name}'s {what} did not change (JS divergence {moved:.2})"),
        None => format!("{name} did too few I/Os to tell whether its pattern changed"),
    }
}

fn of_relation(relation: &Relation, events: &[Incident], names: &[&str]) -> String {
    let (cause, victim) = (names[relation.one], names[relation.other]);
    let strongest = |from: usize, to: usize, holds: &dyn Fn(Role) -> bool| {
        let all = evidence(events, from, to).into_iter();
        all.filter(|one| holds(events[one.event].changes[to].role))
            .max_by(|one, other| one.effect.total_cmp(&other.effect))
    };
    let mut parts = Vec::new();
    // What was taken, and what was given back: both together convince.
    let (taken, given) = (Role::Slower, Role::Faster);
    let (mut own_changes, mut pattern) = (Vec::new(), None);
    for kind in [taken, given] {
        let Some(found) = strongest(relation.one, relation.other, &|role| role == kind) else { continue };
        let event = &events[found.event];
        let change = &event.changes[relation.other];
        let own = own_change(&event.changes[relation.one], cause, event.at_s);
        own_changes.push(format!("{own} {}", consequence(change, victim)));
        // One side of an event may have too few I/Os to know.
        pattern = pattern.or(pattern_moved(change));
    }
    if !own_changes.is_empty() {
        parts.push(own_changes.join(", "));
        parts.push(unchanged(pattern, victim));
    }
    if relation.kind == RelationKind::Unclear {
        let chance = relation.follows.map(|found| percent(found.chance));
        let reason = match chance {
            Some(chance) => format!("{chance} of random shifts correlate as closely"),
            None => "at other times the same change had no effect".to_owned(),
        };
        return format!("{}. But {reason}: cannot tell whether {cause} slows {victim}.", parts.join(". "));
    }
    if let Some(found) = strongest(relation.other, relation.one, &|_| true) {
        let event = &events[found.event];
        let change = &event.changes[relation.one];
        let own = own_change(&event.changes[relation.other], victim, event.at_s);
        parts.push(match relation.kind {
            RelationKind::Mutual => format!("{own} {}", consequence(change, cause)),
            _ => little(change, cause, &event.changes[relation.other], victim),
        });
    } else {
        parts.push(not_seen(relation, events, names));
    }
    let end = match relation.kind {
        RelationKind::Mutual => {
            let together =
                together(relation, events, names).map_or(String::new(), |text| format!(" ({text})"));
            format!("{cause} and {victim} slow each other{together}.")
        }
        _ if relation.effect_back.is_none() => {
            format!("{cause} slows {victim}; whether {victim} slows {cause} is unknown.")
        }
        _ => format!("{cause} is the cause, {victim} the victim."),
    };
    format!("{}. {end}", parts.join(". "))
}

/// Why nothing is known of what the victim does to the cause.
fn not_seen(relation: &Relation, events: &[Incident], names: &[&str]) -> String {
    let (cause, victim) = (names[relation.one], names[relation.other]);
    let changed = |role: Role| role.may_harm() || role.may_relieve();
    let unsure = events.iter().find(|event| {
        event.only(changed) == Some(relation.other) && event.changes[relation.one].role == Role::Unsure
    });
    match unsure {
        Some(event) => {
            let own = own_change(&event.changes[relation.other], victim, event.at_s);
            let change = &event.changes[relation.one];
            let figures = relative(change.before.iops, change.after.iops);
            format!("{own} changed {cause} by {figures}, which may be chance")
        }
        None => format!("The effect of {victim} on {cause} was never seen alone"),
    }
}

/// "VM2 changed little when VM1 stopped".
fn little(change: &Change, name: &str, other: &Change, other_name: &str) -> String {
    let what = match other.role {
        Role::Started => "started",
        Role::Stopped => "stopped",
        Role::MoreLoad => "increased its load",
        Role::LessLoad => "decreased its load",
        _ => "changed its pattern",
    };
    let figures = relative(change.before.iops, change.after.iops);
    format!("{name} changed little when {other_name} {what} ({figures})")
}

/// The sum of both against what one got alone, where one started while the other went on.
fn together(relation: &Relation, events: &[Incident], names: &[&str]) -> Option<String> {
    let pair = [(relation.one, relation.other), (relation.other, relation.one)];
    let (event, alone) = events.iter().find_map(|event| {
        let found = pair.iter().find(|(starts, goes_on)| {
            event.changes[*starts].role == Role::Started && event.changes[*goes_on].role == Role::Slower
        })?;
        Some((event, found.1))
    })?;
    let sum: f64 = pair.iter().map(|(disk, _)| event.changes[*disk].after.iops).sum();
    let before = event.changes[alone].before.iops;
    let meaning =
        if sum < before * 0.95 { ": the shared device is sensitive to the order of I/Os" } else { "" };
    let (sum, before) = (iops(sum), iops(before));
    Some(format!("together {sum} IOPS, {} alone {before}{meaning}", names[alone]))
}

fn of_event(event: &Incident, names: &[&str]) -> String {
    let named = |holds: &dyn Fn(Role) -> bool| -> Vec<&str> {
        event.changes.iter().filter(|change| holds(change.role)).map(|change| names[change.disk]).collect()
    };
    let changed = named(&|role: Role| role.may_harm() || role.may_relieve());
    let affected = named(&|role| matches!(role, Role::Slower | Role::Faster));
    let unclear = named(&|role| role == Role::Unclear);
    let at = format!("At {} s", number(event.at_s));
    let what: Vec<String> = event
        .changes
        .iter()
        .filter(|change| change.role.is_change())
        .map(|change| {
            let (before, after) = (iops(change.before.iops), iops(change.after.iops));
            let name = names[change.disk];
            match change.role {
                Role::Started => format!("{name} started ({after} IOPS)"),
                Role::Stopped => format!("{name} stopped ({before} IOPS before)"),
                Role::MoreLoad => format!("{name} increased its load ({before} to {after} IOPS)"),
                Role::LessLoad => format!("{name} decreased its load ({before} to {after} IOPS)"),
                Role::OtherPattern => format!("{name} changed its pattern ({before} to {after} IOPS)"),
                Role::Slower => {
                    format!("{name} slowed down ({before} to {after} IOPS) at the same queue depth")
                }
                Role::Faster => {
                    format!("{name} sped up ({before} to {after} IOPS) at the same queue depth")
                }
                _ => format!("{name}'s IOPS changed ({before} to {after})"),
            }
        })
        .collect();
    let meaning = match (changed.len(), affected.len(), unclear.len()) {
        (_, _, 1..) => "without latencies, less demand cannot be told from slower service",
        (0, 1.., _) => "no disk of this capture changed its load, so the cause lies outside the capture",
        (1, 0, _) => "no other disk changed",
        (2.., 0, _) => "they changed together, and none was slowed down",
        _ => "several disks may be the cause",
    };
    format!("{at}, {}: {meaning}.", what.join(", "))
}
