//! Work of the processor that a node asks for, done by two threads of the host: one does that for which a guest waits, the other one gives way to all others.
//!
//! A buffer stays with the engine's thread until the result is back. The worker sees its bytes alone, which nobody changes
//! meanwhile: that is what makes the `unsafe` blocks here sound.

use crate::mailbox::{Mailbox, Message};
use base::ComponentId;
use base::request::Buffers;
use diskgroup::{Computation, ComputeId, Task};
use node::GroupKey;
use reduction::{Choice, HostSample, Meter};
use slab::Slab;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// Works of all engines of the host that wait at most: each group has a few under way, and each engine one of a pass. A group's work
/// that finds no room is done at once by the engine itself; that of a pass waits.
const QUEUE_MAX: usize = 32;

/// How much the worker gives way that does what no guest waits for: half as nice as can be, so that it still gets on beside a full load.
const NICE: i32 = 10;

/// The bytes of a buffer that its engine keeps.
#[derive(Debug)]
struct Bytes {
    start: *const u8,
    len: usize,
}

// SAFETY: they are read alone, and their engine keeps the buffer until the worker has answered (`Computing`).
unsafe impl Send for Bytes {}

/// What the worker is handed.
#[derive(Debug)]
enum Work {
    /// For a group.
    Computation { computation: Computation, bytes: Vec<Bytes>, ticket: u32, mailbox: Mailbox },
    /// For the pass with that serial number.
    Blocks { serial: u64, batch: Batch, mailbox: Mailbox },
}

/// Blocks of a component that are to be measured, and the sample that takes the results. It goes to the worker and comes back: to keep
/// it within its bound may take milliseconds, which guests must not wait for.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) component: ComponentId,
    pub(crate) sample: Box<HostSample>,
    pub(crate) blocks: Vec<ChosenBlock>,
}

impl Batch {
    fn measure(mut self, meter: &mut Meter) -> Box<HostSample> {
        for ChosenBlock { choice, bytes } in self.blocks {
            self.sample.take(self.component, choice, meter.measure(&bytes, choice));
        }
        self.sample
    }
}

/// A block of a sample, with bytes of its own, so that no buffer is kept for long.
#[derive(Debug)]
pub(crate) struct ChosenBlock {
    pub(crate) choice: Choice,
    pub(crate) bytes: Box<[u8]>,
}

/// What an engine waits for.
#[derive(Debug)]
struct UnderWay {
    group: GroupKey,
    id: ComputeId,
    data: Buffers,
}

/// The works of one engine.
#[derive(Debug)]
pub(crate) struct Computing {
    under_way: Slab<UnderWay>,
    mailbox: Mailbox,
}

impl Computing {
    pub(crate) fn new(mailbox: Mailbox) -> Computing {
        Computing { under_way: Slab::new(), mailbox }
    }

    /// Hands work to the worker.
    ///
    /// # Errors
    /// Gives the work back if the worker has too much to do, or there is none.
    pub(crate) fn hand_out(&mut self, group: GroupKey, id: ComputeId, task: Task) -> Result<(), Task> {
        let found = if task.computation.is_urgent() { urgent_worker() } else { worker() };
        let Some(worker) = found else { return Err(task) };
        let bytes =
            task.data.iter().map(|buffer| Bytes { start: buffer.as_ptr(), len: buffer.len() }).collect();
        let entry = self.under_way.vacant_entry();
        let (computation, ticket) = (task.computation, entry.key() as u32);
        let work = Work::Computation { computation, bytes, ticket, mailbox: self.mailbox.clone() };
        match worker.try_send(work) {
            Ok(()) => {
                entry.insert(UnderWay { group, id, data: task.data });
                Ok(())
            }
            Err(TrySendError::Full(work) | TrySendError::Disconnected(work)) => {
                let Work::Computation { computation, .. } = work else {
                    unreachable!("that work was handed in")
                };
                Err(Task { computation, data: task.data })
            }
        }
    }

    /// Whether blocks can be measured: there is a thread for it.
    pub(crate) fn can_measure() -> bool {
        worker().is_some()
    }

    /// Has the blocks of a sample measured, for the pass with that serial number.
    ///
    /// # Errors
    /// Gives them back if the worker has too much to do, or there is none.
    pub(crate) fn measure(&self, serial: u64, batch: Batch) -> Result<(), Box<Batch>> {
        let Some(worker) = worker() else { return Err(Box::new(batch)) };
        let work = Work::Blocks { serial, batch, mailbox: self.mailbox.clone() };
        worker.try_send(work).map_err(|refused| match refused {
            TrySendError::Full(Work::Blocks { batch, .. })
            | TrySendError::Disconnected(Work::Blocks { batch, .. }) => Box::new(batch),
            TrySendError::Full(Work::Computation { .. })
            | TrySendError::Disconnected(Work::Computation { .. }) => unreachable!("it was not handed in"),
        })
    }

