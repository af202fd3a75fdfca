//! Command lines in a text: a script, a list of lines, or options alone.

use super::variables::Variables;
use crate::detect::{plain_dash, program_of};
use crate::findings::{Findings, malformed, shown};
use crate::source::{Options, Source, place};
use plan::Place;

/// A word with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) text: String,
    pub(crate) place: Place,
}

/// One command line without the program's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) place: Place,
    pub(crate) words: Vec<Word>,
}

/// All command lines: lines that call `diskspd`, and lines of options alone, with the variables that the lines above set.
pub(crate) fn commands(source: &Source, options: &Options<'_>, findings: &mut Findings) -> Vec<Command> {
    let mut commands = Vec::new();
    let mut variables = Variables::new(options);
    let mut open: Option<Command> = None;
    for (index, line) in source.text.trim_start_matches('\u{feff}').lines().enumerate() {
        let number = index + 1;
        let trimmed = line.trim();
        let comment = open.is_none()
            && (trimmed.starts_with(['#', ';', ':'])
                || trimmed.starts_with("//") && !trimmed.starts_with("//?")
                || trimmed.get(..4).is_some_and(|word| word.eq_ignore_ascii_case("rem ")));
        if trimmed.is_empty() || comment {
            continue;
        }
        let (body, goes_on) = match trimmed.strip_suffix(['^', '`']) {
            Some(body) => (body, true),
            None => (trimmed, false),
        };
        let (prompt, body) = without_prompt(body);
        let offset = line.chars().take_while(|letter| letter.is_whitespace()).count() + prompt;
        let (mut words, is_quoted) = words(body, &source.name, number, offset, findings);
        let command = match open.take() {
            Some(mut command) => {
                command.words.append(&mut words);
                Some(command)
            }
            None => begun(words),
        };
        if is_quoted && command.is_some() {
            let place = place(&source.name, number, offset + 1);
            findings.fault(malformed(&place, "a quote is not closed", "close the quote"));
        }
        match command {
            Some(command) if goes_on => open = Some(command),
            Some(command) => commands.extend(filled(command, &variables, findings)),
            None if variables.assign(trimmed) => {}
            None => {
                let place = place(&source.name, number, 1);
                let shown = shown(trimmed);
                let text = format!("`{shown}` does not call diskspd and is ignored");
                findings.note(plan::NoteKind::NotCarried, &place, "diskspd", text);
            }
        }
    }
    commands.extend(open.and_then(|command| filled(command, &variables, findings)));
    commands
}

/// The command with the values of its variables; none if one is not set, which is a fault.
fn filled(mut command: Command, variables: &Variables, findings: &mut Findings) -> Option<Command> {
    let mut is_whole = true;
    for word in &mut command.words {
        is_whole &= findings.take(variables.fill(word)).is_some();
    }
    is_whole.then_some(command)
}

/// A line behind the prompt of a shell of Windows (`PS C:\\> `), with how many letters that is.
fn without_prompt(line: &str) -> (usize, &str) {
    match line.split_once('>') {
        Some((prompt, rest))
            if prompt.contains(":\\") && !prompt.to_ascii_lowercase().contains("diskspd.exe") =>
        {
            (prompt.chars().count() + 1, rest)
        }
        _ => (0, line),
    }
}

/// The command that these words begin: behind `diskspd`, or all of them where the first is an option.
fn begun(mut words: Vec<Word>) -> Option<Command> {
    let place = words.first()?.place.clone();
    let program = words.iter().position(|word| {
        // `set diskspd=…` is no call, and `%diskspd%` and `$diskspd` are.
        let variable =
            word.text.starts_with(['%', '$']) && word.text.to_ascii_lowercase().contains("diskspd");
        !word.text.contains('=')
            && (variable || matches!(program_of(&word.text).as_str(), "diskspd" | "diskspd64" | "diskspd32"))
    });
    match program {
        Some(index) => words.drain(..=index).for_each(drop),
        None if words[0].text.starts_with('-') => {}
        None => return None,
    }
    Some(Command { place, words })
}

/// Words between blanks, up to a pipe or a redirection, and whether a quote is left open; double and single quotes keep blanks.
fn words(line: &str, file: &str, number: usize, offset: usize, findings: &mut Findings) -> (Vec<Word>, bool) {
    let mut words: Vec<Word> = Vec::new();
    let mut word: Option<Word> = None;
    let mut quote: Option<char> = None;
    let place = |column: usize| place(file, number, offset + column + 1);
    for (column, letter) in line.chars().enumerate() {
        match (letter, quote) {
            (letter, Some(open)) if letter == open => quote = None,
            ('"' | '\'' | '\u{201c}' | '\u{201d}', None) => {
                quote = Some(if letter == '\u{201c}' { '\u{201d}' } else { letter });
                word.get_or_insert_with(|| Word { text: String::new(), place: place(column) });
            }
            ('|' | '>', None) => break,
            (letter, None) if letter.is_whitespace() => words.extend(word.take()),
            (letter, _) => word
                .get_or_insert_with(|| Word { text: String::new(), place: place(column) })
                .text
                .push(letter),
        }
    }
    words.extend(word.take());
    for word in &mut words {
        if let Some(typed) = plain_dash(&word.text) {
            let text = "typographic dashes (from a web page) are read as hyphens";
            findings.note(plan::NoteKind::Trap, &word.place, "-", text);
            word.text = typed;
        }
    }
    (words, quote.is_some())
}
