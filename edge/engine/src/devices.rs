//! Devices: opening, identifying, locking and formatting them, before they are handed to the node.
//!
//! Blocking calls, made on a thread of their own. A device that holds anything foreign is formatted only by force, one of
//! another cluster or of a newer format never.

use crate::at_rest;
use crate::command::{Create, GroupSpec};
use crate::error::EngineError;
use base::units::{BLOCK_SIZE, MIB, format_bytes};
use base::{ClusterId, DeviceId, GroupId, HostId};
use cluster::Encryption;
use diskgroup::format::FormatError;
use diskgroup::format::anchor::{Anchor, anchor_offset};
use diskgroup::format::superblock::{Geometry, MEMBERS_MAX, SUPERBLOCK_SIZE, Superblock};
use diskgroup::geometry::log_size_default;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Bytes at both ends of a device that must be zero for it to count as blank: every file system, partition table and
/// RAID signature stands there.
const SIGNATURE_SIZE: u64 = MIB;
/// The smallest device, in bytes.
const DEVICE_SIZE_MIN: u64 = 64 * MIB;

/// An open and locked device of a group.
#[derive(Debug)]
pub(crate) struct OpenDevice {
    pub(crate) path: PathBuf,
    /// `None`: it is not there, and `superblock` stands in for its own.
    pub(crate) file: Option<File>,
    pub(crate) superblock: Superblock,
    /// What is wrong with it: of one that is not there, what was found in its place; of one that is there, why it cannot be
    /// used.
    pub(crate) fault: Option<String>,
    /// Whether it is a disk that spins, as the kernel says.
    pub(crate) rotates: bool,
    /// Its encryption at rest.
    pub(crate) encryption: Encryption,
}

impl OpenDevice {
    /// A device that is there and can be used.
    fn new(path: PathBuf, file: File, superblock: Superblock) -> OpenDevice {
        let (rotates, encryption) = (rotates(&file), at_rest::encryption(&file));
        OpenDevice { path, file: Some(file), superblock, fault: None, rotates, encryption }
    }

    /// A member of a group that is not there, and what was found in its place.
    fn missing(path: PathBuf, superblock: Superblock, why: String) -> OpenDevice {
        let encryption = Encryption::Unknown;
        OpenDevice { path, file: None, superblock, fault: Some(why), rotates: false, encryption }
    }
}

/// Whose devices are looked for, and what new ones become.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Belonging {
    pub(crate) cluster: ClusterId,
    pub(crate) host: HostId,
}

/// Memory for direct I/O.
#[repr(C, align(4096))]
struct Aligned([u8; MIB as usize]);

impl Aligned {
    fn new() -> Box<Aligned> {
        // SAFETY: any bytes are valid for it, zeroes too; made on the heap, for the stack may be smaller.
        unsafe { Box::<Aligned>::new_zeroed().assume_init() }
    }
}

fn refused(text: String) -> EngineError {
    EngineError::Refused(text)
}

fn failed(what: &str, path: &Path, error: &io::Error) -> EngineError {
    EngineError::Device(format!("{what} {}: {error}", path.display()))
}

/// A number that nobody can guess.
pub(crate) fn random_u128() -> Result<u128, EngineError> {
    let mut bytes = [0u8; 16];
    // SAFETY: the buffer is valid for its length.
    let taken = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    match taken {
        16 => Ok(u128::from_le_bytes(bytes)),
        _ => Err(EngineError::Device(format!("get random numbers: {}", io::Error::last_os_error()))),
    }
}

/// One device as it was found.
struct Candidate {
    path: PathBuf,
    file: File,
    size: u64,
    is_file: bool,
    found: Result<Superblock, FormatError>,
    /// Whether one copy of its superblock is damaged or cannot be read.
    has_bad_copy: bool,
    is_blank: bool,
}

