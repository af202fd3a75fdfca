//! The written form of a histogram: only buckets that hold something, and the exact figures beside them.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use super::scheme::{FIO_BUCKETS, bucket_of};
use super::{Histogram, HistogramError};

/// `{"buckets": [[index, count], …], "min_ns": …, "max_ns": …, "sum_ns": …}`; an empty histogram has no min and max.
#[derive(Serialize, Deserialize)]
struct Sparse {
    buckets: Vec<(usize, u64)>,
    min_ns: Option<u64>,
    max_ns: Option<u64>,
    sum_ns: Sum,
}

/// A number while it fits 64 bits, as most readers have no wider one; else its digits.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Sum {
    Number(u64),
    Digits(String),
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let sum_ns = u64::try_from(self.sum).map_or_else(|_| Sum::Digits(self.sum.to_string()), Sum::Number);
        let buckets = self.counts().iter().copied().enumerate().filter(|&(_, count)| count > 0).collect();
        Sparse { buckets, min_ns: self.min_ns(), max_ns: self.max_ns(), sum_ns }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Histogram, D::Error> {
        let sparse = Sparse::deserialize(deserializer)?;
        let sum = match sparse.sum_ns {
            Sum::Number(number) => u128::from(number),
            Sum::Digits(digits) => digits.parse().map_err(D::Error::custom)?,
        };
        restored(&sparse.buckets, sparse.min_ns, sparse.max_ns, sum).map_err(D::Error::custom)
    }
}

/// The histogram of these parts, refused unless they agree with each other.
fn restored(
    buckets: &[(usize, u64)],
    min_ns: Option<u64>,
    max_ns: Option<u64>,
    sum: u128,
) -> Result<Histogram, HistogramError> {
    // Older programs had fio's buckets, the last of which held all that was slower; of that no more is known than the slowest.
    let is_older = buckets.iter().all(|&(index, _)| index < FIO_BUCKETS);
    let slowest = max_ns.filter(|max| is_older && bucket_of(*max) >= FIO_BUCKETS);
    let place = |&(index, count): &(usize, u64)| match slowest {
        Some(slowest) if index == FIO_BUCKETS - 1 => (bucket_of(slowest), count),
        Some(_) | None => (index, count),
    };
    let mut histogram = Histogram::from_indexed(buckets.iter().map(place))?;
    match (histogram.range_allowed(), min_ns, max_ns) {
        (None, None, None) if sum == 0 => {}
        (Some((lowest, highest)), Some(min), Some(max)) => {
            let fits = lowest.contains(&min) && highest.contains(&max) && min <= max;
            let count = u128::from(histogram.count);
            // The largest possible sum may not fit when somebody invents the numbers.
            let bounds = (u128::from(min) * count)..=u128::from(max).saturating_mul(count);
            if !fits || !bounds.contains(&sum) {
                return Err(HistogramError::Contradiction);
            }
            (histogram.min, histogram.max, histogram.sum) = (min, max, sum);
        }
        _ => return Err(HistogramError::Contradiction),
    }
    Ok(histogram)
}
