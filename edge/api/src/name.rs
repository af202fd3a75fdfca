//! What a disk or a policy may be called.

use crate::limits::NAME_LENGTH_MAX;
use failure::Failure;

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
}
