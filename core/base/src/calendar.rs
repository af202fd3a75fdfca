//! Days of the calendar (UTC), as schedules and names of snapshots need them.
//!
//! Leap seconds do not exist here, as they do not in the time of Unix.

/// A day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date {
    /// The year, from 1970 on.
    pub year: u64,
    /// 1 to 12.
    pub month: u64,
    /// 1 to 31.
    pub day: u64,
}

impl Date {
    /// The day that is so many days after 1970-01-01.
    pub fn of_days(days: u64) -> Date {
        // Howard Hinnant's days-to-civil: years begin in March, so that the leap day is the last day of a year.
        let shifted = days.saturating_add(719_468);
        let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        Date { year: year_of_era + era * 400 + u64::from(month <= 2), month, day }
    }
}

/// A moment by the minute, as a part of a name: `2026-11-29T07-00Z`. `seconds` since 1970.
pub fn minute_name(seconds: u64) -> String {
    let Date { year, month, day } = Date::of_days(seconds / 86_400);
    let (hour, minute) = (seconds / 3600 % 24, seconds / 60 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}-{minute:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        // By `date -u -d @…`.
        for (seconds, expected) in [
            (0, "1970-01-01T00-00Z"),
            (951_782_400, "2000-02-29T00-00Z"),
            (1_735_689_599, "2024-12-31T23-59Z"),
            (1_795_935_600, "2026-11-29T07-00Z"),
            (4_107_542_399, "2100-02-28T23-59Z"),
            (4_107_542_400, "2100-03-01T00-00Z"),
        ] {
            assert_eq!(minute_name(seconds), expected);
        }
    }

    #[test]
    fn each_day_follows_the_one_before() {
        let (mut before, mut leap_days) = (Date::of_days(0), 0);
        for days in 1..366 * 400 {
            let date = Date::of_days(days);
            let is_next =
                date.day == before.day + 1 && (date.year, date.month) == (before.year, before.month);
            let is_first = date.day == 1 && before.day >= 28;
            assert!(date > before && (is_next || is_first), "{before:?} {date:?}");
            leap_days += u64::from((date.month, date.day) == (2, 29));
            before = date;
        }
        assert_eq!(leap_days, 97, "of 400 years");
    }
}
