//! A batch of a log from any bytes: refused, or records that come back from their own bytes.
#![no_main]

use base::bytes::Writer;
use diskgroup::format::batch::BatchHeader;

libfuzzer_sys::fuzz_target!(|body: &[u8]| {
    let bytes = fuzz::framed(b"DLOG", 8, body, body.len().next_multiple_of(4096).clamp(4096, 1 << 20));
    let copy = fuzz::framed(b"DLGC", 8, body, bytes.len());
    if let Some(header) = BatchHeader::peek_copy(&copy, 0) {
        let _ = header.decode_copy(&copy);
    }
    let Some(header) = BatchHeader::peek(&bytes, 0) else { return };
    let Ok(records) = header.decode_records(&bytes) else { return };
    let mut writer = Writer::default();
    records.iter().for_each(|record| record.encode(&mut writer));
    let mut again = vec![0; header.header_blocks as usize * 4096];
    // Another length means another form of a record: then the header would not fit, and that is a finding.
    header.encode(writer.as_bytes(), &mut again);
    assert!(header.decode_records(&again) == Ok(records));
});
