//! A map page, delta page or list of snapshots with any body: invalid, or one that comes back from its own bytes and can be worked with.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::mapped::page(bytes));