/// Opens the devices of a group, formatting them if they hold nothing and that is wanted. By place in the group.
pub(crate) fn open_group(spec: &GroupSpec, belonging: Belonging) -> Result<Vec<OpenDevice>, EngineError> {
    if spec.capacity.len() >= MEMBERS_MAX {
        return Err(refused(format!(
            "{} capacity devices are too many for one disk group: at most {}",
            spec.capacity.len(),
            MEMBERS_MAX - 1
        )));
    }
    let log = find(&spec.log, spec.file_size, spec.create)?;
    check_owner(&log, belonging)?;
    let is_known = log.found.is_ok() && spec.remake.is_none();
    let mut candidates = vec![log];
    let mut gone = Vec::new();
    for path in &spec.capacity {
        let found = find(path, spec.file_size, spec.create).and_then(|candidate| {
            check_owner(&candidate, belonging)?;
            Ok(candidate)
        });
        match found {
            // In the place of a member of a group that is there stands something else: the member is missing.
            Ok(candidate) if is_known && candidate.found.is_err() => gone.push(not_a_member(candidate)),
            Ok(candidate) => candidates.push(candidate),
            Err(error) if is_known || spec.remake.is_some() || is_gone(path) => {
                let why = error.to_string();
                gone.push(Gone { path: path.clone(), why, error: Some(error) });
            }
            Err(error) => return Err(error),
        }
    }
    if is_known {
        return join_group(candidates, gone, &spec.capacity);
    }
    let is_left = |one: &&Candidate| one.found.as_ref().is_ok_and(|found| spec.remake != Some(found.group));
    if let Some(old) = candidates.iter().skip(1).find(is_left) {
        if let Some(damage) = damage_of(&candidates[0]) {
            return Err(refused(damage));
        }
        return Err(refused(format!(
            "{} is part of a disk group, and {} holds no log of it: connect the former log device, or make the group anew with \
             `drystone device replace {1} NEW`, which gives up what stands in it",
            old.path.display(),
            candidates[0].path.display()
        )));
    }
    if let Some(gone) = gone.pop()
        && (spec.remake.is_none() || candidates.len() == 1)
    {
        return Err(gone.error.unwrap_or_else(|| refused(gone.why)));
    }
    let is_of_former =
        |one: &&Candidate| one.found.as_ref().is_ok_and(|found| spec.remake == Some(found.group));
    for candidate in candidates.iter().filter(|one| !is_of_former(one)) {
        check_may_format(candidate, spec.create)?;
    }
    format_group(spec, candidates, belonging)
}

/// A device in the place of a member that holds nothing of a group.
fn not_a_member(candidate: Candidate) -> Gone {
    let path = candidate.path.display();
    let what = match (damage_of(&candidate), candidate.is_blank) {
        (Some(damage), _) => damage,
        (None, true) => format!("device {path} is blank"),
        (None, false) => format!("device {path} holds something else"),
    };
    let why = format!("{what}; the device of the group that stood there is missing");
    let error = refused(format!(
        "{what}, and the group has no such device: to add one to a group use `drystone device add`"
    ));
    Gone { path: candidate.path, why, error: Some(error) }
}

/// A device that was used before in this cluster is taken only by force, and never one that is a member now.
fn check_may_take(candidate: &Candidate, create: Create, members: &[DeviceId]) -> Result<(), EngineError> {
    let Ok(superblock) = &candidate.found else { return Ok(()) };
    let is_member = members.contains(&superblock.device);
    if create == Create::Force && !is_member {
        return Ok(());
    }
    let hint = match is_member {
        true => "restart the host's service to have it back",
        false => "`--force` formats it and destroys what it holds",
    };
    Err(refused(format!(
        "{} is already a device of this cluster (device {}, group {}): {hint}",
        candidate.path.display(),
        superblock.device,
        superblock.group
    )))
}

/// Why a device would not be taken by a group, as far as that can be told while it is in use.
pub fn refusal_to_take(path: &Path, create: Create) -> Option<EngineError> {
    let is_block = is_block(&File::open(path).ok()?);
    let options = OpenOptions::new().read(true).custom_flags(libc::O_CLOEXEC).open(path);
    let candidate = examine(path, options.ok()?, is_block).ok()?;
    check_may_take(&candidate, create, &[]).and_then(|()| check_may_format(&candidate, create)).err()
}

/// Opens and formats one more capacity device for the group that `members` (by place) make up.
pub(crate) fn open_capacity(
    path: &Path,
    file_size: Option<u64>,
    create: Create,
    belonging: Belonging,
    members: &[Superblock],
    place: u8,
) -> Result<OpenDevice, EngineError> {
    let candidate = find(path, file_size, create)?;
    check_owner(&candidate, belonging)?;
    check_may_take(&candidate, create, &members[0].members)?;
    check_may_format(&candidate, create)?;
    let device = DeviceId(random_u128()?);
    let mut all = members[0].members;
    all[place as usize] = device;
    let geometry = Geometry::plan(candidate.size, None, true)
        .map_err(|error| refused(format!("{}: {error}", path.display())))?;
    let revision = members.iter().map(|one| one.revision).max().unwrap_or(0) + 1;
    let superblock = Superblock {
        revision,
        device,
        index: place,
        members: all,
        log_mark: 0,
        size: candidate.size,
        geometry,
        ..members[0].clone()
    };
    format_device(&candidate, &superblock)?;
    Ok(OpenDevice::new(candidate.path, candidate.file, superblock))
}

