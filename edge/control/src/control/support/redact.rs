//! Takes out of texts what must not leave a host: private keys, join tokens, passwords.
//!
//! By their form, wherever they come from; and word for word those that this host is known to have. What a text says else
//! stays readable.

use crate::config::{Config, DirectoryPlace};
use std::path::{Path, PathBuf};

/// What stands where something was taken out.
const REMOVED: &str = "[removed]";
/// What a join token begins with.
const TOKEN: &str = "drystone-join-";
/// Shorter lines of a key are the ends of its text, and too common to be looked for.
const LINE_LENGTH_MIN: usize = 8;
/// Shorter passwords would take every text apart.
const PASSWORD_LENGTH_MIN: usize = 3;
/// Words behind which, and a sign of equality, something secret stands.
const WORDS: [&str; 5] = ["password", "passwd", "passphrase", "secret", "token"];

/// Takes secrets out.
pub(super) struct Redactor {
    /// Those that this host is known to have, the longest first.
    known: Vec<String>,
}

impl Redactor {
    /// With the secrets of a configuration, and of the identity in its data directory.
    pub(super) fn of(config: &Config) -> Redactor {
        let mut files: Vec<PathBuf> = files_in(&config.data_dir.join("identity"));
        files.extend(config.tls.as_ref().map(|tls| tls.key.clone()));
        let mut known = Vec::new();
        if let DirectoryPlace::Etcd(options) = &config.cluster.directory {
            let own = options.tls.as_ref().and_then(|tls| tls.own.as_ref());
            files.extend(own.map(|(_, key)| key.clone()));
            let password = options.user.as_ref().map(|(_, password)| password);
            known.extend(password.filter(|password| password.len() >= PASSWORD_LENGTH_MIN).cloned());
        }
        for text in files.iter().filter_map(|path| std::fs::read_to_string(path).ok()) {
            known
                .extend(private_lines(&text).filter(|line| line.len() >= LINE_LENGTH_MIN).map(str::to_owned));
        }
        Redactor::with(known)
    }

    fn with(mut known: Vec<String>) -> Redactor {
        known.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Redactor { known }
    }

    /// The text without secrets.
    pub(super) fn redact(&self, text: &str) -> String {
        let mut text = without_keys(text);
        for secret in &self.known {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), REMOVED);
            }
        }
        text.split_inclusive('\n').map(redact_line).collect()
    }
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect()
}

/// The lines of PEM texts of private keys.
fn private_lines(text: &str) -> impl Iterator<Item = &str> {
    let mut is_private = false;
    text.lines().filter(move |line| {
        if line.starts_with("-----") {
            is_private = line.contains("BEGIN") && line.contains("PRIVATE KEY");
            return false;
        }
        is_private
    })
}

/// Without the PEM texts of private keys, whatever stands around them.
fn without_keys(text: &str) -> String {
    const END: &str = "-----END ";
    let mut left = text;
    let mut kept = String::with_capacity(text.len());
    while let Some(at) = find_key(left) {
        kept.push_str(&left[..at]);
        kept.push_str(REMOVED);
        let rest = &left[at..];
        // One that was cut short is taken out to the end of the text.
        let end = rest.find(END).map_or(rest.len(), |end| {
            let behind = &rest[end + END.len()..];
            let closing = behind.find("-----").map_or(behind.len(), |closing| closing + "-----".len());
            end + END.len() + closing
        });
        left = &rest[end..];
    }
    kept + left
}

/// Where the PEM text of a private key begins.
fn find_key(text: &str) -> Option<usize> {
    const BEGIN: &str = "-----BEGIN ";
    text.match_indices(BEGIN).map(|(at, _)| at).find(|at| {
        let title = &text[at + BEGIN.len()..];
        title.split("-----").next().is_some_and(|title| title.contains("PRIVATE KEY"))
    })
}

fn redact_line(line: &str) -> String {
    let mut line = without_tokens(line);
    line = without_users(&line);
    for word in WORDS {
        line = without_values(&line, word);
    }
    line
}

