//! Reading a bundle: from a stream, with bounded memory, and with a word for all that is missing or damaged.

use super::{BUNDLE_VERSION, BundleText, FileKind, MANIFEST, Manifest, README, SUMS, Sections, sha256};
use crate::report::{NamedExperiment, NamedRun, Report, Section};
use crate::{BUNDLE_BYTES_MAX, BUNDLE_FILES_MAX};
use lens::Capture;
use measured::{ExperimentRun, Run};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read};

/// zstd may ask for so large a window, as a power of two: 128 MiB, what its own tool allows.
const WINDOW_LOG_MAX: u32 = 27;

/// A bundle as far as it could be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Bundle {
    /// What it says of itself.
    pub manifest: Manifest,
    /// Runs with their names.
    pub runs: Vec<(String, Run)>,
    /// Experiments with their names.
    pub experiments: Vec<(String, ExperimentRun)>,
    /// Captures.
    pub captures: Vec<Capture>,
    /// Sentences.
    pub sections: Vec<Section>,
    /// Jobs and whatever else was written.
    pub texts: Vec<BundleText>,
    /// What is missing, damaged or of no use. Empty: all is as it was written.
    pub problems: Vec<BundleProblem>,
}

/// What is wrong with one file of a bundle. The file is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BundleProblem {
    /// The manifest names it, and it is not there.
    Missing {
        /// Where it should stand.
        path: String,
    },
    /// Its bytes are not those that were written.
    Damaged {
        /// Where it stands.
        path: String,
        /// The checksum of the manifest.
        expected: String,
        /// The checksum of what is there.
        found: String,
    },
    /// It is whole, and cannot be understood.
    NotUnderstood {
        /// Where it stands.
        path: String,
        /// Why.
        reason: String,
    },
    /// The manifest does not name it.
    Unknown {
        /// Where it stands.
        path: String,
    },
    /// The archive ends or breaks before all of it was read.
    Broken {
        /// How.
        reason: String,
    },
}

impl fmt::Display for BundleProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BundleProblem::Missing { path } => write!(f, "{path} is missing"),
            BundleProblem::Damaged { path, expected, found } => {
                write!(f, "{path} is damaged: its SHA-256 is {found}, and {expected} was written")
            }
            BundleProblem::NotUnderstood { path, reason } => write!(f, "{path} is not understood: {reason}"),
            BundleProblem::Unknown { path } => write!(f, "{path} is not in the manifest: it is left out"),
            BundleProblem::Broken { reason } => write!(f, "the archive is cut off or damaged: {reason}"),
        }
    }
}

/// Why nothing of a bundle can be used.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// No zstd, no tar, or broken before the manifest.
    #[error("this is no bundle, or its beginning is damaged (a .tar.zst with {MANIFEST} is expected)")]
    NoBundle(#[source] io::Error),
    /// The archive has no manifest at its beginning.
    #[error("the archive has no {MANIFEST} as its first file: it is no bundle (found: {found})")]
    NoManifest {
        /// What stands there.
        found: String,
    },
    /// The manifest is no manifest.
    #[error("{MANIFEST} is not understood: ask for the bundle again, it is damaged")]
    Manifest(#[source] serde_json::Error),
    /// Written by a later program.
    #[error(
        "the bundle has version {found}, and versions up to {BUNDLE_VERSION} are known: use a newer program"
    )]
    Newer {
        /// Its version.
        found: u32,
    },
    /// More than any report needs.
    #[error("the bundle holds {what}: more than {limit} are not read")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How many or how much is read.
        limit: u64,
    },
}

/// Reads a bundle and verifies it: files whose checksum is wrong, or that are missing, are told and left out.
///
/// # Errors
/// When there is no manifest to go by, or the bundle is larger than [`BUNDLE_BYTES_MAX`] unpacked. Never panics, whatever comes.
pub fn read_bundle(reader: impl Read) -> Result<Bundle, BundleError> {
    let mut decoder = zstd::Decoder::new(reader).map_err(BundleError::NoBundle)?;
    decoder.window_log_max(WINDOW_LOG_MAX).map_err(BundleError::NoBundle)?;
    // The limit counts what the archive unpacks to, its headers too.
    let mut archive = tar::Archive::new(decoder.take(BUNDLE_BYTES_MAX + 1));
    let mut entries = archive.entries().map_err(BundleError::NoBundle)?;
    let manifest = manifest(&mut entries)?;
    let mut bundle = Bundle {
        manifest,
        runs: Vec::new(),
        experiments: Vec::new(),
        captures: Vec::new(),
        sections: Vec::new(),
        texts: Vec::new(),
        problems: Vec::new(),
    };
    let mut awaited: BTreeMap<String, usize> = BTreeMap::new();
    for (index, file) in bundle.manifest.files.iter().enumerate() {
        awaited.insert(file.path.clone(), index);
    }
    let mut read = Progress { total: 0, files: 0 };
    for entry in entries {
        match read.next(entry)? {
            Ok((path, _)) if path == README || path == SUMS => {}
            Ok((path, bytes)) => match awaited.remove(&path) {
                Some(index) => bundle.take(index, bytes),
                None => bundle.problems.push(BundleProblem::Unknown { path }),
            },
            Err(error) => {
                bundle.problems.push(BundleProblem::Broken { reason: error.to_string() });
                break;
            }
        }
    }
    bundle.problems.extend(awaited.into_keys().map(|path| BundleProblem::Missing { path }));
    Ok(bundle)
}

