//! What a disk or a policy may be called.

use crate::limits::{LABEL_KEY_LENGTH_MAX, LABEL_VALUE_LENGTH_MAX, LABELS_MAX, NAME_LENGTH_MAX};
use failure::Failure;
use std::collections::BTreeMap;

/// Refuses names that would need quoting in a shell, an address or a file name.
///
/// # Errors
/// Says what a name may be.
pub fn check_name(name: &str) -> Result<(), Failure> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if begins && name.len() <= NAME_LENGTH_MAX && name.chars().all(plain) {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "`{name}` is not a name: letters, digits, `.`, `_` and `-` are, up to {NAME_LENGTH_MAX}, with a letter or a \
         digit first"
    )))
}

/// Refuses labels that are no labels, or too many of them.
///
/// # Errors
/// Says what a label may be.
pub fn check_labels(labels: &BTreeMap<String, String>) -> Result<(), Failure> {
    if labels.len() > LABELS_MAX {
        return Err(Failure::refused(format!("{} labels: a disk has {LABELS_MAX} at most", labels.len())));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    for (key, value) in labels {
        let begins = key.starts_with(|c: char| c.is_ascii_alphanumeric());
        if !begins || key.len() > LABEL_KEY_LENGTH_MAX || !key.chars().all(plain) {
            return Err(Failure::usage(format!(
                "`{key}` is not the key of a label: letters, digits, `.`, `_`, `-` and `/` are, up to {LABEL_KEY_LENGTH_MAX}, with a letter \
                 or a digit first"
            )));
        }
        if value.len() > LABEL_VALUE_LENGTH_MAX || value.chars().any(char::is_control) {
            return Err(Failure::usage(format!(
                "label {key}: a value is a text of at most {LABEL_VALUE_LENGTH_MAX} bytes in one line"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_need_no_quoting() {
        for name in ["a", "vm-1.disk_0", "7"] {
            check_name(name).expect(name);
        }
        for name in ["", "-a", ".", "a b", "a/b", "ä", &"x".repeat(129)] {
            check_name(name).expect_err(name);
        }
    }

    #[test]
    fn labels_are_short_and_few() {
        let of = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
        for (key, value) in [("team", "db"), ("k8s.io/name", ""), ("a", "a text, with ümlauts = too")] {
            check_labels(&of(key, value)).expect(key);
        }
        for (key, value) in
            [("", "a"), ("-a", "a"), ("a b", "a"), ("a=b", "a"), ("a", "b\n"), ("a", &"x".repeat(256))]
        {
            check_labels(&of(key, value)).expect_err(key);
        }
        let many = (0..33).map(|number| (format!("k{number}"), String::new())).collect();
        check_labels(&many).expect_err("they are too many");
    }
}
