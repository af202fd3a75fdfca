//! Which of `count` blocks a random I/O goes to: the distributions of fio and of the zones of fio, DiskSPD and JEDEC.
//!
//! Popular blocks of Zipf and Pareto are strewn over the span by a multiplication, as fio strews them by a hash: neighbours in
//! popularity are no neighbours on the disk.

use base::Random;
use plan::{Distribution, Extent};

/// A sampler of block indices.
#[derive(Debug, Clone)]
pub enum Popularity {
    /// All alike.
    Uniform,
    /// By rank.
    Zipf(Zipf, Layout),
    /// fio's: the rank is `count * u^power`.
    Pareto {
        /// log(h) / log(1 - h).
        power: f64,
        /// Where ranks stand.
        layout: Layout,
    },
    /// Around a middle.
    Normal {
        /// The middle, 0..=1.
        center: f64,
        /// Standard deviation as a part of the count.
        deviation: f64,
    },
    /// Zones: cumulative share of I/Os, first block, blocks.
    Zoned(Vec<(f64, u64, u64)>),
}

/// Where popular blocks stand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Layout {
    /// Strewn over the whole.
    Strewn,
    /// From this part of the whole on, one behind another.
    From(f64),
}

/// 2^64 divided by the golden ratio, made odd: multiples of it are spread evenly (Knuth, TAOCP 3, 6.4).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl Layout {
    fn of(center: Option<f64>) -> Layout {
        center.map_or(Layout::Strewn, Layout::From)
    }

    fn place(self, rank: u64, count: u64) -> u64 {
        match self {
            // The high half of a product is an even spread over 0..count.
            Layout::Strewn => ((u128::from(rank.wrapping_mul(GOLDEN)) * u128::from(count)) >> 64) as u64,
            Layout::From(center) => (rank + (center * count as f64) as u64) % count,
        }
    }
}

impl Popularity {
    /// A sampler of `count` blocks of `block` bytes each; `count` is not 0.
    pub fn new(distribution: &Distribution, count: u64, block: u64) -> Popularity {
        assert!(count > 0, "an empty span has no blocks");
        match distribution {
            Distribution::Uniform => Popularity::Uniform,
            Distribution::Zipf { theta, center } => {
                Popularity::Zipf(Zipf::new(count, *theta), Layout::of(*center))
            }
            Distribution::Pareto { h, center } => {
                Popularity::Pareto { power: h.ln() / (1.0 - h).ln(), layout: Layout::of(*center) }
            }
            Distribution::Normal { deviation, center } => {
                Popularity::Normal { center: center.unwrap_or(0.5), deviation: deviation / 100.0 }
            }
            Distribution::Zoned(zones) => {
                let mut first = 0;
                let mut share = 0.0;
                let mut table = Vec::new();
                for zone in zones {
                    let blocks = match zone.length {
                        Extent::Bytes(bytes) => bytes / block.max(1),
                        Extent::Percent(percent) => (count as f64 * percent / 100.0).round() as u64,
                    };
                    let blocks = blocks.min(count - first);
                    share += zone.ios / 100.0;
                    if blocks > 0 {
                        table.push((share, first, blocks));
                    }
                    first += blocks;
                }
                match table.is_empty() {
                    true => Popularity::Uniform,
                    false => Popularity::Zoned(table),
                }
            }
        }
    }

    /// The next block, below `count`.
    pub fn draw(&self, random: &mut Random, count: u64) -> u64 {
        match self {
            Popularity::Uniform => random.below(count),
            Popularity::Zipf(zipf, layout) => layout.place(zipf.draw(random) - 1, count),
            Popularity::Pareto { power, layout } => {
                let rank = ((count - 1) as f64 * unit(random).powf(*power)) as u64;
                layout.place(rank.min(count - 1), count)
            }
            Popularity::Normal { center, deviation } => {
                let wide = normal(random) * deviation + center;
                let part = wide.rem_euclid(1.0);
                ((part * count as f64) as u64).min(count - 1)
            }
            Popularity::Zoned(zones) => {
                let share = unit(random);
                let zone = zones.iter().find(|zone| share < zone.0).or(zones.last());
                let &(_, first, blocks) = zone.expect("a table of zones is not empty");
                first + random.below(blocks)
            }
        }
    }
}

/// A number in 0..1 with 53 random bits.
pub fn unit(random: &mut Random) -> f64 {
    (random.bits() >> 11) as f64 / (1u64 << 53) as f64
}

/// A standard normal number (Box and Muller).
fn normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * (1.0 - unit(random)).ln()).sqrt();
    radius * (std::f64::consts::TAU * unit(random)).cos()
}

