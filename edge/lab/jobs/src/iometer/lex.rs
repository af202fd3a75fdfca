//! Lines of an `.icf` file: keys and values.

use crate::source::{Source, place};
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

    /// A part between commas in upper case; empty where there is none.
    pub(crate) fn part(&self, index: usize) -> String {
        self.text.split(',').nth(index).unwrap_or_default().trim().to_ascii_uppercase()
    }

    /// A number between white space; 0 where there is none.
    pub(crate) fn number(&self, index: usize) -> u64 {
        self.text.split_whitespace().nth(index).map_or(0, leading_number).min(1 << 30)
    }

    /// Whether the line ends a section.
    pub(crate) fn is_end(&self) -> bool {
        self.key().is_some_and(|key| key.starts_with("end "))
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
                let place = place(&source.name, index + 1, column);
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
