//! A file system image made of real files of this machine.

use base::units::MIB;
use failure::Failure;
use std::path::{Path, PathBuf};
use std::process::Output;
use tokio::process::Command;

/// Folders with files that everybody may read; the first that fits is taken.
const SOURCES: [&str; 4] = ["/usr/share/doc", "/usr/share/perl", "/usr/share/zoneinfo", "/usr/include"];
/// The least that makes a demonstration.
const SOURCE_BYTES_MIN: u64 = MIB;
/// The most: a first start shall not take minutes.
const SOURCE_BYTES_MAX: u64 = 512 * MIB;

/// What the image holds.
pub struct Image {
    /// The folder that it was made of.
    pub source: PathBuf,
    /// Number of files and folders.
    pub count: u64,
}

/// Makes an ext4 image at `path`.
///
/// # Errors
/// When no folder fits or mkfs fails.
pub async fn make_image(path: &Path) -> Result<Image, Failure> {
    let measured = SOURCES.iter().map(|source| (PathBuf::from(source), measure(Path::new(source))));
    let fits = |(_, size): &(PathBuf, Size)| (SOURCE_BYTES_MIN..SOURCE_BYTES_MAX).contains(&size.bytes);
    let Some((source, size)) = measured.into_iter().find(fits) else {
        return Err(Failure::refused(format!("none of {} holds a few MiB of files", SOURCES.join(", "))));
    };
    let bytes = (size.bytes + size.bytes / 4 + 64 * MIB).next_multiple_of(MIB);
    let failed = |error| Failure::failed(format!("make {}", path.display()), error);
    let file = std::fs::File::create(path).map_err(failed)?;
    file.set_len(bytes).map_err(failed)?;
    let mut command = Command::new("mkfs.ext4");
    command.args(["-q", "-F", "-N", &(size.count + 1024).to_string(), "-d"]).arg(&source).arg(path);
    run(&mut command, "mkfs.ext4", "e2fsprogs").await?;
    Ok(Image { source, count: size.count })
}

/// Compares the image with what is at the address.
///
/// # Errors
/// When they differ.
pub async fn compare(image: &Path, address: &str) -> Result<(), Failure> {
    let mut command = Command::new("qemu-img");
    command.args(["compare", "-f", "raw", "-F", "raw"]).arg(image).arg(address);
    run(&mut command, "qemu-img", "qemu-utils").await.map(|_| ())
}

/// Runs a program and gives what it printed.
///
/// # Errors
/// When it is not there, with the package that has it, or it fails, with what it said.
pub async fn run(command: &mut Command, program: &str, package: &str) -> Result<Output, Failure> {
    // Tools of the administrator stand where only root looks.
    let path = std::env::var("PATH").unwrap_or_default();
    let output = command.env("PATH", format!("{path}:/usr/sbin:/sbin")).kill_on_drop(true).output().await;
    let output = output.map_err(|error| {
        Failure::failed(format!("run {program}"), error)
            .hint(format!("install it: apt-get install {package}"))
    })?;
    if output.status.success() {
        return Ok(output);
    }
    let said = [output.stderr.as_slice(), output.stdout.as_slice()].concat();
    Err(Failure::failed(program, String::from_utf8_lossy(&said).trim()))
}

#[derive(Default)]
struct Size {
    bytes: u64,
    count: u64,
}

/// Bytes and number of what is below a folder, in blocks of 4 KiB; stops counting when it is too much.
fn measure(folder: &Path) -> Size {
    let mut size = Size::default();
    let mut waiting = vec![folder.to_path_buf()];
    while let Some(folder) = waiting.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            size.count += 1;
            size.bytes += metadata.len().next_multiple_of(4096);
            if metadata.is_dir() {
                waiting.push(entry.path());
            }
        }
        if size.bytes > SOURCE_BYTES_MAX {
            break;
        }
    }
    size
}
