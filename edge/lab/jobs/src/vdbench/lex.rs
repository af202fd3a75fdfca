//! Lines, comments, continuations, includes, variables: a stream of parameters.

use super::keys::OTHERS;
use crate::error::Fault;
use crate::findings::{Findings, malformed, refused, shown, unsupported};
use crate::includes::{Includes, NotIncluded};
use crate::keys::Treatment;
use crate::limits;
use crate::source::{Options, Source, place};
use plan::Place;

/// `key=value` or `key=(value,value)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parameter {
    /// In lower case.
    pub(crate) key: String,
    pub(crate) values: Vec<String>,
    /// Whether there were parentheses.
    pub(crate) listed: bool,
    pub(crate) place: Place,
    /// Whether it is the first of its line.
    pub(crate) first: bool,
}

impl Parameter {
    /// As it stands in the file, shortened.
    pub(crate) fn shown(&self) -> String {
        let values = self.values.join(",");
        let values = shown(&values);
        if self.listed { format!("{}=({values})", self.key) } else { format!("{}={values}", self.key) }
    }
}

/// All parameters of a file and of what it includes.
pub(crate) fn parameters(source: &Source, options: &Options<'_>, findings: &mut Findings) -> Vec<Parameter> {
    let mut lexer = Lexer {
        options,
        findings,
        out: Vec::new(),
        includes: Includes::default(),
        open: None,
        unset: Vec::new(),
        foreign: None,
    };
    lexer.file(&source.name, &source.text, 0);
    lexer.close();
    let Lexer { out, foreign, .. } = lexer;
    // A file of file systems is one fault, not one for each of its parameters.
    if let Some(fault) = foreign {
        findings.faults = vec![fault];
    }
    out
}

/// A logical line: several lines of the file where each but the last ends in a comma.
#[derive(Default)]
struct Logical {
    letters: Vec<char>,
    /// Where its lines stand, with how many letters are before each.
    lines: Vec<(usize, Place)>,
}

struct Lexer<'a, 'b> {
    options: &'a Options<'a>,
    findings: &'b mut Findings,
    out: Vec<Parameter>,
    includes: Includes,
    /// A logical line that ended in a comma so far.
    open: Option<Logical>,
    /// Variables without a value.
    unset: Vec<String>,
    /// A definition that is not of raw storage.
    foreign: Option<Fault>,
}

