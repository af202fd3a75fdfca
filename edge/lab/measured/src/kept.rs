//! Reading results as they are kept: a run or an experiment, as JSON.

use crate::{EXPERIMENT_VERSION, ExperimentRun, Run, VERSION};

/// Sets of histograms (reads, writes or trims of a group) that one text may hold: one with a single I/O takes 15 KB of memory
/// and a hundred bytes of text, so more would need gigabytes. A run of a thousand groups has 3,000.
pub const SETS_MAX: usize = 100_000;

/// A result of the lab.
#[derive(Debug, Clone, PartialEq)]
pub enum Kept {
    /// One execution of a plan.
    Run(Box<Run>),
    /// One execution of an experiment.
    Experiment(Box<ExperimentRun>),
}

/// Why a text gives no result.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    /// It begins like no result of the lab.
    #[error("it is no result of this lab")]
    NotOurs,
    /// It begins like one, and then is not.
    #[error("it begins like a result of this lab and cannot be read (cut short, or changed): {0}")]
    Damaged(#[from] serde_json::Error),
    /// A later program wrote it.
    #[error("the result has version {found}, and versions up to {known} are known: use a newer program")]
    Newer {
        /// Its version.
        found: u32,
        /// The latest that is known.
        known: u32,
    },
    /// More than any run has.
    #[error("it holds {found} sets of histograms: more than {SETS_MAX} are not read")]
    TooMany {
        /// How many there are.
        found: usize,
    },
    /// Something that is never written, and would hide how much there is.
    #[error("it has an escape that is never written: {0}")]
    Escape(String),
}

/// Whether a text begins as results of the lab do. More than 64 bytes of it are not looked at.
pub fn is_kept(text: &[u8]) -> bool {
    is_run(text) || is_experiment(text)
}

fn is_run(text: &[u8]) -> bool {
    text.starts_with(b"{\"version\":")
}

fn is_experiment(text: &[u8]) -> bool {
    text.starts_with(b"{\"experiment_version\":")
}

/// Reads a result.
///
/// # Errors
/// When the text is none, is damaged, or would need gigabytes of memory.
pub fn read(text: &[u8]) -> Result<Kept, KeptError> {
    if is_experiment(text) {
        return read_experiment(text).map(|experiment| Kept::Experiment(Box::new(experiment)));
    }
    if is_run(text) {
        return read_run(text).map(|run| Kept::Run(Box::new(run)));
    }
    Err(KeptError::NotOurs)
}

/// Reads a run.
///
/// # Errors
/// As [`read`].
pub fn read_run(text: &[u8]) -> Result<Run, KeptError> {
    refuse_bloat(text)?;
    let run: Run = serde_json::from_slice(text)?;
    known(run.version, VERSION)?;
    Ok(run)
}

/// Reads an experiment.
///
/// # Errors
/// As [`read`].
pub fn read_experiment(text: &[u8]) -> Result<ExperimentRun, KeptError> {
    refuse_bloat(text)?;
    let experiment: ExperimentRun = serde_json::from_slice(text)?;
    known(experiment.experiment_version, EXPERIMENT_VERSION)?;
    for run in experiment.cells.iter().flat_map(|cell| &cell.runs) {
        known(run.version, VERSION)?;
    }
    Ok(experiment)
}

fn known(found: u32, known: u32) -> Result<(), KeptError> {
    if found > known { Err(KeptError::Newer { found, known }) } else { Ok(()) }
}

/// Each set of histograms stands with its errors, under a name that nobody but a forger writes with escapes.
fn refuse_bloat(text: &[u8]) -> Result<(), KeptError> {
    let found = text.windows(8).filter(|window| window == b"\"errors\"").count();
    if found > SETS_MAX {
        return Err(KeptError::TooMany { found });
    }
    let escape = text.windows(6).find(|window| {
        let code =
            || std::str::from_utf8(&window[2..]).ok().and_then(|text| u32::from_str_radix(text, 16).ok());
        window.starts_with(b"\\u") && code().is_none_or(|letter| letter >= 0x20)
    });
    match escape {
        Some(letter) => Err(KeptError::Escape(String::from_utf8_lossy(letter).into_owned())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        read(text.as_bytes()).expect_err("it is refused").to_string()
    }

    #[test]
    fn what_is_no_result_says_why() {
        assert_eq!(refusal("IOPS,latency\n"), "it is no result of this lab");
        assert!(refusal("{\"version\":1,\"program\":\"dry").contains("cut short, or changed"));
        assert!(refusal("{\"experiment_version\":1").contains("cut short, or changed"));
        assert!(refusal("{\"version\":1,\"program\":\"\\u0065\"}").contains("never written: \\u0065"));
        let many = format!("{{\"version\":1,{}", "\"errors\":0,".repeat(SETS_MAX + 1));
        assert!(refusal(&many).contains("100001 sets of histograms"));
    }

    #[test]
    fn a_newer_result_is_named_so() {
        let text = r#"{"experiment_version":9,"name":"","about":"","source":"","program":"","started_unix_ms":0,"cells":[],"conclusions":[],"expectations":[],"notes":[]}"#;
        assert_eq!(
            refusal(text),
            "the result has version 9, and versions up to 1 are known: use a newer program"
        );
        let read = read(text.replace(":9", ":1").as_bytes());
        assert!(matches!(read, Ok(Kept::Experiment(_))), "{read:?}");
    }
}
