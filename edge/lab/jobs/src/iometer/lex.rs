//! Lines of an `.icf` file: keys and values.

use crate::source::Source;
use plan::Place;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    pub(crate) text: &'a str,
    pub(crate) place: Place,
}

impl<'a> Line<'a> {
    /// The key in lower case, if the line is one.
    pub(crate) fn key(&self) -> Option<String> {
        let key = self.text.trim().strip_prefix('\'')?.trim();
        Some(key.trim_end_matches('=').trim_end().to_ascii_lowercase())
    }

    /// The parts between commas, without white space around them.
    pub(crate) fn parts(&self) -> Vec<&'a str> {
        self.text.split(',').map(str::trim).collect()
    }

    /// The words between white space.
    pub(crate) fn words(&self) -> Vec<&'a str> {
        self.text.split_whitespace().collect()
    }
}

/// The lines of a file, one after another.
pub(crate) struct Lines<'a> {
    lines: Vec<Line<'a>>,
    next: usize,
}

impl<'a> Lines<'a> {
    pub(crate) fn of(source: &'a Source) -> Lines<'a> {
        let lines = source
            .text
            .trim_start_matches('\u{feff}')
            .lines()
            .enumerate()
            .map(|(index, text)| {
                let column = text.chars().take_while(|letter| letter.is_whitespace()).count() + 1;
                let place = Place {
                    file: source.name.clone(),
                    line: u32::try_from(index + 1).unwrap_or(u32::MAX),
                    column: u32::try_from(column).unwrap_or(u32::MAX),
                };
                Line { text, place }
            })
            .collect();
        Lines { lines, next: 0 }
    }

    /// The next line, without taking it.
    pub(crate) fn peek(&self) -> Option<&Line<'a>> {
        self.lines.get(self.next)
    }

    /// The next line.
    pub(crate) fn take(&mut self) -> Option<Line<'a>> {
        let line = self.lines.get(self.next).cloned();
        self.next += usize::from(line.is_some());
        line
    }

    /// The value of the key just taken: the next line that is no key; none where another section begins or the file ends.
    pub(crate) fn value(&mut self) -> Option<Line<'a>> {
        while let Some(line) = self.peek() {
            match line.key() {
                Some(key) if key.starts_with("end ") => return None,
                Some(_) => self.next += 1,
                None => return self.take(),
            }
        }
        None
    }

    /// Whether the next line is a key, or nothing is left.
    pub(crate) fn at_key(&self) -> bool {
        self.peek().is_none_or(|line| line.key().is_some())
    }
}

/// A number as Iometer reads it (`atoi`): digits at the beginning, 0 where there are none.
pub(crate) fn leading_number(text: &str) -> u64 {
    let digits = text.trim().bytes().take_while(u8::is_ascii_digit);
    digits.fold(0u64, |number, digit| number.saturating_mul(10).saturating_add(u64::from(digit - b'0')))
}
