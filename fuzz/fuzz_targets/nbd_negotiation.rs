//! Any bytes from a client that has just connected.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::nbd::converse(fuzz::nbd::Begin::Negotiation, bytes));
