//! fio's command line as a text: `fio --name=a --rw=read …`, one or several, in shell quotes.

use super::lex::{Entry, Section, SectionKind, entry};
use crate::detect::{plain_dash, program_of};
use crate::findings::{Findings, malformed, refused};
use crate::source::{Options, Source};
use plan::{NoteKind, Place};

/// Options of fio itself that say how it reports, not what it runs.
const REPORTING: &[&str] = &[
    "output",
    "output-format",
    "minimal",
    "append-terse",
    "terse-version",
    "bandwidth-log",
    "eta",
    "eta-interval",
    "status-interval",
    "debug",
    "warnings-fatal",
    "max-jobs",
    "alloc-size",
    "showcmd",
    "readonly",
    "section",
    "idle-prof",
    "inflate-log",
    "trigger",
    "trigger-file",
    "trigger-timeout",
    "trigger-remote",
    "aux-path",
    "parse-only",
    "merge-blktrace-only",
    "eta-newline",
    "crctest",
    "cpuclock-test",
    "daemonize",
    "client",
    "server",
    "remote-config",
];

/// Whether the text is words of a command line: it begins with `fio` or with an option, and not with a section.
pub(crate) fn is_command_line(text: &str) -> bool {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with(['#', ';']));
    first.is_some_and(|line| crate::detect::is_command_line(line) || line.starts_with("--"))
}

/// What a shell does with the rest of a line; a redirection may be joined with the name of its file.
fn ends_command(word: &str) -> bool {
    matches!(word, "|" | "||" | "&&" | "&" | ";" | "2>&1")
        || word.trim_start_matches(['1', '2', '&']).starts_with('>')
}

/// The jobs of a command line: `--name=` begins one; options before the first are global. A command that calls fio again comes
/// after the one before.
pub(crate) fn sections(source: &Source, options: &Options<'_>, findings: &mut Findings) -> Vec<Section> {
    let words = words(source, findings);
    let mut sections = Vec::new();
    let mut index = 0;
    let mut is_shell = words.iter().any(|(word, _)| program_of(word) == "fio");
    while index < words.len() {
        let (word, place) = &words[index];
        index += 1;
        if program_of(word) == "fio" {
            let kind = SectionKind::Command;
            sections.push(Section { kind, name: String::new(), place: place.clone(), entries: Vec::new() });
            is_shell = false;
            continue;
        }
        // `sudo`, variables and prompts before fio, and what comes behind a pipe.
        is_shell |= ends_command(word);
        if is_shell {
            continue;
        }
        // fio takes one hyphen as well as two.
        let Some(option) = word.strip_prefix('-').map(|word| word.strip_prefix('-').unwrap_or(word)) else {
            file(word, place, options, findings, &mut sections);
            continue;
        };
        let mut entry = entry(option, place.clone());
        // An option whose value is the next word, as getopt takes it.
        if entry.value.is_none()
            && words
                .get(index)
                .is_some_and(|(next, _)| !next.starts_with('-') && !super::rules::is_switch(&entry.key))
        {
            entry.value = Some(words[index].0.clone());
            index += 1;
        }
        if REPORTING.contains(&entry.key.as_str()) {
            findings.note(
                NoteKind::NotCarried,
                place,
                &entry.key,
                "how fio reports or starts; the lab reports by itself",
            );
            continue;
        }
        add(entry, &mut sections);
    }
    sections
}

/// A job file named on the command line: its sections follow.
fn file(
    word: &str,
    place: &Place,
    options: &Options<'_>,
    findings: &mut Findings,
    sections: &mut Vec<Section>,
) {
    match (options.include)(word) {
        Ok(text) => {
            let mut read = super::lex::sections(&Source::new(word, text), options, findings);
            // fio separates the files of one command line by a stonewall.
            let earlier = sections.iter().any(|section| section.kind == SectionKind::Job);
            if let Some(first) = read.iter_mut().find(|section| section.kind == SectionKind::Job && earlier) {
                let place = first.place.clone();
                first.entries.push(Entry::switch("stonewall", place));
            }
            sections.extend(read);
        }
        Err(reason) => findings.fault(refused(
            place,
            format!("`{word}` is neither an option nor a job file that can be read: {reason}"),
            "fio takes every word without a hyphen for a job file",
            "write --option=value without a blank between them",
        )),
    }
}

