//! How unevenly I/Os come: dispersion at many time scales, peaks, self-similarity, bursts.

use serde::Serialize;

/// The shortest time scale, in ns.
const BASE_NS: u64 = 10_000_000;
/// Time scales, each twice the one before: 10 ms to 164 s.
const SCALES: usize = 15;
/// A variance of fewer bins tells nothing.
const BINS_MIN: u64 = 20;
/// Gaps that make bursts hold this part of the time, at least.
const PAUSES_MIN: f64 = 0.3;
/// And are so many times as long as the others.
const PAUSE_FACTOR: f64 = 8.0;
/// Pauses that must have been seen.
const PAUSES_COUNT_MIN: u64 = 8;

/// How unevenly I/Os come.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Burstiness {
    /// Seconds of a bin, and the variance of I/Os in a bin by their mean: 1 for arrivals by chance (Poisson), 0 for even ones.
    pub dispersion: Vec<(f64, f64)>,
    /// The busiest second by the mean second; none in less than two seconds.
    pub peak_second: Option<f64>,
    /// The busiest minute by the mean minute; none in less than two minutes.
    pub peak_minute: Option<f64>,
    /// Standard deviation of the time between I/Os by its mean: 1 by chance, 0 for even ones.
    pub interarrival_variation: Option<f64>,
    /// The mean time between I/Os in seconds.
    pub interarrival_s: Option<f64>,
    /// Bursts with pauses between them, if that is how I/Os come.
    pub bursts: Option<Bursts>,
}

/// Bursts with pauses between them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bursts {
    /// I/Os in one, on average.
    pub ios: f64,
    /// A pause, in seconds, on average.
    pub pause_s: f64,
    /// The time between I/Os of one burst, in seconds, on average.
    pub interarrival_s: f64,
}

/// Counts in equal bins, of which only sums are kept.
#[derive(Debug, Clone)]
struct Scale {
    width_ns: u64,
    bin: u64,
    count: u64,
    closed: u64,
    sum: f64,
    squares: f64,
    most: u64,
}

impl Scale {
    fn new(width_ns: u64) -> Scale {
        Scale { width_ns, bin: 0, count: 0, closed: 0, sum: 0.0, squares: 0.0, most: 0 }
    }

    fn event(&mut self, at_ns: u64) {
        let bin = at_ns / self.width_ns;
        if bin > self.bin {
            self.sum += self.count as f64;
            self.squares += (self.count as f64).powi(2);
            self.most = self.most.max(self.count);
            // Bins without I/O add to their number alone.
            self.closed += bin - self.bin;
            (self.bin, self.count) = (bin, 0);
        }
        self.count += 1;
    }

    /// Mean and variance of the bins that are complete.
    fn moments(&self) -> Option<(f64, f64)> {
        let n = self.closed as f64;
        let mean = self.sum / n;
        (self.closed >= BINS_MIN).then(|| (mean, ((self.squares - n * mean * mean) / (n - 1.0)).max(0.0)))
    }

    fn peak(&self) -> Option<f64> {
        (self.closed >= 2 && self.sum > 0.0).then(|| self.most as f64 / (self.sum / self.closed as f64))
    }
}

/// Gaps of one power of two of nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Gaps {
    count: u64,
    sum_s: f64,
}

#[derive(Debug)]
pub(super) struct Arrivals {
    scales: Vec<Scale>,
    second: Scale,
    minute: Scale,
    previous_ns: Option<u64>,
    gaps: [Gaps; 65],
    squares: f64,
}

impl Default for Arrivals {
    fn default() -> Self {
        Arrivals {
            scales: (0..SCALES).map(|scale| Scale::new(BASE_NS << scale)).collect(),
            second: Scale::new(1_000_000_000),
            minute: Scale::new(60_000_000_000),
            previous_ns: None,
            gaps: [Gaps::default(); 65],
            squares: 0.0,
        }
    }
}

impl Arrivals {
    pub(super) fn event(&mut self, at_ns: u64) {
        self.scales.iter_mut().for_each(|scale| scale.event(at_ns));
        self.second.event(at_ns);
        self.minute.event(at_ns);
        if let Some(previous) = self.previous_ns.replace(at_ns) {
            let gap_ns = at_ns.saturating_sub(previous);
            let gaps = &mut self.gaps[64 - gap_ns.leading_zeros() as usize];
            gaps.count += 1;
            gaps.sum_s += gap_ns as f64 / 1e9;
            self.squares += (gap_ns as f64 / 1e9).powi(2);
        }
    }

