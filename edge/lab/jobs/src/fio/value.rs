//! Values of options: numbers with units, times, booleans, triples — as fio reads them, and where that is a trap.

use crate::error::Fault;
use crate::findings::{malformed, refused, unit_trap, unsupported};
use crate::limits;
use plan::{Extent, Place};
use std::time::Duration;

/// A value with what is needed to read it and to speak of it.
#[derive(Debug, Clone)]
pub(crate) struct Value {
    /// The option as it was written.
    pub(crate) key: String,
    /// After replacement of variables; empty where the option stood alone.
    pub(crate) text: String,
    /// Whether there was an `=`.
    pub(crate) given: bool,
    /// Whether white space follows the `=`.
    pub(crate) spaced: bool,
    pub(crate) place: Place,
    /// What `k` multiplies by: 1024 unless `kb_base=1000`.
    pub(crate) kilo: u64,
}

/// A number and the letters behind it.
#[derive(Debug, Clone, PartialEq)]
struct Quantity {
    number: u64,
    suffix: String,
}

impl Value {
    /// The option as it stands in the file, shortened.
    pub(crate) fn shown(&self) -> String {
        let text: String = self.text.chars().take(60).collect();
        let gap = if self.spaced { " " } else { "" };
        if self.given { format!("{}={gap}{text}", self.key) } else { self.key.clone() }
    }

    /// A value that fio refuses.
    pub(crate) fn refused(&self, tool: impl Into<String>, remedy: impl Into<String>) -> Fault {
        refused(&self.place, format!("`{}`", self.shown()), tool, remedy)
    }

    /// A value that fio takes without a word, and that cannot be what is meant.
    pub(crate) fn trap(&self, tool: impl Into<String>, remedy: impl Into<String>) -> Fault {
        unit_trap(&self.place, format!("`{}`", self.shown()), tool, remedy)
    }

    /// The same option with a part of its value.
    pub(crate) fn part(&self, text: &str) -> Value {
        // The whole text is left alone: a list has many parts.
        Value {
            key: self.key.clone(),
            text: text.trim().to_owned(),
            given: self.given,
            spaced: self.spaced,
            place: self.place.clone(),
            kilo: self.kilo,
        }
    }

    fn quantity(&self) -> Result<Quantity, Fault> {
        let text = self.text.as_str();
        let bad =
            || self.refused("fio fails to parse it", "write a number, with a unit if need be: 4k, 1m, 10g");
        if text.strip_prefix('-').is_some_and(|rest| rest.starts_with(|next: char| next.is_ascii_digit())) {
            return Err(self.trap("fio takes a number below 0 for a huge one", "write a number from 0 on"));
        }
        let (digits, suffix, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            Some(hex) => {
                let end = hex.find(|letter: char| !letter.is_ascii_hexdigit()).unwrap_or(hex.len());
                (&hex[..end], &hex[end..], 16)
            }
            None => {
                let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
                (&text[..end], &text[end..], 10)
            }
        };
        let number = u64::from_str_radix(digits, radix).map_err(|_| bad())?;
        let suffix = suffix.to_ascii_lowercase();
        if self.spaced && !suffix.is_empty() {
            return Err(unit_trap(
                &self.place,
                format!("`{}` has white space behind the `=`", self.shown()),
                format!("fio loses the unit there and reads {number}"),
                format!("write {}={text}", self.key),
            ));
        }
        Ok(Quantity { number, suffix })
    }

    fn multiplied(&self, number: u64, factor: u64) -> Result<u64, Fault> {
        number
            .checked_mul(factor)
            .filter(|&value| value <= i64::MAX as u64)
            .ok_or_else(|| self.refused("fio cannot hold it either", "write a smaller number"))
    }

