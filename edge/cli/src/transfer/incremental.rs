//! What changed between two snapshots of a disk: written to a file, and applied to another disk.
//!
//! A delta is applied only where the disk holds what the older snapshot held, block by block, or what the newer one holds already: so an
//! apply that was interrupted is done again, and one to the wrong disk changes nothing.

use super::delta::{About, BLOCK, DeltaReader, DeltaWriter, Moment, RECORD_MAX, Record, checksums};
use super::image::Format;
use super::options::{ExportOptions, source_text_of};
use super::qemu::{self, address_of_export};
use crate::shell::Shell;
use api::client::{disk_path, escaped};
use api::types::{BeginImport, DiskView, EndImport, ImportView, SnapshotView};
use base::units::format_bytes;
use failure::{Code, Failure};
use indicatif::ProgressBar;
use lab::nbd::{Address, Client, HandshakeError, STATE_DIRTY};
use serde_json::json;
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The two snapshots of a disk, as exports.
struct Between {
    about: About,
    older: Address,
    newer: Address,
}

/// Where what changed is to go: a file that was made for it.
enum Target {
    Delta(File, PathBuf),
    /// An image with the former one behind it.
    Overlay(PathBuf),
}

/// What was moved.
#[derive(Debug, Clone, Copy, Default)]
struct Moved {
    changed: u64,
    zeroes: u64,
}

/// Writes what changed since an older snapshot into a file.
///
/// # Errors
/// When a snapshot is not there, or the file cannot be written.
pub async fn export_since(
    shell: &mut Shell<'_>,
    options: ExportOptions,
    (disk, snapshot, since): (&str, &str, &str),
) -> Result<(), Failure> {
    let disk: DiskView = shell.client.get(&disk_path(disk)).await?;
    let name = disk.summary.name.clone();
    let newer = snapshot_of(shell, &name, snapshot).await?;
    let older = snapshot_of(shell, &name, since).await?;
    if older.number >= newer.number {
        return Err(Failure::usage(format!("snapshot {since} is not older than {snapshot}")));
    }
    let between = Between {
        older: address_of_export(shell, &disk.addresses, &older.export)?,
        newer: address_of_export(shell, &disk.addresses, &newer.export)?,
        about: About {
            disk: name.clone(),
            disk_id: disk.summary.id.clone(),
            since: moment(&older),
            snapshot: moment(&newer),
            size: newer.size,
        },
    };
    let start = Instant::now();
    let target = target_of(&options, newer.size).await?;
    let moved = match target {
        Target::Delta(file, path) => blocking(move || write_delta(&between, file, &path)).await,
        Target::Overlay(path) => write_overlay(between, &path).await,
    };
    if moved.is_err() {
        // It was made here, and a file that is not whole is no backup.
        let _ = std::fs::remove_file(&options.file);
    }
    let moved = moved?;
    let answer = json!({
        "disk": name, "snapshot": newer.name, "since": older.name, "size": newer.size,
        "changed_bytes": moved.changed, "zero_bytes": moved.zeroes, "seconds": start.elapsed().as_secs_f64(),
    });
    shell.show(&answer, |_| {
        format!(
            "{}@{} since {}: {} changed, {} of them zeroes, in {:.1} s",
            name,
            newer.name,
            older.name,
            format_bytes(moved.changed),
            format_bytes(moved.zeroes),
            start.elapsed().as_secs_f64()
        )
    })
}

/// Makes the file: empty, or an image on top of the former one that has nothing of its own yet.
async fn target_of(options: &ExportOptions, size: u64) -> Result<Target, Failure> {
    Ok(match options.format {
        Format::Raw => {
            let path = options.file.clone();
            let made = File::create_new(&path);
            Target::Delta(
                made.map_err(|error| Failure::failed(format!("make {}", path.display()), error))?,
                path,
            )
        }
        Format::Qcow2 => {
            let Some(backing) = &options.backing else {
                return Err(Failure::usage("a qcow2 file of what changed needs the image before it")
                    .hint("add `--backing FILE`, or export the whole snapshot without `--since`"));
            };
            qemu::create_overlay(&options.file, backing, size).await?;
            Target::Overlay(options.file.clone())
        }
        other => {
            return Err(Failure::usage(format!("what changed cannot be written as {}", other.driver()))
                .hint("use `--format raw` (a delta of this program) or `--format qcow2`"));
        }
    })
}

async fn snapshot_of(shell: &Shell<'_>, disk: &str, name: &str) -> Result<SnapshotView, Failure> {
    shell.client.get(&format!("{}/snapshots/{}", disk_path(disk), escaped(name))).await
}

fn moment(snapshot: &SnapshotView) -> Moment {
    Moment { name: snapshot.name.clone(), number: snapshot.number, taken: snapshot.taken }
}

/// Runs what blocks on a thread of its own.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let ended = tokio::task::spawn_blocking(work).await;
    ended.map_err(|error| Failure::failed("copy what changed", error))?
}

