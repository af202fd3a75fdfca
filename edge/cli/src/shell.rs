//! Where answers go, and whom to ask.

use api::Client;
use base::units::parse_bytes;
use failure::Failure;
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;

/// Where answers go, and whom to ask.
pub struct Shell<'a> {
    /// The host.
    pub client: Client,
    /// The folder of the identity, if one was named.
    pub identity: Option<PathBuf>,
    /// Whether JSON is wanted.
    pub json: bool,
    /// Where answers go.
    pub out: &'a mut dyn Write,
    /// Whether a person can be asked.
    pub interactive: bool,
}

impl Shell<'_> {
    /// Shows an answer: as JSON, or as `text` makes it.
    ///
    /// # Errors
    /// When the output is closed.
    pub fn show<T: Serialize>(&mut self, answer: &T, text: impl FnOnce(&T) -> String) -> Result<(), Failure> {
        let shown = match self.json {
            true => serde_json::to_string_pretty(answer),
            false => Ok(text(answer)),
        };
        self.print(&shown.map_err(|error| Failure::failed("write JSON", error))?)
    }

    /// Shows one of many: as JSON on a line of its own, or as `text` makes it.
    ///
    /// # Errors
    /// When the output is closed.
    pub fn line<T: Serialize>(&mut self, one: &T, text: impl FnOnce(&T) -> String) -> Result<(), Failure> {
        let shown = match self.json {
            true => serde_json::to_string(one),
            false => Ok(text(one)),
        };
        self.print(&shown.map_err(|error| Failure::failed("write JSON", error))?)
    }

    pub(crate) fn print(&mut self, shown: &str) -> Result<(), Failure> {
        match writeln!(self.out, "{}", shown.trim_end()) {
            // The reader has seen enough, as `head` does.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
            written => written.map_err(|error| Failure::failed("write the answer", error)),
        }
    }

    /// Asks a person whether to go on with something that has consequences; `is_given`: it was said already.
    ///
    /// # Errors
    /// When nobody can be asked, or the answer was no.
    pub(crate) fn consent(&mut self, is_given: bool, what: &str) -> Result<(), Failure> {
        if is_given {
            return Ok(());
        }
        if !self.interactive {
            return Err(Failure::refused(format!("{what}; it must be confirmed")).hint("add `--yes`"));
        }
        eprint!("{what}. Type yes to go on: ");
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map_err(|error| Failure::failed("read the answer", error))?;
        match line.trim() == "yes" {
            true => Ok(()),
            false => Err(Failure::refused("not confirmed: nothing was changed")),
        }
    }

    /// The confirmation that a destructive request needs: given, or typed by a person.
    ///
    /// # Errors
    /// When nobody can be asked, or the answer was another.
    pub(crate) fn confirm(
        &mut self,
        given: Option<String>,
        what: &str,
        name: &str,
    ) -> Result<String, Failure> {
        if let Some(given) = given {
            return Ok(given);
        }
        if !self.interactive {
            return Err(Failure::refused(format!("{what}; it must be confirmed"))
                .hint(format!("add `--confirm {name}`")));
        }
        eprint!("{what}. Type the disk's name to go on: ");
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map_err(|error| Failure::failed("read the answer", error))?;
        match line.trim() == name {
            true => Ok(name.to_owned()),
            false => Err(Failure::refused(format!("not confirmed: the name is {name}. Nothing was changed"))),
        }
    }
}

/// For clap: a size as people write it.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    parse_bytes(text).map_err(|error| error.to_string())
}

/// For clap: `90`, `60s`, `5m`, `1h`, `7d` in seconds.
pub(crate) fn seconds(text: &str) -> Result<u64, String> {
    let (number, factor) = match text.strip_suffix(['s', 'm', 'h', 'd']) {
        Some(number) if text.ends_with('m') => (number, 60),
        Some(number) if text.ends_with('h') => (number, 3600),
        Some(number) if text.ends_with('d') => (number, 86_400),
        Some(number) => (number, 1),
        None => (text, 1),
    };
    let value: Option<u64> = number.parse().ok();
    value
        .and_then(|value| value.checked_mul(factor))
        .filter(|value| *value > 0)
        .ok_or_else(|| format!("`{text}` is not a time: `60s`, `5m`, `1h` and `7d` are"))
}
