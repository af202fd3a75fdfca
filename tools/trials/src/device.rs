//! Virtual devices for real hosts: a file that a file system of ours (FUSE) shows, and that loses power, fails, fills or
//! hangs when told to.
//!
//! What is written is unstable until it is written stably or synced: it stands in memory, and a loss of power keeps, drops
//! or tears each block of it by chance. Blocks that are stable stand in a sparse file. Dropped, a device is unmounted.

use crate::failure::Failure;
use crate::undo::Undo;
use base::Random;
use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen,
    ReplyWrite, Request, WriteFlags,
};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

/// What the file is called in its folder.
pub const NAME: &str = "disk";
/// A device writes whole blocks of this, or parts of one when power fails.
const BLOCK: usize = 4096;
/// What a device writes whole whatever happens.
const SECTOR: usize = 512;
/// How many calls a device works on at a time.
const WORKERS: usize = 4;
/// How long the kernel may believe what it was told of the file.
const TTL: Duration = Duration::from_secs(60);
const FILE: INodeNo = INodeNo(2);

/// How a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Condition {
    /// It works.
    #[default]
    Well,
    /// Every call fails.
    Dead,
    /// What is read fails; what is written does not.
    Unreadable,
    /// What is written fails for want of space, as when the file system below is full; what is read does not.
    Full,
    /// Every call takes so much longer.
    Slow(Duration),
    /// Every flush takes so much longer; what is read and written does not.
    Flushing(Duration),
    /// No call is answered until it is something else.
    Hung,
}

/// What a device is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Read,
    Write,
    Flush,
}

#[derive(Debug)]
struct State {
    condition: Condition,
    /// Calls that are under way.
    calls: usize,
    /// By number, blocks that are written and not stable.
    unstable: BTreeMap<u64, Box<[u8; BLOCK]>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    stable: File,
    size: u64,
}

/// A device, mounted.
pub struct Device {
    shared: Arc<Shared>,
    session: Option<BackgroundSession>,
    _left: Undo,
}

impl Drop for Device {
    fn drop(&mut self) {
        self.set(Condition::Well);
        if let Some(Err(error)) = self.session.take().map(BackgroundSession::umount_and_join) {
            eprintln!("trials: unmount a virtual device: {error}");
        }
    }
}

