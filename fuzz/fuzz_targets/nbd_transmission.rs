//! Any bytes from a client that is attached to a disk.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::nbd::converse(fuzz::nbd::Begin::Transmission, bytes));
