//! Numbers, times, lists, ranges and names.

use super::lex::Parameter;
use crate::error::Fault;
use crate::findings::{malformed, refused, unit_trap};
use crate::limits;

impl Parameter {
    /// A value that Vdbench refuses.
    pub(crate) fn refused(&self, tool: impl Into<String>, remedy: impl Into<String>) -> Fault {
        refused(&self.place, format!("`{}`", self.shown()), tool, remedy)
    }

    /// The only value.
    pub(crate) fn one(&self) -> Result<&str, Fault> {
        match self.values.as_slice() {
            [value] if !value.is_empty() => Ok(value),
            _ => Err(self.refused("Vdbench expects one value", format!("write {}=value", self.key))),
        }
    }

    /// A number with k, m, g or t (by 1024).
    pub(crate) fn bytes_of(&self, text: &str) -> Result<u64, Fault> {
        let lower = text.to_ascii_lowercase();
        let digits = lower.bytes().take_while(u8::is_ascii_digit).count();
        let factor: Option<u64> = match &lower[digits..] {
            "" => Some(1),
            "k" | "kb" => Some(1 << 10),
            "m" | "mb" => Some(1 << 20),
            "g" | "gb" => Some(1 << 30),
            "t" | "tb" => Some(1 << 40),
            _ => None,
        };
        let number = lower[..digits].parse::<u64>().ok();
        number
            .zip(factor)
            .and_then(|(number, factor)| number.checked_mul(factor))
            .filter(|&bytes| bytes <= i64::MAX as u64)
            .ok_or_else(|| self.refused("Vdbench expects a number", "write a whole number and k, m, g or t"))
    }

    /// A number, and what Vdbench divides it by: `(number,parts)`.
    pub(crate) fn divided(&self) -> Result<[u64; 2], Fault> {
        match self.values.as_slice() {
            [number, parts] => Ok([self.bytes_of(number)?, u64::from(self.count_of(parts)?)]),
            _ => Ok([self.bytes_of(self.one()?)?, 1]),
        }
    }

    /// The size of an I/O: an error where most likely another one was meant.
    pub(crate) fn block_of(&self, text: &str) -> Result<u64, Fault> {
        let bytes = self.bytes_of(text)?;
        if bytes == 0 {
            return Err(self.refused("Vdbench rejects a size of 0", "write 4k"));
        }
        if bytes % 512 != 0 {
            let meant = if bytes < 512 {
                format!("write {bytes}k for {bytes} KiB")
            } else {
                "write a multiple of 512".to_owned()
            };
            return Err(unit_trap(
                &self.place,
                format!("`{}` is {bytes} bytes", self.shown()),
                "Vdbench expects a multiple of 512",
                meant,
            ));
        }
        Ok(bytes)
    }