    /// A number of bytes. `4kib` is 4000 for fio (unless `kb_base=1000`), and the caller says whether that matters.
    pub(crate) fn bytes(&self) -> Result<u64, Fault> {
        let Quantity { number, suffix } = self.quantity()?;
        let inverse = if self.kilo == 1000 { 1024 } else { 1000 };
        if suffix == "z" {
            let found = format!("`{}` counts zones of a zoned device", self.shown());
            return Err(unsupported(&self.place, found, "write it in bytes, as 10g"));
        }
        let letters = suffix.trim_end_matches('b');
        let power = ["", "k", "m", "g", "t", "p"]
            .iter()
            .position(|unit| letters.trim_end_matches('i') == *unit && letters.len() <= unit.len() + 1);
        let Some(power) = power.filter(|_| suffix.len() <= 3 && suffix != "i" && suffix != "ib") else {
            return Err(unit_trap(
                &self.place,
                format!("`{}` has a unit that fio does not know", self.shown()),
                format!("fio takes {number} bytes and says nothing"),
                format!("write {}={number}k, m, g or t", self.key),
            ));
        };
        let base = if suffix.ends_with("ib") { inverse } else { self.kilo };
        let factor = base.pow(u32::try_from(power).expect("a power of at most 5"));
        self.multiplied(number, factor)
    }

    /// Whether the number ends in `ib`, which fio reads by the other base.
    pub(crate) fn is_inverted(&self) -> bool {
        self.kilo == 1024 && self.text.to_ascii_lowercase().ends_with("ib")
    }

    /// The size of an I/O: bytes, and an error where fio would read another size than was meant.
    pub(crate) fn block(&self) -> Result<u64, Fault> {
        let bytes = self.bytes()?;
        let trap = |tool: String, remedy: String| {
            Err(unit_trap(&self.place, format!("`{}` is {bytes} bytes", self.shown()), tool, remedy))
        };
        if bytes == 0 {
            return Err(self.refused("fio says `min value out of range: 0 (1 min)`", "write 512 or more"));
        }
        if self.is_inverted() && bytes % 512 != 0 {
            let plain: String = self.text.chars().filter(|letter| !matches!(letter, 'i' | 'I')).collect();
            return trap(
                "fio counts `kib` by 1000, unless kb_base=1000 stands in the job".into(),
                format!("write {}={plain}", self.key),
            );
        }
        if bytes < 512 {
            return trap(
                format!("fio does I/Os of {bytes} bytes"),
                format!("write {}={bytes}k if {bytes} KiB are meant; I/Os have 512 bytes at least", self.key),
            );
        }
        Ok(bytes)
    }

    /// Bytes or percent.
    pub(crate) fn extent(&self) -> Result<Extent, Fault> {
        match self.text.strip_suffix('%') {
            Some(number) if self.spaced => Err(unit_trap(
                &self.place,
                format!("`{}` has white space behind the `=`", self.shown()),
                format!("fio loses the % there and reads {number} bytes"),
                format!("write {}={number}%", self.key),
            )),
            Some(number) => {
                let percent = self.part(number).whole(0, 100)?;
                Ok(Extent::Percent(percent as f64))
            }
            None => Ok(Extent::Bytes(self.bytes()?)),
        }
    }

    /// A whole number within limits; fio takes `k` and other units here too.
    pub(crate) fn whole(&self, least: u64, most: u64) -> Result<u64, Fault> {
        let value = self.bytes()?;
        if value < least || value > most {
            let (which, limit) = if value < least { ("min", least) } else { ("max", most) };
            return Err(self.refused(
                format!("fio says `{which} value out of range: {value} ({limit} {which})`"),
                format!("write {least} to {most}"),
            ));
        }
        Ok(value)
    }

    /// A number that counts something.
    pub(crate) fn count(&self, least: u64) -> Result<u32, Fault> {
        let value = self.bytes()?;
        let kept = value & u64::from(u32::MAX);
        if kept < least {
            return Err(self.refused(
                format!("fio says `min value out of range: {kept} ({least} min)`"),
                format!("write {least} or more"),
            ));
        }
        match u32::try_from(value) {
            Ok(count) if count <= u32::MAX >> 1 => Ok(count),
            _ => Err(self.trap("fio keeps the lowest 32 bits of it", "write a smaller number")),
        }
    }

    /// 0 or 1.
    pub(crate) fn boolean(&self) -> Result<bool, Fault> {
        match self.part(&self.text).quantity() {
            Ok(Quantity { number: number @ 0..=1, suffix }) if suffix.is_empty() => Ok(number == 1),
            _ => Err(self.refused(
                "fio fails to parse a boolean that is not 0 or 1",
                format!("write {}=1 or {}=0", self.key, self.key),
            )),
        }
    }

