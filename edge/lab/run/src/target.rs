//! What I/Os go to: files, block devices, NBD exports, virtual disks, or nothing.

mod busy;
mod signatures;

pub use busy::{Use, uses_of};

use crate::generator::backend::Door;
use crate::generator::spindle::Part;
use crate::nbd::{Address, AddressError, Export, HandshakeError};
use plan::{Caching, WriteThrough};
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a person names a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetName {
    /// A file or a block device.
    Path(PathBuf),
    /// An NBD export.
    Nbd(Address),
    /// A virtual disk of this Drystone.
    Disk(String),
    /// So many bytes of nothing: every I/O succeeds at once.
    Null(u64),
    /// A part of a simulated spindle: its name, the part's name, the part's size.
    Spindle(String, String, u64),
}

/// Why a target cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// A name that is none.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// A size that is none.
    #[error("{0}")]
    Size(#[from] base::units::SizeError),
    /// A part of a spindle that is none.
    #[error(
        "`{text}` is not a part of a simulated spindle: write spindle:NAME/PART/SIZE, for example spindle:disk/vm1/1GiB"
    )]
    Spindle {
        /// What was given.
        text: String,
    },
    /// A server that does not answer or refuses.
    #[error(transparent)]
    Export(#[from] HandshakeError),
    /// The kernel refuses.
    #[error("{doing} {path}: {source}")]
    Io {
        /// A verb: `open`, `extend`.
        doing: &'static str,
        /// Which file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// It is neither a file nor a block device.
    #[error("{path} is {found}: name a regular file, a block device, an NBD address or disk:NAME")]
    Kind {
        /// Which.
        path: String,
        /// What it is.
        found: &'static str,
    },
    /// A file that is to be made, and nobody says how large.
    #[error(
        "{path} does not exist and the job does not specify its size: add --size, or create the file first"
    )]
    NoSize {
        /// Which.
        path: String,
    },
    /// A disk can be reached only through a host of Drystone.
    #[error("disk:{name}: {reason}")]
    Disk {
        /// Which.
        name: String,
        /// Why not.
        reason: String,
    },
    /// Not enough room.
    #[error("{path}: the job uses {wanted}, but there is {found}: {remedy}")]
    TooSmall {
        /// Which.
        path: String,
        /// What the job needs.
        wanted: String,
        /// What there is.
        found: String,
        /// What to do.
        remedy: &'static str,
    },
    /// It takes no writes.
    #[error("{path} is read-only, and the job writes: name another target or a job that only reads")]
    ReadOnly {
        /// Which.
        path: String,
    },
}

impl TargetName {
    /// Reads a name: `disk:NAME`, `null:SIZE`, `spindle:NAME/PART/SIZE`, an NBD address, else a path.
    ///
    /// # Errors
    /// When it begins like an address or a size and is none.
    pub fn parse(text: &str) -> Result<TargetName, TargetError> {
        if let Some(name) = text.strip_prefix("disk:") {
            return Ok(TargetName::Disk(name.to_owned()));
        }
        if let Some(size) = text.strip_prefix("null:") {
            return Ok(TargetName::Null(base::units::parse_bytes(size)?));
        }
        if let Some(rest) = text.strip_prefix("spindle:") {
            let [name, part, size] = rest.split('/').collect::<Vec<_>>()[..] else {
                return Err(TargetError::Spindle { text: text.to_owned() });
            };
            return Ok(TargetName::Spindle(
                name.to_owned(),
                part.to_owned(),
                base::units::parse_bytes(size)?,
            ));
        }
        if Address::is_one(text) {
            return Ok(TargetName::Nbd(Address::parse(text)?));
        }
        Ok(TargetName::Path(PathBuf::from(text)))
    }
}

/// A target as it was found.
#[derive(Debug, Clone)]
pub struct Target {
    /// As a person named it.
    pub name: String,
    /// Its bytes.
    pub size: u64,
    /// What is known of it, in lines for people.
    pub about: Vec<String>,
    what: What,
    /// Held open for the run, so that nobody else takes the device for himself.
    _claim: Option<Arc<File>>,
}

#[derive(Debug, Clone)]
enum What {
    File(PathBuf),
    Device(PathBuf),
    Nbd(Arc<Export>),
    Null,
    Spindle(Part),
    /// Another machine's, or nobody's.
    Absent,
}

/// What a job needs of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// Whether it writes or trims.
    pub writes: bool,
    /// Whether it reads.
    pub reads: bool,
    /// Bytes that a file should have; one that is written is made larger if it is smaller.
    pub size: Option<u64>,
    /// Whether it may be written although somebody uses it.
    pub shares: bool,
}