    pub(super) fn finish(&self) -> Burstiness {
        let count: u64 = self.gaps.iter().map(|gaps| gaps.count).sum();
        let sum_s: f64 = self.gaps.iter().map(|gaps| gaps.sum_s).sum();
        let mean = (count > 0).then(|| sum_s / count as f64);
        let variation = mean.filter(|mean| *mean > 0.0 && count > 1).map(|mean| {
            let variance = (self.squares - count as f64 * mean * mean) / (count as f64 - 1.0);
            variance.max(0.0).sqrt() / mean
        });
        let dispersion = self.scales.iter().filter_map(|scale| {
            let (mean, variance) = scale.moments().filter(|(mean, _)| *mean > 0.0)?;
            Some((scale.width_ns as f64 / 1e9, variance / mean))
        });
        Burstiness {
            dispersion: dispersion.collect(),
            peak_second: self.second.peak(),
            peak_minute: self.minute.peak(),
            interarrival_variation: variation,
            interarrival_s: mean,
            bursts: self.bursts(),
        }
    }

    /// Gaps above some length that hold much of the time and are far longer than the others.
    fn bursts(&self) -> Option<Bursts> {
        let total: f64 = self.gaps.iter().map(|gaps| gaps.sum_s).sum();
        let sum = |gaps: &[Gaps]| {
            gaps.iter().fold((0u64, 0.0), |(count, sum), gaps| (count + gaps.count, sum + gaps.sum_s))
        };
        (1..self.gaps.len()).rev().find_map(|split| {
            let ((short, short_s), (long, long_s)) = (sum(&self.gaps[..split]), sum(&self.gaps[split..]));
            if long < PAUSES_COUNT_MIN || short < long || long_s < PAUSES_MIN * total {
                return None;
            }
            let (within, pause) = (short_s / short as f64, long_s / long as f64);
            // A gap half as long as a pause would be neither.
            let between = self.gaps[split - 1].count + self.gaps[split.saturating_sub(2)].count;
            (pause > PAUSE_FACTOR * within && between * 4 <= long).then(|| Bursts {
                ios: short as f64 / long as f64 + 1.0,
                pause_s: pause,
                interarrival_s: within,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Random;

    /// Arrivals with gaps in ns.
    fn of(gaps: impl Iterator<Item = u64>) -> Burstiness {
        let (mut arrivals, mut at) = (Arrivals::default(), 0);
        for gap in gaps {
            arrivals.event(at);
            at += gap;
        }
        arrivals.finish()
    }

    fn exponential(random: &mut Random, mean_ns: f64) -> u64 {
        let uniform = ((random.bits() >> 11) as f64 + 1.0) / (1u64 << 53) as f64;
        (-uniform.ln() * mean_ns) as u64
    }

    #[test]
    fn arrivals_by_chance_have_a_dispersion_of_one_at_every_scale() {
        let mut random = Random::new(1);
        let found = of((0..400_000).map(|_| exponential(&mut random, 1e6)));
        for &(seconds, dispersion) in &found.dispersion {
            // The variance of n bins is known to within sqrt(2 / n).
            let error = 5.0 * (2.0 / (400.0 / seconds)).sqrt();
            assert!((dispersion - 1.0).abs() < error, "{seconds} s: {dispersion}");
        }
        assert!((found.interarrival_variation.unwrap() - 1.0).abs() < 0.02, "{found:?}");
        assert!(found.peak_second.unwrap() < 1.2 && found.bursts.is_none(), "{found:?}");
    }

    #[test]
    fn even_arrivals_have_none() {
        let found = of((0..100_000).map(|_| 1_000_000));
        assert!(found.dispersion.iter().all(|(_, dispersion)| *dispersion < 1e-6), "{found:?}");
        assert_eq!((found.interarrival_variation, found.bursts), (Some(0.0), None));
        assert!(
            (found.interarrival_s.unwrap() - 0.001).abs() < 1e-9 && found.peak_second == Some(1.0),
            "{found:?}"
        );
    }

    #[test]
    fn bursts_and_their_pauses_are_found() {
        let mut random = Random::new(2);
        let found = of((0..40_000).map(|index| {
            if index % 50 == 49 {
                random.range(180_000_000..220_000_000)
            } else {
                random.range(100_000..300_000)
            }
        }));
        let bursts = found.bursts.unwrap();
        assert!((bursts.ios - 50.0).abs() < 0.5, "{bursts:?}");
        assert!(
            (bursts.pause_s - 0.2).abs() < 0.004 && (bursts.interarrival_s - 0.000_2).abs() < 1e-5,
            "{bursts:?}"
        );
        assert!(found.dispersion[0].1 > 10.0 && found.interarrival_variation.unwrap() > 3.0, "{found:?}");
    }
}
