//! A page of a table of descriptors from any bytes: invalid, or one that comes back from its own bytes.
#![no_main]

use base::DeviceId;
use diskgroup::format::page::{Copy, PAGE_SIZE, Page};

libfuzzer_sys::fuzz_target!(|body: &[u8]| {
    let _ = Page::decode(body, DeviceId(0), 0);
    // Two checksums: of the header alone with the place of the other zero, then of all.
    let mut bytes = fuzz::framed(b"DPGE", 8, body, PAGE_SIZE);
    bytes[12..16].fill(0);
    base::checksum::seal(&mut bytes[..64], 8);
    base::checksum::seal(&mut bytes, 12);
    if let Copy::Valid(page) = Page::decode(&bytes, DeviceId(0), 0) {
        assert!(Page::decode(&page.encode(), DeviceId(0), 0) == Copy::Valid(page));
    }
});
