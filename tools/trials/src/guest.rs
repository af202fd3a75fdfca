//! What runs inside the virtual machine, as its first and only process: this program once more, under the name `/init`.
//!
//! Writes stamped blocks to the disk past all caches, reads them and compares, and tells on the console how it goes. Told
//! `finish` there, it reads everything back, says what it found, and turns the machine off. It knows the disk as the only one
//! who writes on it, so each block has one value that is right.

use crate::stamp::{BLOCK, Stamp, WriteNumber};
use base::Random;
use base::checksum::crc32c;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, BufRead};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The name under which the kernel starts it.
pub const NAME: &str = "/init";
/// The modules that a disk needs, in order, below `kernel/drivers` of the kernel's own.
pub const MODULES: [&str; 6] = [
    "virtio/virtio_ring.ko",
    "virtio/virtio.ko",
    "virtio/virtio_pci_modern_dev.ko",
    "virtio/virtio_pci_legacy_dev.ko",
    "virtio/virtio_pci.ko",
    "block/virtio_blk.ko",
];
/// The word of the kernel's command line with the campaign.
pub const CAMPAIGN: &str = "trial.campaign=";
/// What all lines begin with.
pub const SAYS: &str = "guest:";
/// The client's number in stamps.
pub const CLIENT: u32 = 1000;

const DISK: &str = "/dev/vda";
/// Writers and readers at once.
const THREADS: u64 = 8;
/// Blocks of the longest I/O; each thread has every eighth run of so many blocks for itself.
const RUN: u64 = 16;
/// How often it tells how it goes.
const TELL: Duration = Duration::from_millis(250);

/// What is counted.
#[derive(Default)]
struct Counters {
    writes: AtomicU64,
    reads: AtomicU64,
    bad: AtomicU64,
    longest_us: AtomicU64,
    is_over: AtomicBool,
}

/// Memory as direct I/O needs it: aligned to blocks.
struct Aligned {
    layout: Layout,
    bytes: *mut u8,
}

impl Aligned {
    fn new() -> Aligned {
        let layout = Layout::from_size_align(RUN as usize * BLOCK, BLOCK).expect("a power of two");
        // SAFETY: the layout has a size.
        let bytes = unsafe { alloc_zeroed(layout) };
        assert!(!bytes.is_null(), "the guest has memory for its buffers");
        Aligned { layout, bytes }
    }

    fn as_mut(&mut self) -> &mut [u8] {
        // SAFETY: `bytes` are as many as the layout says, initialised, and borrowed as `self` is.
        unsafe { std::slice::from_raw_parts_mut(self.bytes, self.layout.size()) }
    }
}

impl Drop for Aligned {
    fn drop(&mut self) {
        // SAFETY: allocated with the same layout, once.
        unsafe { dealloc(self.bytes, self.layout) }
    }
}

/// Runs as the first process of a guest; never returns.
pub fn run() -> ! {
    if let Err(error) = serve() {
        println!("{SAYS} failed {error}");
    }
    // SAFETY: plain calls; the second does not return when the machine can be turned off.
    unsafe {
        libc::sync();
        libc::reboot(libc::RB_POWER_OFF);
    }
    loop {
        std::thread::park();
    }
}

/// Adds what was tried to an error.
fn trying(what: &str) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::other(format!("{what}: {error}"))
}

fn serve() -> io::Result<()> {
    for (kind, place) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")] {
        mount(kind, place).map_err(trying(&format!("mount {place}")))?;
    }
    for (index, name) in MODULES.iter().enumerate() {
        load_module(&format!("/modules/{index}")).map_err(trying(&format!("load {name}")))?;
    }
    let line = fs::read_to_string("/proc/cmdline")?;
    let campaign = line.split_whitespace().find_map(|word| word.strip_prefix(CAMPAIGN)?.parse().ok());
    let campaign = campaign.ok_or_else(|| io::Error::other("the command line names no campaign"))?;
    let disk = open_disk().map_err(trying(&format!("open {DISK}")))?;
    let blocks = fs::read_to_string("/sys/block/vda/size").map_err(trying("read the size of the disk"))?;
    let sectors: u64 = blocks.trim().parse().map_err(io::Error::other)?;
    let blocks = sectors * 512 / BLOCK as u64;
    println!("{SAYS} begins with {blocks} blocks");
    work(&disk, blocks, campaign)
}

fn mount(kind: &str, place: &str) -> io::Result<()> {
    let text = |text: &str| CString::new(text).map_err(io::Error::other);
    let (kind, place) = (text(kind)?, text(place)?);
    // SAFETY: all pointers are of strings that live through the call, or null where the kernel allows it.
    let done = unsafe { libc::mount(kind.as_ptr(), place.as_ptr(), kind.as_ptr(), 0, std::ptr::null()) };
    // The kernel may have mounted it already.
    match done == 0 || io::Error::last_os_error().raw_os_error() == Some(libc::EBUSY) {
        true => Ok(()),
        false => Err(io::Error::last_os_error()),
    }
}

