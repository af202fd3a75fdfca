//! Statistics from any bytes: refused, or the one form of their value.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let bytes = fuzz::sealed(bytes, 4);
    if let Ok(statistics) = iostats::Statistics::decode(&bytes) {
        assert!(statistics.encode() == bytes, "one form for one value");
        let _ = statistics.percentile(iostats::Operations::Both, 0.99);
        let mut twice = statistics.clone();
        twice.merge(&statistics);
        let _ = twice.difference(&statistics);
        twice.histograms().for_each(drop);
    }
});