impl Lexer<'_, '_> {
    fn file(&mut self, name: &str, text: &str, depth: usize) {
        for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let column = line.chars().take_while(|letter| *letter == ' ').count();
            let place = place(name, index + 1, column + 1);
            let line = line.trim_start_matches(' ').trim_end_matches(['\r', '\n']);
            if line.trim().is_empty() || line.starts_with(['*', '#', '/']) {
                continue;
            }
            let first = line.split([' ', '\t']).next().unwrap_or_default();
            if first.eq_ignore_ascii_case("eof") {
                break;
            }
            if self.findings.is_full() || self.foreign.is_some() {
                return;
            }
            let key = first.split('=').next().unwrap_or_default().to_ascii_lowercase();
            let foreign =
                OTHERS.iter().find(|rule| rule.key.is(&key) && rule.key.treatment == Treatment::Refused);
            if let Some(rule) = foreign {
                let shown = shown(first);
                self.foreign = Some(unsupported(&place, format!("`{shown}`"), rule.key.sentence));
                return;
            }
            if let Some(path) = strip_key(first, "include=") {
                self.close();
                self.include(path, &place, name, depth);
                continue;
            }
            self.line(line, place);
        }
    }

    fn include(&mut self, path: &str, place: &Place, from: &str, depth: usize) {
        match self.includes.open(self.options, path, from, depth) {
            Ok(file) => self.file(&file.name, &file.text, depth + 1),
            Err(NotIncluded::TooMany) => self.findings.fault(refused(
                place,
                format!("`include={path}` exceeds the limit of included files, {} deep", depth + 1),
                "Vdbench rejects recursion",
                "remove the circle of includes",
            )),
            Err(NotIncluded::TooLong) => {
                self.findings.fault(malformed(place, format!("{path} is too long"), "split the file"));
            }
            Err(NotIncluded::Unreadable(reason)) => self.findings.fault(refused(
                place,
                format!("{path} cannot be included: {reason}"),
                "Vdbench stops at a file that it cannot find",
                "put the file beside the parameter file",
            )),
        }
    }

    fn line(&mut self, line: &str, place: Place) {
        let (body, comment) = cut(line);
        if let Some(tab) = body.find('\t') {
            let column = place.column + u32::try_from(body[..tab].chars().count()).unwrap_or(0);
            self.findings.fault(refused(
                &Place { column, ..place },
                "the line has a tab",
                "Vdbench takes a tab for a part of the value, not for the start of a comment, and stops",
                "replace the tab with a blank",
            ));
            return;
        }
        if body.ends_with(',') && looks_like_parameter(comment) {
            let shown = shown(comment.trim());
            let column = place.column + u32::try_from(body.chars().count()).unwrap_or(0);
            self.findings.fault(refused(
                &Place { column, ..place },
                format!("`{shown}` follows a blank"),
                "Vdbench takes everything behind the first blank of a line for a comment",
                "remove the blank",
            ));
            return;
        }
        let Some(body) = self.replaced(body, &place) else { return };
        let mut logical = self.open.take().unwrap_or_default();
        logical.lines.push((logical.letters.len(), place.clone()));
        logical.letters.extend(body.chars());
        if logical.letters.len() > limits::TEXT_BYTES_MAX {
            self.findings.fault(malformed(&place, "the line is too long", "split the line"));
            return;
        }
        self.open = Some(logical);
        if !body.ends_with(',') {
            self.close();
        }
    }

    /// `$x` and `!x` by their values.
    fn replaced(&mut self, body: &str, place: &Place) -> Option<String> {
        let mut out = String::new();
        let mut letters = body.char_indices().peekable();
        while let Some((index, letter)) = letters.next() {
            let named = |next: char| next.is_ascii_alphanumeric() || next == '_';
            let name: String =
                body[index + letter.len_utf8()..].chars().take_while(|next| named(*next)).collect();
            let variable = matches!(letter, '$' | '!' | '#')
                && name.starts_with(|next: char| next.is_ascii_alphabetic());
            if !variable || (letter == '#' && name != "host") {
                out.push(letter);
                continue;
            }
            if name == "host" {
                self.findings.fault(unsupported(
                    place,
                    format!("`{letter}host` repeats the line for every host"),
                    "write the line once: the lab runs the plan on every agent",
                ));
                return None;
            }
            let Some((_, value)) = self.options.variables.iter().find(|(known, _)| *known == name) else {
                // A name is told of once, wherever it first stands.
                if !self.unset.contains(&name) {
                    self.findings.fault(refused(
                        place,
                        format!("`{letter}{name}` has no value"),
                        "Vdbench expects the value on its command line",
                        format!("pass --define {name}=value"),
                    ));
                    self.unset.push(name);
                }
                return None;
            };
            out.push_str(value);
            for _ in 0..name.chars().count() {
                letters.next();
            }
        }
        Some(out)
    }

    /// Ends the logical line: its parameters follow.
    fn close(&mut self) {
        let Some(Logical { letters, lines }) = self.open.take() else { return };
        let mut first = true;
        let mut start = 0;
        let mut index = 0;
        let mut depth = 0usize;
        let mut quoted = false;
        while index <= letters.len() {
            let letter = letters.get(index).copied();
            match letter {
                Some('"') => quoted = !quoted,
                Some('(') if !quoted => depth += 1,
                Some(')') if !quoted => depth = depth.saturating_sub(1),
                _ => {}
            }
            if letter.is_none() || (letter == Some(',') && depth == 0 && !quoted) {
                let piece: String = letters[start..index].iter().collect();
                if !piece.is_empty() {
                    let place = place_of(&lines, start);
                    if depth > 0 || quoted {
                        self.findings.fault(malformed(
                            &place,
                            format!("`{}` is not closed", shown(&piece)),
                            "close the parenthesis or quote",
                        ));
                    } else {
                        self.parameter(&piece, place, first);
                    }
                    first = false;
                }
                start = index + 1;
            }
            index += 1;
        }
    }

    fn parameter(&mut self, piece: &str, place: Place, first: bool) {
        let Some((key, value)) = piece.split_once('=') else {
            let shown = shown(piece);
            self.findings.fault(refused(
                &place,
                format!("`{shown}` has no `=`"),
                format!("Vdbench says `Expecting 'keyword=' in parameter: {shown}`"),
                "a comment begins with `*`; a list stands in parentheses",
            ));
            return;
        };
        let listed = value.starts_with('(') && value.ends_with(')') && value.len() >= 2;
        let inner = if listed { &value[1..value.len() - 1] } else { value };
        let values = if listed { split_list(inner) } else { vec![unquoted(inner)] };
        self.out.push(Parameter { key: key.to_ascii_lowercase(), values, listed, place, first });
    }
}

/// Where a letter of a logical line stands.
fn place_of(lines: &[(usize, Place)], index: usize) -> Place {
    let line = lines.partition_point(|(before, _)| *before <= index).saturating_sub(1);
    let (before, place) = &lines[line];
    let column = place.column.saturating_add(u32::try_from(index - before).unwrap_or(0));
    Place { column, ..place.clone() }
}

/// The line up to its first blank outside of quotes, and what follows.
fn cut(line: &str) -> (&str, &str) {
    let mut quoted = false;
    for (index, letter) in line.char_indices() {
        match letter {
            '"' => quoted = !quoted,
            ' ' if !quoted => return (&line[..index], &line[index..]),
            _ => {}
        }
    }
    (line, "")
}

fn looks_like_parameter(comment: &str) -> bool {
    let word = comment.trim_start().split([' ', ',']).next().unwrap_or_default();
    word.split_once('=').is_some_and(|(key, value)| {
        key.len() >= 2 && key.bytes().all(|byte| byte.is_ascii_alphabetic()) && !value.is_empty()
    })
}

fn strip_key<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.get(..key.len()).filter(|start| start.eq_ignore_ascii_case(key)).map(|_| &text[key.len()..])
}

fn unquoted(text: &str) -> String {
    text.replace('"', "")
}

/// The parts between commas outside of quotes and inner parentheses.
fn split_list(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quoted = false;
    let mut depth = 0usize;
    for letter in text.chars() {
        match letter {
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth = depth.saturating_sub(1),
            ',' if !quoted && depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if letter != '"' {
            parts.last_mut().expect("there is always one").push(letter);
        }
    }
    parts
}
