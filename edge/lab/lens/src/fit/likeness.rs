//! How far one capture is from another, histogram by histogram.

use iostats::{Kind, Operations};
use serde::Serialize;
use statistics::words::percent;

use crate::capture::{Capture, Disk};
use crate::divergence::divergence;

/// Up to this divergence, in bits, histograms are alike.
pub const ALIKE_MAX: f64 = 0.02;
/// Up to this they are near; beyond they differ.
pub const NEAR_MAX: f64 = 0.1;

/// How far two captures are from each other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Likenesses {
    /// Pairs of disks: of the same name, else of the same place.
    pub disks: Vec<Likeness>,
    /// Disks that only one of them has.
    pub alone: Vec<String>,
}

/// How far two disks are from each other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Likeness {
    /// The first disk's name.
    pub one: String,
    /// The second's.
    pub other: String,
    /// Each histogram that both know and in which both have something: kind, operations, Jensen-Shannon divergence in bits.
    pub histograms: Vec<HistogramLikeness>,
    /// I/Os per second of the second by those of the first; none if the first has none.
    pub pace: Option<f64>,
    /// Mean latency of the second by that of the first, where both are known.
    pub latency: Option<f64>,
    /// The same in words.
    pub sentences: Vec<String>,
}

/// How far one histogram is from another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct HistogramLikeness {
    /// What it counts.
    #[serde(with = "crate::named::kind")]
    pub kind: Kind,
    /// Of which I/Os.
    #[serde(with = "crate::named::operations")]
    pub operations: Operations,
    /// Bits, 0..=1.
    pub divergence: f64,
}

/// How far `other` is from `one`.
pub fn likeness(one: &Capture, other: &Capture) -> Likenesses {
    let mut taken = vec![false; other.disks.len()];
    let (mut disks, mut alone) = (Vec::new(), Vec::new());
    for (index, disk) in one.disks.iter().enumerate() {
        let named = other.disks.iter().position(|candidate| candidate.name == disk.name);
        let place = named.or((index < other.disks.len()).then_some(index)).filter(|&place| !taken[place]);
        match place {
            Some(place) => {
                taken[place] = true;
                disks.push(of_disks(disk, &other.disks[place]));
            }
            None => alone.push(disk.name.clone()),
        }
    }
    let rest = other.disks.iter().zip(&taken).filter(|(_, taken)| !**taken);
    alone.extend(rest.map(|(disk, _)| disk.name.clone()));
    Likenesses { disks, alone }
}

fn of_disks(one: &Disk, other: &Disk) -> Likeness {
    let mut histograms = Vec::new();
    for kind in Kind::ALL {
        let all = if kind == Kind::SeekDistanceNearest { &Operations::ALL[..1] } else { &Operations::ALL };
        for &operations in all {
            let counts = |disk: &Disk| disk.counts(kind, operations).unwrap_or_default();
            let found = divergence(&counts(one), &counts(other));
            histograms.extend(found.map(|divergence| HistogramLikeness { kind, operations, divergence }));
        }
    }
    let (whole, other_whole) = (one.whole(), other.whole());
    let iops = |disk: &Disk| {
        let seconds: f64 = disk.windows.iter().map(|window| window.seconds).sum();
        let ios: u64 = disk.windows.iter().map(|window| window.total(Operations::Both).ios).sum();
        (seconds > 0.0).then(|| ios as f64 / seconds)
    };
    let pace = iops(one).filter(|pace| *pace > 0.0).and_then(|pace| Some(iops(other)? / pace));
    let latency = |whole: &Option<crate::window::Window>| whole.as_ref()?.latency_mean_s(Operations::Both);
    let latency = latency(&whole).filter(|one| *one > 0.0).and_then(|one| Some(latency(&other_whole)? / one));
    let (one, other) = (one.name.clone(), other.name.clone());
    let mut result = Likeness { one, other, histograms, pace, latency, sentences: Vec::new() };
    result.sentences = sentences(&result);
    result
}

fn sentences(found: &Likeness) -> Vec<String> {
    let word = |divergence: f64| match divergence {
        small if small <= ALIKE_MAX => "the same",
        small if small <= NEAR_MAX => "similar",
        _ => "different",
    };
    let name = |kind| match kind {
        Kind::Length => "sizes",
        Kind::SeekDistance => "distances",
        Kind::SeekDistanceNearest => "distances to the nearest of 16",
        Kind::Latency => "latencies",
        Kind::Outstanding => "outstanding I/Os",
        Kind::Interarrival => "times between I/Os",
    };
    let mut sentences: Vec<String> = found
        .histograms
        .iter()
        .filter(|one| one.operations == Operations::Both)
        .map(|one| {
            format!(
                "The {} are {} (JS divergence {:.2}).",
                name(one.kind),
                word(one.divergence),
                one.divergence
            )
        })
        .collect();
    let relative = |ratio: f64| format!("{}{}", if ratio > 1.0 { "+" } else { "" }, percent(ratio - 1.0));
    if let Some(pace) = found.pace {
        sentences.push(format!("IOPS differ by {} from the first.", relative(pace)));
    }
    if let Some(latency) = found.latency {
        sentences.push(format!("The mean latency differs by {} from the first.", relative(latency)));
    }
    sentences
}
