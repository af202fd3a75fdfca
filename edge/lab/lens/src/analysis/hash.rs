//! One hash for all that samples by address: the same blocks are sampled everywhere, and in every run.

/// What tells the blocks of several disks apart.
pub(super) fn key(disk: u32, block: u64) -> u64 {
    block ^ (u64::from(disk) << 48)
}

/// The finaliser of splitmix64: every bit of the key moves every bit of the hash.
pub(super) fn hash(key: u64) -> u64 {
    let mut z = key ^ 0x9e37_79b9_7f4a_7c15;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