fn load_module(path: &str) -> io::Result<()> {
    let file = File::open(path)?;
    // SAFETY: a descriptor that is open and an empty string.
    match unsafe { libc::syscall(libc::SYS_finit_module, file.as_raw_fd(), c"".as_ptr(), 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The disk appears a moment after its module.
fn open_disk() -> io::Result<File> {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let opened = File::options().read(true).write(true).custom_flags(libc::O_DIRECT).open(DISK);
        if opened.is_ok() || Instant::now() >= until {
            return opened;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn work(disk: &File, blocks: u64, campaign: u64) -> io::Result<()> {
    let counters = Counters::default();
    let tables = std::thread::scope(|scope| -> io::Result<Vec<Vec<WriteNumber>>> {
        let mut threads = Vec::new();
        for thread in 0..THREADS {
            let counters = &counters;
            threads.push(scope.spawn(move || write_and_read(disk, blocks, campaign, thread, counters)));
        }
        scope.spawn(|| {
            while !counters.is_over.load(Ordering::Relaxed) {
                std::thread::sleep(TELL);
                tell("runs", &counters);
            }
        });
        for line in io::stdin().lock().lines() {
            if line?.trim() == "finish" {
                break;
            }
        }
        counters.is_over.store(true, Ordering::Relaxed);
        threads.into_iter().map(|thread| thread.join().expect("threads do not panic")).collect()
    })?;
    let mut table = vec![0; blocks as usize];
    for (thread, own) in (0..).zip(&tables) {
        own.iter()
            .enumerate()
            .filter(|(block, _)| owner(*block as u64) == thread)
            .for_each(|(block, &write)| table[block] = write);
    }
    let mut buffer = Aligned::new();
    for first in (0..blocks).step_by(RUN as usize) {
        let count = RUN.min(blocks - first);
        read(disk, first..first + count, campaign, &table, &mut buffer, &counters)?;
    }
    tell("done", &counters);
    println!("{SAYS} table {:08x}", table_checksum(&table));
    Ok(())
}

/// What the inside and the outside compare: which write stands in each block.
pub fn table_checksum(table: &[WriteNumber]) -> u32 {
    crc32c(&table.iter().flat_map(|write| write.to_le_bytes()).collect::<Vec<u8>>())
}

fn owner(block: u64) -> u64 {
    block / RUN % THREADS
}

fn tell(what: &str, counters: &Counters) {
    let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    println!(
        "{SAYS} {what} writes={} reads={} bad={} longest_us={}",
        get(&counters.writes),
        get(&counters.reads),
        get(&counters.bad),
        counters.longest_us.swap(0, Ordering::Relaxed)
    );
}

/// One thread; gives which write stands in each block that is its own.
fn write_and_read(
    disk: &File,
    blocks: u64,
    campaign: u64,
    thread: u64,
    counters: &Counters,
) -> io::Result<Vec<WriteNumber>> {
    let mut random = Random::new(campaign ^ thread);
    let mut table = vec![0; blocks as usize];
    let mut buffer = Aligned::new();
    let runs = blocks / (RUN * THREADS);
    let mut next: WriteNumber = thread + 1;
    while !counters.is_over.load(Ordering::Relaxed) {
        let run = (random.below(runs) * THREADS + thread) * RUN;
        let length = 1 + random.below(RUN);
        let first = run + random.below(RUN - length + 1);
        let range = first..first + length;
        if random.chance(1, 3) {
            read(disk, range, campaign, &table, &mut buffer, counters)?;
            continue;
        }
        let bytes = &mut buffer.as_mut()[..length as usize * BLOCK];
        for (block, bytes) in range.zip(bytes.chunks_exact_mut(BLOCK)) {
            Stamp { block, write: next, client: CLIENT, campaign }.fill(bytes);
            table[block as usize] = next;
        }
        timed(counters, || disk.write_all_at(bytes, first * BLOCK as u64))?;
        counters.writes.fetch_add(1, Ordering::Relaxed);
        next += THREADS;
    }
    Ok(table)
}

fn read(
    disk: &File,
    blocks: std::ops::Range<u64>,
    campaign: u64,
    table: &[WriteNumber],
    buffer: &mut Aligned,
    counters: &Counters,
) -> io::Result<()> {
    let bytes = &mut buffer.as_mut()[..(blocks.end - blocks.start) as usize * BLOCK];
    timed(counters, || disk.read_exact_at(bytes, blocks.start * BLOCK as u64))?;
    for (block, bytes) in blocks.zip(bytes.chunks_exact(BLOCK)) {
        let expected = table[block as usize];
        let seen = Stamp::read(bytes, block, campaign);
        if seen != Ok(expected) && counters.bad.fetch_add(1, Ordering::Relaxed) < 20 {
            println!("{SAYS} bad block {block}: expected write {expected}, found {seen:?}");
        }
    }
    counters.reads.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

fn timed<T>(counters: &Counters, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let began = Instant::now();
    let done = work();
    counters.longest_us.fetch_max(began.elapsed().as_micros() as u64, Ordering::Relaxed);
    done
}