    /// A fraction, with `%` or without.
    pub(crate) fn float_of(&self, text: &str) -> Result<f64, Fault> {
        text.trim_end_matches('%')
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite())
            .ok_or_else(|| self.refused("Vdbench expects a number", "write a number"))
    }

    /// A percentage.
    pub(crate) fn percent_of(&self, text: &str) -> Result<f64, Fault> {
        let percent = self.float_of(text)?;
        if (0.0..=100.0).contains(&percent) {
            return Ok(percent);
        }
        Err(self.refused("Vdbench expects 0 to 100", "write 0 to 100"))
    }

    /// A number of something, at least 1.
    pub(crate) fn count_of(&self, text: &str) -> Result<u32, Fault> {
        let number = self.bytes_of(text)?;
        u32::try_from(number)
            .ok()
            .filter(|&number| number > 0 && number <= 1 << 20)
            .ok_or_else(|| self.refused("Vdbench expects 1 or more", "write a number from 1 to 1048576"))
    }

    /// Seconds; `m` is minutes and `h` hours.
    pub(crate) fn seconds(&self) -> Result<u64, Fault> {
        let text = self.one()?.to_ascii_lowercase();
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let factor = match &text[digits..] {
            "" => 1,
            "m" => 60,
            "h" => 3600,
            unit => {
                let meant = match unit.chars().next() {
                    Some('s') => String::new(),
                    Some(letter @ ('m' | 'h')) => letter.to_string(),
                    _ => String::new(),
                };
                return Err(unit_trap(
                    &self.place,
                    format!("`{}` has an unknown unit of time", self.shown()),
                    "Vdbench takes seconds without a unit, minutes with m and hours with h",
                    format!("write {}={}{meant}", self.key, &text[..digits]),
                ));
            }
        };
        text[..digits]
            .parse::<u64>()
            .ok()
            .and_then(|number| number.checked_mul(factor))
            .filter(|&seconds| seconds as f64 <= limits::SECONDS_MAX)
            .ok_or_else(|| self.refused("Vdbench expects seconds", "write a number of seconds"))
    }

    /// The numbers of a list; `(1-64,d)` doubles, `(64-1,d)` halves, `(100-1000,100)` counts.
    pub(crate) fn numbers(&self) -> Result<Vec<u64>, Fault> {
        let mut numbers = Vec::new();
        let mut values = self.values.iter();
        while let Some(value) = values.next() {
            let Some((low, high)) = value.split_once('-').filter(|(low, _)| !low.is_empty()) else {
                numbers.push(self.bytes_of(value)?);
                self.check_length(numbers.len())?;
                continue;
            };
            let (low, high) = (self.bytes_of(low)?, self.bytes_of(high)?);
            let Some(step) = values.next() else {
                return Err(self.refused(
                    "Vdbench expects a comma and the step behind a range",
                    format!("write ({low}-{high},d) to double, or ({low}-{high},<step>)"),
                ));
            };
            if step.eq_ignore_ascii_case("d") {
                numbers.extend(doubled(low, high));
            } else {
                let step = self.bytes_of(step)?;
                if step == 0 || low > high || (high - low) / step > limits::LIST_MAX as u64 {
                    return Err(self.refused("Vdbench rejects the range", "write (low-high,step)"));
                }
                numbers.extend((0..=(high - low) / step).map(|index| low + index * step));
            }
            self.check_length(numbers.len())?;
        }
        Ok(numbers)
    }

    /// The values of a list, and the numbers of its ranges, each as it is named and as it is written.
    pub(crate) fn texts(&self) -> Result<Vec<(String, String)>, Fault> {
        let is_range = |value: &String| value.split_once('-').is_some_and(|(low, _)| !low.is_empty());
        if self.values.iter().any(is_range) {
            return Ok(self
                .numbers()?
                .into_iter()
                .map(|number| (short(number), number.to_string()))
                .collect());
        }
        self.check_length(self.values.len())?;
        let label = |value: &String| self.bytes_of(value).map_or_else(|_| value.clone(), short);
        Ok(self.values.iter().map(|value| (label(value), value.clone())).collect())
    }

    fn check_length(&self, count: usize) -> Result<(), Fault> {
        if count <= limits::LIST_MAX {
            return Ok(());
        }
        let found = format!("`{}` stands for more than {} values", self.shown(), limits::LIST_MAX);
        Err(malformed(&self.place, found, "write fewer values"))
    }

    /// Names of a list, with `sd1-sd16` and wildcards, among those that are known.
    pub(crate) fn names<'a>(&self, known: impl Iterator<Item = &'a str>) -> Result<Vec<String>, Fault> {
        let known: Vec<&str> = known.collect();
        let mut names: Vec<String> = Vec::new();
        for value in &self.values {
            let of_known = |wanted: &dyn Fn(&str) -> bool| -> Vec<String> {
                known.iter().filter(|name| wanted(name)).map(|name| (*name).to_owned()).collect()
            };
            let mut found = match value.contains('*') {
                true => of_known(&|name| matches(value, name)),
                false => of_known(&|name| name.eq_ignore_ascii_case(value)),
            };
            if found.is_empty() {
                let range = range_of_names(value).unwrap_or_default();
                found = range.into_iter().filter(|name| known.contains(&name.as_str())).collect();
            }
            if found.is_empty() {
                let near = crate::keys::nearest(value, known.iter().copied());
                return Err(self.refused(
                    format!("Vdbench finds no definition `{value}`"),
                    near.map_or("define it above".to_owned(), |near| format!("did you mean {near}?")),
                ));
            }
            for name in found {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            self.check_length(names.len())?;
        }
        Ok(names)
    }
}

/// A size as Vdbench writes it: `4k`.
fn short(number: u64) -> String {
    for (shift, unit) in [(30, "g"), (20, "m"), (10, "k")] {
        if number > 0 && number.trailing_zeros() >= shift {
            return format!("{}{unit}", number >> shift);
        }
    }
    number.to_string()
}

/// From one number to another, doubling upwards or halving downwards.
fn doubled(low: u64, high: u64) -> Vec<u64> {
    let mut numbers = Vec::new();
    let mut value = low;
    while value > 0 && numbers.len() < 64 {
        if (low <= high && value > high) || (low > high && value < high) {
            break;
        }
        numbers.push(value);
        value = if low <= high { value.saturating_mul(2) } else { value / 2 };
    }
    if numbers.is_empty() { vec![low] } else { numbers }
}

/// Whether a name is what `*` stands for.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.to_ascii_lowercase(), name.to_ascii_lowercase());
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// `sd1-sd16`.
fn range_of_names(text: &str) -> Option<Vec<String>> {
    let (low, high) = text.split_once('-')?;
    let digits =
        |name: &str| name.len() - name.trim_end_matches(|letter: char| letter.is_ascii_digit()).len();
    let (stem, first) = low.split_at(low.len() - digits(low));
    let last = &high[high.len() - digits(high)..];
    let high_stem = &high[..high.len() - digits(high)];
    if !high_stem.is_empty() && high_stem != stem {
        return None;
    }
    let (low, high): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    if low > high || high - low > limits::LIST_MAX as u64 {
        return None;
    }
    Some(
        (low..=high)
            .map(|number| {
                format!(
                    "{stem}{number:0width$}",
                    width = if first.starts_with('0') { first.len() } else { 0 }
                )
            })
            .collect(),
    )
}
