//! What this program leaves on the machine, undone when a signal ends it: namespaces and mounted file systems, which stay where
//! processes only end. Processes that it started end with it by themselves.

use crate::failure::Failure;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use tokio::signal::unix::{SignalKind, signal};

/// The signals that people end a program with.
const SIGNALS: [SignalKind; 3] = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
/// What shells make of a signal that ended a program.
const SIGNAL_BASE: i32 = 128;

/// What is to be undone, oldest first.
static LEFT: Mutex<Left> = Mutex::new(Left { last: 0, commands: Vec::new() });

struct Left {
    last: u64,
    commands: Vec<(u64, Vec<String>)>,
}

fn left() -> MutexGuard<'static, Left> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A command that undoes something if a signal comes. Dropped, it was undone otherwise.
#[derive(Debug)]
pub struct Undo {
    number: u64,
}

impl Drop for Undo {
    fn drop(&mut self) {
        left().commands.retain(|(number, _)| *number != self.number);
    }
}

impl Undo {
    /// By this command.
    pub fn by(words: &[&str]) -> Undo {
        let mut left = left();
        left.last += 1;
        let number = left.last;
        left.commands.push((number, words.iter().map(|word| (*word).to_owned()).collect()));
        Undo { number }
    }
}

/// From now on a signal that ends this program has undone what it would leave.
///
/// # Errors
/// When the machine lets no thread start, or no signal be caught.
pub fn on_signals() -> Result<(), Failure> {
    let failed = || Failure::machine("wait for signals");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(failed())?;
    let mut caught = {
        let _inside = runtime.enter();
        let caught = SIGNALS.map(|one| signal(one).map(|signals| (one, signals)));
        caught.into_iter().collect::<Result<Vec<_>, _>>().map_err(failed())?
    };
    let wait = move || {
        let number = runtime.block_on(std::future::poll_fn(|context| {
            let mut has_come = caught.iter_mut().filter_map(|(signal, signals)| {
                signals.poll_recv(context).is_ready().then_some(signal.as_raw_value())
            });
            has_come.next().map_or(Poll::Pending, Poll::Ready)
        }));
        undo_all();
        std::process::exit(SIGNAL_BASE + number);
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(wait).map(drop).map_err(failed())
}

/// Undoes all, the newest first. Nobody else undoes, or does, anything more: the lock is kept.
fn undo_all() {
    let left = left();
    eprintln!("trials: ended by a signal; {} things are put back", left.commands.len());
    for (_, words) in left.commands.iter().rev() {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).env("PATH", crate::namespaces::administrators_path());
        let done = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
        if !done.is_ok_and(|status| status.success()) {
            eprintln!("trials: not put back: {}", words.join(" "));
        }
    }
    std::mem::forget(left);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(word: &str) -> bool {
        left().commands.iter().any(|(_, words)| words.iter().any(|one| one == word))
    }

    #[test]
    fn what_was_undone_otherwise_is_forgotten() {
        let first = Undo::by(&["true", "first-of-this-test"]);
        let second = Undo::by(&["true", "second-of-this-test"]);
        drop(first);
        assert!(!has("first-of-this-test") && has("second-of-this-test"));
        drop(second);
        assert!(!has("second-of-this-test"));
    }
}
