//! Sizes that the whole product agrees on, and how sizes are written for people.

/// A sector: the smallest unit that a guest may address, in bytes.
pub const SECTOR_SIZE: u64 = 512;
/// A block: the unit of checksums, of the write buffer's index and of allocation bits, in bytes.
pub const BLOCK_SIZE: u64 = 4096;
/// A region: the unit of "what changed since?", in bytes (design, section 4).
pub const REGION_SIZE: u64 = 64 << 10;
/// An extent: the unit in which a capacity device gives out space, and the stripe unit, in bytes.
pub const EXTENT_SIZE: u64 = 1 << 20;
/// Blocks in one extent.
pub const BLOCKS_PER_EXTENT: usize = (EXTENT_SIZE / BLOCK_SIZE) as usize;
/// Blocks in one region.
pub const BLOCKS_PER_REGION: usize = (REGION_SIZE / BLOCK_SIZE) as usize;
/// Regions in one extent.
pub const REGIONS_PER_EXTENT: usize = (EXTENT_SIZE / REGION_SIZE) as usize;
/// The largest component, in bytes: 255 GiB, as in vSAN.
pub const COMPONENT_SIZE_MAX: u64 = 255 << 30;
/// The largest virtual disk, in bytes: 64 TiB.
pub const DISK_SIZE_MAX: u64 = 64 << 40;
/// A mebibyte, in bytes.
pub const MIB: u64 = 1 << 20;
/// A gibibyte, in bytes.
pub const GIB: u64 = 1 << 30;

const _: () = assert!(EXTENT_SIZE.is_multiple_of(REGION_SIZE) && REGION_SIZE.is_multiple_of(BLOCK_SIZE));
const _: () = assert!(BLOCKS_PER_EXTENT == 256, "a block's place in its extent fits a byte");

const NAMES: [(&str, u64); 5] =
    [("PiB", 1 << 50), ("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

/// `bytes` for people: `512 B`, `4 KiB`, `1.5 GiB`; exact when it is a whole number of units.
pub fn format_bytes(bytes: u64) -> String {
    for (name, unit) in NAMES {
        if bytes >= unit {
            return match bytes.is_multiple_of(unit) {
                true => format!("{} {name}", bytes / unit),
                false => format!("{:.1} {name}", bytes as f64 / unit as f64),
            };
        }
    }
    format!("{bytes} B")
}

/// Why a text is not a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a size: write a number and a unit, such as 512, 64K, 10GiB or 1.5T (units are powers of 1024)"
)]
pub struct SizeError {
    /// What was given.
    pub text: String,
}

/// Reads a size as people write it: `10G`, `10GiB`, `10 gib`, `1.5T`, `4096`. Units are powers of 1024.
///
/// # Errors
/// When the text is not a number with a known unit, or does not fit 64 bits.
pub fn parse_bytes(text: &str) -> Result<u64, SizeError> {
    let error = || SizeError { text: text.to_owned() };
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(split);
    let unit = unit.trim().to_ascii_lowercase();
    let factor: u64 = match unit.as_str() {
        "" | "b" => 1,
        "k" | "kib" | "kb" => 1 << 10,
        "m" | "mib" | "mb" => 1 << 20,
        "g" | "gib" | "gb" => 1 << 30,
        "t" | "tib" | "tb" => 1 << 40,
        "p" | "pib" | "pb" => 1 << 50,
        _ => return Err(error()),
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor).ok_or_else(error);
    }
    let value: f64 = number.parse().map_err(|_| error())?;
    let bytes = value * factor as f64;
    if !bytes.is_finite() || bytes < 0.0 || bytes >= u64::MAX as f64 {
        return Err(error());
    }
    Ok(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("512", 512),
            ("4k", 4096),
            ("10GiB", 10 << 30),
            (" 1.5 T ", 3 << 39),
            ("0", 0),
            ("7 MB", 7 << 20),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
        for text in ["", "G", "1X", "-1", "1.2.3", "99999999999999999999", "20000000P", "1e3"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_written_shortly() {
        assert_eq!(format_bytes(0), "0 B");
        assert_eq!(format_bytes(4096), "4 KiB");
        assert_eq!(format_bytes(3 << 29), "1.5 GiB");
        assert_eq!(format_bytes(64 << 40), "64 TiB");
    }
}