fn nbd(error: HandshakeError) -> Failure {
    Failure::failed("read or write the disk", error)
}

/// The runs that changed, in pieces of up to [`RECORD_MAX`] that do not cross a border of it.
fn changed_pieces(
    between: &Between,
    visit: &mut dyn FnMut(u64, u64) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let context = format!("qemu:dirty-bitmap:{}", between.about.since.name);
    let mut client = Client::open(&between.newer, Some(&context)).map_err(nbd)?;
    if !client.has_map() {
        return Err(Failure::failed("ask what changed", "the host does not tell"));
    }
    let size = client.size();
    let mut at = 0;
    while at < size {
        for run in client.map(at, size - at).map_err(nbd)? {
            let end = (at + run.length).min(size);
            while run.state & STATE_DIRTY != 0 && at < end {
                let piece = (RECORD_MAX - at % RECORD_MAX).min(end - at);
                visit(at, piece)?;
                at += piece;
            }
            at = end;
        }
    }
    client.close().map_err(nbd)
}

/// Reads some of an export; beyond its end there are zeroes.
fn read_of(client: &mut Client, offset: u64, length: u64) -> Result<Vec<u8>, Failure> {
    let mut bytes = vec![0; length as usize];
    let within = client.size().saturating_sub(offset).min(length) as usize;
    client.read(offset, &mut bytes[..within]).map_err(nbd)?;
    Ok(bytes)
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

fn write_delta(between: &Between, file: File, path: &Path) -> Result<Moved, Failure> {
    let what = || format!("write {}", path.display());
    let out = BufWriter::with_capacity(RECORD_MAX as usize, file);
    let mut delta =
        DeltaWriter::begin(out, &between.about).map_err(|error| Failure::failed(what(), error))?;
    let mut older = Client::open(&between.older, None).map_err(nbd)?;
    let mut newer = Client::open(&between.newer, None).map_err(nbd)?;
    let bar = qemu::bar("export", between.about.size);
    let mut moved = Moved::default();
    changed_pieces(between, &mut |offset, length| {
        let before = checksums(&read_of(&mut older, offset, length)?);
        let bytes = read_of(&mut newer, offset, length)?;
        let is_zero = is_zero(&bytes);
        let data = (!is_zero).then_some(bytes);
        let record = Record { offset, length, before, data };
        bar.set_position(offset + length);
        // It was written with what it held before, or lies where the disk has grown.
        if record.before != record.after() {
            delta.add(&record).map_err(|error| Failure::failed(what(), error))?;
            moved.add(length, is_zero);
        }
        Ok(())
    })?;
    let out = delta.end().map_err(|error| Failure::failed(what(), error))?;
    let file = out.into_inner().map_err(|error| Failure::failed(what(), error.error()))?;
    file.sync_all().map_err(|error| Failure::failed(what(), error))?;
    bar.finish_and_clear();
    Ok(moved)
}

impl Moved {
    fn add(&mut self, length: u64, is_zero: bool) {
        self.changed += length;
        self.zeroes += if is_zero { length } else { 0 };
    }
}

async fn write_overlay(between: Between, path: &Path) -> Result<Moved, Failure> {
    let server = qemu::ImageServer::start(path).await?;
    let image = server.address();
    let copied = blocking(move || {
        let newer = Client::open(&between.newer, None).map_err(nbd)?;
        let image = Client::open(&image?, None).map_err(nbd)?;
        copy_changed("export", &between, newer, image)
    });
    match copied.await {
        Ok(moved) => server.end().await.map(|()| moved),
        // It may wait for a client that never comes.
        Err(failure) => {
            // That it was killed is no news.
            let _ = server.stop().await;
            Err(failure)
        }
    }
}

/// Copies what changed from one of the two snapshots.
fn copy_changed(what: &str, between: &Between, mut from: Client, mut to: Client) -> Result<Moved, Failure> {
    let bar = qemu::bar(what, between.about.size);
    let mut moved = Moved::default();
    changed_pieces(between, &mut |offset, length| {
        let bytes = read_of(&mut from, offset, length)?;
        let is_zero = is_zero(&bytes);
        match is_zero {
            true => to.zero(offset, length).map_err(nbd)?,
            false => to.write(offset, &bytes).map_err(nbd)?,
        }
        moved.add(length, is_zero);
        bar.set_position(offset + length);
        Ok(())
    })?;
    to.close().map_err(nbd)?;
    bar.finish_and_clear();
    Ok(moved)
}

/// Applies a delta to a disk.
///
/// # Errors
/// When the file is not whole, or the disk does not hold what the delta is to be applied to.
pub async fn apply(
    shell: &mut Shell<'_>,
    (name, file): (&str, &Path),
    (confirm, detach_clients): (Option<String>, bool),
) -> Result<(), Failure> {
    let about = checked(file)?;
    let disk: DiskView = shell.client.get(&disk_path(name)).await?;
    if disk.summary.size != about.size {
        let failure = Failure::refused(format!(
            "the delta is of a disk of {}, and disk {} has {}",
            format_bytes(about.size),
            disk.summary.name,
            format_bytes(disk.summary.size)
        ));
        return Err(match disk.summary.size < about.size {
            true => failure.hint(format!("drystone disk resize {} {}", disk.summary.name, about.size)),
            false => failure,
        });
    }
    let what = format!(
        "Applying the delta replaces what changed on {} between {} and {} on the disk {name}",
        about.disk, about.since.name, about.snapshot.name
    );
    let confirm = shell.confirm(confirm, &what, &disk.summary.name)?;
    let request = BeginImport {
        confirm: Some(confirm),
        detach_clients,
        source: source_text_of(file),
        format: format!("delta {} to {}", about.since.name, about.snapshot.name),
        size: about.size,
    };
    let address = disk_path(&disk.summary.name);
    let begun: ImportView = shell.client.post(&format!("{address}/import"), &request).await?;
    let start = Instant::now();
    let mut is_written = false;
    let applied = apply_to(shell, &begun, file, &mut is_written).await;
    let failure = applied.as_ref().err().map(ToString::to_string);
    let end = EndImport { export: begun.export, failure, unchanged: !is_written };
    let ended = shell.client.post::<DiskView>(&format!("{address}/import/end"), &end).await;
    let moved = applied?;
    ended?;
    let seconds = start.elapsed().as_secs_f64();
    let answer = json!({
        "disk": disk.summary.name, "since": about.since.name, "snapshot": about.snapshot.name,
        "changed_bytes": moved.changed, "zero_bytes": moved.zeroes, "seconds": seconds,
    });
    shell.show(&answer, |_| {
        format!(
            "{} is as {}@{} was: {} changed, {} of them zeroes, in {seconds:.1} s",
            disk.summary.name,
            about.disk,
            about.snapshot.name,
            format_bytes(moved.changed),
            format_bytes(moved.zeroes)
        )
    })
}

async fn apply_to(
    shell: &Shell<'_>,
    begun: &ImportView,
    file: &Path,
    is_written: &mut bool,
) -> Result<Moved, Failure> {
    let address = address_of_export(shell, &begun.addresses, &begun.export)?;
    let path = file.to_owned();
    let mut client = blocking(move || {
        let mut client = Client::open(&address, None).map_err(nbd)?;
        verify(&mut client, &path)?;
        Ok(client)
    })
    .await?;
    *is_written = true;
    let path = file.to_owned();
    blocking(move || {
        let moved = write_records(&mut client, &path)?;
        client.close().map_err(nbd)?;
        Ok(moved)
    })
    .await
}

fn open(file: &Path) -> Result<DeltaReader<BufReader<File>>, Failure> {
    let input = File::open(file).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            Failure::new(Code::NotFound, format!("there is no file {}", file.display()))
        }
        _ => Failure::failed(format!("read {}", file.display()), error),
    })?;
    DeltaReader::open(BufReader::with_capacity(RECORD_MAX as usize, input))
}