impl Device {
    /// Makes a blank one: `folder/disk`, with what is stable in `folder.stable`.
    ///
    /// # Errors
    /// When the machine has no FUSE, or this is not root.
    pub fn mount(folder: &Path, size: u64) -> Result<Device, Failure> {
        let failed = || Failure::machine(format!("mount a virtual device at {}", folder.display()));
        std::fs::create_dir_all(folder).map_err(failed())?;
        let path = folder.with_extension("stable");
        let mut options = File::options();
        let stable = options.read(true).write(true).create_new(true).open(&path).map_err(failed())?;
        stable.set_len(size).map_err(failed())?;
        let state = State { condition: Condition::Well, calls: 0, unstable: BTreeMap::new() };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new(), stable, size });
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("drystone-trials".to_owned())];
        config.n_threads = Some(WORKERS);
        let files = Files { shared: Arc::clone(&shared) };
        let session = fuser::spawn_mount(files, folder, &config).map_err(failed())?;
        let left = Undo::by(&["umount", "--lazy", &folder.display().to_string()]);
        Ok(Device { shared, session: Some(session), _left: left })
    }

    /// From now on it is like this. Calls that hang are answered as it is then.
    pub fn set(&self, condition: Condition) {
        self.shared.state().condition = condition;
        self.shared.changed.notify_all();
    }

    /// Another one stands in its place: blank, and well.
    ///
    /// # Errors
    /// When the file with what is stable cannot be emptied.
    pub fn replace(&self) -> Result<(), Failure> {
        self.shared.state().unstable.clear();
        let emptied =
            self.shared.stable.set_len(0).and_then(|()| self.shared.stable.set_len(self.shared.size));
        emptied.map_err(Failure::machine("empty a virtual device"))?;
        self.set(Condition::Well);
        Ok(())
    }

    /// Power fails: each block that was not stable is there, is not, or is there in part. Gives how many there were. Who
    /// wrote to it has ended; what the kernel still had of it is waited for.
    ///
    /// # Errors
    /// When the file with what is stable cannot be written.
    pub fn lose_power(&self, random: &mut Random) -> Result<usize, Failure> {
        let mut state = self.shared.state();
        while state.calls > 0 {
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let lost = std::mem::take(&mut state.unstable);
        let failed = || Failure::machine("write to a virtual device");
        for (number, block) in &lost {
            let sectors = BLOCK / SECTOR;
            let kept = match random.below(3) {
                0 => 0,
                1 => sectors,
                _ => random.below(sectors as u64) as usize,
            };
            let at = number * BLOCK as u64;
            self.shared.stable.write_all_at(&block[..kept * SECTOR], at).map_err(failed())?;
        }
        Ok(lost.len())
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does a call, after as long as its condition says, if it lets it succeed.
    fn call<T>(&self, call: Call, work: impl FnOnce() -> io::Result<T>) -> Result<T, Errno> {
        self.state().calls += 1;
        let done = self.admit(call).and_then(|()| work().map_err(Errno::from));
        self.state().calls -= 1;
        self.changed.notify_all();
        done
    }

    /// Waits for as long as its condition says, and then whether a call succeeds.
    fn admit(&self, call: Call) -> Result<(), Errno> {
        let mut state = self.state();
        while state.condition == Condition::Hung {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let condition = state.condition;
        drop(state);
        match (condition, call) {
            (Condition::Dead, _) | (Condition::Unreadable, Call::Read) => Err(Errno::EIO),
            (Condition::Full, Call::Write | Call::Flush) => Err(Errno::ENOSPC),
            (Condition::Slow(by), _) | (Condition::Flushing(by), Call::Flush) => {
                std::thread::sleep(by);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let state = self.state();
        self.stable.read_exact_at(buffer, offset)?;
        for_each_block(offset, buffer.len(), |number, within, part| {
            if let Some(block) = state.unstable.get(&number) {
                buffer[part].copy_from_slice(&block[within]);
            }
            Ok(())
        })
    }

    fn write(&self, offset: u64, data: &[u8], is_stable: bool) -> io::Result<()> {
        let mut state = self.state();
        for_each_block(offset, data.len(), |number, within, part| {
            let at = number * BLOCK as u64;
            let mut block = match state.unstable.remove(&number) {
                Some(block) => block,
                None => {
                    let mut block = Box::new([0; BLOCK]);
                    if within.len() < BLOCK {
                        self.stable.read_exact_at(&mut block[..], at)?;
                    }
                    block
                }
            };
            block[within].copy_from_slice(&data[part]);
            if is_stable {
                return self.stable.write_all_at(&block[..], at);
            }
            state.unstable.insert(number, block);
            Ok(())
        })
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.state();
        for (number, block) in std::mem::take(&mut state.unstable) {
            self.stable.write_all_at(&block[..], number * BLOCK as u64)?;
        }
        Ok(())
    }

    fn attributes(&self, node: INodeNo) -> FileAttr {
        let is_file = node == FILE;
        FileAttr {
            ino: node,
            size: if is_file { self.size } else { 0 },
            blocks: self.size / SECTOR as u64,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if is_file { FileType::RegularFile } else { FileType::Directory },
            perm: if is_file { 0o600 } else { 0o700 },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: BLOCK as u32,
            flags: 0,
        }
    }
}

/// The blocks of a range: number, the bytes within the block, the bytes within the range.
fn for_each_block(
    offset: u64,
    length: usize,
    mut visit: impl FnMut(u64, std::ops::Range<usize>, std::ops::Range<usize>) -> io::Result<()>,
) -> io::Result<()> {
    let mut done = 0;
    while done < length {
        let at = offset + done as u64;
        let first = (at % BLOCK as u64) as usize;
        let count = (BLOCK - first).min(length - done);
        visit(at / BLOCK as u64, first..first + count, done..done + count)?;
        done += count;
    }
    Ok(())
}

/// A folder with one file.
struct Files {
    shared: Arc<Shared>,
}

impl Files {
    fn is_within(&self, offset: u64, length: u64) -> bool {
        offset.checked_add(length).is_some_and(|end| end <= self.shared.size)
    }
}

impl Filesystem for Files {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match parent == INodeNo::ROOT && name == NAME {
            true => reply.entry(&TTL, &self.shared.attributes(FILE), Generation(0)),
            false => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&TTL, &self.shared.attributes(node));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let size = u64::from(size).min(self.shared.size.saturating_sub(offset));
        let mut buffer = vec![0; size as usize];
        match self.shared.call(Call::Read, || self.shared.read(offset, &mut buffer)) {
            Ok(()) => reply.data(&buffer),
            Err(error) => reply.error(error),
        }
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        if !self.is_within(offset, data.len() as u64) {
            return reply.error(Errno::ENOSPC);
        }
        let is_stable = flags.0 & libc::O_DSYNC != 0;
        match self.shared.call(Call::Write, || self.shared.write(offset, data, is_stable)) {
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => reply.error(error),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok(); // It is asked for when a file is closed, and makes nothing stable.
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        match self.shared.call(Call::Flush, || self.shared.sync()) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error),
        }
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let wanted = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        if mode != wanted || !self.is_within(offset, length) {
            return reply.error(Errno::EOPNOTSUPP);
        }
        match self.shared.call(Call::Write, || self.shared.punch(offset, length)) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error),
        }
    }
}

