//! A superblock from any bytes: refused, or one that comes back from its own bytes.
#![no_main]

use diskgroup::format::superblock::{SUPERBLOCK_SIZE, Superblock};

libfuzzer_sys::fuzz_target!(|body: &[u8]| {
    let _ = Superblock::decode(body);
    let bytes = fuzz::framed(b"DRYSTONE", 12, body, SUPERBLOCK_SIZE);
    if let Ok(superblock) = Superblock::decode(&bytes) {
        assert!(Superblock::decode(&superblock.encode()) == Ok(superblock));
    }
});
