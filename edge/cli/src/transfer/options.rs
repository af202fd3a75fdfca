//! Options of `disk import` and `disk export`, and what is told of a file.

use super::image::Format;
use clap::Args;
use std::path::{Path, PathBuf};

/// Options of `disk import`.
#[derive(Debug, Args)]
pub struct ImportOptions {
    /// Name of the disk.
    pub name: String,
    /// Image file to read; with `--apply`, a delta.
    pub file: PathBuf,
    /// Apply a delta of `disk export --since` to the disk.
    ///
    /// The disk must hold what the older snapshot held; that is verified before anything is written.
    #[arg(long, conflicts_with_all = ["format", "with_backing", "policy"])]
    pub apply: bool,
    /// Format of the image [default: by the extension of the file, never by its content].
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// Read also the other files that the image names: backing files, data files, extents.
    #[arg(long)]
    pub with_backing: bool,
    /// Policy of a disk that is created.
    #[arg(long)]
    pub policy: Option<String>,
    /// Name of the disk: confirms that the data of an existing disk is overwritten.
    #[arg(long, value_name = "NAME")]
    pub confirm: Option<String>,
    /// End the connections of clients that have the disk, at any host.
    #[arg(long)]
    pub detach_clients: bool,
}

/// Options of `disk export`.
#[derive(Debug, Args)]
pub struct ExportOptions {
    /// Name of the disk; `DISK@SNAPSHOT` for a snapshot of it.
    pub name: String,
    /// File to create; it must not exist.
    pub file: PathBuf,
    /// Format of the image.
    #[arg(long, value_enum, default_value = "raw")]
    pub format: Format,
    /// Write only what changed since this older snapshot: as a delta for `disk import --apply`, or with `--format qcow2` and
    /// `--backing` as an image on top of the former one.
    #[arg(long, value_name = "SNAPSHOT")]
    pub since: Option<String>,
    /// Image with the content of the older snapshot, on which the new qcow2 file stands (raw or qcow2, by its name).
    #[arg(long, value_name = "FILE", requires = "since")]
    pub backing: Option<PathBuf>,
}

/// The file and its machine, in one line.
pub fn source_text_of(file: &Path) -> String {
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{} on {}", file.display().to_string().escape_debug(), machine.trim())
}
