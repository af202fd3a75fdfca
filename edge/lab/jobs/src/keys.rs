//! The key tables: every option, flag, parameter and element of the four dialects, what becomes of it, and what applies it.
//!
//! A key stands in one list, its dialect's rules. The reader takes from the list what applies a key, so a key that is missing
//! there is an unknown one, and the documentation (`docs/guide/job-keys.md`) is written from the same list.

use crate::Dialect;
use crate::error::Fault;
use crate::findings::{Findings, unsupported};
use plan::{NoteKind, Place};
use std::fmt::Write;

/// What becomes of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Treatment {
    /// The plan says it.
    Carried,
    /// The plan does not say it, and a note does.
    Noted,
    /// A job that uses it is refused: without it, the run would be another one.
    Refused,
}

impl Treatment {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Treatment::Carried => "carried",
            Treatment::Noted => "noted",
            Treatment::Refused => "refused",
        }
    }
}

/// A key of a dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// Where it may stand: the kind of definition or element; empty where there is one only.
    pub scope: &'static str,
    /// As the dialect spells it.
    pub name: &'static str,
    /// Other spellings, or other keys that are treated alike.
    pub aliases: &'static [&'static str],
    /// Other keys that are treated alike, separated by blanks.
    pub alike: &'static str,
    /// What becomes of it.
    pub treatment: Treatment,
    /// What it is, and what the lab makes of it.
    pub sentence: &'static str,
    /// Whether it may stand without a value.
    pub(crate) alone: bool,
}

impl Key {
    /// All its spellings.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied()).chain(self.alike.split_whitespace())
    }

    /// Whether it is spelled so.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.names().any(|own| own == name)
    }
}

/// A key with the function that applies it. A reader has one list of rules and no other list of keys.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule<F> {
    /// What the documentation says of the key.
    pub(crate) key: Key,
    /// Sets what the key says; none where it is noted or refused, or where the reader follows the key itself (a section).
    pub(crate) apply: Option<F>,
}

impl<F: Copy> Rule<F> {
    const fn new(
        name: &'static str,
        treatment: Treatment,
        sentence: &'static str,
        apply: Option<F>,
    ) -> Rule<F> {
        Rule {
            key: Key { scope: "", name, aliases: &[], alike: "", treatment, sentence, alone: false },
            apply,
        }
    }

    /// A key that the plan says.
    pub(crate) const fn carried(name: &'static str, sentence: &'static str, apply: F) -> Rule<F> {
        Rule::new(name, Treatment::Carried, sentence, Some(apply))
    }

    /// A key that the reader follows itself: the head of a section or of a list.
    pub(crate) const fn structure(name: &'static str, sentence: &'static str) -> Rule<F> {
        Rule::new(name, Treatment::Carried, sentence, None)
    }

    /// A key that leaves a note.
    pub(crate) const fn noted(name: &'static str, sentence: &'static str) -> Rule<F> {
        Rule::new(name, Treatment::Noted, sentence, None)
    }

    /// A key that a job is refused for.
    pub(crate) const fn refused(name: &'static str, sentence: &'static str) -> Rule<F> {
        Rule::new(name, Treatment::Refused, sentence, None)
    }

    /// The same for other keys too, separated by blanks.
    pub(crate) const fn alike(mut self, alike: &'static str) -> Rule<F> {
        self.key.alike = alike;
        self
    }

    /// The same with other spellings.
    pub(crate) const fn or(mut self, aliases: &'static [&'static str]) -> Rule<F> {
        self.key.aliases = aliases;
        self
    }

    /// The same, which may stand without a value.
    pub(crate) const fn alone(mut self) -> Rule<F> {
        self.key.alone = true;
        self
    }

    /// What applies a key that a job uses under this name; none for a key that is noted, which is then told of.
    ///
    /// # Errors
    /// For a key that a job is refused for. `shown` is the key with its value, as the job has it.
    pub(crate) fn admit(
        &self,
        name: &str,
        shown: &str,
        place: &Place,
        findings: &mut Findings,
    ) -> Result<Option<F>, Fault> {
        match self.key.treatment {
            Treatment::Carried => Ok(self.apply),
            Treatment::Noted => {
                findings.note(NoteKind::NotCarried, place, name, self.key.sentence);
                Ok(None)
            }
            Treatment::Refused => Err(unsupported(place, format!("`{shown}`"), self.key.sentence)),
        }
    }
}

/// Rules of one scope.
pub(crate) const fn within<F: Copy, const N: usize>(
    scope: &'static str,
    mut rules: [Rule<F>; N],
) -> [Rule<F>; N] {
    let mut index = 0;
    while index < N {
        rules[index].key.scope = scope;
        index += 1;
    }
    rules
}

fn keys_of<F>(rules: &[Rule<F>]) -> Vec<Key> {
    rules.iter().map(|rule| rule.key).collect()
}

