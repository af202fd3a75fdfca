//! A disk group whose table, chunks and maps say whatever bytes make of them: it is refused, or opens and answers what it is asked.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::group::open(bytes));
