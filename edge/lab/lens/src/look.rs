//! A trace in one go: read, captured and analysed.

use std::io::BufRead;

use serde::Serialize;

use crate::analysis::{Analysis, Analyzed, Options};
use crate::builder::CaptureBuilder;
use crate::capture::Capture;
use crate::error::ReadError;
use crate::trace::{Format, Told, read};

/// All that a trace gives.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Looked {
    /// Its histograms over time; what is to be known of the reading is among its notes.
    pub capture: Capture,
    /// What its I/O is like.
    pub analyzed: Analyzed,
    /// How it was read.
    pub told: Told,
}

/// Reads a trace of any size and looks at it, with windows of `window_s` seconds to begin with. The form is found out unless
/// `format` names it.
///
/// # Errors
/// Those of [`read`].
pub fn look(
    file: &str,
    input: impl BufRead,
    format: Option<Format>,
    window_s: f64,
    options: Options,
) -> Result<Looked, ReadError> {
    let (mut builder, mut analysis) = (CaptureBuilder::new(window_s), Analysis::new(options));
    let told = read(file, input, format, |event| {
        builder.event(event);
        analysis.event(event);
    })?;
    let mut capture = builder.finish(file, &told.disks);
    capture.notes.extend(told.sentences());
    let analyzed = analysis.finish(&told.disks);
    Ok(Looked { capture, analyzed, told })
}

#[cfg(test)]
mod tests {
    use super::*;
    use iostats::Operations;

    #[test]
    fn one_look_gives_windows_figures_and_what_is_to_be_known() {
        let text: String =
            (0..100u64).map(|at| format!("1,R,{},4096,{}\n", at * 4096, at * 50_000)).collect();
        let text = format!("{text}1,R,x,4096,6000000\n");
        let found = look("a.csv", text.as_bytes(), None, 1.0, Options::default()).expect("it is a trace");
        assert_eq!((found.capture.disks[0].name.as_str(), found.capture.disks[0].windows.len()), ("1", 5));
        assert_eq!(found.capture.disks[0].windows[4].total(Operations::Reads).ios, 20);
        assert!(found.analyzed.disks[0].sequentiality.after_last > 0.98);
        assert!(found.capture.notes[0].contains("line 101"), "{:?}", found.capture.notes);
        assert!(look("a.csv", "nothing".as_bytes(), None, 1.0, Options::default()).is_err());
    }
}
