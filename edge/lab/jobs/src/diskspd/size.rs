//! Numbers as DiskSPD reads them.

use crate::error::Fault;
use crate::findings::{refused, unit_trap};
use plan::Place;

/// A whole number and K, M, G or T (by 1024), or b: so many blocks. No fractions, no `KB`.
pub(crate) fn size(text: &str, block: Option<u64>, option: &str, place: &Place) -> Result<u64, Fault> {
    let bad = |remedy: String| {
        Err(refused(place, format!("`{option}` has the size `{text}`"), "DiskSPD rejects the size", remedy))
    };
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let Ok(number) = text[..digits].parse::<u64>() else {
        return bad("write a whole number and K, M, G or T".into());
    };
    let suffix = &text[digits..];
    let factor = match suffix {
        "" => 1,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        "t" | "T" => 1 << 40,
        "b" | "B" => match block {
            Some(block) => block,
            None => return bad("the block size has no unit b: write K, M or G".into()),
        },
        _ => {
            let letter = suffix.chars().next().unwrap_or('K').to_ascii_uppercase();
            let letter = if "KMGT".contains(letter) { letter } else { 'K' };
            return bad(format!("write {number}{letter}: one letter, no fraction"));
        }
    };
    match number.checked_mul(factor).filter(|&size| size <= i64::MAX as u64) {
        Some(size) => Ok(size),
        None => bad("write a smaller number".into()),
    }
}

/// The size of an I/O: an error where most likely another size was meant.
pub(crate) fn block(text: &str, option: &str, place: &Place) -> Result<u64, Fault> {
    let bytes = size(text, None, option, place)?;
    if bytes == 0 {
        return Err(refused(place, format!("`{option}` is 0"), "DiskSPD rejects a size of 0", "write -b4K"));
    }
    if bytes < 512 {
        return Err(unit_trap(
            place,
            format!("`{option}` is {bytes} bytes"),
            format!("DiskSPD does I/Os of {bytes} bytes"),
            format!("write {bytes}K for {bytes} KiB; the lab does I/Os of at least 512 bytes"),
        ));
    }
    Ok(bytes)
}
