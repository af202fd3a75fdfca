//! `disk import` and `disk export`: qemu-img between an image file and the disk's NBD address, sparse both ways; and what changed between
//! snapshots, which needs no other program as a delta.
//!
//! Relies on `qemu-img` of the machine. Must never write over anything that was not confirmed, and read no file but the image.

mod delta;
mod image;
mod incremental;
mod options;
mod qemu;

pub use options::{ExportOptions, ImportOptions};

use crate::shell::Shell;
use crate::text;
use api::client::{disk_path, escaped};
use api::types::{BeginImport, CreateDisk, DiskView, EndImport, ImportView, SnapshotView};
use base::units::{SECTOR_SIZE, format_bytes};
use failure::{Code, Failure};
use image::{Format, Image};
use options::source_text_of;
pub(crate) use qemu::bar;
use qemu::{Node, PARALLEL, convert, image_size};
use serde_json::json;
use std::path::Path;

/// What devices give space away by (docs/GLOSSARY.md, extent).
const EXTENT_BYTES: u64 = 1 << 20;

/// Reads an image into a disk.
///
/// # Errors
/// What qemu-img or the host says.
pub async fn import(shell: &mut Shell<'_>, options: ImportOptions) -> Result<(), Failure> {
    if options.apply {
        let how = (options.confirm, options.detach_clients);
        return incremental::apply(shell, (&options.name, &options.file), how).await;
    }
    let image = Image::open(&options.file, options.format, options.with_backing)?;
    let size = image_size(&image).await?.next_multiple_of(SECTOR_SIZE);
    let (disk, confirm) = match shell.client.get::<DiskView>(&disk_path(&options.name)).await {
        Ok(disk) => {
            let what = format!("Importing replaces all that is on the disk {}", options.name);
            let confirm = shell.confirm(options.confirm.clone(), &what, &disk.summary.name)?;
            (disk, Some(confirm))
        }
        Err(failure) if failure.code == Code::NotFound => {
            let request = CreateDisk {
                name: options.name.clone(),
                size,
                policy: options.policy.clone(),
                ..CreateDisk::default()
            };
            (shell.client.post("/api/v1/disks", &request).await?, None)
        }
        Err(failure) => return Err(failure),
    };
    let is_new = confirm.is_none();
    let request = BeginImport {
        confirm: confirm.or_else(|| Some(disk.summary.name.clone())),
        detach_clients: options.detach_clients,
        source: source_text_of(&image.path),
        format: image.format.driver().to_owned(),
        size,
    };
    let address = disk_path(&disk.summary.name);
    let begun: ImportView = shell.client.post(&format!("{address}/import"), &request).await?;
    let copied = copy_into(shell, &image, size, (&disk, is_new), &begun).await;
    let failure = copied.as_ref().err().map(ToString::to_string);
    let end = EndImport { export: begun.export, failure, unchanged: false };
    let ended = shell.client.post::<DiskView>(&format!("{address}/import/end"), &end).await;
    let seconds = copied?;
    let disk = ended?;
    finish(shell, &disk, seconds)
}

async fn copy_into(
    shell: &Shell<'_>,
    image: &Image,
    size: u64,
    (disk, is_new): (&DiskView, bool),
    begun: &ImportView,
) -> Result<f64, Failure> {
    let target = Node::of_export(shell, &begun.addresses, &begun.export)?;
    let mut arguments = words(&["-p", "-n", "-W", "-m", PARALLEL, "-O", "raw"]);
    if is_new {
        // A new disk reads as zeroes, so nothing needs to be written where the image has none.
        arguments.extend(words(&["--target-is-zero"]));
    }
    arguments.extend(target.object.iter().flat_map(|object| words(&["--object", object])));
    arguments.push(Node::of_image(image).argument());
    if !is_new {
        // Behind the image the disk is as if it were new. What is zeroed from a border of extents on gives its space back.
        let rest = disk.summary.size.saturating_sub(size);
        let to_border = (size.next_multiple_of(EXTENT_BYTES) - size).min(rest);
        let zeroes = [to_border, rest - to_border].into_iter().filter(|bytes| *bytes > 0);
        arguments.extend(zeroes.map(|bytes| Node::of_zeroes(bytes).argument()));
    }
    arguments.push(target.argument());
    convert("import", &arguments).await
}

/// Reads a raw image into a new disk, as `disk import` does.
///
/// # Errors
/// What qemu-img or the host says.
pub async fn import_image(shell: &mut Shell<'_>, name: &str, file: &Path) -> Result<(), Failure> {
    let options = ImportOptions {
        name: name.to_owned(),
        file: file.to_owned(),
        format: Some(Format::Raw),
        apply: false,
        with_backing: false,
        policy: Some("single".to_owned()),
        confirm: None,
        detach_clients: false,
    };
    import(shell, options).await
}

/// Writes a disk, a snapshot of it, or what changed since an older one, into a file.
///
/// # Errors
/// What qemu-img or the host says.
pub async fn export(shell: &mut Shell<'_>, options: ExportOptions) -> Result<(), Failure> {
    if options.file.exists() {
        return Err(Failure::new(Code::Conflict, format!("{} is there already", options.file.display())));
    }
    let name = options.name.clone();
    match (name.split_once('@'), options.since.clone()) {
        (Some((disk, snapshot)), Some(since)) => {
            incremental::export_since(shell, options, (disk, snapshot, &since)).await
        }
        (None, Some(_)) => Err(Failure::usage("only what changed up to a snapshot can be exported")
            .hint(format!("`drystone disk snapshot create {name} NOW`, then export {name}@NOW"))),
        (found, None) => {
            let disk = found.map_or(name.as_str(), |(disk, _)| disk);
            export_whole(shell, &options, (disk, found.map(|(_, snapshot)| snapshot))).await
        }
    }
}

async fn export_whole(
    shell: &mut Shell<'_>,
    options: &ExportOptions,
    (disk, snapshot): (&str, Option<&str>),
) -> Result<(), Failure> {
    // From the root: nothing in its name can mean anything else.
    let file = std::path::absolute(&options.file)
        .map_err(|error| Failure::failed(format!("write {}", options.file.display()), error))?;
    let file = file.to_str().ok_or_else(|| Failure::usage("the name of the file is not UTF-8"))?.to_owned();
    let disk: DiskView = shell.client.get(&disk_path(disk)).await?;
    let export = match snapshot {
        Some(snapshot) => {
            let path = format!("{}/snapshots/{}", disk_path(&disk.summary.name), escaped(snapshot));
            shell.client.get::<SnapshotView>(&path).await?.export
        }
        None => disk.summary.name.clone(),
    };
    let from = Node::of_export(shell, &disk.addresses, &export)?;
    let mut arguments = words(&["-p", "-m", PARALLEL, "-O", options.format.driver()]);
    arguments.extend(from.object.iter().flat_map(|object| words(&["--object", object])));
    arguments.extend([from.argument(), file]);
    let seconds = convert("export", &arguments).await?;
    let disk: DiskView = shell.client.get(&disk_path(&disk.summary.id)).await?;
    finish(shell, &disk, seconds)
}

fn finish(shell: &mut Shell<'_>, disk: &DiskView, seconds: f64) -> Result<(), Failure> {
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

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