/// Writes the superblock, the copy that does not count first.
pub(crate) fn write_superblock(file: &File, superblock: &Superblock) -> io::Result<()> {
    let mut buffer = Aligned::new();
    buffer.0[..SUPERBLOCK_SIZE].copy_from_slice(&superblock.encode());
    for copy in [1, 0] {
        file.write_all_at(&buffer.0[..SUPERBLOCK_SIZE], copy * BLOCK_SIZE)?;
        file.sync_data()?;
    }
    Ok(())
}

/// Makes a device that left its group blank: with zeros at both ends, so that it counts as blank when it is to be used anew. Its
/// superblock goes last: until then the device says whose it was.
pub(crate) fn erase(mut file: &File) -> io::Result<()> {
    let size = file.seek(SeekFrom::End(0))? / BLOCK_SIZE * BLOCK_SIZE;
    let len = size.min(SIGNATURE_SIZE);
    for offset in [size - len, 0] {
        write_zeroes(file, offset, len)?;
        file.sync_data()?;
    }
    Ok(())
}

fn find(path: &Path, file_size: Option<u64>, create: Create) -> Result<Candidate, EngineError> {
    let may_make = create != Create::Never && file_size.is_some();
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => Some(metadata),
        Err(error) if error.kind() == io::ErrorKind::NotFound && may_make => None,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(refused(format!(
                "device {} is not there: check the path; with a size and `create = \"if-blank\"`, a file is made of it",
                path.display()
            )));
        }
        Err(error) => return Err(failed("look at", path, &error)),
    };
    let is_block = metadata.as_ref().is_some_and(|metadata| metadata.file_type().is_block_device());
    if metadata.as_ref().is_some_and(|metadata| !metadata.is_file() && !is_block) {
        return Err(refused(format!("{} is neither a block device nor a regular file", path.display())));
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    // Exclusive opening of a block device fails while it is mounted or part of something else.
    let exclusive = if is_block { libc::O_EXCL } else { 0 };
    options.custom_flags(libc::O_DIRECT | libc::O_CLOEXEC | exclusive);
    if metadata.is_none() {
        options.create_new(true);
    }
    let file =
        while_released(libc::EBUSY, || options.open(path)).map_err(|error| open_refusal(path, &error))?;
    lock(path, &file)?;
    if let (None, Some(size)) = (&metadata, file_size) {
        file.set_len(size / MIB * MIB).map_err(|error| failed("make a file at", path, &error))?;
    }
    examine(path, file, is_block)
}

/// The cluster that a device says it belongs to; nothing where that cannot be read, or it belongs to none.
pub fn cluster_on(path: &Path) -> Option<ClusterId> {
    let mut head = vec![0; 2 * SUPERBLOCK_SIZE];
    File::open(path).and_then(|mut file| file.read_exact(&mut head)).ok()?;
    let (first, second) = head.split_at(SUPERBLOCK_SIZE);
    Some(Superblock::choose(first, second).ok()?.cluster)
}

/// What an open device holds.
fn examine(path: &Path, file: File, is_block: bool) -> Result<Candidate, EngineError> {
    let size = size_of(path, &file, is_block)? / BLOCK_SIZE * BLOCK_SIZE;
    let mut head = Aligned::new();
    let head_len = SIGNATURE_SIZE.min(size) as usize;
    read_around_bad_sectors(&file, &mut head.0[..head_len], 0)
        .map_err(|error| failed("read", path, &error))?;
    let found = match head_len < 2 * SUPERBLOCK_SIZE {
        true => Err(FormatError::Foreign),
        false => {
            Superblock::choose(&head.0[..SUPERBLOCK_SIZE], &head.0[SUPERBLOCK_SIZE..2 * SUPERBLOCK_SIZE])
        }
    };
    let is_bad = |copy: usize| {
        let bytes = head.0.get(copy * SUPERBLOCK_SIZE..(copy + 1) * SUPERBLOCK_SIZE);
        bytes.is_none_or(|bytes| Superblock::decode(bytes).is_err())
    };
    let has_bad_copy = found.is_ok() && (is_bad(0) || is_bad(1));
    let mut is_blank = head.0[..head_len].iter().all(|&byte| byte == 0);
    if is_blank && size > SIGNATURE_SIZE {
        read_around_bad_sectors(&file, &mut head.0[..head_len], size - head_len as u64)
            .map_err(|error| failed("read", path, &error))?;
        is_blank = head.0[..head_len].iter().all(|&byte| byte == 0);
    }
    Ok(Candidate { path: path.to_owned(), file, size, is_file: !is_block, found, has_bad_copy, is_blank })
}

