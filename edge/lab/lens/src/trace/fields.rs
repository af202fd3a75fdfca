//! Numbers and flags of lines.

use crate::event::Action;

/// Bytes of a sector.
pub(super) const SECTOR: u64 = 512;

/// A whole number and nothing else.
pub(super) fn whole(text: &str) -> Option<u64> {
    let text = text.trim();
    // `parse` takes a plus sign too.
    if text.starts_with('+') { None } else { text.parse().ok() }
}

/// Decimal digits with a point, as a whole number of `1 / scale` (a power of ten): "0.5" of 1,000 is 500. Digits beyond are cut.
pub(super) fn decimal(text: &str, scale: u64) -> Option<u64> {
    let (before, after) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if before.is_empty() || !digits(before) || !digits(after) {
        return None;
    }
    let mut fraction = 0;
    let mut step = scale / 10;
    for digit in after.bytes() {
        fraction += u64::from(digit - b'0') * step;
        step /= 10;
    }
    before.parse::<u64>().ok()?.checked_mul(scale)?.checked_add(fraction)
}

/// What the kernel's letters (RWBS) say; nothing for what is neither (`N`, zone commands).
pub(super) fn rwbs(letters: &str) -> Option<Action> {
    let mut rest = letters.chars();
    let first = rest.next()?;
    let action = |letter| match letter {
        'R' => Some(Action::Read),
        'W' => Some(Action::Write),
        'D' => Some(Action::Trim),
        _ => None,
    };
    match first {
        // A flush before, or nothing but a flush.
        'F' => rest.next().and_then(action).or(Some(Action::Flush)),
        letter => action(letter),
    }
}

/// True for a device number: "8,16".
pub(super) fn is_device(text: &str) -> bool {
    text.split_once(',').is_some_and(|(major, minor)| {
        let digits =
            |part: &str| (1..=7).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        digits(major) && digits(minor)
    })
}
