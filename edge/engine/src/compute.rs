//! Work of the processor that a node asks for, done by one thread of the host that gives way to all others.
//!
//! A buffer stays with the engine's thread until the result is back. The worker sees its bytes alone, which nobody changes
//! meanwhile: that is what makes the `unsafe` blocks here sound.

use crate::mailbox::{Mailbox, Message};
use base::Buffer;
use diskgroup::{Computation, ComputeId, Task};
use node::GroupKey;
use slab::Slab;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Works of all engines of the host that wait at most: each group has one under way. What finds no room is done at once by the
/// engine itself.
const QUEUE_MAX: usize = 16;

/// How much the worker gives way: half as nice as can be, so that it still gets on beside a full load.
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
struct Work {
    computation: Computation,
    bytes: Bytes,
    ticket: u32,
    mailbox: Mailbox,
}

/// What an engine waits for.
#[derive(Debug)]
struct UnderWay {
    group: GroupKey,
    id: ComputeId,
    buffer: Buffer,
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
        let Some(worker) = worker() else { return Err(task) };
        let bytes = Bytes { start: task.data.as_ptr(), len: task.data.len() };
        let entry = self.under_way.vacant_entry();
        let (computation, ticket) = (task.computation, entry.key() as u32);
        let work = Work { computation, bytes, ticket, mailbox: self.mailbox.clone() };
        if worker.try_send(work).is_err() {
            return Err(task);
        }
        entry.insert(UnderWay { group, id, buffer: task.data });
        Ok(())
    }

    /// Work that was handed out is done: gives its buffer back, and says which group wanted it and by which id.
    pub(crate) fn ended(&mut self, ticket: u32) -> (GroupKey, ComputeId) {
        let UnderWay { group, id, buffer } = self.under_way.remove(ticket as usize);
        drop(buffer);
        (group, id)
    }
}

impl Drop for Computing {
    fn drop(&mut self) {
        // The worker may still read these; the process is about to end.
        self.under_way.drain().for_each(|work| std::mem::forget(work.buffer));
    }
}

/// The way to the host's worker, which begins with the first work; nothing if it could not be started.
fn worker() -> Option<&'static SyncSender<Work>> {
    static WORKER: OnceLock<Option<SyncSender<Work>>> = OnceLock::new();
    let start = || {
        let (sender, receiver) = sync_channel(QUEUE_MAX);
        let thread = std::thread::Builder::new().name("compute".to_owned()).spawn(move || work(&receiver));
        match thread {
            Ok(_) => Some(sender),
            Err(error) => {
                tracing::warn!("engines verify data themselves: {error}");
                None
            }
        }
    };
    WORKER.get_or_init(start).as_ref()
}

fn work(receiver: &Receiver<Work>) {
    // SAFETY: it changes nothing but how this thread is scheduled. Where it fails, the worker gives way no more than others.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) };
    for Work { computation, bytes, ticket, mailbox } in receiver {
        // SAFETY: the engine keeps the buffer, and nobody changes its bytes, until it has the answer.
        let data = unsafe { std::slice::from_raw_parts(bytes.start, bytes.len) };
        let computed = computation.perform(data);
        // An engine that has ended waits for nothing.
        let _ = mailbox.send(Message::Computed(ticket, computed));
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
        let task = Task { computation: Computation::Checksums, data };
        let expected = task.perform();
        computing.hand_out(GroupKey(0), ComputeId(7), task).expect("nothing else is asked for");
        let Some(Message::Computed(ticket, computed)) = inbox.wait(Duration::from_secs(60)) else {
            panic!("the worker answers")
        };
        assert_eq!((computed, pool.bytes_used()), (expected, 8192));
        assert_eq!(computing.ended(ticket), (GroupKey(0), ComputeId(7)));
        assert_eq!(pool.bytes_used(), 0);
    }
}
