//! Figures and names in messages.

use crate::limits::NAMED_MAX;
use base::Instant;
use std::time::Duration;

/// The first names, and the number of the rest.
pub(crate) fn listed(names: &[String]) -> String {
    let shown = &names[..names.len().min(NAMED_MAX)];
    match names.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{}, and {more} more", shown.join(", ")),
    }
}

/// A number of components.
pub(crate) fn components(count: usize) -> String {
    if count == 1 { "1 component".to_owned() } else { format!("{count} components") }
}

/// The time since then.
pub(crate) fn ago(now: Instant, since: Instant) -> String {
    let age = now.since(since);
    match since {
        // The directory's clock counts from 1970: nobody noted when it was.
        Instant(0) if age > NO_AGE => UNKNOWN_TIME.to_owned(),
        _ => duration(age),
    }
}

/// Older than anything that is reported.
const NO_AGE: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Stands for an age whose beginning was not noted.
pub const UNKNOWN_TIME: &str = "an unknown time";

/// A time for people: its greatest unit, rounded up.
pub(crate) fn duration(time: Duration) -> String {
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds.div_ceil(60)),
        7200..172_800 => format!("{} h", seconds.div_ceil(3600)),
        _ => format!("{} days", seconds.div_ceil(86_400)),
    }
}

/// The verb for a number.
pub(crate) fn verb(count: usize, one: &'static str, several: &'static str) -> &'static str {
    if count == 1 { one } else { several }
}

/// A number of snapshots.
pub(crate) fn snapshots(count: usize) -> String {
    if count == 1 { "1 snapshot".to_owned() } else { format!("{count} snapshots") }
}

/// A number of disks.
pub(crate) fn disks(count: usize) -> String {
    if count == 1 { "1 disk".to_owned() } else { format!("{count} disks") }
}
