//! What a disk did between two events, and how that changed.

use iostats::{Kind, Operations};
use serde::Serialize;

use crate::divergence::divergence;
use crate::window::Window;

use super::grid::Row;

/// Fewer I/Os tell nothing of a pattern.
const IOS_MIN: u64 = 100;
/// A disk with less than this part of its other pace is silent.
const SILENT: f64 = 0.02;
/// By Little's law, a disk with more than this part of what it had outstanding on the other side has not stopped asking.
const STILL_ASKS: f64 = 0.5;
/// A pattern has moved when a histogram's divergence is above this, in bits.
pub const PATTERN_MOVED: f64 = 0.1;
/// A load has changed when both its pace and its outstanding I/Os have, by more than this (as a ratio: 15 %).
const LOAD_CHANGED: f64 = 0.14;
/// A disk is slower or faster when its pace or its latency has changed by more than this (10 %).
pub(super) const EFFECT_MIN: f64 = 0.095;
/// A disk stayed the same only if a change of this size would have been seen (a logarithm: 35 %).
const SEEN_MIN: f64 = 0.3;
/// A change must be so many standard errors large: windows hang together, so three are not enough.
const ERRORS_MIN: f64 = 4.0;
/// Of few windows it must be more: as many as Student's t exceeds by chance once in a thousand times, on either side.
const CONFIDENCE: f64 = 0.999;
/// And so many deviations of single windows,
const DEVIATIONS_MIN: f64 = 2.0;
/// or so many standard errors that this does not matter.
const ERRORS_SURE: f64 = 8.0;

/// What a disk did in a stretch of time.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Figures {
    /// I/Os per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// The mean latency in seconds, if it is known.
    pub latency_s: Option<f64>,
    /// The 99th percentile of the latency in seconds, if it is known.
    pub p99_s: Option<f64>,
    /// I/Os outstanding on average: what arriving I/Os found where that is known, else by Little's law.
    pub outstanding: Option<f64>,
    /// Windows that this is of.
    pub windows: usize,
}

/// How a disk changed at an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It did nothing on either side, or nothing is known of it.
    Absent,
    /// It did nothing before.
    Started,
    /// It did nothing after.
    Stopped,
    /// It asked for more: pace and outstanding I/Os rose.
    MoreLoad,
    /// It asked for less: both fell.
    LessLoad,
    /// It asked for something else: sizes or distances moved.
    OtherPattern,
    /// It asked for the same and got less: slower, or fewer.
    Slower,
    /// It asked for the same and got more.
    Faster,
    /// Its pace changed, and whether it asked for that is unknown: there are no latencies.
    Unclear,
    /// Nothing changed.
    Same,
    /// Its pace or latency differs, but by no more than windows differ by themselves: neither a change nor proof of none.
    Unsure,
}

impl Role {
    /// Whether something changed, and surely.
    pub(super) fn is_change(self) -> bool {
        !matches!(self, Role::Absent | Role::Same | Role::Unsure)
    }

    /// May a change of this kind take something from others?
    pub(super) fn may_harm(self) -> bool {
        matches!(self, Role::Started | Role::MoreLoad | Role::OtherPattern)
    }

    /// May it give something back?
    pub(super) fn may_relieve(self) -> bool {
        matches!(self, Role::Stopped | Role::LessLoad | Role::OtherPattern)
    }
}

/// A disk at an event.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// Index of the disk in the capture.
    pub disk: usize,
    /// What it did before.
    pub before: Figures,
    /// What it did after.
    pub after: Figures,
    /// The divergence of its sizes in bits, if there were enough I/Os on both sides.
    pub length_moved: Option<f64>,
    /// That of its distances.
    pub distance_moved: Option<f64>,
    /// What it comes to.
    pub role: Role,
    /// How much slower (above 0) or faster it became, as a logarithm: the larger of the changes of pace and latency.
    pub effect: f64,
}

