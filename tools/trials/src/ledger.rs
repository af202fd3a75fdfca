//! The recorder that all clients of a trial share, with its clock and what was found.

use crate::recorder::{Moment, OperationId, Recorder};
use crate::stamp::{BLOCK, Stamp, WriteNumber};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Most findings that are kept word for word: one cause breaks many blocks.
const FINDINGS_MAX: usize = 20;

/// What all clients have written and read.
#[derive(Debug)]
pub struct Ledger {
    began: Instant,
    campaign: u64,
    recorder: Mutex<Recorder>,
    findings: Mutex<Findings>,
}

/// What was found wrong.
#[derive(Debug, Clone, Default)]
struct Findings {
    count: usize,
    texts: Vec<String>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ledger {
    /// For an area of so many blocks; `campaign` tells its data from those of others.
    pub fn new(blocks: u64, campaign: u64) -> Ledger {
        Ledger {
            began: Instant::now(),
            campaign,
            recorder: Mutex::new(Recorder::new(blocks)),
            findings: Mutex::default(),
        }
    }

    /// What tells this campaign's data from those of others.
    pub fn campaign(&self) -> u64 {
        self.campaign
    }

    /// Now.
    pub fn now(&self) -> Moment {
        self.began.elapsed().as_nanos() as Moment
    }

    /// That moment.
    pub fn at(&self, moment: Moment) -> Instant {
        self.began + Duration::from_nanos(moment)
    }

    /// Blocks of the area.
    pub fn block_count(&self) -> u64 {
        locked(&self.recorder).block_count()
    }

    /// A write is about to be sent: the operation and its data.
    pub fn begin_write(&self, client: u32, blocks: Range<u64>) -> (OperationId, Moment, Vec<u8>) {
        let (id, now, write) = {
            let mut recorder = locked(&self.recorder);
            // Within the lock, so that operations are in the order of their moments.
            let now = self.now();
            let (id, write) = recorder.begin_write(now, client, blocks.clone());
            (id, now, write)
        };
        let mut data = vec![0; (blocks.end - blocks.start) as usize * BLOCK];
        for (block, bytes) in blocks.zip(data.chunks_exact_mut(BLOCK)) {
            Stamp { block, write, client, campaign: self.campaign }.fill(bytes);
        }
        (id, now, data)
    }

    /// A read is about to be sent.
    pub fn begin_read(&self, blocks: Range<u64>) -> (OperationId, Moment) {
        let mut recorder = locked(&self.recorder);
        let now = self.now();
        (recorder.begin_read(now, blocks), now)
    }

    /// A write was acknowledged at that moment.
    pub fn end_write(&self, now: Moment, client: u32, id: OperationId) {
        let ended = locked(&self.recorder).end_write(now, id);
        if let Err(violation) = ended {
            self.find(format!("client {client}, at the end of a write: {violation}"));
        }
    }

    /// A read brought these bytes; gives the writes that they are of, if all make sense.
    pub fn end_read(
        &self,
        now: Moment,
        client: u32,
        id: OperationId,
        first: u64,
        data: &[u8],
    ) -> Option<Vec<WriteNumber>> {
        let mut seen = Vec::with_capacity(data.len() / BLOCK);
        for (block, bytes) in (first..).zip(data.chunks_exact(BLOCK)) {
            match Stamp::read(bytes, block, self.campaign) {
                Ok(write) => seen.push(write),
                Err(error) => {
                    locked(&self.recorder).lose(id);
                    self.find(format!(
                        "client {client} read block {block} at {:.3} ms: {error}",
                        now as f64 / 1e6
                    ));
                    return None;
                }
            }
        }
        let ended = locked(&self.recorder).end_read(now, id, &seen);
        if let Err(violation) = ended {
            self.find(format!("client {client}: {violation}"));
        }
        Some(seen)
    }

    /// The operation will never be answered.
    pub fn lose(&self, id: OperationId) {
        locked(&self.recorder).lose(id);
    }

    /// All is quiet and every block was read back: what was not seen then is void.
    pub fn settle(&self, seen: &[WriteNumber]) {
        let now = self.now();
        let mut recorder = locked(&self.recorder);
        for (block, &write) in (0..).zip(seen) {
            recorder.settle(now, block, write);
        }
    }

    /// Nothing of these blocks was under way, and a trim of them was acknowledged: they hold zeroes and nothing else.
    pub fn trimmed(&self, blocks: Range<u64>) {
        let mut recorder = locked(&self.recorder);
        let now = self.now();
        recorder.trimmed(now, blocks);
    }

    fn find(&self, text: String) {
        let mut findings = locked(&self.findings);
        findings.count += 1;
        if findings.texts.len() < FINDINGS_MAX {
            eprintln!("trials: {text}");
            findings.texts.push(text);
        }
    }

    /// How many findings there are, and the first of them.
    pub fn findings(&self) -> (usize, Vec<String>) {
        let findings = locked(&self.findings).clone();
        (findings.count, findings.texts)
    }
}
