//! The lines of a job file: sections, options, includes, comments.

use crate::findings::{Findings, malformed, refused};
use crate::includes::{Includes, NotIncluded};
use crate::source::{Options, Source};
use plan::Place;

/// One option as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    /// None where the key stands alone.
    pub(crate) value: Option<String>,
    /// Whether white space follows the `=`, which makes fio lose the unit of a number.
    pub(crate) spaced: bool,
    pub(crate) place: Place,
    /// Whether it is of a command line, where nothing is sorted.
    pub(crate) is_argument: bool,
}

impl Entry {
    /// A key that stands alone.
    pub(crate) fn switch(key: &str, place: Place) -> Entry {
        Entry { key: key.to_owned(), value: None, spaced: false, place, is_argument: false }
    }

    /// How long it is.
    pub(crate) fn bytes(&self) -> usize {
        self.key.len() + self.value.as_ref().map_or(0, String::len)
    }
}

/// What a section is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SectionKind {
    Global,
    Job,
    /// fio is called: what was global before is not any more, and the jobs that follow wait for those before.
    Command,
}

/// A section with its options in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) kind: SectionKind,
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) entries: Vec<Entry>,
}

/// All sections of a file and of what it includes.
pub(crate) fn sections(source: &Source, options: &Options<'_>, findings: &mut Findings) -> Vec<Section> {
    let mut lexer = Lexer { options, findings, sections: Vec::new(), includes: Includes::default() };
    lexer.file(&source.name, &source.text, 0);
    lexer.sections
}

struct Lexer<'a, 'b> {
    options: &'a Options<'a>,
    findings: &'b mut Findings,
    sections: Vec<Section>,
    includes: Includes,
}

impl Lexer<'_, '_> {
    fn file(&mut self, name: &str, text: &str, depth: usize) {
        for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let place = |column: usize| Place {
                file: name.to_owned(),
                line: u32::try_from(index + 1).unwrap_or(u32::MAX),
                column: u32::try_from(column + 1).unwrap_or(u32::MAX),
            };
            let column = line.chars().take_while(|letter| letter.is_whitespace()).count();
            let trimmed = line.trim();
            if trimmed.is_empty() || trimmed.starts_with([';', '#']) {
                continue;
            }
            if self.findings.is_full() {
                return;
            }
            if let Some(rest) = trimmed.strip_prefix('[') {
                self.section(rest, place(column), depth);
            } else if let Some(path) = included(trimmed) {
                self.include(path, &place(column), name, depth);
            } else {
                self.option(trimmed, place(column));
            }
        }
    }

    fn section(&mut self, rest: &str, place: Place, depth: usize) {
        if depth > 0 {
            self.findings.fault(refused(
                &place,
                "a section in an included file",
                "fio takes options alone from an included file",
                "put the section in the job file itself, and include the options below it",
            ));
            return;
        }
        let Some(end) = rest.rfind(']') else {
            self.findings.fault(malformed(
                &place,
                format!("the section [{rest} is not closed"),
                "end its name with ]",
            ));
            let name = rest.to_owned();
            self.sections.push(Section { kind: SectionKind::Job, name, place, entries: Vec::new() });
            return;
        };
        let name = rest[..end].to_owned();
        let kind = if name.starts_with("global") { SectionKind::Global } else { SectionKind::Job };
        if kind == SectionKind::Global && name != "global" {
            self.findings.note(
                plan::NoteKind::Trap,
                &place,
                &name,
                "fio takes every section whose name begins with `global` for defaults: it is no job",
            );
        }
        self.sections.push(Section { kind, name, place, entries: Vec::new() });
    }

    fn include(&mut self, path: &str, place: &Place, from: &str, depth: usize) {
        match self.includes.open(self.options, path, from, depth) {
            Ok(file) => self.file(&file.name, &file.text, depth + 1),
            Err(NotIncluded::TooMany) => self.findings.fault(malformed(
                place,
                format!("`include {path}` is one file too many, {} deep", depth + 1),
                "a file that includes itself never ends: take the circle out",
            )),
            Err(NotIncluded::TooLong) => {
                self.findings.fault(malformed(place, format!("{path} is too long"), "split it"));
            }
            Err(NotIncluded::Unreadable(reason)) => self.findings.fault(malformed(
                place,
                format!("{path} cannot be included: {reason} (fio says so too, and may go on without it)"),
                "put the file beside the job file, or its options in place of the include",
            )),
        }
    }

    fn option(&mut self, line: &str, place: Place) {
        let line = without_comment(line);
        if line.is_empty() {
            return;
        }
        let entry = entry(line, place);
        match self.sections.last_mut() {
            Some(section) => section.entries.push(entry),
            None => self.findings.fault(refused(
                &entry.place,
                format!("the option `{line}` stands before any section"),
                "fio says `option <…> outside of [] job section`",
                "put [global] above it",
            )),
        }
    }
}

/// `key=value` or `key`.
pub(crate) fn entry(text: &str, place: Place) -> Entry {
    match text.split_once('=') {
        Some((key, value)) => Entry {
            key: key.trim_end().to_owned(),
            spaced: value.starts_with(char::is_whitespace),
            value: Some(value.trim().to_owned()),
            place,
            is_argument: false,
        },
        None => Entry::switch(text, place),
    }
}

fn included(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("include")?;
    rest.starts_with(char::is_whitespace).then(|| rest.trim()).filter(|path| !path.starts_with('='))
}

/// The line up to a `;` or `#` that follows white space.
fn without_comment(line: &str) -> &str {
    let mut before = ' ';
    for (index, letter) in line.char_indices() {
        if matches!(letter, ';' | '#') && before.is_whitespace() {
            return line[..index].trim_end();
        }
        before = letter;
    }
    line
}