/// Reads a delta to its end, and says what it is of.
fn checked(file: &Path) -> Result<About, Failure> {
    let mut delta = open(file)?;
    while delta.next()?.is_some() {}
    Ok(delta.about)
}

/// Every block that a delta has is what it was, or what it is to be.
fn verify(client: &mut Client, file: &Path) -> Result<(), Failure> {
    let mut delta = open(file)?;
    let bar = qemu::bar("compare", delta.about.size);
    while let Some(record) = delta.next()? {
        let found = checksums(&read_of(client, record.offset, record.length)?);
        let pairs = record.before.iter().zip(record.after());
        let wrong =
            found.iter().zip(pairs).position(|(found, (before, after))| found != before && *found != after);
        if let Some(block) = wrong {
            let About { disk, since, snapshot, .. } = &delta.about;
            let at = record.offset + block as u64 * BLOCK;
            return Err(Failure::refused(format!(
                "the disk does not hold what {disk} held in snapshot {}: the block at byte {at} differs. Nothing was changed",
                since.name
            ))
            .hint(format!(
                "apply it to a disk with the content of {disk}@{} that nothing has written to; it makes it {disk}@{}",
                since.name, snapshot.name
            )));
        }
        bar.set_position(record.offset + record.length);
    }
    bar.finish_and_clear();
    Ok(())
}

fn write_records(client: &mut Client, file: &Path) -> Result<Moved, Failure> {
    let mut delta = open(file)?;
    let bar: ProgressBar = qemu::bar("apply", delta.about.size);
    let mut moved = Moved::default();
    while let Some(record) = delta.next()? {
        match &record.data {
            Some(data) => client.write(record.offset, data).map_err(nbd)?,
            None => client.zero(record.offset, record.length).map_err(nbd)?,
        }
        moved.add(record.length, record.data.is_none());
        bar.set_position(record.offset + record.length);
    }
    bar.finish_and_clear();
    Ok(moved)
}
