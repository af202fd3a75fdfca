//! Statistics as bytes, for the series of a disk (`docs/formats/statistics.md`): sparse, a few hundred bytes for a second.
//!
//! Decoding never panics, allocates a fixed amount, and takes only what encoding gives: one form for one value.

use crate::histogram::Histogram;
use crate::latency::{FINE_BUCKETS, FineLatency};
use crate::statistics::{COUNTERS, Counters, Statistics};
use base::bytes::{Reader, Truncated, Writer};
use base::checksum::{is_sealed, seal};

/// The version that [`Statistics::encode`] writes and the only one so far.
pub const VERSION: u8 = 1;
const CHECKSUM_PLACE: usize = 4;

/// Why bytes are not statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Written by a newer program.
    #[error("the statistics have version {found}; this program reads version {VERSION}")]
    Version {
        /// The version found.
        found: u8,
    },
    /// The checksum does not fit the bytes.
    #[error("the checksum of the statistics does not match their bytes")]
    Checksum,
    /// The bytes end too early.
    #[error("the statistics are cut short")]
    Truncated(#[from] Truncated),
    /// A field that no encoder writes.
    #[error("the statistics hold {0}")]
    Invalid(&'static str),
}

impl Statistics {
    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::with_capacity(512);
        writer.u8(VERSION);
        writer.slice(&[0; 7]);
        for counter in self.counters.all() {
            put_varint(&mut writer, u128::from(counter));
        }
        self.length.iter().for_each(|histogram| put_histogram(&mut writer, histogram));
        self.seek_distance.iter().for_each(|histogram| put_histogram(&mut writer, histogram));
        put_histogram(&mut writer, &self.seek_distance_nearest);
        self.latency.iter().for_each(|histogram| put_histogram(&mut writer, histogram));
        self.outstanding.iter().for_each(|histogram| put_histogram(&mut writer, histogram));
        self.interarrival.iter().for_each(|histogram| put_histogram(&mut writer, histogram));
        self.latency_fine.iter().for_each(|fine| put_fine(&mut writer, fine));
        let mut bytes = writer.into_bytes();
        seal(&mut bytes, CHECKSUM_PLACE);
        bytes
    }

    /// From bytes.
    ///
    /// # Errors
    /// When the bytes are not exactly what [`Statistics::encode`] wrote.
    pub fn decode(bytes: &[u8]) -> Result<Statistics, DecodeError> {
        let mut reader = Reader::new(bytes);
        let version = reader.u8();
        let reserved = reader.slice(3);
        let _checksum = reader.u32();
        reader.finish()?;
        if version != VERSION {
            return Err(DecodeError::Version { found: version });
        }
        if !is_sealed(bytes, CHECKSUM_PLACE) {
            return Err(DecodeError::Checksum);
        }
        if reserved != [0; 3] {
            return Err(DecodeError::Invalid("a reserved byte that is not zero"));
        }
        let mut counters = [0u64; COUNTERS];
        for counter in &mut counters {
            *counter = take_u64(&mut reader)?;
        }
        let statistics = Statistics {
            counters: Counters::from_all(counters),
            length: take_histograms(&mut reader)?,
            seek_distance: take_histograms(&mut reader)?,
            seek_distance_nearest: take_histogram(&mut reader)?,
            latency: take_histograms(&mut reader)?,
            outstanding: take_histograms(&mut reader)?,
            interarrival: take_histograms(&mut reader)?,
            latency_fine: [take_fine(&mut reader)?, take_fine(&mut reader)?],
        };
        reader.finish()?;
        match reader.remaining() {
            0 => Ok(statistics),
            _ => Err(DecodeError::Invalid("bytes after their end")),
        }
    }
}

fn put_histogram<const N: usize>(writer: &mut Writer, histogram: &Histogram<N>) {
    put_counts(writer, &histogram.counts);
    if histogram.count() > 0 {
        put_varint(writer, zigzag(i128::from(histogram.min)));
        put_varint(writer, zigzag(i128::from(histogram.max)));
        put_varint(writer, zigzag(histogram.sum));
    }
}

fn take_histogram<const N: usize>(reader: &mut Reader) -> Result<Histogram<N>, DecodeError> {
    let mut histogram = Histogram::default();
    if take_counts(reader, &mut histogram.counts)? > 0 {
        histogram.min = take_i64(reader)?;
        histogram.max = take_i64(reader)?;
        histogram.sum = unzigzag(take_varint(reader)?);
        if histogram.min > histogram.max {
            return Err(DecodeError::Invalid("a minimum above its maximum"));
        }
    }
    Ok(histogram)
}

