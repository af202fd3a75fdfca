//! Any bytes from another node: a hello, requests or answers; refused, or messages that come back from their own bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::wire::converse(bytes));