/// Reads, and passes over blocks that cannot be read: these are filled with ones. Fails if no block can be read.
fn read_around_bad_sectors(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    let error = match file.read_exact_at(bytes, offset) {
        Err(error) if is_bad_sector(&error) => error,
        other => return other,
    };
    let mut readable = 0;
    for (index, block) in bytes.chunks_mut(BLOCK_SIZE as usize).enumerate() {
        match file.read_exact_at(block, offset + index as u64 * BLOCK_SIZE) {
            Ok(()) => readable += 1,
            Err(error) if is_bad_sector(&error) => block.fill(0xff),
            Err(error) => return Err(error),
        }
    }
    if readable == 0 { Err(error) } else { Ok(()) }
}

/// Whether a failed read says that the medium is damaged there, and not that the device is gone: what the kernel makes of a
/// medium error, of a failed integrity check and of a target's failure, and the plain I/O error that most drivers give.
pub(crate) fn is_bad_sector(error: &io::Error) -> bool {
    const LOCAL: [i32; 5] = [libc::EIO, libc::ENODATA, libc::EILSEQ, libc::EREMOTEIO, libc::EBADMSG];
    error.raw_os_error().is_some_and(|code| LOCAL.contains(&code))
}

fn open_refusal(path: &Path, error: &io::Error) -> EngineError {
    let path = path.display();
    match error.raw_os_error() {
        Some(libc::EBUSY) => refused(format!(
            "device {path} is in use: it is mounted, or part of a RAID, LVM or another program; free it first"
        )),
        Some(libc::EROFS) => refused(format!("device {path} is read-only")),
        Some(libc::EACCES | libc::EPERM) => refused(format!(
            "no permission to write to device {path}: it is read-only, or belongs to another user"
        )),
        Some(libc::EINVAL) => {
            refused(format!("{path} stands on a file system without direct I/O (O_DIRECT)"))
        }
        _ => EngineError::Device(format!("open device {path}: {error}")),
    }
}

/// How long a device may still be in use by a ring that the kernel is taking down: it does so after the process that
/// had it has ended, and the ring keeps its registered files open until then. Seen to take some tens of milliseconds, and
/// once, beside compilers and with discards under way, more than ten seconds.
const RELEASE_WAIT: Duration = Duration::from_secs(30);
/// Time between two tries.
const RELEASE_STEP: Duration = Duration::from_millis(20);

/// Tries again while `attempt` fails with `busy`, for as long as a former server's ring may need to go.
pub(crate) fn while_released<T>(busy: i32, attempt: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let deadline = Instant::now() + RELEASE_WAIT;
    loop {
        match attempt() {
            Err(error) if error.raw_os_error() == Some(busy) && Instant::now() < deadline => {
                std::thread::sleep(RELEASE_STEP);
            }
            result => return result,
        }
    }
}

fn lock(path: &Path, file: &File) -> Result<(), EngineError> {
    let locked = while_released(libc::EWOULDBLOCK, || {
        // SAFETY: the descriptor is open; the call takes no memory.
        match unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    });
    let Err(error) = locked else { return Ok(()) };
    match error.raw_os_error() {
        Some(libc::EWOULDBLOCK) => {
            Err(refused(format!("device {} is in use by another Drystone server", path.display())))
        }
        _ => Err(failed("lock", path, &error)),
    }
}

