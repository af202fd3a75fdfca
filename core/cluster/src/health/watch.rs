//! Changes of findings over time: what became wrong, and what is well again.
//!
//! A finding is reported once it was seen twice in a row, and its end once it was missing twice. A finding that comes
//! and goes between two looks is not reported.

use super::code::Code;
use super::finding::{Finding, Subject};
use std::collections::BTreeMap;

/// The findings of former looks.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    known: BTreeMap<(Code, Subject), Known>,
}

#[derive(Debug, Clone)]
struct Known {
    finding: Finding,
    is_told: bool,
    is_missing: bool,
}

/// A finding came or went, for longer than a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// A new finding.
    Found(Finding),
    /// The end of a finding.
    Ended(Finding),
}

impl Watch {
    /// Takes in the present findings, and gives the changes in the order of codes and subjects.
    pub fn step(&mut self, found: &[Finding]) -> Vec<Turn> {
        let mut turns = Vec::new();
        let now: BTreeMap<(Code, Subject), &Finding> =
            found.iter().map(|one| ((one.code, one.subject), one)).collect();
        self.known.retain(|key, known| match (now.contains_key(key), known.is_missing, known.is_told) {
            (true, _, _) => true,
            (false, false, true) => {
                known.is_missing = true;
                true
            }
            (false, true, true) => {
                turns.push(Turn::Ended(known.finding.clone()));
                false
            }
            (false, _, false) => false,
        });
        for (key, finding) in now {
            let finding = finding.clone();
            match self.known.get_mut(&key) {
                None => {
                    self.known.insert(key, Known { finding, is_told: false, is_missing: false });
                }
                Some(known) => {
                    if !known.is_told {
                        turns.push(Turn::Found(finding.clone()));
                    }
                    *known = Known { finding, is_told: true, is_missing: false };
                }
            }
        }
        turns
    }

    /// Whether anything about this is remembered.
    pub fn knows(&self, subject: Subject) -> bool {
        self.known.keys().any(|(_, known)| *known == subject)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Severity;
    use super::*;
    use base::DiskId;

    fn finding(disk: u128) -> Finding {
        Finding {
            code: Code::DiskReduced,
            severity: Severity::Warning,
            subject: Subject::Disk(DiskId(disk)),
            cause: String::new(),
            remedy: String::new(),
        }
    }

    #[test]
    fn what_lasts_is_told_once_and_what_comes_and_goes_is_not() {
        let mut watch = Watch::default();
        let (first, second) = (finding(1), finding(2));
        let (found, ended) =
            (|one: &Finding| Turn::Found(one.clone()), |one: &Finding| Turn::Ended(one.clone()));
        let table: [(Vec<&Finding>, Vec<Turn>); 9] = [
            (vec![&first], vec![]),
            (vec![&first, &second], vec![found(&first)]),
            (vec![&first], vec![]),
            (vec![], vec![]),
            (vec![&first, &second], vec![]),
            (vec![&second], vec![found(&second)]),
            (vec![&second], vec![ended(&first)]),
            (vec![], vec![]),
            (vec![], vec![ended(&second)]),
        ];
        for (step, (seen, expected)) in table.into_iter().enumerate() {
            let seen: Vec<Finding> = seen.into_iter().cloned().collect();
            assert_eq!(watch.step(&seen), expected, "step {step}");
        }
    }
}