/// One side of an event.
struct Side {
    figures: Figures,
    /// The pace of the middle window: a disk that began a little before the others' change was silent for all that.
    typical: f64,
    whole: Option<Window>,
    /// Logarithm of the pace, its mean and the square of its standard error.
    pace: Spread,
    latency: Spread,
}

/// How windows vary around their mean.
#[derive(Debug, Clone, Copy, Default)]
struct Spread {
    count: f64,
    /// The sum of squares around the mean.
    squares: f64,
}

impl Spread {
    fn of(values: &[f64]) -> Spread {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count.max(1.0);
        Spread { count, squares: values.iter().map(|value| (value - mean).powi(2)).sum() }
    }

    /// True for a difference of means that is more than chance: many standard errors, and to be seen among the windows unless
    /// there are very many of them. Few windows may seem to vary less than they do, so both sides are taken together, and Student's t
    /// allows for the rest.
    fn tells(self, other: Spread, difference: f64) -> bool {
        difference.abs() >= EFFECT_MIN && difference.abs() > self.smallest(other)
    }

    /// The smallest difference of means that is more than chance.
    fn smallest(self, other: Spread) -> f64 {
        let freedom = self.count + other.count - 2.0;
        if freedom < 1.0 || self.count < 1.0 || other.count < 1.0 {
            return 0.0;
        }
        let deviation = ((self.squares + other.squares) / freedom).sqrt();
        let error = deviation * (1.0 / self.count + 1.0 / other.count).sqrt();
        let seen = (DEVIATIONS_MIN * deviation).min(ERRORS_SURE * error);
        let errors = ERRORS_MIN.max(statistics::student(0.5 + CONFIDENCE / 2.0, freedom));
        seen.max(errors * error)
    }
}

fn side(cells: &[Option<Window>]) -> Side {
    let known: Vec<&Window> = cells.iter().flatten().collect();
    let mut whole: Option<Window> = None;
    for window in &known {
        match &mut whole {
            Some(whole) => whole.append(window),
            None => whole = Some((*window).clone()),
        }
    }
    let seconds: f64 = known.iter().map(|window| window.seconds).sum();
    let total = whole.as_ref().map(|whole| whole.total(Operations::Both)).unwrap_or_default();
    let latency_s = whole.as_ref().and_then(|whole| whole.latency_mean_s(Operations::Both));
    let iops = if seconds > 0.0 { total.ios as f64 / seconds } else { 0.0 };
    let outstanding = whole.as_ref().and_then(|whole| whole.outstanding_mean);
    let figures = Figures {
        iops,
        bytes_per_second: if seconds > 0.0 { total.bytes as f64 / seconds } else { 0.0 },
        latency_s,
        p99_s: whole.as_ref().and_then(|whole| whole.percentile_s(Operations::Both, 0.99)),
        outstanding: outstanding.or(latency_s.map(|latency| latency * iops)),
        windows: known.len(),
    };
    let logs = |value: &dyn Fn(&Window) -> Option<f64>| -> Vec<f64> {
        known.iter().filter_map(|window| value(window)).filter(|value| *value > 0.0).map(f64::ln).collect()
    };
    let pace = Spread::of(&logs(&|window| Some(window.iops(Operations::Both))));
    let latency = Spread::of(&logs(&|window| window.latency_mean_s(Operations::Both)));
    let mut paces: Vec<f64> = known.iter().map(|window| window.iops(Operations::Both)).collect();
    paces.sort_by(f64::total_cmp);
    let typical = paces.get(paces.len() / 2).copied().unwrap_or(0.0);
    Side { figures, typical, whole, pace, latency }
}

/// Whether a disk's own pace or latency changes its level at an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Changes,
    Stays,
}

