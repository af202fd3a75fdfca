//! Passwords of people: which are taken, how they are kept, and whether one is right.
//!
//! A password is kept as the hash of argon2id alone, a string of the PHC form that names its own parameters. To compute one
//! takes tens of milliseconds and 19 MiB, on purpose: callers do that on a thread that may wait. Must never show a password.

use crate::limits::{PASSWORD_LENGTH_MAX, PASSWORD_LENGTH_MIN};
use crate::random::random;
use argon2::password_hash::phc::{Output, ParamsString, PasswordHash as Phc, Salt};
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};
use std::fmt;

/// Memory in KiB, passes and lanes: what OWASP's Password Storage Cheat Sheet recommends for argon2id (19 MiB, 2, 1).
const COST: (u32, u32, u32) = (19 * 1024, 2, 1);
/// Bytes of a hash, and of its salt (RFC 9106, section 4 recommends 16 for the latter).
const HASH_BYTES: usize = 32;
const SALT_BYTES: usize = 16;

/// A password that may become somebody's.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

/// Why a text may not become a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PasswordError {
    /// It is too short.
    #[error("the password has {found} characters: {PASSWORD_LENGTH_MIN} are needed at least")]
    Short {
        /// Its characters.
        found: usize,
    },
    /// It is too long.
    #[error("the password has {found} characters: {PASSWORD_LENGTH_MAX} are possible at most")]
    Long {
        /// Its characters.
        found: usize,
    },
    /// The kernel gives no randomness, or the memory for the hash is missing.
    #[error("the hash of the password cannot be computed on this host")]
    Unhashed,
}

impl Password {
    /// A text as a password.
    ///
    /// # Errors
    /// When it has too few or too many characters.
    pub fn new(text: String) -> Result<Password, PasswordError> {
        match text.chars().count() {
            found if found < PASSWORD_LENGTH_MIN => Err(PasswordError::Short { found }),
            found if found > PASSWORD_LENGTH_MAX => Err(PasswordError::Long { found }),
            _ => Ok(Password(text)),
        }
    }

    /// What is kept of it, with a salt of its own.
    ///
    /// # Errors
    /// When the kernel gives no randomness, or memory is missing.
    pub fn hash(&self) -> Result<PasswordHash, PasswordError> {
        let salt = random::<SALT_BYTES>().ok_or(PasswordError::Unhashed)?;
        let hashed = argon2id().hash_password_with_salt(self.0.as_bytes(), &salt);
        hashed.map(|hashed| PasswordHash(hashed.to_string())).map_err(|_| PasswordError::Unhashed)
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Password(…)")
    }
}

/// What is kept of a password.
#[derive(Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct PasswordHash(String);

impl PasswordHash {
    /// The hash of no password. To compare one with it takes as long as with that of a person, so that nobody learns by
    /// the time whether there is a person of a name.
    ///
    /// # Errors
    /// When the kernel gives no randomness.
    pub fn of_nobody() -> Result<PasswordHash, PasswordError> {
        let salt = random::<SALT_BYTES>().ok_or(PasswordError::Unhashed)?;
        let hash = random::<HASH_BYTES>().ok_or(PasswordError::Unhashed)?;
        let made = Phc {
            algorithm: Algorithm::Argon2id.ident(),
            version: Some(Version::V0x13.into()),
            params: ParamsString::try_from(&params()).map_err(|_| PasswordError::Unhashed)?,
            salt: Some(Salt::new(&salt).map_err(|_| PasswordError::Unhashed)?),
            hash: Some(Output::new(&hash).map_err(|_| PasswordError::Unhashed)?),
        };
        Ok(PasswordHash(made.to_string()))
    }

    /// Whether this is the hash of a text. The parameters are those that stand in it.
    pub fn is_of(&self, text: &str) -> bool {
        PasswordVerifier::<str>::verify_password(&argon2id(), text.as_bytes(), &self.0).is_ok()
    }
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PasswordHash(…)")
    }
}

fn params() -> Params {
    let (memory, passes, lanes) = COST;
    Params::new(memory, passes, lanes, Some(HASH_BYTES)).expect("the cost is within what argon2 allows")
}

fn argon2id() -> Argon2<'static> {
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_has_12_to_256_characters() {
        for (text, is_taken) in [
            ("elevenchars".to_owned(), false),
            ("twelve chars".to_owned(), true),
            ("zwölf Zeiche".to_owned(), true),
            ("ä".repeat(256), true),
            ("x".repeat(257), false),
            (String::new(), false),
        ] {
            assert_eq!(Password::new(text.clone()).is_ok(), is_taken, "{text}");
        }
    }

    #[test]
    fn only_the_password_itself_is_right_and_nothing_shows_it() {
        let password = Password::new("correct horse battery".to_owned()).expect("it is long enough");
        let hash = password.hash().expect("a hash");
        assert!(hash.is_of("correct horse battery"));
        for wrong in ["", "correct horse batterY", "correct horse battery "] {
            assert!(!hash.is_of(wrong), "{wrong}");
        }
        let kept = serde_json::to_string(&hash).expect("a text");
        assert!(kept.starts_with("\"$argon2id$v=19$m=19456,t=2,p=1$"), "{kept}");
        assert_ne!(password.hash(), Ok(hash.clone()), "each has a salt of its own");
        let told = format!("{password:?} {hash:?}");
        assert!(!told.contains("horse") && !told.contains("argon2"), "{told}");
    }

    #[test]
    fn the_hash_of_nobody_costs_the_same_and_is_of_nothing() {
        let hash = PasswordHash::of_nobody().expect("a hash");
        let of_somebody = Password::new("correct horse battery".to_owned()).and_then(|one| one.hash());
        let form = |hash: &PasswordHash| {
            hash.0
                .split('$')
                .map(str::len)
                .zip(hash.0.split('$').take(4).map(str::to_owned))
                .collect::<Vec<_>>()
        };
        assert_eq!(form(&hash), form(&of_somebody.expect("a hash")));
        assert!(!hash.is_of("") && !hash.is_of("correct horse battery"));
        assert!(!PasswordHash("of a later release".to_owned()).is_of("correct horse battery"));
    }
}