fn add(mut entry: Entry, sections: &mut Vec<Section>) {
    entry.is_argument = true;
    if entry.key == "name" {
        let name = entry.value.clone().unwrap_or_default();
        let kind = if name.starts_with("global") { SectionKind::Global } else { SectionKind::Job };
        sections.push(Section { kind, name, place: entry.place, entries: Vec::new() });
        return;
    }
    if sections.last().is_none_or(|section| section.kind == SectionKind::Command) {
        sections.push(Section {
            kind: SectionKind::Global,
            name: "global".into(),
            place: entry.place.clone(),
            entries: Vec::new(),
        });
    }
    if let Some(section) = sections.last_mut() {
        section.entries.push(entry);
    }
}

/// The words of a shell line with their places: blanks part them, quotes and `\` keep them together, `\` at the end of a line
/// goes on, a line that begins with `#` is a comment.
fn words(source: &Source, findings: &mut Findings) -> Vec<(String, Place)> {
    let mut words: Vec<(String, Place)> = Vec::new();
    let mut word: Option<(String, Place)> = None;
    let mut quote: Option<char> = None;
    let mut here = Place { file: source.name.clone(), line: 1, column: 0 };
    let mut letters = source.text.chars().peekable();
    // Windows has `\` in paths, and goes on behind `^` and a backtick.
    let windows = source.text.to_ascii_lowercase().contains("fio.exe");
    let mut line_start = true;
    while let Some(letter) = letters.next() {
        here.column += 1;
        let comment = line_start && quote.is_none() && letter == '#';
        line_start = letter == '\n' || (line_start && letter.is_whitespace());
        if comment {
            while letters.peek().is_some_and(|&next| next != '\n') {
                letters.next();
            }
            continue;
        }
        match (letter, quote) {
            ('\\' | '^' | '`', None)
                if matches!(letters.peek(), Some('\n' | '\r')) && (windows || letter == '\\') =>
            {
                while letters.peek().is_some_and(|next| matches!(next, '\r')) {
                    letters.next();
                }
                letters.next();
                here.line += 1;
                here.column = 0;
            }
            ('\\', None) if !windows || letters.peek() == Some(&':') => {
                if let Some(next) = letters.next() {
                    here.column += 1;
                    // fio's own escape of `:` in a file name is left to fio's rules.
                    let kept = if next == ':' { "\\:".to_owned() } else { next.to_string() };
                    word.get_or_insert_with(|| (String::new(), here.clone())).0.push_str(&kept);
                }
            }
            ('"' | '\'' | '\u{201c}' | '\u{201d}' | '\u{2018}' | '\u{2019}', None) => {
                quote = Some(match letter {
                    '\u{201c}' => '\u{201d}',
                    '\u{2018}' => '\u{2019}',
                    letter => letter,
                });
                word.get_or_insert_with(|| (String::new(), here.clone()));
            }
            (letter, Some(open)) if letter == open => quote = None,
            (letter, None) if letter.is_whitespace() => words.extend(word.take()),
            (letter, _) => word.get_or_insert_with(|| (String::new(), here.clone())).0.push(letter),
        }
        if letter == '\n' {
            here.line += 1;
            here.column = 0;
        }
    }
    words.extend(word.take());
    if quote.is_some() {
        findings.fault(malformed(&here, "a quote is not closed", "close it"));
    }
    for (word, place) in &mut words {
        if let Some(typed) = plain_dash(word) {
            let text = "typographic dashes, as of a web page, are read as hyphens";
            findings.note(NoteKind::Trap, place, "-", text);
            *word = typed;
        }
    }
    words
}