fn take_histograms<const N: usize, const M: usize>(
    reader: &mut Reader,
) -> Result<[Histogram<N>; M], DecodeError> {
    let mut histograms = [const { None }; M];
    for histogram in &mut histograms {
        *histogram = Some(take_histogram(reader)?);
    }
    Ok(histograms.map(|histogram| histogram.expect("the loop above filled every place")))
}

fn put_fine(writer: &mut Writer, fine: &FineLatency) {
    put_counts(writer, &fine.counts[..]);
    if fine.count > 0 {
        put_varint(writer, u128::from(fine.min_ns));
        put_varint(writer, u128::from(fine.max_ns));
        put_varint(writer, fine.sum_ns);
    }
}

fn take_fine(reader: &mut Reader) -> Result<FineLatency, DecodeError> {
    let mut fine = FineLatency::default();
    fine.count = take_counts(reader, &mut fine.counts[..])?;
    if fine.count > 0 {
        fine.min_ns = take_u64(reader)?;
        fine.max_ns = take_u64(reader)?;
        fine.sum_ns = take_varint(reader)?;
        if fine.min_ns > fine.max_ns {
            return Err(DecodeError::Invalid("a minimum above its maximum"));
        }
    }
    Ok(fine)
}

/// The number of buckets that are not empty, then for each how many empty ones precede it and its count.
pub(crate) fn put_counts(writer: &mut Writer, counts: &[u64]) {
    put_varint(writer, counts.iter().filter(|&&count| count > 0).count() as u128);
    let mut empty = 0u32;
    for &count in counts {
        if count == 0 {
            empty += 1;
            continue;
        }
        put_varint(writer, u128::from(empty));
        put_varint(writer, u128::from(count));
        empty = 0;
    }
}

/// Returns the sum of the counts.
pub(crate) fn take_counts(reader: &mut Reader, counts: &mut [u64]) -> Result<u64, DecodeError> {
    const _: () = assert!(FINE_BUCKETS < u16::MAX as usize, "indices fit easily");
    let used = take_u64(reader)?;
    if used > counts.len() as u64 {
        return Err(DecodeError::Invalid("more buckets than there are"));
    }
    let (mut index, mut total) = (0u64, 0u64);
    for _ in 0..used {
        index = index.saturating_add(take_u64(reader)?);
        let count = take_u64(reader)?;
        reader.finish()?;
        let place = usize::try_from(index).ok().and_then(|index| counts.get_mut(index));
        let place = place.ok_or(DecodeError::Invalid("a bucket beyond the last"))?;
        if count == 0 {
            return Err(DecodeError::Invalid("an empty bucket among those that are not"));
        }
        *place = count;
        total = total.checked_add(count).ok_or(DecodeError::Invalid("counts beyond 64 bits"))?;
        index += 1;
    }
    Ok(total)
}

/// Seven bits a byte, lowest first, the top bit set on all but the last (LEB128).
pub(crate) fn put_varint(writer: &mut Writer, mut value: u128) {
    while value >= 0x80 {
        writer.u8(value as u8 | 0x80);
        value >>= 7;
    }
    writer.u8(value as u8);
}

fn take_varint(reader: &mut Reader) -> Result<u128, DecodeError> {
    let mut value = 0u128;
    for shift in (0..128).step_by(7) {
        let byte = reader.u8();
        let bits = u128::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            return Err(DecodeError::Invalid("a number beyond 128 bits"));
        }
        value |= bits << shift;
        if byte & 0x80 == 0 {
            if byte == 0 && shift > 0 {
                return Err(DecodeError::Invalid("a number longer than it needs to be"));
            }
            return Ok(value);
        }
    }
    Err(DecodeError::Invalid("a number beyond 128 bits"))
}

pub(crate) fn take_u64(reader: &mut Reader) -> Result<u64, DecodeError> {
    u64::try_from(take_varint(reader)?).map_err(|_| DecodeError::Invalid("a number beyond 64 bits"))
}

fn take_i64(reader: &mut Reader) -> Result<i64, DecodeError> {
    i64::try_from(unzigzag(take_varint(reader)?)).map_err(|_| DecodeError::Invalid("a number beyond 64 bits"))
}

/// Small magnitudes of either sign become small numbers: 0, -1, 1, -2 … are 0, 1, 2, 3 ….
fn zigzag(value: i128) -> u128 {
    ((value << 1) ^ (value >> 127)) as u128
}

fn unzigzag(value: u128) -> i128 {
    (value >> 1) as i128 ^ -((value & 1) as i128)
}

#[cfg(test)]
mod tests;
