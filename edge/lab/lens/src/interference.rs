//! Who slows whom: interference between disks that share a device.
//!
//! IOPS and latency of each disk are cut where their level changes. At each such event, a disk that increases its load or changes its
//! pattern may be a cause. A disk that slows down with the same load is a victim: fewer IOPS alone are no proof, only fewer IOPS or
//! more latency with the same pattern and the same outstanding I/Os. A verdict needs a single possible cause.

mod correlation;
mod evidence;
mod figures;
mod grid;
mod relation;
mod words;

use iostats::Operations;

use crate::capture::Capture;
use crate::window::Window;
use evidence::{effect_of, evidence};
use figures::{EFFECT_MIN, Level};
use grid::{Grid, Row};

pub use correlation::Correlation;
pub use figures::{Change, Figures, PATTERN_MOVED, Role};
pub use relation::{Incident, Interference, Relation, RelationKind, Verdict};

/// Changes of level smaller than this are none (10 %).
const CUT_MIN: f64 = 0.10;
/// Cuts of several disks within so many windows are one event.
const TOGETHER: usize = 2;
/// An effect below this part of the other direction's is little beside it (of logarithms).
const LITTLE: f64 = 0.25;
/// Where chance does as well more often than this, nothing is claimed.
const CHANCE_MAX: f64 = 0.25;
/// Events that are looked at; a capture with more is too restless for this.
const EVENTS_MAX: usize = 200;

/// Finds out who slows whom.
pub fn interference(capture: &Capture) -> Interference {
    let grid = Grid::new(capture);
    let names: Vec<&str> = capture.disks.iter().map(|disk| disk.name.as_str()).collect();
    let events = incidents(&grid);
    let mut relations = Vec::new();
    for one in 0..names.len() {
        for other in one + 1..names.len() {
            relations.extend(relation(&grid, &events, one, other));
        }
    }
    let found = relations.iter().any(|relation| relation.kind != RelationKind::Unclear);
    let unexplained = events.iter().any(|event| is_unexplained(event, &relations));
    let verdict = match (found, names.len()) {
        (true, _) => Verdict::Interference,
        (false, 0 | 1) => Verdict::CannotTell,
        (false, _) if events.is_empty() || unexplained || !relations.is_empty() => Verdict::CannotTell,
        (false, _) if !events.iter().any(shows_independence) => Verdict::CannotTell,
        (false, _) => Verdict::NoInterference,
    };
    let mut result = Interference { events, relations, verdict, sentences: Vec::new() };
    result.sentences = words::sentences(&result, &names);
    result
}

/// The cells at which each disk's pace or latency changes its level.
fn cuts(grid: &Grid) -> Vec<Vec<usize>> {
    let of_row = |row: &Row| {
        let mut cuts: Vec<usize> = Vec::new();
        let pace =
            |window: &Option<Window>| window.as_ref().map_or(0.0, |window| window.iops(Operations::Both));
        let paces: Vec<f64> = row.iter().map(pace).collect();
        let mut latency = 0.0;
        let latencies: Vec<f64> = row
            .iter()
            .map(|window| {
                // Where there was no I/O, the latency is what it was.
                let known = window.as_ref().and_then(|window| window.latency_mean_s(Operations::Both));
                latency = known.unwrap_or(latency);
                latency
            })
            .collect();
        for series in [paces, latencies] {
            let stretches = statistics::stretches(&series, CUT_MIN);
            cuts.extend(stretches.iter().map(|stretch| stretch.from).filter(|&from| from > 0));
        }
        cuts
    };
    grid.rows.iter().map(of_row).collect()
}

/// The same of all disks, neighbours taken together.
fn together(cuts: &[Vec<usize>]) -> Vec<usize> {
    let mut all: Vec<usize> = cuts.iter().flatten().copied().collect();
    all.sort_unstable();
    let mut together: Vec<Vec<usize>> = Vec::new();
    for cut in all {
        match together.last_mut() {
            Some(group) if cut - group[0] <= TOGETHER => group.push(cut),
            _ => together.push(vec![cut]),
        }
    }
    // The middle of a group: where most of its series changed.
    together.iter().map(|group| group[group.len() / 2]).collect()
}