fn size_of(path: &Path, file: &File, is_block: bool) -> Result<u64, EngineError> {
    const BLKGETSIZE64: libc::c_ulong = 0x8008_1272;
    const BLKROGET: libc::c_ulong = 0x125e;
    if !is_block {
        return Ok(file.metadata().map_err(|error| failed("look at", path, &error))?.len());
    }
    let (mut size, mut read_only) = (0u64, 0i32);
    // SAFETY: both calls write one number of the type that is handed in.
    let results = unsafe {
        [
            libc::ioctl(file.as_raw_fd(), BLKGETSIZE64, &raw mut size),
            libc::ioctl(file.as_raw_fd(), BLKROGET, &raw mut read_only),
        ]
    };
    if results.iter().any(|&result| result != 0) {
        return Err(failed("ask for the size of", path, &io::Error::last_os_error()));
    }
    match read_only {
        0 => Ok(size),
        _ => Err(refused(format!("device {} is read-only", path.display()))),
    }
}

fn check_owner(candidate: &Candidate, belonging: Belonging) -> Result<(), EngineError> {
    let path = candidate.path.display();
    match &candidate.found {
        Ok(superblock) if superblock.cluster != belonging.cluster => Err(refused(format!(
            "device {path} belongs to another cluster ({}, this one is {}): it is never taken; to give it up there, use \
             `drystone device remove` on its host, or erase it with `wipefs`",
            superblock.cluster, belonging.cluster
        ))),
        Ok(_) => Ok(()),
        Err(error @ FormatError::Newer { .. }) => {
            Err(refused(format!("device {path} holds a datastore, but {error}")))
        }
        Err(FormatError::Blank | FormatError::Foreign | FormatError::Damaged(_)) => Ok(()),
    }
}

/// Says so, if it is a device of ours whose superblock cannot be read any more.
fn damage_of(candidate: &Candidate) -> Option<String> {
    match &candidate.found {
        Err(error @ FormatError::Damaged(_)) => {
            Some(format!("device {} was Drystone's, but {error}", candidate.path.display()))
        }
        Ok(_) | Err(_) => None,
    }
}

fn check_may_format(candidate: &Candidate, create: Create) -> Result<(), EngineError> {
    let path = candidate.path.display();
    if candidate.size < DEVICE_SIZE_MIN {
        return Err(refused(format!(
            "device {path} is too small: it has {}, at least {} are needed",
            format_bytes(candidate.size),
            format_bytes(DEVICE_SIZE_MIN)
        )));
    }
    let damage = damage_of(candidate);
    match (create, candidate.is_blank) {
        (Create::Force, _) | (Create::IfBlank, true) => Ok(()),
        (Create::IfBlank, false) => Err(refused(damage.unwrap_or_else(|| {
            format!("device {path} is not blank: it holds data of something else; `--force` takes it and destroys them")
        }))),
        (Create::Never, _) => {
            Err(refused(damage.unwrap_or_else(|| {
                format!("device {path} holds no datastore, and is not to be formatted: `create = \"if-blank\"` of its group formats it")
            })))
        }
    }
}

/// A capacity device that is not there: it cannot be opened, or something else stands in its place.
struct Gone {
    path: PathBuf,
    /// What was found.
    why: String,
    /// What is said where no member of the group is missing; nothing of a device that left the group.
    error: Option<EngineError>,
}

/// Whether nothing answers at that path. What is in use, read-only or not ours is there.
fn is_gone(path: &Path) -> bool {
    const GONE: [i32; 5] = [libc::ENOENT, libc::ENXIO, libc::ENODEV, libc::EIO, libc::ENOMEDIUM];
    let tried = File::open(path).and_then(|file| file.read_at(&mut [0], 0));
    tried.is_err_and(|error| error.raw_os_error().is_some_and(|code| GONE.contains(&code)))
}

