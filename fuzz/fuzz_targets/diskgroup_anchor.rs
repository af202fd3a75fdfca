//! An anchor of a log from any bytes: refused, or one that comes back from its own bytes.
#![no_main]

use diskgroup::format::anchor::{ANCHOR_SIZE, Anchor};

libfuzzer_sys::fuzz_target!(|body: &[u8]| {
    let _ = Anchor::decode(body, 0);
    let bytes = fuzz::framed(b"DRYANCHR", 12, body, ANCHOR_SIZE);
    if let Ok(anchor) = Anchor::decode(&bytes, 0) {
        assert!(Anchor::decode(&anchor.encode(), 0) == Ok(anchor));
    }
});
