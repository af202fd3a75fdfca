//! `disk import` and `disk export`: qemu-img between an image file and the disk's NBD address, sparse both ways.
//!
//! Relies on `qemu-img` of the machine. Must never write over anything that was not confirmed.

use super::disks::{ExportOptions, ImportOptions, path};
use super::{Shell, text};
use crate::api::types::{CreateDisk, DiskView};
use crate::failure::{Code, Failure};
use base::units::{SECTOR_SIZE, format_bytes};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::io::IsTerminal;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

/// Requests that qemu-img keeps under way at once.
const PARALLEL: &str = "16";

/// Reads an image into a disk.
///
/// # Errors
/// What qemu-img or the host says.
pub async fn import(shell: &mut Shell<'_>, options: ImportOptions) -> Result<(), Failure> {
    let image = image_info(&options.file, options.format.as_deref()).await?;
    let size = image.size.next_multiple_of(SECTOR_SIZE);
    let (disk, fresh) = match shell.client.get::<DiskView>(&path(&options.name)).await {
        Ok(disk) => {
            let what = format!("Importing writes over the disk {}", options.name);
            let confirm = shell.confirm(options.confirm, &what, &disk.summary.name)?;
            if confirm != disk.summary.name {
                return Err(Failure::refused(format!("`{confirm}` is not the name of this disk")));
            }
            (disk, false)
        }
        Err(failure) if failure.code == Code::NotFound => {
            let request = CreateDisk {
                name: options.name,
                size,
                policy: options.policy,
                read_only: false,
                share: false,
            };
            (shell.client.post("/api/v1/disks", &request).await?, true)
        }
        Err(failure) => return Err(failure),
    };
    if disk.summary.size < size {
        return Err(Failure::refused(format!(
            "the image has {} and the disk {} only {}",
            format_bytes(size),
            disk.summary.name,
            format_bytes(disk.summary.size)
        ))
        .hint(format!("drystone disk resize {} {size}", disk.summary.name)));
    }
    let mut arguments: Vec<&OsStr> = words(&["convert", "-p", "-n", "-W", "-m", PARALLEL, "-O", "raw"]);
    arguments.extend(words(&["-f", &image.format]));
    if fresh {
        // A new disk reads as zeroes, so nothing needs to be written where the image has none.
        arguments.extend(words(&["--target-is-zero"]));
    }
    let address = address(&disk)?;
    arguments.extend([options.file.as_os_str(), OsStr::new(&address)]);
    finish(shell, &disk, convert("import", &arguments).await).await
}

/// Reads a raw image into a new disk, as `disk import` does.
///
/// # Errors
/// What qemu-img or the host says.
pub async fn import_image(shell: &mut Shell<'_>, name: &str, file: &Path) -> Result<(), Failure> {
    let options = ImportOptions {
        name: name.to_owned(),
        file: file.to_owned(),
        format: Some("raw".to_owned()),
        policy: Some("single".to_owned()),
        confirm: None,
    };
    import(shell, options).await
}

/// Writes a disk into an image.
///
/// # Errors
/// What qemu-img or the host says.
pub async fn export(shell: &mut Shell<'_>, options: ExportOptions) -> Result<(), Failure> {
    if options.file.exists() {
        return Err(Failure::new(Code::Conflict, format!("{} is there already", options.file.display())));
    }
    let disk: DiskView = shell.client.get(&path(&options.name)).await?;
    let address = address(&disk)?;
    let mut arguments: Vec<&OsStr> =
        words(&["convert", "-p", "-m", PARALLEL, "-f", "raw", "-O", &options.format]);
    arguments.extend([OsStr::new(&address), options.file.as_os_str()]);
    finish(shell, &disk, convert("export", &arguments).await).await
}

async fn finish(shell: &mut Shell<'_>, disk: &DiskView, took: Result<f64, Failure>) -> Result<(), Failure> {
    let seconds = took?;
    let disk: DiskView = shell.client.get(&path(&disk.summary.id)).await?;
    let (size, allocated) = (disk.summary.size, disk.summary.allocated_bytes);
    let answer = json!({
        "disk": disk.summary.name, "size": size, "allocated_bytes": allocated, "seconds": seconds,
    });
    shell.show(&answer, |_| {
        format!(
            "{}: {}, {} allocated, in {seconds:.1} s ({} of data)",
            disk.summary.name,
            format_bytes(size),
            format_bytes(allocated),
            text::rate(allocated as f64 / seconds.max(0.001))
        )
    })
}