/// The log device is one of a group: which of the others are members, and which members are missing. `paths` are those of the
/// capacity devices, as recorded.
fn join_group(
    candidates: Vec<Candidate>,
    mut gone: Vec<Gone>,
    paths: &[PathBuf],
) -> Result<Vec<OpenDevice>, EngineError> {
    candidates.iter().for_each(mend_superblock);
    let mut open: Vec<OpenDevice> = candidates
        .into_iter()
        .filter_map(|one| {
            let superblock = one.found.ok()?;
            Some(OpenDevice::new(one.path, one.file, superblock))
        })
        .collect();
    let group = open[0].superblock.group;
    let is_stranger = |one: &mut OpenDevice| one.superblock.group != group;
    gone.extend(open.extract_if(.., is_stranger).map(|one| stranger(&one, group)));
    let newest = open.iter().map(|one| &one.superblock).max_by_key(|one| one.revision);
    let truth = newest.cloned().ok_or_else(|| refused("a disk group needs a device".to_owned()))?;
    // A device that left the group while it could not be written to is not part of it any more. It may have come back in the
    // slot of a member.
    let has_left = |one: &mut OpenDevice| !truth.members.contains(&one.superblock.device);
    gone.extend(open.extract_if(.., has_left).map(|one| leaver(&one)));
    gone.sort_by_key(|one| paths.iter().position(|path| *path == one.path));
    let mut gone = gone.into_iter();
    for (place, id) in truth.members.iter().enumerate().filter(|(_, id)| **id != DeviceId(0)) {
        let count = open.iter().filter(|one| one.superblock.device == *id).count();
        let known = || open.iter().map(|one| one.path.display().to_string()).collect::<Vec<_>>().join(", ");
        match count {
            1 => {}
            // The recorded paths are in the order of the places.
            0 if place > 0
                && let Some(Gone { path, why, .. }) = gone.next() =>
            {
                let superblock = Superblock::away(&truth, place as u8);
                open.push(OpenDevice::missing(path, superblock, why));
            }
            0 => {
                return Err(refused(format!(
                    "device {id} (place {place} of disk group {}) is missing; found are {}: connect it, or name its path",
                    truth.group,
                    known()
                )));
            }
            _ => return Err(refused(format!("device {id} was named twice: {}", known()))),
        }
    }
    if let Some(error) = gone.find_map(|one| one.error) {
        return Err(error);
    }
    open.sort_by_key(|one| truth.members.iter().position(|id| *id == one.superblock.device));
    for (place, one) in open.iter_mut().enumerate() {
        one.superblock.index =
            truth.members.iter().position(|id| *id == one.superblock.device).unwrap_or(place) as u8;
        one.superblock.members = truth.members;
        // A conversion that not all devices were told of counts from the first of them on.
        one.superblock.format = truth.format;
        check_size(one)?;
    }
    Ok(open)
}

/// A device of another group in the place of a member.
fn stranger(one: &OpenDevice, group: GroupId) -> Gone {
    let path = one.path.display();
    let why = format!(
        "device {path} is part of disk group {}; the device of this group that stood there is missing",
        one.superblock.group
    );
    let error = refused(format!(
        "device {path} is part of another disk group ({}) than the log device ({group})",
        one.superblock.group
    ));
    Gone { path: one.path.clone(), why, error: Some(error) }
}

/// A device that was a member once.
fn leaver(one: &OpenDevice) -> Gone {
    let why = format!(
        "device {} left this disk group before; the device of the group that stood there is missing",
        one.path.display()
    );
    Gone { path: one.path.clone(), why, error: None }
}

/// A device must be as large as its superblock says: a capacity device that is not cannot be used, and without the log
/// device there is no group.
fn check_size(one: &mut OpenDevice) -> Result<(), EngineError> {
    let Some(file) = &one.file else { return Ok(()) };
    let size = size_of(&one.path, file, is_block(file))?;
    if size >= one.superblock.size {
        return Ok(());
    }
    let why = shrunk(size, one.superblock.size);
    if one.superblock.index == 0 {
        return Err(refused(format!("device {}: {why}", one.path.display())));
    }
    one.fault = Some(why);
    Ok(())
}

/// Says that a device has become too short.
fn shrunk(found: u64, expected: u64) -> String {
    format!(
        "it has {}, but its datastore was made for {}: it has shrunk; replace it with `drystone device replace`",
        format_bytes(found),
        format_bytes(expected)
    )
}

/// Whether a device has become shorter than its datastore, and what to say of that.
pub(crate) fn shrinkage(path: &Path, file: &File, expected: u64) -> Option<String> {
    let size = size_of(path, file, is_block(file)).ok()?;
    (size < expected).then(|| shrunk(size, expected))
}

/// Writes both copies of a superblock again of which one is damaged. What fails here is tried again at the next start.
fn mend_superblock(candidate: &Candidate) {
    let Candidate { found: Ok(superblock), has_bad_copy: true, path, file, .. } = candidate else { return };
    let path = path.display();
    match write_superblock(file, superblock) {
        Ok(()) => {
            tracing::warn!("device {path}: one copy of its superblock was damaged and is written again")
        }
        Err(error) => tracing::error!("device {path}: write the superblock again: {error}"),
    }
}

