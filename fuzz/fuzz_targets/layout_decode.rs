//! A layout from any bytes: refused, or the one form of its value.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let bytes = fuzz::sealed(bytes, 4);
    if let Ok(layout) = layout::Layout::decode(&bytes) {
        assert!(layout.encode() == bytes, "one form for one value");
    }
});
