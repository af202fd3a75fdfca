//! When snapshots of a disk are taken by themselves, and how many of them are kept: a rule of its policy.
//!
//! Times are those of the calendar (UTC): an hour begins at minute 0, a day at 00:00, a week on Monday, a month on its first day.

use crate::limits::{SCHEDULE_MINUTES_MIN, SCHEDULED_SNAPSHOTS_MAX, SCHEDULES_MAX};
use base::calendar::Date;
use std::fmt;
use std::time::Duration;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const WEEK: u64 = 7 * DAY;
const MONTH_MAX: u64 = 31 * DAY;
/// 1970-01-01 was a Thursday: the first Monday came four days later.
const FIRST_MONDAY: u64 = 4 * DAY;

/// How often a snapshot is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Every {
    /// So many minutes, which divide a day and are neither an hour nor a day.
    Minutes(u16),
    /// Each hour.
    Hour,
    /// Each day.
    Day,
    /// Each week.
    Week,
    /// Each month.
    Month,
}

impl Every {
    /// So many minutes, if they divide a day and are not too few.
    pub fn minutes(minutes: u16) -> Option<Every> {
        match u64::from(minutes) * MINUTE {
            HOUR => Some(Every::Hour),
            DAY => Some(Every::Day),
            seconds => {
                let is_valid = minutes >= SCHEDULE_MINUTES_MIN && DAY.is_multiple_of(seconds);
                is_valid.then_some(Every::Minutes(minutes))
            }
        }
    }

    /// Its name, with which names of snapshots begin and by which records know it: `hourly`, `every-15m`.
    pub fn name(self) -> String {
        self.to_string().replace(' ', "-")
    }

    /// The one of a name.
    pub fn named(name: &str) -> Option<Every> {
        match name.split_once('-') {
            None => Every::of_word(name),
            Some(("every", length)) => Every::of_length(length),
            Some(_) => None,
        }
    }

    fn of_word(word: &str) -> Option<Every> {
        match word {
            "hourly" => Some(Every::Hour),
            "daily" => Some(Every::Day),
            "weekly" => Some(Every::Week),
            "monthly" => Some(Every::Month),
            _ => None,
        }
    }

    fn of_length(length: &str) -> Option<Every> {
        let (number, unit) = length.split_at_checked(length.len().checked_sub(1)?)?;
        let unit = match unit {
            "m" => 1,
            "h" => 60,
            _ => return None,
        };
        Every::minutes(number.parse::<u16>().ok()?.checked_mul(unit)?)
    }

    /// The last time at or before a moment at which a snapshot is due, both in seconds since 1970.
    pub fn due_at(self, seconds: u64) -> u64 {
        match self {
            Every::Minutes(minutes) => seconds - seconds % (u64::from(minutes) * MINUTE),
            Every::Hour => seconds - seconds % HOUR,
            Every::Day => seconds - seconds % DAY,
            Every::Week => match seconds.checked_sub(FIRST_MONDAY) {
                Some(since) => seconds - since % WEEK,
                None => 0,
            },
            Every::Month => {
                let days = seconds / DAY;
                (days + 1 - Date::of_days(days).day) * DAY
            }
        }
    }

    /// The first time after a moment at which a snapshot is due.
    pub fn due_after(self, seconds: u64) -> u64 {
        let longest = self.period().as_secs();
        // No month has fewer than 28 days: the first day of the next one is the last due time at or before a month and three days later.
        match self {
            Every::Month => self.due_at(self.due_at(seconds) + longest + DAY),
            Every::Minutes(_) | Every::Hour | Every::Day | Every::Week => {
                let due = self.due_at(seconds) + longest;
                self.due_at(due)
            }
        }
    }

    /// The time between two, the longest for months.
    pub fn period(self) -> Duration {
        Duration::from_secs(match self {
            Every::Minutes(minutes) => u64::from(minutes) * MINUTE,
            Every::Hour => HOUR,
            Every::Day => DAY,
            Every::Week => WEEK,
            Every::Month => MONTH_MAX,
        })
    }
}