fn words<'a>(words: &[&'a str]) -> Vec<&'a OsStr> {
    words.iter().copied().map(OsStr::new).collect()
}

/// The address by which a program on this machine reaches the disk: a unix socket if there is one.
pub(super) fn address(disk: &DiskView) -> Result<String, Failure> {
    let unix = disk.addresses.iter().find(|address| address.starts_with("nbd+unix:"));
    let plain = disk.addresses.iter().find(|address| address.starts_with("nbd://"));
    unix.or(plain).cloned().ok_or_else(|| {
        Failure::refused("the host has no NBD socket that needs no certificate")
            .hint("add a unix socket to [listen] nbd")
    })
}

struct Image {
    format: String,
    size: u64,
}

async fn image_info(file: &Path, format: Option<&str>) -> Result<Image, Failure> {
    if !file.exists() {
        return Err(Failure::new(Code::NotFound, format!("there is no file {}", file.display())));
    }
    let mut command = Command::new("qemu-img");
    command.args(["info", "--output=json"]);
    if let Some(format) = format {
        command.args(["-f", format]);
    }
    let output = command.arg(file).output().await.map_err(missing)?;
    if !output.status.success() {
        return Err(told(&format!("read {}", file.display()), &output.stderr));
    }
    let info: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| Failure::failed("read the answer of qemu-img info", error))?;
    match (info["format"].as_str(), info["virtual-size"].as_u64()) {
        (Some(format), Some(size)) => Ok(Image { format: format.to_owned(), size }),
        _ => Err(Failure::failed("read the answer of qemu-img info", "it has no format and size")),
    }
}

fn missing(error: std::io::Error) -> Failure {
    Failure::failed("run qemu-img", error).hint("install it: apt-get install qemu-utils")
}

fn told(what: &str, stderr: &[u8]) -> Failure {
    let text = String::from_utf8_lossy(stderr);
    let text = text.trim().strip_prefix("qemu-img: ").unwrap_or(text.trim()).to_owned();
    Failure::failed(what, text)
}

/// Runs `qemu-img convert`, shows its progress, and gives the seconds that it took.
async fn convert(what: &str, arguments: &[&OsStr]) -> Result<f64, Failure> {
    let start = Instant::now();
    let mut child = Command::new("qemu-img")
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(missing)?;
    let bar = bar(what);
    let mut stdout = child.stdout.take().expect("it is piped");
    let mut seen = String::new();
    let mut bytes = [0; 256];
    loop {
        let count = stdout.read(&mut bytes).await.map_err(|error| Failure::failed(what, error))?;
        if count == 0 {
            break;
        }
        seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
        if let Some(percent) = last_percent(&seen) {
            bar.set_position((percent * 100.0) as u64);
        }
        let keep = seen.len().saturating_sub(64);
        seen = seen.chars().skip(keep).collect();
    }
    let output = child.wait_with_output().await.map_err(|error| Failure::failed(what, error))?;
    bar.finish_and_clear();
    match output.status.success() {
        true => Ok(start.elapsed().as_secs_f64()),
        false => Err(told(what, &output.stderr)),
    }
}

/// A bar of a hundred percent in hundredths; hidden when nobody looks.
fn bar(what: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg} [{bar:40}] {percent:>3} %  {elapsed}, {eta} left")
        .expect("the template is well formed");
    ProgressBar::new(10_000).with_message(what.to_owned()).with_style(style)
}

/// The newest figure of `    (12.34/100%)\r`.
fn last_percent(text: &str) -> Option<f64> {
    let end = text.rfind("/100%)")?;
    let start = text[..end].rfind('(')?;
    text[start + 1..end].trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_progress_of_qemu_img_is_read() {
        assert_eq!(last_percent("    (0.00/100%)\r    (12.34/100%)\r   (13"), Some(12.34));
        assert_eq!(last_percent("    (0.0"), None);
    }
}
