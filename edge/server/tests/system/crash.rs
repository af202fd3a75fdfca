//! `kill -9` at random moments: every acknowledged write is there afterwards, no block is torn, and what was once read
//! stays.
//!
//! A recorder keeps many requests under way that never touch the same block at once. So each block has one content that
//! must be there (what was acknowledged last) and at most one more that may be (what was under way).
//! `DRYSTONE_CRASH_KILLS` makes it longer; `DRYSTONE_CRASH_SEED` plays the choices of a run again, though not the
//! moments of its kills.

use super::devices::LoopDevice;
use super::host::{Shape, Site};
use super::nbd::{Client, Request};
use super::tools::{seed, setting, sparse_file, text};
use base::Random;
use base::units::{BLOCK_SIZE, MIB, SECTOR_SIZE};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Size of the disk: small, so that blocks are written over and over.
const DISK_SIZE: u64 = 48 * MIB;
/// Requests under way.
const DEPTH: usize = 16;
/// Longest time between a start and its kill.
const BURST: Duration = Duration::from_millis(400);
const SECTORS_PER_BLOCK: usize = (BLOCK_SIZE / SECTOR_SIZE) as usize;

/// The content of a block: for each sector the number of the write that it comes from; zero: zeroes.
pub type Content = [u32; SECTORS_PER_BLOCK];

/// A change of a block, and when it was under way.
#[derive(Debug, Clone, Copy)]
pub struct Change {
    /// Just before it was sent.
    pub sent: Instant,
    /// Just after its answer came.
    pub answered: Option<Instant>,
    /// What it makes of the block.
    pub content: Content,
}

/// By block: its changes in their order.
pub type Changes = BTreeMap<usize, Vec<Change>>;

/// What the disk must hold.
pub struct Recorder {
    random: Random,
    /// By block: what was acknowledged, or read after a crash.
    pub known: Vec<Content>,
    /// By block: what a request under way may have made of it.
    perhaps: BTreeMap<usize, Content>,
    /// The changes under way since [`Recorder::watch`], and those that began since; nothing while nobody watches.
    watched: Option<Changes>,
    /// By cookie: the blocks of a request under way.
    under_way: BTreeMap<u64, Vec<usize>>,
    /// Reads under way, by cookie: the first block.
    reads: BTreeMap<u64, usize>,
    /// The number of the next write.
    pub next_write: u32,
    /// Blocks of changes that were acknowledged.
    pub acknowledged: u64,
}

/// Bytes that no compressor makes smaller, of which each sector of a write has a piece.
fn noise() -> &'static [u8] {
    static NOISE: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(|| {
        let mut random = Random::new(1);
        (0..1 << 13).flat_map(|_| random.bits().to_le_bytes()).collect()
    });
    &NOISE
}