impl Target {
    /// Looks at a target; makes a file that is missing, and makes one larger that is too small and is to be written. A file that is
    /// made and read is filled with random bytes first; `filling` is told how many bytes are done. A block device that is to be
    /// written is opened with `O_EXCL` and held: nobody can mount it while the target is there.
    ///
    /// # Errors
    /// When there is no such thing, it is too small, or it takes no writes and `need` has some.
    pub fn find(
        text: &str,
        name: &TargetName,
        need: Need,
        filling: &mut dyn FnMut(u64, u64),
    ) -> Result<Target, TargetError> {
        let (what, size) = match name {
            TargetName::Null(size) => (What::Null, *size),
            TargetName::Spindle(name, part, size) => (What::Spindle(Part::of(name, part, *size)), *size),
            TargetName::Disk(disk) => {
                let reason = "no Drystone host knows it".to_owned();
                return Err(TargetError::Disk { name: disk.clone(), reason });
            }
            TargetName::Nbd(address) => {
                let export = Export::look(address)?;
                if need.writes && export.is_read_only() {
                    return Err(TargetError::ReadOnly { path: text.to_owned() });
                }
                let size = export.size;
                (What::Nbd(Arc::new(export)), size)
            }
            TargetName::Path(path) => find_path(text, path, need, filling)?,
        };
        let claim = match &what {
            What::Device(path) if need.writes && !need.shares => {
                Some(Arc::new(claim(path).map_err(|source| io_error("open for itself alone", path, source))?))
            }
            _ => None,
        };
        Ok(Target { name: text.to_owned(), size, about: Vec::new(), what, _claim: claim })
    }

    /// With what is known of it.
    #[must_use]
    pub fn with_about(self, about: Vec<String>) -> Target {
        Target { about, ..self }
    }

    /// One that is another machine's to open.
    pub fn absent(name: &str) -> Target {
        Target { name: name.to_owned(), size: 0, about: Vec::new(), what: What::Absent, _claim: None }
    }

    /// Whether it is another machine's to open.
    pub fn is_absent(&self) -> bool {
        matches!(self.what, What::Absent)
    }

    /// `file`, `block device`, `NBD export`, `nothing`.
    pub fn kind(&self) -> &'static str {
        match self.what {
            What::File(_) => "file",
            What::Device(_) => "block device",
            What::Nbd(_) => "NBD export",
            What::Null => "nothing",
            What::Spindle(_) => "simulated spindle",
            What::Absent => "not here",
        }
    }

    /// Its path, if it is a file or a block device.
    pub fn path(&self) -> Option<&Path> {
        match &self.what {
            What::File(path) | What::Device(path) => Some(path),
            What::Nbd(_) | What::Null | What::Spindle(_) | What::Absent => None,
        }
    }

    /// Whether a map of it proves that every byte was written. File systems and most NBD servers have such maps; what stores
    /// nothing needs none.
    pub fn is_written(&self) -> bool {
        use std::os::fd::AsRawFd;
        if matches!(self.what, What::Null | What::Spindle(_)) {
            // They store nothing: filling them changes nothing.
            return true;
        }
        if let What::Nbd(export) = &self.what {
            // Whatever keeps the server from saying so, it is not proved.
            return crate::nbd::is_written(&export.address).unwrap_or(false);
        }
        let What::File(path) = &self.what else { return false };
        let Ok(file) = File::open(path) else { return false };
        // SAFETY: the call takes numbers only.
        let hole = unsafe { libc::lseek64(file.as_raw_fd(), 0, libc::SEEK_HOLE) };
        u64::try_from(hole).is_ok_and(|hole| hole >= self.size)
    }

    /// Asks the kernel to forget what it caches of it. What a server or a device caches stays.
    pub fn drop_cache(&self) {
        use std::os::fd::AsRawFd;
        let Some(file) = self.path().and_then(|path| File::open(path).ok()) else { return };
        // Only clean pages can be forgotten; what cannot be written back is told by the run itself.
        let _ = file.sync_data();
        // SAFETY: the call takes numbers only.
        unsafe { libc::posix_fadvise64(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    }

    /// Opens a way to it.
    ///
    /// # Errors
    /// When the kernel refuses, as it does with `O_DIRECT` on some file systems.
    pub fn open(&self, caching: Caching, writes: bool) -> Result<Door, TargetError> {
        let path = match &self.what {
            What::Null => return Ok(Door::Null),
            What::Spindle(part) => return Ok(Door::Spindle(part.clone())),
            What::Absent => {
                let reason = "it is another machine's".to_owned();
                return Err(TargetError::Disk { name: self.name.clone(), reason });
            }
            What::Nbd(export) => return Ok(Door::Nbd(export.clone())),
            What::File(path) | What::Device(path) => path,
        };
        let direct = if caching.direct { libc::O_DIRECT } else { 0 };
        let through = match caching.write_through {
            WriteThrough::No => 0,
            WriteThrough::Data => libc::O_DSYNC,
            WriteThrough::All => libc::O_SYNC,
        };
        let file = OpenOptions::new()
            .read(true)
            .write(writes)
            .custom_flags(direct | through | libc::O_CLOEXEC)
            .open(path)
            .map_err(|source| io_error("open", path, source))?;
        Ok(Door::File(Arc::new(file)))
    }
}

/// Takes a block device for this program alone, as `mount` and `mkfs` do (`open(2)`: `O_EXCL`). The generator opens it besides.
fn claim(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_EXCL | libc::O_CLOEXEC).open(path)
}

