//! What a host, a person or a cluster may be called.

use crate::limits::NAME_LENGTH_MAX;
use std::fmt;
use std::str::FromStr;

/// A name that needs no quoting in a shell, an address, a file name or a URI: ASCII letters, digits, `.`, `_`, `-` and `@`,
/// with a letter or a digit first; 1 to [`NAME_LENGTH_MAX`] characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

/// A text that is no name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is not a name: letters, digits, `.`, `_`, `-` and `@` are, up to {NAME_LENGTH_MAX}, with a letter or a digit first",
    .text.escape_default()
)]
pub struct NameError {
    /// What was given; a long one is cut.
    pub text: String,
}

impl Name {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Name, NameError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-@".contains(c);
        let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        if begins && text.len() <= NAME_LENGTH_MAX && text.chars().all(plain) {
            return Ok(Name(text.to_owned()));
        }
        Err(NameError { text: text.chars().take(NAME_LENGTH_MAX + 1).collect() })
    }
}

impl TryFrom<String> for Name {
    type Error = NameError;
    fn try_from(text: String) -> Result<Name, NameError> {
        text.parse()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> String {
        name.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Name({})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_need_no_quoting() {
        for name in ["a", "vm-1.rack_0", "7", "ann@example.org", &"x".repeat(64)] {
            assert_eq!(name.parse::<Name>().expect(name).as_str(), name);
        }
        for name in ["", "-a", ".", "@a", "a b", "a/b", "a?b", "a%b", "ä", "a\n", &"x".repeat(65)] {
            let error = name.parse::<Name>().expect_err(name).to_string();
            assert!(error.contains("is not a name"), "{error}");
        }
    }
}