    /// Work that was handed out is done: gives its buffer back, and says which group wanted it and by which id.
    pub(crate) fn ended(&mut self, ticket: u32) -> (GroupKey, ComputeId) {
        let UnderWay { group, id, data } = self.under_way.remove(ticket as usize);
        drop(data);
        (group, id)
    }
}

impl Drop for Computing {
    fn drop(&mut self) {
        // The worker may still read these; the process is about to end.
        self.under_way.drain().for_each(|work| std::mem::forget(work.data));
    }
}

/// The way to the host's worker that gives way to others, which begins with the first work; nothing if it could not be started.
fn worker() -> Option<&'static SyncSender<Work>> {
    static WORKER: OnceLock<Option<SyncSender<Work>>> = OnceLock::new();
    WORKER.get_or_init(|| start("compute", NICE)).as_ref()
}

/// The way to the one that does what guests wait for.
fn urgent_worker() -> Option<&'static SyncSender<Work>> {
    static WORKER: OnceLock<Option<SyncSender<Work>>> = OnceLock::new();
    WORKER.get_or_init(|| start("unpack", 0)).as_ref()
}

fn start(name: &str, nice: i32) -> Option<SyncSender<Work>> {
    let (sender, receiver) = sync_channel(QUEUE_MAX);
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || work(&receiver, nice));
    match thread {
        Ok(_) => Some(sender),
        Err(error) => {
            tracing::warn!("engines do the work of thread {name} themselves: {error}");
            None
        }
    }
}

fn work(receiver: &Receiver<Work>, nice: i32) {
    if nice > 0 {
        // SAFETY: it changes nothing but how this thread is scheduled. Where it fails, the worker gives way no more than others.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
    }
    let mut meter = None;
    for work in receiver {
        // An engine that has ended waits for nothing.
        let _ = match work {
            Work::Computation { computation, bytes, ticket, mailbox } => {
                // SAFETY: the engine keeps the buffer, and nobody changes its bytes, until it has the answer.
                let slice = |bytes: &Bytes| unsafe { std::slice::from_raw_parts(bytes.start, bytes.len) };
                let data: Vec<&[u8]> = bytes.iter().map(slice).collect();
                mailbox.send(Message::Computed(ticket, computation.perform(&data)))
            }
            Work::Blocks { serial, batch, mailbox } => {
                let meter = meter.get_or_insert_with(Meter::default);
                mailbox.send(Message::Measured(serial, batch.measure(meter)))
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Pool;
    use std::time::Duration;

    #[test]
    fn work_is_done_elsewhere_and_its_buffer_is_kept_until_the_result_is_taken() {
        let (mailbox, inbox) = Mailbox::new();
        let mut computing = Computing::new(mailbox);
        let pool = Pool::new(1 << 20);
        let data = pool.take_zeroed(8192).expect("a fresh pool has a MiB");
        let task = Task { computation: Computation::Checksums, data: [data].into_iter().collect() };
        let expected = task.perform();
        computing.hand_out(GroupKey(0), ComputeId(7), task).expect("nothing else is asked for");
        let Some(Message::Computed(ticket, computed)) = inbox.wait(Duration::from_secs(60)) else {
            panic!("the worker answers")
        };
        assert_eq!((computed, pool.bytes_used()), (expected, 8192));
        assert_eq!(computing.ended(ticket), (GroupKey(0), ComputeId(7)));
        assert_eq!(pool.bytes_used(), 0);
    }

    #[test]
    fn a_sample_goes_to_the_worker_and_comes_back_with_the_blocks() {
        let (mailbox, inbox) = Mailbox::new();
        let computing = Computing::new(mailbox);
        let rates =
            reduction::Rates { compression: reduction::Rate::ALL, deduplication: reduction::Rate::ALL };
        let mut sample = Box::new(HostSample::new(rates));
        let component = ComponentId(3);
        let bytes: Box<[u8]> = vec![7; 4096].into();
        let choices = sample.take_census(component, 0, &[Some(base::checksum::crc32c(&bytes))]);
        let blocks = vec![ChosenBlock { choice: choices[0], bytes }];
        assert!(
            computing.measure(8, Batch { component, sample, blocks }).is_ok(),
            "nothing else is asked for"
        );
        let Some(Message::Measured(8, sample)) = inbox.wait(Duration::from_secs(60)) else {
            panic!("the worker answers")
        };
        let found = &sample.components[&component];
        assert_eq!((found.sizes.count(), found.contents.len(), found.changed), (1, 1, 0));
    }
}