/// What was read so far.
struct Progress {
    total: u64,
    files: usize,
}

impl Progress {
    /// The path and the bytes of an entry; the inner error is one of the archive.
    fn next<R: Read>(
        &mut self,
        entry: io::Result<tar::Entry<'_, R>>,
    ) -> Result<io::Result<(String, Vec<u8>)>, BundleError> {
        self.files += 1;
        if self.files > BUNDLE_FILES_MAX {
            return Err(BundleError::TooLarge { what: "too many files", limit: BUNDLE_FILES_MAX as u64 });
        }
        let mut entry = match entry {
            Ok(entry) => entry,
            Err(error) => return Ok(Err(error)),
        };
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let left = BUNDLE_BYTES_MAX - self.total;
        if entry.size() > left {
            return Err(BundleError::TooLarge { what: "too many bytes", limit: BUNDLE_BYTES_MAX });
        }
        // A size that a damaged header claims is not given room before its bytes are there.
        let mut bytes = Vec::new();
        let read = (&mut entry).take(left).read_to_end(&mut bytes);
        self.total += bytes.len() as u64;
        let size = entry.size();
        Ok(read.and_then(|_| match bytes.len() as u64 == size {
            true => Ok((path.clone(), bytes)),
            false => Err(io::Error::new(io::ErrorKind::UnexpectedEof, format!("{path} ends too early"))),
        }))
    }
}

fn manifest<R: Read>(entries: &mut tar::Entries<'_, R>) -> Result<Manifest, BundleError> {
    let first = entries.next().ok_or(BundleError::NoManifest { found: "nothing".to_owned() })?;
    let (path, bytes) = Progress { total: 0, files: 0 }.next(first)?.map_err(BundleError::NoBundle)?;
    if path != MANIFEST {
        return Err(BundleError::NoManifest { found: path });
    }
    let manifest: Manifest = serde_json::from_slice(&bytes).map_err(BundleError::Manifest)?;
    if manifest.bundle_version > BUNDLE_VERSION {
        return Err(BundleError::Newer { found: manifest.bundle_version });
    }
    if manifest.files.len() > BUNDLE_FILES_MAX {
        return Err(BundleError::TooLarge { what: "too many files", limit: BUNDLE_FILES_MAX as u64 });
    }
    Ok(manifest)
}

impl Bundle {
    /// A file that is there: verified, then understood.
    fn take(&mut self, index: usize, bytes: Vec<u8>) {
        let file = self.manifest.files[index].clone();
        let found = sha256(&bytes);
        if found != file.sha256 {
            let (path, expected) = (file.path, file.sha256);
            self.problems.push(BundleProblem::Damaged { path, expected, found });
            return;
        }
        if let Err(reason) = self.understand(file.kind, file.name, bytes) {
            self.problems.push(BundleProblem::NotUnderstood { path: file.path, reason });
        }
    }

    fn understand(&mut self, kind: FileKind, name: String, bytes: Vec<u8>) -> Result<(), String> {
        match kind {
            FileKind::Run => {
                let run = measured::read_run(&bytes).map_err(|error| error.to_string())?;
                self.runs.push((name, run));
            }
            FileKind::Experiment => {
                let experiment = measured::read_experiment(&bytes).map_err(|error| error.to_string())?;
                self.experiments.push((name, experiment));
            }
            FileKind::Capture => self.captures.push(parsed(&bytes)?),
            FileKind::Sections => {
                let read: Sections = parsed(&bytes)?;
                self.sections.extend(read.sections);
            }
            FileKind::Text => {
                let text = String::from_utf8(bytes).map_err(|error| error.to_string())?;
                self.texts.push(BundleText { name, text });
            }
        }
        Ok(())
    }

    /// The report that the bundle was made of, as far as it was read.
    pub fn report(&self) -> Report<'_> {
        Report {
            title: self.manifest.title.clone(),
            program: self.manifest.program.clone(),
            runs: self.runs.iter().map(|(name, run)| NamedRun { name, run }).collect(),
            experiments: (self.experiments.iter())
                .map(|(name, experiment)| NamedExperiment { name, experiment })
                .collect(),
            captures: self.captures.clone(),
            sections: self.sections.clone(),
        }
    }
}

fn parsed<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|error| error.to_string())
}
