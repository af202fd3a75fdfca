//! What disks saw over time: surfaces of several disks on one scale.

use super::{Chart, Numbers, Panel, Shape, Surfaces, View};
use crate::figures::duration;
use crate::{DISKS_DRAWN_MAX, SURFACE_COLUMNS_MAX, SURFACE_COLUMNS_MIN, SURFACE_NUMBERS_MAX};
use iostats::{Kind, Operations};
use lens::{Capture, Resolution, Surface, SurfaceGroup};
use measured::{Run, StageRun};

/// Numbers of a disk in one column: all kinds and operations, and the fine latencies.
const NUMBERS_A_COLUMN: usize = 500;

/// What the disks of a stage saw, as a capture. Disks that go by what they were opened as get the plan's names.
pub fn capture_of(name: String, run: &Run, stage: &StageRun) -> Capture {
    let called = |disk: &str| {
        let mut targets = run.targets.iter().filter(|target| target.opened == disk);
        match (targets.next(), targets.next()) {
            (Some(only), None) => only.name.clone(),
            _ => disk.to_owned(),
        }
    };
    let disks = (stage.disks.iter())
        .map(|disk| {
            let samples = disk.samples.iter().map(|of| (of.at, of.seconds, &of.statistics));
            lens::Disk::from_statistics(called(&disk.name), samples)
        })
        .collect();
    Capture { source: name, disks, notes: Vec::new() }
}

/// Columns that each of so many disks may have.
pub fn columns_of(disks: usize) -> usize {
    let each = SURFACE_NUMBERS_MAX / NUMBERS_A_COLUMN / disks.max(1);
    each.clamp(SURFACE_COLUMNS_MIN, SURFACE_COLUMNS_MAX)
}

/// The surfaces of a capture with at most so many columns; nothing when its disks saw nothing.
pub fn chart(capture: &Capture, columns: usize) -> Option<Chart> {
    let shown: Vec<lens::Disk> = capture.disks.iter().take(DISKS_DRAWN_MAX).cloned().collect();
    let left_out = capture.disks.len() - shown.len();
    let samples = shown.iter().map(|disk| disk.windows.len()).max().unwrap_or(0);
    let shown = Capture { disks: shown, ..Capture::default() };
    let views: Vec<View> = lens::surfaces_within(&shown, columns).iter().filter_map(view).collect();
    if views.is_empty() {
        return None;
    }
    let mut caption = "x: time. y: buckets. z: I/Os per second. All disks have one scale.".to_owned();
    let joined = samples.div_ceil(columns.max(1));
    if joined > 1 {
        caption.push_str(&format!(" Each column covers {joined} samples."));
    }
    if left_out > 0 {
        caption.push_str(&format!(" Not drawn: {}.", statistics::words::counted(left_out, "disk")));
    }
    let disks = shown.disks.into_iter().map(|disk| disk.name).collect();
    Some(Chart { title: capture.source.clone(), caption, shape: Shape::Surfaces(Surfaces { disks, views }) })
}

fn view(group: &SurfaceGroup) -> Option<View> {
    // Empty buckets at both ends are left out: a dozen of twenty are.
    let (first, last) = group.used?;
    let kind = match group.resolution {
        Resolution::Coarse => group.kind.name().to_owned(),
        Resolution::Fine => format!("{} (fine)", group.kind.name()),
    };
    Some(View {
        kind,
        operations: group.operations.name().to_owned(),
        title: title(group),
        axis: axis(group.kind).to_owned(),
        labels: (first..=last).map(|bucket| label(group, bucket)).collect(),
        top: group.z_max,
        panels: group.surfaces.iter().map(|surface| panel(surface, first, last)).collect(),
    })
}

/// `Latency of reads`.
fn title(group: &SurfaceGroup) -> String {
    let what = match group.kind {
        Kind::Length => "Size",
        Kind::SeekDistance => "Seek distance from the previous I/O",
        Kind::SeekDistanceNearest => "Seek distance from the nearest of the last 16 I/Os",
        Kind::Latency => "Latency",
        Kind::Outstanding => "Outstanding I/Os at arrival",
        Kind::Interarrival => "Interarrival time",
    };
    let of = match group.operations {
        Operations::Both => "reads and writes",
        Operations::Reads => "reads",
        Operations::Writes => "writes",
    };
    format!("{what} of {of}")
}

fn axis(kind: Kind) -> &'static str {
    match kind {
        Kind::Length => "size",
        Kind::SeekDistance | Kind::SeekDistanceNearest => "distance in sectors",
        Kind::Latency => "latency",
        Kind::Outstanding => "I/Os outstanding",
        Kind::Interarrival => "interarrival time",
    }
}

/// `≤ 30 ms`: buckets of times and sizes with their unit, others as `lens` calls them.
fn label(group: &SurfaceGroup, bucket: usize) -> String {
    // The last bucket has no end: it begins where the one before it ends.
    let (sign, limit) = match (group.limits[bucket], bucket.checked_sub(1).map(|before| group.limits[before]))
    {
        (Some(limit), _) => ("≤", limit),
        (None, Some(Some(limit))) => (">", limit),
        (None, _) => return group.y[bucket].clone(),
    };
    match group.unit {
        "us" => format!("{sign} {}", plain_duration(limit as f64 * 1e3)),
        "ns" => format!("{sign} {}", plain_duration(limit as f64)),
        "bytes" if limit > 0 && limit % 1024 == 0 => {
            format!("{sign} {}", base::units::format_bytes(limit.unsigned_abs()))
        }
        "bytes" => format!("{sign} {limit} B"),
        _ => group.y[bucket].clone(),
    }
}

/// As [`duration`], without digits that say nothing: `1 ms`.
fn plain_duration(ns: f64) -> String {
    let text = duration(ns);
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

/// A column that is not known stands between two that do not join.
fn panel(surface: &Surface, first: usize, last: usize) -> Panel {
    let (mut x, mut seconds, mut z) = (Vec::new(), Vec::new(), Vec::new());
    for (index, column) in surface.z.iter().enumerate() {
        let at = surface.x[index];
        if let (Some(&before), Some(&lasted)) = (x.last(), seconds.last()) {
            let end: f64 = before + lasted;
            // Samples are a little early or late: half of one is no gap.
            if at - end > 0.5 * surface.seconds[index] {
                x.push(end);
                seconds.push(at - end);
                z.push(Numbers::default());
            }
        }
        x.push(at);
        seconds.push(surface.seconds[index]);
        z.push(Numbers(column[first..=last].to_vec()));
    }
    Panel { x: Numbers(x), seconds: Numbers(seconds), z }
}
