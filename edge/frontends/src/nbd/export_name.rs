//! What a client says in the name of an export: a disk, perhaps a snapshot of it, and options of its connection, each behind an `@`.
//!
//! NBD has no other place for options of a client, and every client can be given a name. Names of disks have no `@`.
//!
//! `web` is the disk `web`; `web@monday` its snapshot `monday`; `web@error-after=30s` the disk, where a request without an answer for 30 s ends with an I/O error.

use std::time::Duration;

/// The shortest time: a host that is lost is noticed, and its disks are taken over, within less.
pub const ERROR_AFTER_MIN: Duration = Duration::from_secs(5);
/// The longest time.
pub const ERROR_AFTER_MAX: Duration = Duration::from_secs(24 * 3600);
/// The option's name.
const ERROR_AFTER: &str = "error-after=";

/// What the name of an export asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportName<'a> {
    /// The name of the disk; empty for the only one.
    pub disk: &'a str,
    /// The name of a snapshot of it.
    pub snapshot: Option<&'a str>,
    /// How long a request may go without an answer before it ends with an error; `None`: it waits.
    pub error_after: Option<Duration>,
}

/// Why a name is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExportNameError {
    /// An option is not known.
    #[error("export name: unknown option `{0}`. `error-after=30s` is an option")]
    Unknown(String),
    /// A time is not one, or out of range.
    #[error("export name: `{0}` is not a time from 5s to 24h, e.g. 30s, 5m or 1h")]
    Time(String),
}

impl<'a> ExportName<'a> {
    /// Reads a name as a client gave it.
    ///
    /// # Errors
    /// When an option is not known or has no valid value: a client that asks for errors must not wait instead.
    pub fn parse(name: &'a str) -> Result<ExportName<'a>, ExportNameError> {
        let mut words = name.split('@').peekable();
        let disk = words.next().unwrap_or_default();
        let snapshot = words.next_if(|word| !word.is_empty() && !word.contains('='));
        let error_after = match words.next() {
            Some(option) => {
                let time = option.strip_prefix(ERROR_AFTER);
                let time = time.ok_or_else(|| ExportNameError::Unknown(option.to_owned()))?;
                Some(parse_error_after(time)?)
            }
            None => None,
        };
        match words.next() {
            Some(more) => Err(ExportNameError::Unknown(more.to_owned())),
            None => Ok(ExportName { disk, snapshot, error_after }),
        }
    }
}

/// A time as `error-after` takes it: a number with `s`, `m` or `h`, from 5 s to 24 h.
///
/// # Errors
/// When it is none.
pub fn parse_error_after(text: &str) -> Result<Duration, ExportNameError> {
    let wrong = || ExportNameError::Time(text.to_owned());
    let digits = text.trim_end_matches(['s', 'm', 'h']);
    let factor = match &text[digits.len()..] {
        "s" | "" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(wrong()),
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = digits.parse().ok().filter(|_| is_number).ok_or_else(wrong)?;
    let time = Duration::from_secs(number.checked_mul(factor).ok_or_else(wrong)?);
    match (ERROR_AFTER_MIN..=ERROR_AFTER_MAX).contains(&time) {
        true => Ok(time),
        false => Err(wrong()),
    }
}

/// The name of an export with that option.
pub fn with_error_after(disk: &str, error_after: Duration) -> String {
    format!("{disk}@{ERROR_AFTER}{}s", error_after.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_a_disk_and_may_have_a_time_after_which_requests_end_with_an_error() {
        let read = |name| {
            let time = |read: &ExportName<'_>| read.error_after.map(|time| time.as_secs());
            ExportName::parse(name).map(|read| (read.disk, read.snapshot, time(&read)))
        };
        for (name, expected) in [
            ("", ("", None, None)),
            ("web", ("web", None, None)),
            ("web@monday", ("web", Some("monday"), None)),
            ("web@monday@error-after=30s", ("web", Some("monday"), Some(30))),
            ("web@error-after=30s", ("web", None, Some(30))),
            ("web@error-after=30", ("web", None, Some(30))),
            ("@error-after=5m", ("", None, Some(300))),
            ("web@error-after=24h", ("web", None, Some(86_400))),
        ] {
            assert_eq!(read(name), Ok(expected), "{name}");
        }
        assert_eq!(read(&with_error_after("web", Duration::from_secs(90))), Ok(("web", None, Some(90))));
    }

    #[test]
    fn what_is_not_understood_is_refused_and_never_waits_instead() {
        for name in
            ["web@", "web@x=1", "web@error-after=30s@x", "web@@monday", "web@a@b", "web@a@error-after=30s@b"]
        {
            ExportName::parse(name).expect_err(name);
        }
        for time in [
            "",
            "s",
            "4s",
            "25h",
            "-5s",
            "+5s",
            "5 s",
            "5sm",
            "99999999999999999999s",
            "18446744073709551615h",
        ] {
            let name = format!("web@error-after={time}");
            assert_eq!(ExportName::parse(&name), Err(ExportNameError::Time(time.to_owned())), "{name}");
        }
    }
}