/// `hourly`, `every 15m`.
impl fmt::Display for Every {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Every::Minutes(minutes) if minutes % 60 == 0 => write!(f, "every {}h", minutes / 60),
            Every::Minutes(minutes) => write!(f, "every {minutes}m"),
            Every::Hour => f.write_str("hourly"),
            Every::Day => f.write_str("daily"),
            Every::Week => f.write_str("weekly"),
            Every::Month => f.write_str("monthly"),
        }
    }
}

/// One line of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// How often.
    pub every: Every,
    /// Snapshots of this schedule that are kept: the newest ones. At least 1.
    pub keep: u8,
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} keep {}", self.every, self.keep)
    }
}

/// All lines of a schedule, the most frequent first; of each `every` one at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Schedules {
    all: [Line; SCHEDULES_MAX],
}

/// A line in three bytes: policies are copied a lot, and are parts of errors. Those that keep nothing are none, and come last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Line {
    /// The minutes of [`Every::period`], little-endian.
    minutes: [u8; 2],
    keep: u8,
}

impl Line {
    const NONE: Line = Line { minutes: [0; 2], keep: 0 };

    fn of(schedule: Schedule) -> Line {
        let minutes = schedule.every.period().as_secs() / MINUTE;
        let minutes = u16::try_from(minutes).expect("a month has fewer minutes than that");
        Line { minutes: minutes.to_le_bytes(), keep: schedule.keep }
    }

    fn schedule(self) -> Option<Schedule> {
        let minutes = u16::from_le_bytes(self.minutes);
        let every = match u64::from(minutes) * MINUTE {
            WEEK => Every::Week,
            MONTH_MAX => Every::Month,
            _ => Every::minutes(minutes)?,
        };
        (self.keep > 0).then_some(Schedule { every, keep: self.keep })
    }
}

impl Schedules {
    /// No snapshot is taken.
    pub const NONE: Schedules = Schedules { all: [Line::NONE; SCHEDULES_MAX] };

    /// Its lines.
    pub fn iter(&self) -> impl Iterator<Item = Schedule> + '_ {
        self.all.iter().filter_map(|line| line.schedule())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all[0] == Line::NONE
    }

    /// The line of an `every`.
    pub fn of(&self, every: Every) -> Option<Schedule> {
        self.iter().find(|one| one.every == every)
    }

    /// Reads `hourly keep 24, daily keep 7`; `none` for nothing.
    pub fn read(text: &str) -> Option<Schedules> {
        let mut words = text.split([',', ' ']).filter(|word| !word.is_empty()).peekable();
        let mut all: Vec<Schedule> = Vec::new();
        if words.next_if_eq(&"none").is_some() {
            return words.next().is_none().then_some(Schedules::NONE);
        }
        while let Some(word) = words.next() {
            let every = match word {
                "every" => Every::of_length(words.next()?)?,
                word => Every::of_word(word)?,
            };
            words.next_if_eq(&"keep")?;
            let keep = words.next()?.parse().ok().filter(|keep| *keep > 0)?;
            if all.len() == SCHEDULES_MAX || all.iter().any(|one| one.every == every) {
                return None;
            }
            all.push(Schedule { every, keep });
        }
        let kept: usize = all.iter().map(|one| usize::from(one.keep)).sum();
        if all.is_empty() || kept > SCHEDULED_SNAPSHOTS_MAX {
            return None;
        }
        all.sort_by_key(|one| one.every.period());
        let mut read = Schedules::NONE;
        for (place, one) in read.all.iter_mut().zip(all) {
            *place = Line::of(one);
        }
        Some(read)
    }
}