/// Ranks 1..=count with a share in proportion to rank^-theta, by rejection-inversion (Hörmann and Derflinger, ACM TOMACS 6(3),
/// 1996): exact, with no table, in about one draw.
#[derive(Debug, Clone)]
pub struct Zipf {
    theta: f64,
    count: f64,
    integral_first: f64,
    integral_last: f64,
    shortcut: f64,
}

impl Zipf {
    /// For `count` ranks; `theta` is above 0 and not 1.
    pub fn new(count: u64, theta: f64) -> Zipf {
        let mut zipf =
            Zipf { theta, count: count as f64, integral_first: 0.0, integral_last: 0.0, shortcut: 0.0 };
        zipf.integral_first = zipf.integral(1.5) - 1.0;
        zipf.integral_last = zipf.integral(count as f64 + 0.5);
        zipf.shortcut = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    fn density(&self, x: f64) -> f64 {
        x.powf(-self.theta)
    }

    fn integral(&self, x: f64) -> f64 {
        (x.powf(1.0 - self.theta) - 1.0) / (1.0 - self.theta)
    }

    fn inverse(&self, x: f64) -> f64 {
        (1.0 + x * (1.0 - self.theta)).max(0.0).powf(1.0 / (1.0 - self.theta))
    }

    /// The next rank.
    pub fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let u = self.integral_last + unit(random) * (self.integral_first - self.integral_last);
            let x = self.inverse(u);
            let rank = x.round().clamp(1.0, self.count);
            if rank - x <= self.shortcut || u >= self.integral(rank + 0.5) - self.density(rank) {
                return rank as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::Zone;

    fn shares(distribution: &Distribution, count: u64) -> Vec<f64> {
        let popularity = Popularity::new(distribution, count, 4096);
        let mut random = Random::new(7);
        let mut counts = vec![0u64; count as usize];
        const DRAWS: u64 = 400_000;
        for _ in 0..DRAWS {
            counts[popularity.draw(&mut random, count) as usize] += 1;
        }
        counts.into_iter().map(|hits| hits as f64 / DRAWS as f64).collect()
    }

    #[test]
    fn zipf_shares_are_those_of_its_law_for_small_and_great_theta() {
        for theta in [0.5, 0.99, 1.2, 2.0] {
            let zipf = Zipf::new(50, theta);
            let mut random = Random::new(3);
            let mut counts = [0f64; 50];
            for _ in 0..400_000 {
                counts[zipf.draw(&mut random) as usize - 1] += 1.0 / 400_000.0;
            }
            let whole: f64 = (1..=50).map(|rank| f64::from(rank).powf(-theta)).sum();
            for rank in [1, 2, 5, 20, 50] {
                let expected = f64::from(rank).powf(-theta) / whole;
                let found = counts[rank as usize - 1];
                assert!(
                    (found - expected).abs() < 0.004,
                    "theta {theta}, rank {rank}: {found} of {expected}"
                );
            }
        }
    }

    #[test]
    fn zones_get_their_shares_and_an_open_end_gets_the_rest() {
        let zones = vec![
            Zone { ios: 50.0, length: Extent::Percent(5.0) },
            Zone { ios: 30.0, length: Extent::Percent(15.0) },
            Zone { ios: 20.0, length: Extent::Percent(80.0) },
        ];
        let shares = shares(&Distribution::Zoned(zones), 1000);
        let sum = |range: std::ops::Range<usize>| shares[range].iter().sum::<f64>();
        for (found, expected) in [(sum(0..50), 0.5), (sum(50..200), 0.3), (sum(200..1000), 0.2)] {
            assert!((found - expected).abs() < 0.01, "{found} of {expected}");
        }
    }

    #[test]
    fn normal_stands_around_the_middle_and_strewn_ranks_stand_everywhere() {
        let normal = shares(&Distribution::Normal { deviation: 10.0, center: None }, 100);
        let middle: f64 = normal[40..60].iter().sum();
        assert!((middle - 0.68).abs() < 0.02, "{middle} within one deviation");
        let zipf = shares(&Distribution::Zipf { theta: 1.2, center: None }, 100);
        let halves: (f64, f64) = (zipf[..50].iter().sum(), zipf[50..].iter().sum());
        assert!(halves.0 > 0.1 && halves.1 > 0.1, "{halves:?}");
        let from = shares(&Distribution::Zipf { theta: 1.2, center: Some(0.3) }, 100);
        assert!(from[30] > 0.2 && from[31] < from[30], "{:?}", &from[28..34]);
    }
}