impl Shared {
    /// What is freed reads as zeroes at once; that it does so is stable at once too, as no host relies on the opposite.
    fn punch(&self, offset: u64, length: u64) -> io::Result<()> {
        use std::os::fd::AsRawFd as _;
        let mut state = self.state();
        let whole = offset.div_ceil(BLOCK as u64)..(offset + length) / BLOCK as u64;
        if whole.start > whole.end {
            return Ok(()); // Less than a block: a device need not free it.
        }
        let kept = state.unstable.split_off(&whole.start);
        state.unstable.extend(kept.into_iter().filter(|(number, _)| !whole.contains(number)));
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let (start, count) = (whole.start * BLOCK as u64, (whole.end - whole.start) * BLOCK as u64);
        if count == 0 {
            return Ok(());
        }
        // SAFETY: the descriptor is open; the call takes no memory.
        match unsafe { libc::fallocate(self.stable.as_raw_fd(), mode, start as i64, count as i64) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared() -> Shared {
        let stable = tempfile::tempfile().expect("a file");
        stable.set_len(1 << 20).expect("sized");
        let state = State { condition: Condition::Well, calls: 0, unstable: BTreeMap::new() };
        Shared { state: Mutex::new(state), changed: Condvar::new(), stable, size: 1 << 20 }
    }

    #[test]
    fn what_is_synced_survives_and_what_is_not_may_be_torn() {
        let device = Device { shared: Arc::new(shared()), session: None, _left: Undo::by(&["true"]) };
        let shared = &device.shared;
        shared.write(0, &[1; 3 * BLOCK], false).expect("written");
        shared.sync().expect("synced");
        shared.write(SECTOR as u64, &[2; 2 * BLOCK], false).expect("written");
        shared.write(4 * BLOCK as u64, &[3; BLOCK], true).expect("written");
        let mut seen = vec![0; 5 * BLOCK];
        shared.read(0, &mut seen).expect("read");
        assert_eq!((seen[0], seen[SECTOR], seen[2 * BLOCK], seen[4 * BLOCK]), (1, 2, 2, 3));
        assert_eq!(device.lose_power(&mut Random::new(1)).expect("lost"), 3);
        shared.read(0, &mut seen).expect("read");
        assert_eq!((seen[0], seen[3 * BLOCK - 1], seen[4 * BLOCK]), (1, 1, 3), "what was stable stays");
        assert!(seen[..3 * BLOCK].chunks(SECTOR).all(|sector| sector.iter().all(|byte| *byte == sector[0])));
    }

    #[test]
    fn what_is_freed_reads_as_zeroes() {
        let shared = shared();
        shared.write(0, &[1; 4 * BLOCK], false).expect("written");
        shared.punch(BLOCK as u64 + 1, 2 * BLOCK as u64).expect("punched");
        let mut seen = vec![9; 4 * BLOCK];
        shared.read(0, &mut seen).expect("read");
        let firsts: Vec<u8> = seen.chunks(BLOCK).map(|block| block[0]).collect();
        assert_eq!(firsts, [1, 1, 0, 1]);
    }

    #[test]
    fn a_device_that_is_not_well_refuses_what_it_cannot_do() {
        let shared = shared();
        let admits = |condition| {
            shared.state().condition = condition;
            (shared.admit(Call::Read).is_ok(), shared.admit(Call::Write).is_ok())
        };
        assert_eq!(admits(Condition::Well), (true, true));
        assert_eq!(admits(Condition::Dead), (false, false));
        assert_eq!(admits(Condition::Unreadable), (false, true));
        assert_eq!(admits(Condition::Full), (true, false));
    }
}