/// What a target holds, by its signatures; empty if there is nothing yet.
///
/// # Errors
/// When it cannot be looked at.
pub fn held(name: &TargetName) -> Result<Vec<String>, TargetError> {
    let failed = |path: &dyn std::fmt::Display, source| TargetError::Io {
        doing: "look for data on",
        path: path.to_string(),
        source,
    };
    match name {
        TargetName::Path(path) if is_storage(path) => {
            signatures::of_path(path).map_err(|error| failed(&path.display(), error))
        }
        TargetName::Nbd(address) => {
            let size = Export::look(address)?.size;
            signatures::of_export(address, size).map_err(|error| failed(address, error))
        }
        TargetName::Path(_) | TargetName::Disk(_) | TargetName::Null(_) | TargetName::Spindle(..) => {
            Ok(Vec::new())
        }
    }
}

fn is_storage(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|data| data.is_file() || data.file_type().is_block_device())
}

fn io_error(doing: &'static str, path: &Path, source: io::Error) -> TargetError {
    TargetError::Io { doing, path: path.display().to_string(), source }
}

fn find_path(
    text: &str,
    path: &Path,
    need: Need,
    filling: &mut dyn FnMut(u64, u64),
) -> Result<(What, u64), TargetError> {
    let data = match std::fs::metadata(path) {
        Ok(data) => data,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let size = need.size.ok_or_else(|| TargetError::NoSize { path: text.to_owned() })?;
            return make_file(path, 0, size, need, filling).map(|()| (What::File(path.to_owned()), size));
        }
        Err(error) => return Err(io_error("look at", path, error)),
    };
    let kind = data.file_type();
    if kind.is_block_device() {
        let mut device = File::open(path).map_err(|source| io_error("open", path, source))?;
        let size =
            device.seek(SeekFrom::End(0)).map_err(|source| io_error("find the size of", path, source))?;
        return Ok((What::Device(path.to_owned()), size));
    }
    if !kind.is_file() {
        let found = if kind.is_dir() { "a folder" } else { "neither a file nor a block device" };
        return Err(TargetError::Kind { path: text.to_owned(), found });
    }
    let wanted = need.size.unwrap_or(0);
    if wanted > data.len() && !need.writes {
        return Err(TargetError::TooSmall {
            path: text.to_owned(),
            wanted: base::units::format_bytes(wanted),
            found: base::units::format_bytes(data.len()),
            remedy: "a job that only reads does not change a file; reduce the size of the job, or fill the file first",
        });
    }
    if wanted > data.len() {
        make_file(path, data.len(), wanted, need, filling)?;
    }
    match data.len().max(wanted) {
        0 => Err(TargetError::TooSmall {
            path: text.to_owned(),
            wanted: "something to read or write".to_owned(),
            found: "0 B".to_owned(),
            remedy: "add --size, or fill the file first",
        }),
        size => Ok((What::File(path.to_owned()), size)),
    }
}

/// Makes a file as large as the job needs it. What is read must be there: holes would be read without any device.
fn make_file(
    path: &Path,
    from: u64,
    size: u64,
    need: Need,
    filling: &mut dyn FnMut(u64, u64),
) -> Result<(), TargetError> {
    let free = free_bytes(path).map_err(|source| io_error("find the free space of", path, source))?;
    if size - from > free {
        return Err(TargetError::TooSmall {
            path: path.display().to_string(),
            wanted: base::units::format_bytes(size - from),
            found: format!("{} free in its file system", base::units::format_bytes(free)),
            remedy: "reduce the job (--size), or use a larger target",
        });
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(|source| io_error("create", path, source))?;
    if !need.reads {
        return file.set_len(size).map_err(|source| io_error("extend", path, source));
    }
    file.seek(SeekFrom::Start(from)).map_err(|source| io_error("extend", path, source))?;
    let mut random = base::Random::new(size);
    let mut buffer = vec![0; 1 << 20];
    let mut at = from;
    while at < size {
        let count = (size - at).min(buffer.len() as u64) as usize;
        random.fill(&mut buffer[..count]);
        file.write_all(&buffer[..count]).map_err(|source| io_error("fill", path, source))?;
        at += count as u64;
        filling(at - from, size - from);
    }
    file.sync_all().map_err(|source| io_error("fill", path, source))
}

fn free_bytes(path: &Path) -> io::Result<u64> {
    use std::os::unix::ffi::OsStrExt;
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let folder = std::ffi::CString::new(folder.as_os_str().as_bytes())?;
    // SAFETY: zeroes are a valid value of this plain structure; the call fills it and reads the path, which ends in a zero.
    let (failed, data) = unsafe {
        let mut data: libc::statvfs = std::mem::zeroed();
        (libc::statvfs(folder.as_ptr(), &raw mut data), data)
    };
    if failed != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(data.f_bavail.saturating_mul(data.f_frsize))
}