/// Whether the kernel says of a block device that it spins; of a partition, it says so of the whole device.
fn rotates(file: &File) -> bool {
    let Ok(metadata) = file.metadata() else { return false };
    if !metadata.file_type().is_block_device() {
        return false;
    }
    let (major, minor) = (libc::major(metadata.rdev()), libc::minor(metadata.rdev()));
    let says = |queue: &str| {
        std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/{queue}/rotational")).ok()
    };
    says("queue").or_else(|| says("../queue")).is_some_and(|text| text.trim() == "1")
}

fn is_block(file: &File) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.file_type().is_block_device())
}

fn format_group(
    spec: &GroupSpec,
    candidates: Vec<Candidate>,
    belonging: Belonging,
) -> Result<Vec<OpenDevice>, EngineError> {
    let is_shared = spec.capacity.is_empty();
    let cluster = belonging.cluster;
    let group = GroupId(random_u128()?);
    let mut members = [DeviceId(0); MEMBERS_MAX];
    for member in members.iter_mut().take(candidates.len()) {
        *member = DeviceId(random_u128()?);
    }
    let mut plans = Vec::new();
    for (place, candidate) in candidates.iter().enumerate() {
        let log = match place {
            0 => Some(spec.log_size.unwrap_or_else(|| log_size_default(candidate.size, is_shared))),
            _ => None,
        };
        let geometry = Geometry::plan(candidate.size, log, place > 0 || is_shared)
            .map_err(|error| refused(format!("{}: {error}", candidate.path.display())))?;
        let log_mark = if place == 0 { random_u128()? as u64 } else { 0 };
        plans.push(Superblock {
            format: diskgroup::format::FORMAT_PLAIN,
            revision: 1,
            cluster,
            host: belonging.host,
            group,
            device: members[place],
            index: place as u8,
            members,
            log_mark,
            size: candidate.size,
            geometry,
        });
    }
    // The log's device last: a group without it was never made.
    for (candidate, superblock) in candidates.iter().zip(&plans).rev() {
        format_device(candidate, superblock)?;
    }
    let open = |(one, superblock): (Candidate, Superblock)| OpenDevice::new(one.path, one.file, superblock);
    Ok(candidates.into_iter().zip(plans).map(open).collect())
}

/// Empties the regions that must be, writes the anchor, and the superblock last.
fn format_device(candidate: &Candidate, superblock: &Superblock) -> Result<(), EngineError> {
    let write = || -> io::Result<()> {
        let geometry = superblock.geometry;
        write_zeroes(&candidate.file, 0, 4 * BLOCK_SIZE)?;
        candidate.file.sync_data()?;
        match candidate.is_file {
            true => punch(&candidate.file, geometry.table.offset, geometry.table.len)?,
            false => write_zeroes(&candidate.file, geometry.table.offset, geometry.table.len)?,
        }
        if geometry.log.len > 0 {
            // Written through, so that a stable write to it later needs no allocation by a file system.
            let len = if candidate.is_file { geometry.log.len } else { geometry.log.len.min(8 * MIB) };
            write_zeroes(&candidate.file, geometry.log.offset, len)?;
            let anchor =
                Anchor { revision: 1, log_mark: superblock.log_mark, tail_batch: 1, ..Anchor::default() };
            let mut buffer = Aligned::new();
            let bytes = anchor.encode();
            buffer.0[..bytes.len()].copy_from_slice(&bytes);
            // Twice, so that one bad sector takes nothing away.
            for copy in [0, 1] {
                candidate.file.write_all_at(&buffer.0[..bytes.len()], anchor_offset(copy))?;
            }
        }
        candidate.file.sync_all()?;
        write_superblock(&candidate.file, superblock)
    };
    write().map_err(|error| failed("format", &candidate.path, &error))
}

fn write_zeroes(file: &File, offset: u64, len: u64) -> io::Result<()> {
    let buffer = Aligned::new();
    let mut at = offset;
    while at < offset + len {
        let take = (offset + len - at).min(MIB);
        file.write_all_at(&buffer.0[..take as usize], at)?;
        at += take;
    }
    Ok(())
}

fn punch(file: &File, offset: u64, len: u64) -> io::Result<()> {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: the descriptor is open; the call takes no memory.
    let result = unsafe { libc::fallocate(file.as_raw_fd(), mode, offset as i64, len as i64) };
    if result == 0 { Ok(()) } else { write_zeroes(file, offset, len) }
}