/// `hourly keep 24, daily keep 7`, or `none`.
impl fmt::Display for Schedules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("none");
        }
        let lines: Vec<String> = self.iter().map(|one| one.to_string()).collect();
        f.write_str(&lines.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::calendar::minute_name;

    #[test]
    fn schedules_are_read_back_as_they_were_written() {
        for (text, written) in [
            ("hourly keep 24, daily keep 7", "hourly keep 24, daily keep 7"),
            ("daily keep 7,hourly keep 24", "hourly keep 24, daily keep 7"),
            (
                "every 15m keep 8  weekly keep 4 monthly keep 12",
                "every 15m keep 8, weekly keep 4, monthly keep 12",
            ),
            ("every 60m keep 1, every 360m keep 2", "hourly keep 1, every 6h keep 2"),
            ("every 24h keep 3", "daily keep 3"),
            ("none", "none"),
        ] {
            let read = Schedules::read(text).expect(text);
            assert_eq!(read.to_string(), written);
            assert_eq!(Schedules::read(written), Some(read));
            read.iter().for_each(|one| assert_eq!(Every::named(&one.every.name()), Some(one.every)));
        }
    }

    #[test]
    fn what_is_no_schedule_is_refused() {
        for text in [
            "",
            "hourly",
            "hourly keep",
            "hourly keep 0",
            "hourly keep 256",
            "hourly keep 24 daily",
            "hourly keep 2, hourly keep 3",
            "none, hourly keep 1",
            "every 0m keep 1",
            "every 7m keep 1",
            "every 25h keep 1",
            "every m keep 1",
            "every 15 keep 1",
            "every 15é keep 1",
            "every 65535h keep 1",
            "yearly keep 1",
            "hourly keep 200, daily keep 56",
            "every 5m keep 1, every 10m keep 1, every 15m keep 1, hourly keep 1, daily keep 1, weekly keep 1, monthly keep 1",
        ] {
            assert_eq!(Schedules::read(text), None, "{text}");
        }
    }

    #[test]
    fn due_times_are_those_of_the_calendar() {
        let check = |text: &str, seconds: u64, due: &str, next: &str| {
            let every =
                Schedules::read(&format!("{text} keep 1")).expect(text).iter().next().expect(text).every;
            assert_eq!(minute_name(every.due_at(seconds)), due, "{text}");
            assert_eq!(minute_name(every.due_after(seconds)), next, "{text}");
            assert_eq!(every.due_at(every.due_at(seconds)), every.due_at(seconds), "{text}");
        };
        let sunday = 1_795_935_600 + 23 * 60 + 7; // 2026-11-29 07:23:07, a Sunday.
        check("every 15m", sunday, "2026-11-29T07-15Z", "2026-11-29T07-30Z");
        check("every 6h", sunday, "2026-11-29T06-00Z", "2026-11-29T12-00Z");
        check("hourly", sunday, "2026-11-29T07-00Z", "2026-11-29T08-00Z");
        check("daily", sunday, "2026-11-29T00-00Z", "2026-11-30T00-00Z");
        check("weekly", sunday, "2026-11-23T00-00Z", "2026-11-30T00-00Z");
        check("monthly", sunday, "2026-11-01T00-00Z", "2026-12-01T00-00Z");
        check("monthly", 1_795_935_600 + 33 * DAY, "2027-01-01T00-00Z", "2027-02-01T00-00Z");
        check("weekly", 0, "1970-01-01T00-00Z", "1970-01-05T00-00Z");
    }

    #[test]
    fn the_next_due_time_follows_the_last_over_many_years() {
        for every in [Every::Minutes(15), Every::Hour, Every::Day, Every::Week, Every::Month] {
            let step = (every.period().as_secs() * 2 / 5).max(1);
            let first = 1_700_000_000;
            for seconds in (0..3000).map(|index| first + index * step) {
                let (due, next) = (every.due_at(seconds), every.due_after(seconds));
                assert!(due <= seconds && seconds < next, "{every} {seconds}");
                assert_eq!(every.due_at(next - 1), due, "{every}: none lies between {due} and {next}");
                assert_eq!(every.due_at(next), next, "{every}");
            }
        }
    }
}
