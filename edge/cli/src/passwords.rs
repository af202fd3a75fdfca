//! Passwords as they are typed or piped in: never a word of the command line, where other users of the machine would see it.

use crate::shell::Shell;
use failure::Failure;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io::{IsTerminal, Read, Write};

/// Bytes that are read of a password at most: more than the longest that a host takes.
const BYTES_MAX: u64 = 4096;

/// The exit code of a program that SIGINT has ended, as shells have it.
const INTERRUPTED: i32 = 130;

/// A new password: typed twice at the terminal, or the first line of the standard input.
///
/// # Errors
/// When nobody can be asked, or the two differ.
pub async fn new_password(shell: &Shell<'_>, is_piped: bool, name: &str) -> Result<String, Failure> {
    if is_piped {
        return piped(std::io::stdin().lock());
    }
    if !shell.interactive || !std::io::stdin().is_terminal() {
        return Err(Failure::refused("a password is typed at a terminal, and there is none")
            .hint("pipe it in: `… --password-stdin < FILE`"));
    }
    let first = typed(&format!("New password of {name}: ")).await?;
    let second = typed("The same again: ").await?;
    match first == second {
        true => Ok(first),
        false => Err(Failure::refused("the two passwords differ: nothing was changed")),
    }
}

/// The first line, without its end.
fn piped(input: impl Read) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = input.take(BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| Failure::failed("read the password", error))?;
    let text = String::from_utf8(bytes).map_err(|_| Failure::usage("the password is not UTF-8"))?;
    let mut lines = text.lines();
    match (lines.next(), lines.next()) {
        (Some(line), None) if line.len() as u64 <= BYTES_MAX => Ok(line.to_owned()),
        (Some(_), None) => Err(Failure::usage(format!("the password is longer than {BYTES_MAX} bytes"))),
        (Some(_), Some(_)) => {
            Err(Failure::usage("the standard input has several lines, and a password is one"))
        }
        (None, _) => Err(Failure::usage("the standard input is empty, where a password was expected")),
    }
}

/// Shows no character that is typed, until it is dropped.
struct Hidden(Termios);

impl Hidden {
    fn begin() -> Result<Hidden, Failure> {
        let failed = |error| Failure::failed("hide what is typed", error);
        let before = tcgetattr(std::io::stdin()).map_err(failed)?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        hidden.local_modes.insert(LocalModes::ECHONL);
        tcsetattr(std::io::stdin(), OptionalActions::Flush, &hidden).map_err(failed)?;
        Ok(Hidden(before))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // The terminal may be gone.
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Flush, &self.0);
    }
}

async fn typed(prompt: &str) -> Result<String, Failure> {
    let hidden = Hidden::begin()?;
    eprint!("{prompt}");
    // A prompt that nobody sees hinders nobody who types.
    let _ = std::io::stderr().flush();
    let failed = |error: &dyn std::fmt::Display| Failure::failed("read the password", error);
    let line =
        tokio::task::spawn_blocking(|| std::io::stdin().lines().next().unwrap_or_else(|| Ok(String::new())));
    let line = tokio::select! {
        line = line => line,
        // The terminal shows what is typed again, which it would not after the usual end by a signal.
        _ = tokio::signal::ctrl_c() => {
            drop(hidden);
            eprintln!();
            std::process::exit(INTERRUPTED);
        }
    };
    drop(hidden);
    line.map_err(|broken| failed(&broken))?.map_err(|error| failed(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piped_password_is_one_line_with_its_spaces() {
        let read = |text: &str| piped(text.as_bytes());
        assert_eq!(read(" correct horse \n").as_deref(), Ok(" correct horse "));
        assert_eq!(read("no end of the line").as_deref(), Ok("no end of the line"));
        for (text, word) in [("", "empty"), ("one\ntwo\n", "several lines"), (&"x".repeat(5000), "longer")] {
            let failure = read(text).expect_err(word);
            assert!(failure.error.contains(word), "{failure}");
        }
        assert!(piped(&[0xff, 0xfe][..]).is_err());
    }
}
