//! A program of the user's that has a guest write out and hold still what it has in memory, while a snapshot is taken.

use failure::Failure;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// How long the program may take for a step: a guest that holds still for longer is worse than no snapshot.
const PATIENCE: Duration = Duration::from_secs(60);

/// What it is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Before the snapshot.
    Freeze,
    /// After it, whatever became of it.
    Thaw,
}

impl Step {
    fn word(self) -> &'static str {
        match self {
            Step::Freeze => "freeze",
            Step::Thaw => "thaw",
        }
    }
}

/// Runs `COMMAND freeze|thaw DISK SNAPSHOT` by the shell. What it prints goes to the standard error.
///
/// # Errors
/// When it cannot be run, fails, or takes longer than a minute.
pub async fn run(command: &str, step: Step, (disk, name): (&str, &str)) -> Result<(), Failure> {
    let what = format!("run `{command} {}`", step.word());
    let child = Command::new("/bin/sh")
        .args(["-c", &format!("{command} \"$@\" >&2"), "sh", step.word(), disk, name])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .spawn();
    let mut child = child.map_err(|error| Failure::failed(&what, error))?;
    match tokio::time::timeout(PATIENCE, child.wait()).await {
        Err(_) => Err(Failure::failed(what, format!("it did not end within {} s", PATIENCE.as_secs()))),
        Ok(Err(error)) => Err(Failure::failed(what, error)),
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(Failure::failed(what, status)),
    }
}
