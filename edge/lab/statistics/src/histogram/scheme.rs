//! fio's buckets: which value falls where (axboe/fio, `stat.h`: `FIO_IO_U_PLAT_BITS` 6, `FIO_IO_U_PLAT_GROUP_NR` 29).
//!
//! Values below 128 have a bucket each. Above, every power of two is cut into 64 equal buckets. fio has them up to 2^34 ns (17.2 s);
//! ours go on in the same way up to 2^46 ns (19 h), for I/Os wait longer than 17 s where more is due than a target takes. The last
//! bucket also holds all that is slower. A bucket is told by its middle, so a value is off by less than 1/128.

/// log2 of the buckets per power of two.
const BITS: u32 = 6;
const PER_GROUP: usize = 1 << BITS;
const FIO_GROUPS: usize = 29;
const GROUPS: usize = FIO_GROUPS + 12;

/// Those that fio has.
pub(crate) const FIO_BUCKETS: usize = FIO_GROUPS * PER_GROUP;

/// All buckets.
pub(crate) const BUCKETS: usize = GROUPS * PER_GROUP;

/// The bucket of a value.
#[inline]
pub(crate) fn bucket_of(value: u64) -> usize {
    // The highest bit set; values below 128 count as their own index. Bit 0 is set for the sake of zero alone.
    let highest = 63 - (value | 1).leading_zeros();
    if highest <= BITS {
        return value as usize;
    }
    let dropped = highest - BITS;
    let index = ((dropped as usize + 1) << BITS) + ((value >> dropped) as usize & (PER_GROUP - 1));
    index.min(BUCKETS - 1)
}

/// The first value of a bucket, and the first after it; the last bucket ends at `u64::MAX`.
pub(crate) fn range_of(index: usize) -> (u64, u64) {
    assert!(index < BUCKETS, "there is no such bucket");
    if index < 2 * PER_GROUP {
        return (index as u64, index as u64 + 1);
    }
    let dropped = (index >> BITS) as u32 - 1;
    let from = (1u64 << (dropped + BITS)) + (((index & (PER_GROUP - 1)) as u64) << dropped);
    (from, if index == BUCKETS - 1 { u64::MAX } else { from + (1 << dropped) })
}

/// The value that stands for a bucket: its middle, as fio prints it. For the last one it is the middle of the part below
/// 2^46.
pub(crate) fn middle_of(index: usize) -> u64 {
    if index < 2 * PER_GROUP {
        return index as u64;
    }
    let dropped = (index >> BITS) as u32 - 1;
    range_of(index).0 + (1u64 << dropped) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_join_without_gap_and_hold_their_first_middle_and_last_value() {
        let mut next = 0;
        for index in 0..BUCKETS {
            let (from, to) = range_of(index);
            assert_eq!(from, next, "bucket {index} begins where the one before ends");
            for value in [from, middle_of(index), to - 1] {
                assert_eq!(bucket_of(value), index, "value {value}");
            }
            next = to;
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn the_index_is_that_of_fio() {
        // By hand from the formula of fio's stat.c: 1,000 ns has its highest bit at 9, so 3 bits are dropped:
        // (3 + 1) * 64 + (1000 >> 3 & 63) = 256 + 61. Its bucket is 1000..1008, printed as 1004.
        assert_eq!(bucket_of(1_000), 317);
        assert_eq!(range_of(317), (1_000, 1_008));
        assert_eq!(middle_of(317), 1_004);
        assert_eq!(bucket_of(127), 127);
        assert_eq!(bucket_of(128), 128);
        assert_eq!(bucket_of(129), 128);
        assert_eq!(bucket_of(17_179_869_183), FIO_BUCKETS - 1);
        assert_eq!(bucket_of(17_179_869_184), FIO_BUCKETS, "fio's last bucket holds it, too");
    }
}