/// How disk `disk` changed at the cell `at`, between the events before and after it.
pub(super) fn change(disk: usize, row: &Row, (from, at, to): (usize, usize, usize), level: Level) -> Change {
    // The cell in which it happens is half of each; without it, if enough are left.
    let guard = |length: usize| usize::from(length > 6);
    let before = side(&row[from..at - guard(at - from)]);
    let after = side(&row[at + guard(to - at)..to]);
    let moved = |kind| {
        let counts = |side: &Side| side.whole.as_ref()?.counts(kind, Operations::Both).map(<[u64]>::to_vec);
        let (one, other) = (counts(&before)?, counts(&after)?);
        let enough = |counts: &[u64]| counts.iter().sum::<u64>() >= IOS_MIN;
        (enough(&one) && enough(&other)).then(|| divergence(&one, &other)).flatten()
    };
    let (length_moved, distance_moved) = (moved(Kind::Length), moved(Kind::SeekDistance));
    let pattern_moved =
        [length_moved, distance_moved].into_iter().flatten().any(|moved| moved > PATTERN_MOVED);
    let (role, effect) = role(&before, &after, level, pattern_moved);
    let (before, after) = (before.figures, after.figures);
    Change { disk, before, after, length_moved, distance_moved, role, effect }
}

/// Whether a disk does nothing on one side of an event, beside what it does on the other. One whose few I/Os are under way all
/// the time still asks for as much as it did, and is served badly: on a single spindle a reader in sequence may fall to a
/// hundredth when another begins.
fn is_silent(side: &Side, other: &Side) -> bool {
    let asked = |figures: &Figures| figures.latency_s.map(|latency| figures.iops * latency);
    let still_asks = match (asked(&side.figures), asked(&other.figures)) {
        (Some(mine), Some(theirs)) => side.typical > 0.0 && mine >= STILL_ASKS * theirs,
        _ => false,
    };
    other.typical > 0.0 && side.typical <= SILENT * other.typical && !still_asks
}

fn role(before: &Side, after: &Side, level: Level, pattern_moved: bool) -> (Role, f64) {
    let (old, new) = (&before.figures, &after.figures);
    if old.windows == 0 || new.windows == 0 || before.typical.max(after.typical) <= 0.0 {
        return (Role::Absent, 0.0);
    }
    if is_silent(before, after) {
        return (Role::Started, 0.0);
    }
    if is_silent(after, before) {
        return (Role::Stopped, 0.0);
    }
    let ratio = |old: Option<f64>, new: Option<f64>| match (old, new) {
        (Some(old), Some(new)) if old > 0.0 && new > 0.0 => Some((new / old).ln()),
        _ => None,
    };
    let pace = (new.iops / old.iops).ln();
    let latency = ratio(old.latency_s, new.latency_s);
    let differs = pace.abs().max(latency.unwrap_or(0.0).abs()) >= EFFECT_MIN;
    let is_blind = before.pace.smallest(after.pace) > SEEN_MIN;
    let none = if differs || is_blind { Role::Unsure } else { Role::Same };
    if level == Level::Stays && !pattern_moved {
        return (none, 0.0);
    }
    let pace = if before.pace.tells(after.pace, pace) { pace } else { 0.0 };
    let slower = latency.filter(|latency| before.latency.tells(after.latency, *latency)).unwrap_or(0.0);
    if pattern_moved {
        return (Role::OtherPattern, 0.0);
    }
    let Some(outstanding) = ratio(old.outstanding, new.outstanding).filter(|_| latency.is_some()) else {
        return (if pace == 0.0 { none } else { Role::Unclear }, 0.0);
    };
    // A closed loop that is served faster does more with the same outstanding; one that asks for more has more of both.
    if pace > LOAD_CHANGED && outstanding > LOAD_CHANGED {
        return (Role::MoreLoad, 0.0);
    }
    if pace < -LOAD_CHANGED && outstanding < -LOAD_CHANGED {
        return (Role::LessLoad, 0.0);
    }
    // At a fixed rate the pace stays, and only the latency tells.
    let effect = if slower.abs() > pace.abs() { slower } else { -pace };
    match effect {
        effect if effect >= EFFECT_MIN => (Role::Slower, effect),
        effect if effect <= -EFFECT_MIN => (Role::Faster, effect),
        _ => (none, 0.0),
    }
}
