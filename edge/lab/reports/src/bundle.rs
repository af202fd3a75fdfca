//! A bundle: one `.tar.zst` with everything that a report was made of, so that another machine renders and compares it again.
//!
//! It holds `manifest.json` (what each file is, its bytes and its SHA-256), runs and experiments with their raw histograms,
//! captures, sentences, the jobs' texts, `README.txt`, and last `SHA256SUMS`, which `sha256sum --check` understands. Any tar
//! with zstd unpacks it. It is the same, byte for byte, whenever it is made of the same.

mod read;

pub use read::{Bundle, BundleError, BundleProblem, read_bundle};

use crate::report::{Report, Section};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The version of the bundle's form. A reader refuses a higher one.
pub const BUNDLE_VERSION: u32 = 1;

/// A text that belongs to a report: a job as it was written, a description of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleText {
    /// A file's name, without folders.
    pub name: String,
    /// Word for word.
    pub text: String,
}

/// What a bundle holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`BUNDLE_VERSION`] of whoever wrote it.
    pub bundle_version: u32,
    /// The report's title.
    pub title: String,
    /// The program that wrote it, with its version.
    pub program: String,
    /// Every file but the manifest, in order.
    pub files: Vec<ManifestFile>,
}

/// One file of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestFile {
    /// Where it stands.
    pub path: String,
    /// What it is.
    pub kind: FileKind,
    /// What people call it.
    pub name: String,
    /// Its bytes.
    pub bytes: u64,
    /// Of its bytes, in hexadecimal.
    pub sha256: String,
}

/// What a file of a bundle is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// `measured::Run` as JSON.
    Run,
    /// `measured::ExperimentRun` as JSON.
    Experiment,
    /// `lens::Capture` as JSON.
    Capture,
    /// Sentences, as JSON.
    Sections,
    /// A text as somebody wrote it.
    Text,
}

#[derive(Serialize, Deserialize)]
struct Sections {
    sections: Vec<Section>,
}

const MANIFEST: &str = "manifest.json";
const SUMS: &str = "SHA256SUMS";
const README: &str = "README.txt";
/// Histograms are small numbers that repeat: a higher level takes time and saves little.
const LEVEL: i32 = 6;

const ABOUT: &str = "\
This is a bundle of Drystone's lab: measurements with their raw histograms, and what they were made of.
manifest.json says what each file is. `sha256sum --check SHA256SUMS` verifies them.
`drystone lab report BUNDLE --html OUT.html` shows it, `drystone lab compare` compares it with others.
";

/// The report with these texts as one archive. The jobs of runs and the files of experiments are added on their own.
pub fn bundle(report: &Report, texts: &[BundleText]) -> Vec<u8> {
    let files = files(report, texts);
    let listed = files.iter().map(|file| ManifestFile {
        path: file.path.clone(),
        kind: file.kind,
        name: file.name.clone(),
        bytes: file.bytes.len() as u64,
        sha256: sha256(&file.bytes),
    });
    let manifest = Manifest {
        bundle_version: BUNDLE_VERSION,
        title: report.title.clone(),
        program: report.program.clone(),
        files: listed.collect(),
    };
    let manifest_bytes = serde_json::to_vec_pretty(&manifest).expect("a manifest is plain data");
    let mut sums = format!("{}  {MANIFEST}\n", sha256(&manifest_bytes));
    for file in &manifest.files {
        sums.push_str(&format!("{}  {}\n", file.sha256, file.path));
    }
    let encoder = zstd::Encoder::new(Vec::new(), LEVEL).expect("the level is one of zstd's");
    let mut archive = tar::Builder::new(encoder);
    append(&mut archive, MANIFEST, &manifest_bytes);
    append(&mut archive, README, ABOUT.as_bytes());
    files.iter().for_each(|file| append(&mut archive, &file.path, &file.bytes));
    append(&mut archive, SUMS, sums.as_bytes());
    let encoder = archive.into_inner().expect("memory takes all");
    encoder.finish().expect("memory takes all")
}

struct File {
    path: String,
    kind: FileKind,
    name: String,
    bytes: Vec<u8>,
}

fn files(report: &Report, texts: &[BundleText]) -> Vec<File> {
    let mut files = Vec::new();
    let mut add = |folder: &str, kind: FileKind, name: &str, ending: &str, bytes: Vec<u8>| {
        // Numbers keep names apart that are the same once they are plain.
        let path = format!("{folder}/{:04}-{}{ending}", files.len() + 1, plain(name));
        files.push(File { path, kind, name: name.to_owned(), bytes });
    };
    for named in &report.runs {
        add("runs", FileKind::Run, named.name, ".json", encoded(named.run));
    }
    for named in &report.experiments {
        add("experiments", FileKind::Experiment, named.name, ".json", encoded(named.experiment));
    }
    for capture in &report.captures {
        add("captures", FileKind::Capture, &capture.source, ".json", encoded(capture));
    }
    if !report.sections.is_empty() {
        let sections = Sections { sections: report.sections.clone() };
        add("sections", FileKind::Sections, "sections", ".json", encoded(&sections));
    }
    let of_experiments = (report.experiments.iter())
        .map(|named| (format!("{}.toml", named.name), named.experiment.source.clone()));
    let of_runs =
        report.runs.iter().flat_map(|named| &named.run.sources).map(|source| {
            (source.name.rsplit('/').next().unwrap_or_default().to_owned(), source.text.clone())
        });
    let others = texts.iter().map(|text| (text.name.clone(), text.text.clone()));
    let mut known = std::collections::BTreeSet::new();
    for text in of_experiments.chain(of_runs).chain(others) {
        // Several runs of one job have the same text.
        if known.insert(text.clone()) {
            add("texts", FileKind::Text, &text.0, "", text.1.into_bytes());
        }
    }
    files
}

fn encoded(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("measurements are plain data")
}

/// A name that any file system takes.
fn plain(name: &str) -> String {
    const NAME_MAX: usize = 60;
    let letter = |of: char| if of.is_ascii_alphanumeric() || of == '.' { of } else { '-' };
    name.chars().map(letter).take(NAME_MAX).collect()
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn append(archive: &mut tar::Builder<zstd::Encoder<'static, Vec<u8>>>, path: &str, bytes: &[u8]) {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    header.set_mtime(0);
    archive.append_data(&mut header, path, bytes).expect("memory takes all, and paths are plain and short");
}
