//! Measures what compression costs and saves: processor time for each GiB, and the space of the blocks of files, as destaging packs those of a whole part.
//!
//! `cargo run --release -p diskgroup --example compression -- FILE…`

use base::units::{BLOCK_SIZE, MIB, SECTOR_SIZE};
use diskgroup::format::map::Algorithm;
use diskgroup::{Computation, Computed, frames_needed};
use std::time::Instant;

fn main() {
    for path in std::env::args().skip(1) {
        let data = std::fs::read(&path).expect("a file is readable");
        let whole = data.len() / MIB as usize * MIB as usize;
        for algorithm in [Algorithm::Lz4, Algorithm::Zstd] {
            let (mut units, mut frames, mut seconds) = (0, 0, 0.0);
            for part in data[..whole].chunks(MIB as usize) {
                let begun = Instant::now();
                let computed = Computation::Compress(algorithm).perform(&[part]);
                seconds += begun.elapsed().as_secs_f64();
                let Computed::Compressed(slots) = computed else { unreachable!("that was asked for") };
                let size = |slot: &Option<Box<[u8]>>| {
                    slot.as_ref().map_or(BLOCK_SIZE, |slot| slot.len() as u64).div_ceil(SECTOR_SIZE) as u8
                };
                let sizes: Vec<u8> = slots.iter().map(size).collect();
                units += sizes.iter().map(|size| u64::from(*size)).sum::<u64>();
                frames += frames_needed(&sizes) as u64;
            }
            let (gib, blocks) = (whole as f64 / (1 << 30) as f64, whole as u64 / BLOCK_SIZE);
            println!(
                "{path}: {algorithm:?} {:.2} s/GiB, {:.2} times less in units, {:.2} times less in frames",
                seconds / gib,
                (blocks * BLOCK_SIZE) as f64 / (units * SECTOR_SIZE) as f64,
                blocks as f64 / frames as f64
            );
        }
    }
}