    /// Alone, 0 or 1: an option that switches something on by standing there.
    pub(crate) fn switch(&self) -> Result<bool, Fault> {
        if !self.given {
            return Ok(true);
        }
        match self.part(&self.text).quantity()? {
            Quantity { number: number @ 0..=1, suffix } if suffix.is_empty() => Ok(number == 1),
            _ => Err(self
                .trap("fio takes any number here", format!("write {} alone, or {}=0", self.key, self.key))),
        }
    }

    /// A fraction.
    pub(crate) fn float(&self) -> Result<f64, Fault> {
        self.text
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite())
            .ok_or_else(|| self.refused("fio fails to parse it", "write a number such as 1.2"))
    }

    /// A time whose plain number is seconds.
    pub(crate) fn seconds(&self) -> Result<Duration, Fault> {
        self.time(1_000_000)
    }

    /// A time whose plain number is microseconds.
    pub(crate) fn micros(&self) -> Result<Duration, Fault> {
        self.time(1)
    }

    fn time(&self, plain: u64) -> Result<Duration, Fault> {
        let Quantity { number, suffix } = self.quantity()?;
        let factor = match suffix.as_str() {
            "" => plain,
            "us" | "usec" => 1,
            "ms" | "msec" => 1_000,
            "s" => 1_000_000,
            "m" => 60_000_000,
            "h" => 3_600_000_000,
            "d" => 86_400_000_000,
            _ => {
                let meant = match suffix.as_str() {
                    "sec" | "secs" | "second" | "seconds" => "s",
                    "min" | "mins" | "minute" | "minutes" => "m",
                    "hour" | "hours" | "hr" | "hrs" => "h",
                    "day" | "days" => "d",
                    _ => "s, m, h or d",
                };
                return Err(unit_trap(
                    &self.place,
                    format!("`{}` has a unit of time that fio does not know", self.shown()),
                    format!("fio takes {number} us and the job does nearly nothing"),
                    format!("write {}={number}{meant}", self.key),
                ));
            }
        };
        let micros = self.multiplied(number, factor)?;
        if micros as f64 / 1e6 > limits::SECONDS_MAX {
            return Err(malformed(
                &self.place,
                format!("`{}` is more than ten years", self.shown()),
                "write less",
            ));
        }
        Ok(Duration::from_micros(micros))
    }

    /// One of these words.
    pub(crate) fn one_of<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, Fault> {
        let found = words.iter().find(|(word, _)| *word == self.text);
        if let Some(&(_, meaning)) = found.filter(|_| !self.spaced) {
            return Ok(meaning);
        }
        if found.is_some() {
            return Err(self.refused(
                "fio takes the blank behind the `=` for a part of the word and drops the job",
                format!("write {}={}", self.key, self.text),
            ));
        }
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let near = crate::keys::nearest(&self.text, known.iter().copied());
        Err(self.refused(
            "fio fails to parse it and drops the job",
            match near {
                Some(word) => format!("did you mean {}={word}?", self.key),
                None => format!("write one of: {}", known.join(", ")),
            },
        ))
    }

    /// `read,write,trim`: a missing second and third are the one before; an empty one stays at its default.
    pub(crate) fn triple<T: Copy>(
        &self,
        read: impl Fn(&Value) -> Result<T, Fault>,
    ) -> Result<[Option<T>; 3], Fault> {
        let parts: Vec<&str> = self.text.split(',').collect();
        if parts.len() > 3 {
            return Err(
                self.trap("fio takes three values and passes over the others", "write read,write,trim")
            );
        }
        let mut values = [None; 3];
        let mut last = None;
        for (index, value) in values.iter_mut().enumerate() {
            match parts.get(index) {
                Some(part) if part.trim().is_empty() && parts.len() > 1 => last = None,
                Some(part) => last = Some(read(&self.part(part))?),
                None => {}
            }
            *value = last;
        }
        Ok(values)
    }
}
