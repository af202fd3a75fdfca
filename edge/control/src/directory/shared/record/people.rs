//! People who log in to the console with a password: a record for each, below a prefix of its own.
//!
//! No level of the records is needed for them ([design/0018](docs/design/0018-versions.md)): a program of before leaves them as they
//! are, and nothing that it does hangs on them. Must never have a password itself.

use super::super::{Change, Entry};
use super::level::{read, unread};
use super::set;
use failure::Failure;
use serde::{Deserialize, Serialize};
use trust::{Name, PasswordHash, Role};

/// Where the records begin of people with a password.
pub const PEOPLE: &str = "people/";

/// A person who has a password.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PersonRecord {
    /// What they are called.
    pub name: Name,
    /// What they may do.
    pub role: Role,
    /// What is kept of the password.
    pub password: PasswordHash,
    /// When the password or the role was set last, in nanoseconds since 1970: each change makes it greater. Sessions that began before
    /// have ended by that.
    pub changed_ns: u64,
}

impl PersonRecord {
    /// The key of a person's record.
    pub fn key(name: &Name) -> String {
        format!("{PEOPLE}{name}")
    }

    /// The change that makes this the person's record, if it has version `expected` still.
    ///
    /// # Errors
    /// Never in practice: it is plain text.
    pub fn change(&self, expected: u64) -> Result<Change, Failure> {
        set(PersonRecord::key(&self.name), expected, self)
    }

    /// What a record tells.
    ///
    /// # Errors
    /// When it makes no sense.
    pub fn read(entry: &Entry) -> Result<PersonRecord, String> {
        let record: PersonRecord = read(entry)?;
        match PersonRecord::key(&record.name) == entry.key {
            true => Ok(record),
            false => Err(unread(&entry.key, "it names somebody else")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn stored() -> Value {
        json!({
            "name": "ann", "role": "operator", "changed_ns": 5,
            "password": "$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0c2FsdA$c2FsdHNhbHRzYWx0c2FsdHNhbHRzYWx0c2FsdHNhbHQ",
        })
    }

    fn found(key: &str, value: Value) -> Result<PersonRecord, String> {
        PersonRecord::read(&Entry { key: key.to_owned(), version: 7, value })
    }

    #[test]
    fn the_form_is_that_of_the_document_and_another_one_is_refused() {
        let record = found("people/ann", stored()).expect("as docs/formats/directory.md has it");
        assert_eq!((record.role, record.changed_ns), (Role::Operator, 5));
        let change = record.change(7).expect("plain text");
        assert_eq!((change.key.as_str(), change.expected, change.value), ("people/ann", 7, Some(stored())));
        assert!(found("people/bob", stored()).is_err(), "a record counts for its own name alone");
        for (field, value) in [("role", json!("root")), ("name", json!("a/b")), ("colour", json!("red"))] {
            let mut odd = stored();
            odd[field] = value;
            assert!(found("people/ann", odd).is_err(), "{field}");
        }
    }
}
