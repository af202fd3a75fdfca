//! Between the times of the standard library, of certificates and of records, and as people read them (UTC).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Seconds from 1970 to the end of the year 9999, the last that a certificate can name (RFC 5280, section 4.1.2.5.2).
const SECONDS_MAX: u64 = 253_402_300_799;

/// Whole seconds since 1970; nothing for a time that a certificate cannot name.
pub(crate) fn seconds(time: SystemTime) -> Option<u64> {
    let seconds = time.duration_since(UNIX_EPOCH).ok()?.as_secs();
    (seconds <= SECONDS_MAX).then_some(seconds)
}

/// The time so many seconds after 1970; nothing for one that a certificate cannot name.
pub(crate) fn from_seconds(seconds: u64) -> Option<SystemTime> {
    if seconds > SECONDS_MAX {
        return None;
    }
    UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

/// Nanoseconds since 1970; 0 for what lies before, the greatest number for what lies after the year 2554.
pub fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// As people read it, by the second: `2026-11-22 10:42:00 UTC`. `seconds` since 1970.
pub(crate) fn text(seconds: u64) -> String {
    let time = rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds.min(SECONDS_MAX));
    let (hour, minute, second) = time.to_hms();
    let (year, month, day) = (time.year(), u8::from(time.month()), time.day());
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// Nanoseconds since 1970 as people read them, by the second: `2026-11-22 10:42:00 UTC`.
pub fn text_of_nanoseconds(nanoseconds: u64) -> String {
    text(nanoseconds / 1_000_000_000)
}

/// The same of a time; of one that no certificate can name, the last or first that one can.
pub(crate) fn text_of(time: SystemTime) -> String {
    text(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_utc_and_their_limits_are_kept() {
        assert_eq!(text(1_795_344_120), "2026-11-22 10:42:00 UTC");
        assert_eq!(text(u64::MAX), "9999-12-31 23:59:59 UTC");
        assert_eq!(text_of_nanoseconds(1_999_999_999), "1970-01-01 00:00:01 UTC");
        assert_eq!(seconds(UNIX_EPOCH - Duration::from_secs(1)), None);
        assert_eq!(from_seconds(SECONDS_MAX).and_then(seconds), Some(SECONDS_MAX));
        assert_eq!(from_seconds(SECONDS_MAX + 1), None);
        assert_eq!(nanoseconds(UNIX_EPOCH + Duration::from_nanos(7)), 7);
        assert_eq!(nanoseconds(UNIX_EPOCH - Duration::from_secs(1)), 0);
    }
}