fn incidents(grid: &Grid) -> Vec<Incident> {
    let cuts = cuts(grid);
    let mut borders = vec![0];
    borders.extend(together(&cuts).into_iter().take(EVENTS_MAX));
    borders.push(grid.cells());
    borders.dedup();
    borders
        .windows(3)
        .map(|border| {
            let span = (border[0], border[1], border[2]);
            let change = |(disk, row): (usize, &Row)| {
                // What differs before and after without a cut of its own is noise.
                let own = cuts[disk].iter().any(|cut| cut.abs_diff(border[1]) <= TOGETHER);
                figures::change(disk, row, span, if own { Level::Changes } else { Level::Stays })
            };
            let changes = grid.rows.iter().enumerate().map(change).collect();
            Incident { at_s: grid.at_s(border[1]), changes }
        })
        // What no disk shows as a change was noise.
        .filter(|event: &Incident| event.changes.iter().any(|change| change.role.is_change()))
        .collect()
}

fn relation(grid: &Grid, events: &[Incident], one: usize, other: usize) -> Option<Relation> {
    let there = effect_of(&evidence(events, one, other));
    let back = effect_of(&evidence(events, other, one));
    let contradicts = |effect: Option<f64>| effect.is_some_and(f64::is_nan);
    if contradicts(there) || contradicts(back) {
        // The direction in which more was seen, even if only once, is told.
        let seen =
            |cause, victim| evidence(events, cause, victim).iter().map(|one| one.effect).fold(0.0, f64::max);
        let (effect, effect_back) = (seen(one, other), seen(other, one));
        let (one, other, effect) =
            if effect >= effect_back { (one, other, effect) } else { (other, one, effect_back) };
        return Some(Relation {
            one,
            other,
            kind: RelationKind::Unclear,
            effect,
            effect_back: None,
            follows: None,
        });
    }
    let (strong, weak) = (there.unwrap_or(0.0), back.unwrap_or(0.0));
    if strong.max(weak) < EFFECT_MIN {
        return None;
    }
    // The stronger direction is told first.
    let (cause, victim, effect, effect_back) =
        if strong >= weak { (one, other, strong, back) } else { (other, one, weak, there) };
    let little = effect_back.unwrap_or(0.0) < EFFECT_MIN.max(effect * LITTLE);
    let follows = correlation(grid, cause, victim);
    let kind = match follows {
        Some(found) if found.chance > CHANCE_MAX || found.rank <= 0.0 => RelationKind::Unclear,
        _ if little => RelationKind::CauseAndVictim,
        _ => RelationKind::Mutual,
    };
    Some(Relation { one: cause, other: victim, kind, effect, effect_back, follows })
}

/// How the victim's latency follows the cause's load, over the time in which the victim did something.
fn correlation(grid: &Grid, cause: usize, victim: usize) -> Option<Correlation> {
    let pairs = grid.rows[victim].iter().zip(&grid.rows[cause]).filter_map(|(victim, cause)| {
        let latency = victim.as_ref()?.latency_mean_s(Operations::Both)?;
        let cause = cause.as_ref()?;
        // What it does to others is what it keeps outstanding; without that, what it asks for.
        Some((latency, cause.outstanding_mean.unwrap_or(0.0).max(cause.iops(Operations::Both))))
    });
    let (latencies, loads): (Vec<f64>, Vec<f64>) = pairs.unzip();
    correlation::follows(&latencies, &loads)
}

/// True when some disk got less or more at an event, and no relation that was found explains it.
fn is_unexplained(event: &Incident, relations: &[Relation]) -> bool {
    event.changes.iter().any(|change| match change.role {
        Role::Slower | Role::Faster => !relations.iter().any(|relation| {
            relation.kind != RelationKind::Unclear && [relation.one, relation.other].contains(&change.disk)
        }),
        Role::Unclear => true,
        _ => false,
    })
}

/// True when one disk changed what it asks for and another, busy all the while, did not feel it.
fn shows_independence(event: &Incident) -> bool {
    let changed = event.changes.iter().any(|change| change.role.may_harm() || change.role.may_relieve());
    changed && event.changes.iter().any(|change| change.role == Role::Same)
}

#[cfg(test)]
mod tests;
