//! Variables of the script around a command line: `%NAME%` of cmd, `$NAME` and `${NAME}` of PowerShell and of shells.

use super::words::Word;
use crate::error::Fault;
use crate::findings::{refused, unsupported};
use crate::source::Options;
use std::collections::BTreeMap;

/// What a script has set so far, and what is given beside it. Case does not count, as in cmd and PowerShell.
pub(crate) struct Variables {
    values: BTreeMap<String, String>,
    has_targets: bool,
}

/// Why a text cannot be filled in.
enum Missing {
    Variable(String),
    Expression,
}

impl Variables {
    /// What is given: `--define NAME=value`.
    pub(crate) fn new(options: &Options<'_>) -> Variables {
        let given = options.variables.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone()));
        Variables { values: given.collect(), has_targets: options.has_targets }
    }

    /// Takes a line that sets a variable to a text: `set NAME=text`, `NAME=text`, `$NAME = "text"`. Whether it is one.
    pub(crate) fn assign(&mut self, line: &str) -> bool {
        let is_set = line.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("set "));
        let rest = if is_set { line[4..].trim_matches('"') } else { line.trim_start_matches('$') };
        let Some((name, text)) = rest.split_once('=') else { return false };
        let name = name.trim().trim_start_matches("env:").to_ascii_lowercase();
        if !is_name(&name) {
            return false;
        }
        let text = text.trim();
        let quoted = text.len() > 1 && text.starts_with(['"', '\'']) && text.ends_with(['"', '\'']);
        let is_literal = is_set || quoted || !text.contains([' ', '(', '@', '`']);
        // What is calculated is not known, nor is what it was before.
        match self.filled(text.trim_matches(['"', '\''])) {
            // What was given counts more.
            Ok(text) if is_literal => _ = self.values.entry(name).or_insert(text),
            _ => _ = self.values.remove(&name),
        }
        true
    }

    /// Puts values in the place of variables. A target may be a variable that is not set, where targets are named beside the job.
    ///
    /// # Errors
    /// For a variable that is not set, and for what a shell calculates.
    pub(crate) fn fill(&self, word: &mut Word) -> Result<(), Fault> {
        let found = match self.filled(&word.text) {
            Ok(text) => {
                word.text = text;
                return Ok(());
            }
            Err(_) if self.has_targets && !word.text.starts_with(['-', '/']) => return Ok(()),
            Err(found) => found,
        };
        Err(match found {
            Missing::Variable(name) => refused(
                &word.place,
                format!("`{}` uses the variable {name}, which is not set", word.text),
                "the script sets it before DiskSPD runs",
                match word.text.starts_with(['-', '/']) {
                    true => format!("pass --define {name}=value"),
                    false => format!("pass --define {name}=value, or name the target with --target"),
                },
            ),
            Missing::Expression => unsupported(
                &word.place,
                format!("`{}` is calculated by the script", word.text),
                "write its value, and a command line for each value of a loop",
            ),
        })
    }

    fn filled(&self, text: &str) -> Result<String, Missing> {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['%', '$']) {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            let Some((name, length)) = variable(rest)? else {
                out.push_str(&rest[..1]);
                rest = &rest[1..];
                continue;
            };
            let value = self.values.get(&name.to_ascii_lowercase());
            out.push_str(value.ok_or_else(|| Missing::Variable(name.to_owned()))?);
            rest = &rest[length..];
        }
        Ok(out + rest)
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// The variable that a text begins with, and how many bytes of the text that is; none for a sign that is only a sign.
fn variable(text: &str) -> Result<Option<(&str, usize)>, Missing> {
    let name = |text: &str| {
        text.bytes().take_while(|letter| letter.is_ascii_alphanumeric() || *letter == b'_').count()
    };
    let of = |start: usize, behind: &str| {
        let length = name(&text[start..]);
        let is_whole = length > 0 && text[start + length..].starts_with(behind);
        is_whole.then(|| (&text[start..start + length], start + length + behind.len()))
    };
    Ok(match text.as_bytes() {
        [b'$', b'(', ..] => return Err(Missing::Expression),
        [b'$', b'{', ..] => of(2, "}"),
        _ if text.starts_with("$env:") => of(5, ""),
        [b'$', first, ..] if !first.is_ascii_digit() => of(1, ""),
        // A loop of a batch file has one letter.
        [b'%', b'%', letter, ..] if letter.is_ascii_alphabetic() => Some((&text[2..3], 3)),
        [b'%', b'%', ..] => None,
        [b'%', first, ..] if first.is_ascii_digit() => Some((&text[1..2], 2)),
        [b'%', ..] => of(1, "%"),
        _ => None,
    })
}