/// The bytes of one sector: the place and the write that they come from, then a pattern that depends on both. Two of three writes
/// have one that can be compressed, to different degrees.
fn sector_bytes(sector: u64, write: u32, out: &mut [u8]) {
    if write == 0 {
        return out.fill(0);
    }
    out[..8].copy_from_slice(&sector.to_le_bytes());
    out[8..12].copy_from_slice(&write.to_le_bytes());
    let hash = (sector << 32 | u64::from(write)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let noise_len = [out.len() - 12, 150, 0][write as usize % 3];
    let (noise_part, rest) = out[12..].split_at_mut(noise_len);
    let at = (hash >> 40) as usize % (noise().len() - SECTOR_SIZE as usize);
    noise_part.copy_from_slice(&noise()[at..at + noise_len]);
    rest.fill((hash >> 32) as u8 | 1);
}

/// Reads a block's content back from its bytes, or says what is wrong with it.
pub fn content_of(block: usize, bytes: &[u8]) -> Result<Content, String> {
    let mut content = [0; SECTORS_PER_BLOCK];
    for (index, found) in bytes.chunks(SECTOR_SIZE as usize).enumerate() {
        let sector = (block * SECTORS_PER_BLOCK + index) as u64;
        let write = u32::from_le_bytes(found[8..12].try_into().expect("four bytes"));
        let mut expected = [0; SECTOR_SIZE as usize];
        sector_bytes(sector, write, &mut expected);
        if found != expected {
            let place = u64::from_le_bytes(found[..8].try_into().expect("eight bytes"));
            return Err(format!(
                "block {block} sector {index}: stamped sector {place}, write {write}, or garbage"
            ));
        }
        content[index] = write;
    }
    Ok(content)
}

impl Recorder {
    /// Of a new disk of so many bytes.
    pub fn new(seed: u64, size: u64) -> Recorder {
        Recorder::of(seed, vec![[0; SECTORS_PER_BLOCK]; (size / BLOCK_SIZE) as usize])
    }

    /// Of a disk that holds this.
    pub fn of(seed: u64, known: Vec<Content>) -> Recorder {
        Recorder {
            random: Random::new(seed),
            known,
            perhaps: BTreeMap::new(),
            watched: None,
            under_way: BTreeMap::new(),
            reads: BTreeMap::new(),
            next_write: 1,
            acknowledged: 0,
        }
    }

    /// A run of blocks that no request under way touches: mostly short and in a part of the disk, some whole extents.
    fn free_blocks(&mut self) -> std::ops::Range<usize> {
        loop {
            let count = self.known.len() as u64;
            let len = match self.random.below(40) {
                0 => MIB / BLOCK_SIZE,
                1..4 => self.random.range(16..200),
                4..12 => self.random.range(2..16),
                _ => 1,
            };
            let reach = if self.random.chance(1, 2) { count / 8 } else { count };
            let start = self.random.below(reach.max(len + 1) - len);
            let start = if len == MIB / BLOCK_SIZE { start / len * len } else { start };
            let blocks = start as usize..(start + len) as usize;
            if self.perhaps.range(blocks.clone()).next().is_none() {
                return blocks;
            }
        }
    }

    /// A new request, recorded as under way once it is sent.
    fn next_request(&mut self) -> (Request, Vec<(usize, Content)>) {
        let blocks = self.free_blocks();
        let offset = blocks.start as u64 * BLOCK_SIZE;
        let len = (blocks.len() as u64 * BLOCK_SIZE) as u32;
        let (request, content) = match self.random.below(20) {
            0 => (Request::Trim { offset, len }, 0),
            1 => (Request::Zero { offset, len }, 0),
            2 => return (Request::Flush, Vec::new()),
            3..6 => return self.sectors(blocks.start),
            6..8 => {
                // Recorded as a write of what is there: nothing else touches these blocks meanwhile.
                let unchanged = blocks.map(|block| (block, self.known[block])).collect();
                return (Request::Read { offset, len }, unchanged);
            }
            _ => {
                let write = self.next_write;
                self.next_write += 1;
                let mut data = vec![0; len as usize];
                for (index, bytes) in data.chunks_mut(SECTOR_SIZE as usize).enumerate() {
                    sector_bytes(offset / SECTOR_SIZE + index as u64, write, bytes);
                }
                (Request::Write { offset, data }, write)
            }
        };
        (request, blocks.map(|block| (block, [content; SECTORS_PER_BLOCK])).collect())
    }

    /// A write of some sectors of one block.
    fn sectors(&mut self, block: usize) -> (Request, Vec<(usize, Content)>) {
        let write = self.next_write;
        self.next_write += 1;
        let first = self.random.below(SECTORS_PER_BLOCK as u64) as usize;
        let len = self.random.range(1..(SECTORS_PER_BLOCK - first) as u64 + 1) as usize;
        let mut content = self.known[block];
        content[first..first + len].fill(write);
        let sector = (block * SECTORS_PER_BLOCK + first) as u64;
        let mut data = vec![0; len * SECTOR_SIZE as usize];
        for (index, bytes) in data.chunks_mut(SECTOR_SIZE as usize).enumerate() {
            sector_bytes(sector + index as u64, write, bytes);
        }
        (Request::Write { offset: sector * SECTOR_SIZE, data }, vec![(block, content)])
    }

    /// From now on notes which changes are under way.
    pub fn watch(&mut self) {
        let sent = Instant::now();
        let change = |(block, content): (&usize, &Content)| {
            (*block, vec![Change { sent, answered: None, content: *content }])
        };
        self.watched = Some(self.perhaps.iter().map(change).collect());
    }

    /// What was noted since [`Recorder::watch`]. Nothing is noted any more.
    pub fn watched(&mut self) -> Changes {
        self.watched.take().unwrap_or_default()
    }

    /// Keeps the server busy until it is gone. Asks `between` before each request.
    pub fn burst(&mut self, client: &mut Client, mut between: impl FnMut(&mut Recorder)) {
        loop {
            while client.outstanding() < DEPTH {
                between(self);
                let (request, effects) = self.next_request();
                // A request that was cut off may still have been taken.
                let blocks = effects.iter().map(|(block, _)| *block).collect();
                if let Some(watched) =
                    self.watched.as_mut().filter(|_| !matches!(request, Request::Read { .. }))
                {
                    let sent = Instant::now();
                    for (block, content) in &effects {
                        let change = Change { sent, answered: None, content: *content };
                        watched.entry(*block).or_default().push(change);
                    }
                }
                self.perhaps.extend(effects);
                let Ok(cookie) = client.send(&request) else { return };
                self.under_way.insert(cookie, blocks);
                if let Request::Read { offset, .. } = request {
                    self.reads.insert(cookie, (offset / BLOCK_SIZE) as usize);
                }
            }
            let Ok(reply) = client.receive() else { return };
            assert_eq!(reply.error, 0, "request {} failed", reply.cookie);
            let blocks = self.under_way.remove(&reply.cookie).expect("it was under way");
            match self.reads.remove(&reply.cookie) {
                Some(first) => self.check_read(first, &reply.data),
                None => {
                    self.acknowledged += blocks.len() as u64;
                    self.note_answer(&blocks);
                }
            }
            for block in blocks {
                self.known[block] = self.perhaps.remove(&block).expect("its effect was recorded");
            }
        }
    }

    fn note_answer(&mut self, blocks: &[usize]) {
        let Some(watched) = self.watched.as_mut() else { return };
        let answered = Some(Instant::now());
        for block in blocks {
            // What was sent before anybody watched is there, too.
            let changes = watched.get_mut(block).expect("changes under way are noted");
            changes.last_mut().expect("one at least").answered = answered;
        }
    }

    /// What is read beside writes elsewhere is what was acknowledged last.
    fn check_read(&self, first: usize, data: &[u8]) {
        for (index, bytes) in data.chunks(BLOCK_SIZE as usize).enumerate() {
            let block = first + index;
            let found =
                content_of(block, bytes).unwrap_or_else(|error| panic!("read beside writes: {error}"));
            assert_eq!(found, self.known[block], "read beside writes: block {block}");
        }
    }

    /// Reads the whole disk: each block is as known, or as a request made it that was cut off.
    pub fn read_back(&mut self, client: &mut Client, after: &str) {
        let step = MIB as usize / BLOCK_SIZE as usize;
        for first in (0..self.known.len()).step_by(step) {
            let data = client.read(first as u64 * BLOCK_SIZE, MIB as u32);
            let data = data.unwrap_or_else(|error| panic!("{after}: read at block {first}: error {error}"));
            for (index, bytes) in data.chunks(BLOCK_SIZE as usize).enumerate() {
                let block = first + index;
                let found = content_of(block, bytes).unwrap_or_else(|error| panic!("{after}: {error}"));
                let known = self.known[block];
                let perhaps = self.perhaps.get(&block);
                assert!(
                    found == known || perhaps == Some(&found),
                    "{after}: block {block} holds {found:?}; acknowledged is {known:?}, under way was {perhaps:?}"
                );
                self.known[block] = found;
            }
        }
        self.perhaps.clear();
        self.under_way.clear();
        self.reads.clear();
    }
}

fn survives_kills(shape: &Shape) {
    let kills = setting("DRYSTONE_CRASH_KILLS", 50);
    let site = Site::new(shape);
    let mut server = site.start();
    site.ask(&["disk", "create", "web", &DISK_SIZE.to_string()]);
    let mut recorder = Recorder::new(seed("DRYSTONE_CRASH_SEED"), DISK_SIZE);
    for kill in 1..=kills {
        let wait = BURST.mul_f64(recorder.random.below(1000) as f64 / 1000.0);
        let mut client = site.attach("web");
        let killer = server.kill_after(wait);
        recorder.burst(&mut client, |_| {});
        server.killed(killer);
        server = site.start();
        recorder.read_back(&mut site.attach("web"), &format!("after kill {kill}"));
        // What the first start made of the crash must hold after an orderly stop, too.
        if recorder.random.chance(1, 8) {
            server.stop();
            server = site.start();
            recorder.read_back(&mut site.attach("web"), &format!("after kill {kill} and an orderly stop"));
        }
    }
    server.stop();
    println!("{kills} kills, {} blocks acknowledged", recorder.acknowledged);
    assert!(recorder.acknowledged > kills * 20, "the recorder hardly wrote: {}", recorder.acknowledged);
}

#[test]
fn acknowledged_writes_survive_kills_with_log_and_data_on_files_of_their_own() {
    survives_kills(&Shape::Two { size_mib: 96 });
}

#[test]
fn acknowledged_writes_survive_kills_with_all_in_one_file() {
    survives_kills(&Shape::One { size_mib: 128 });
}

/// Flushes that a block device has done, as the kernel counts them (Documentation/block/stat.rst).
fn flushes(device: &LoopDevice) -> u64 {
    let name = device.path.file_name().expect("it has a name").to_str().expect("plain text");
    let stat = std::fs::read_to_string(format!("/sys/block/{name}/stat")).expect("the kernel counts");
    stat.split_whitespace().nth(15).expect("flushes").parse().expect("a number")
}

/// A killed process leaves its writes with the kernel, so only the device can tell whether they were made stable.
#[test]
fn what_is_acknowledged_was_flushed_to_the_block_device_first() {
    let folder = tempfile::Builder::new().prefix("drystone-").tempdir().expect("room for a folder");
    let file = folder.path().join("device");
    sparse_file(&file, 256 * MIB);
    let device = LoopDevice::attach(&file, &[]);
    let mut site = Site::bare();
    let path = text(&device.path);
    site.add_config(&format!("[[group]]\nlog = \"{path}\"\nlog_size = \"32MiB\"\ncreate = \"if-blank\"\n"));
    let server = site.start();
    site.ask(&["disk", "create", "web", "64MiB", "--policy", "single,stripes=1"]);
    let mut client = site.attach("web");
    for number in 0..20 {
        let before = flushes(&device);
        client.write(number * BLOCK_SIZE, &[number as u8; BLOCK_SIZE as usize]).expect("it writes");
        assert!(flushes(&device) > before, "write {number} was acknowledged and not flushed");
    }
    drop(client);
    server.stop();
}