fn ends_word(letter: char) -> bool {
    letter.is_whitespace() || "\"',;)}]>".contains(letter)
}

fn without_tokens(line: &str) -> String {
    let mut parts = line.split(TOKEN);
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(ends_word).unwrap_or(part.len());
        kept.push_str(REMOVED);
        kept.push_str(&part[end..]);
    }
    kept
}

/// `https://ann:secret@host` is `https://[removed]@host`.
fn without_users(line: &str) -> String {
    let mut parts = line.split("://");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept.push_str("://");
        let end = part.find(|letter| letter == '/' || ends_word(letter)).unwrap_or(part.len());
        match part[..end].rfind('@') {
            Some(at) => {
                kept.push_str(REMOVED);
                kept.push_str(&part[at..]);
            }
            None => kept.push_str(part),
        }
    }
    kept
}

/// `password = x`, `"password": "x"`, `PASSWORD=x`: without the `x`.
fn without_values(line: &str, word: &str) -> String {
    // Ascii letters keep their places.
    let lower = line.to_ascii_lowercase();
    let mut kept = String::with_capacity(line.len());
    let mut from = 0;
    for (at, _) in lower.match_indices(word) {
        if at < from {
            continue;
        }
        let behind = &line[at + word.len()..];
        let sign = behind.trim_start_matches(['"', '\'', ' ']);
        let Some(value) = sign.strip_prefix(['=', ':']) else { continue };
        let value = value.trim_start_matches([' ', '"', '\'']);
        let begin = line.len() - value.len();
        let length = value.find(ends_word).unwrap_or(value.len());
        if length == 0 || value.starts_with(REMOVED) || ["null", "true", "false"].contains(&&value[..length])
        {
            continue;
        }
        kept.push_str(&line[from..begin]);
        kept.push_str(REMOVED);
        from = begin + length;
    }
    kept + &line[from..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let redactor = Redactor::with(vec!["hunter2".to_owned(), "hunter2hunter2".to_owned()]);
        assert_eq!(redactor.redact(text), expected);
    }

    #[test]
    fn keys_tokens_and_passwords_are_taken_out_and_nothing_else() {
        check("all is well\n", "all is well\n");
        check(
            "a\n-----BEGIN PRIVATE KEY-----\nabc\ndef\n-----END PRIVATE KEY-----\nb\n",
            "a\n[removed]\nb\n",
        );
        check("x -----BEGIN EC PRIVATE KEY-----\\nabc", "x [removed]");
        let certificate = "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n";
        check(certificate, certificate);
        check(
            "run `drystone login drystone-join-1/10.0.0.1:7443/ab/cd` there",
            "run `drystone login [removed] there",
        );
        check(
            "{\"token\":\"drystone-join-1/x\",\"purpose\":\"a host\"}",
            "{\"token\":\"[removed]\",\"purpose\":\"a host\"}",
        );
        check(
            "http://ann:secret@10.0.0.1:2379/x and http://10.0.0.2",
            "http://[removed]@10.0.0.1:2379/x and http://10.0.0.2",
        );
        check("Password = abc, next", "Password = [removed], next");
        check("\"password\": \"abc\",\n", "\"password\": \"[removed]\",\n");
        check("etcd_PASSWORD=abc def", "etcd_PASSWORD=[removed] def");
        check(
            "\"password_file\": \"/etc/x\", \"token\": null",
            "\"password_file\": \"/etc/x\", \"token\": null",
        );
        check("it says hunter2hunter2 and hunter2", "it says [removed] and [removed]");
        check("POST /api/v1/tokens: a join token was made", "POST /api/v1/tokens: a join token was made");
    }

    #[test]
    fn lines_of_private_keys_are_known_by_heart_and_those_of_certificates_are_not() {
        let text = "-----BEGIN CERTIFICATE-----\nopen\n-----END CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\nclosed\nagain\n-----END PRIVATE KEY-----\nnone\n";
        assert_eq!(private_lines(text).collect::<Vec<_>>(), ["closed", "again"]);
    }
}