/// All keys of a dialect, in the order of its documentation.
pub fn keys(dialect: Dialect) -> Vec<Key> {
    match dialect {
        Dialect::Fio => crate::fio::rules().map(|rule| rule.key).collect(),
        Dialect::DiskSpd => keys_of(crate::diskspd::FLAGS),
        Dialect::DiskSpdXml => keys_of(&crate::diskspd::ELEMENTS.concat()),
        Dialect::Vdbench => keys_of(&crate::vdbench::PARAMETERS.concat()),
        Dialect::Iometer => keys_of(&crate::iometer::KEYS.concat()),
    }
}

/// The longest name that is compared with others, in letters: no key is nearly as long.
const NAME_LETTERS_MAX: usize = 64;

/// The key that is spelled like this one most nearly: at most a third of its letters differ.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let letters = letters(name)?;
    let mut best: Option<(usize, &str)> = None;
    for candidate in known {
        let Some(others) = self::letters(candidate) else { continue };
        let most = candidate.len().max(name.len()) / 3;
        // So many letters at least are too many or too few.
        if letters.len().abs_diff(others.len()) > most {
            continue;
        }
        let distance = distance(&letters, &others);
        if distance <= most && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// The letters of a name, unless it is too long to be compared.
fn letters(name: &str) -> Option<Vec<char>> {
    let letters: Vec<char> = name.chars().take(NAME_LETTERS_MAX + 1).collect();
    (letters.len() <= NAME_LETTERS_MAX).then_some(letters)
}

/// Letters to insert, delete, replace or swap with a neighbour (Damerau and Levenshtein, without overlaps). Each word has at
/// most [`NAME_LETTERS_MAX`] letters.
fn distance(one: &[char], other: &[char]) -> usize {
    let mut before = [0usize; NAME_LETTERS_MAX + 1];
    let mut above: [usize; NAME_LETTERS_MAX + 1] = std::array::from_fn(|column| column);
    for row in 1..=one.len() {
        let mut here = [row; NAME_LETTERS_MAX + 1];
        for column in 1..=other.len() {
            let change = usize::from(one[row - 1] != other[column - 1]);
            let mut least = (above[column] + 1).min(here[column - 1] + 1).min(above[column - 1] + change);
            let swapped = row > 1
                && column > 1
                && one[row - 1] == other[column - 2]
                && one[row - 2] == other[column - 1];
            if swapped {
                least = least.min(before[column - 2] + 1);
            }
            here[column] = least;
        }
        (before, above) = (above, here);
    }
    above[other.len()]
}

/// The guide's chapter on keys, in Markdown: `docs/guide/job-keys.md` is this text.
pub fn key_table_markdown() -> String {
    let mut text = String::from(
        "# Keys of job files\n\n\
         What the lab makes of every key of the four dialects that it reads. This page is written from the tables that the \
         readers themselves use.\n\n\
         - **carried**: the plan says it.\n\
         - **noted**: the run does without it, and the import says so.\n\
         - **refused**: without it the run would be another one, so the job is refused with the way out.\n\n\
         A key that is not listed is unknown, and an error.\n",
    );
    for dialect in Dialect::ALL {
        let _ = write!(text, "\n## {}\n", dialect.name());
        let mut scope = None;
        for key in keys(dialect) {
            if scope != Some(key.scope) {
                scope = Some(key.scope);
                if !key.scope.is_empty() {
                    let _ = write!(text, "\n### {}\n", key.scope);
                }
                text.push_str("\n| key | treatment | what it is |\n|---|---|---|\n");
            }
            let names: Vec<String> =
                key.names().map(|name| format!("`{}`", name.replace('|', "\\|"))).collect();
            let sentence = key.sentence.replace('|', "\\|");
            let _ = writeln!(text, "| {} | {} | {sentence} |", names.join(", "), key.treatment.name());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_key_that_is_spelled_wrongly_is_recognised() {
        let keys = keys(Dialect::Fio);
        let names = || keys.iter().map(|key| key.name);
        for (found, expected) in [
            ("runitme", Some("runtime")),
            ("iodepht", Some("iodepth")),
            ("rate_iop", Some("rate_iops")),
            ("qqqqqq", None),
        ] {
            assert_eq!(nearest(found, names()), expected, "{found}");
        }
    }

    #[test]
    fn no_key_stands_twice_and_every_key_has_a_sentence() {
        for dialect in Dialect::ALL {
            let mut seen = HashSet::new();
            for key in keys(dialect) {
                for name in key.names() {
                    assert!(seen.insert((key.scope, name)), "{} {name} twice", dialect.name());
                }
                assert!(key.sentence.ends_with('.'), "{} {}", dialect.name(), key.name);
            }
        }
    }

    #[test]
    fn the_guide_is_what_the_tables_say() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/guide/job-keys.md");
        let written = std::fs::read_to_string(path).expect("the guide has a page on keys");
        assert!(
            written == key_table_markdown(),
            "write it again: cargo run -p jobs --example keys > docs/guide/job-keys.md"
        );
    }
}
