//! The way to an engine's thread from others, and what arrives there.

use crate::command::Command;
use crate::error::EngineError;
use crate::listener::Accepted;
use crate::prepared::Prepared;
use base::DeviceId;
use diskgroup::Computed;
use reduction::HostSample;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// A message to the engine's thread.
pub(crate) enum Message {
    /// From the control plane.
    Command(Command),
    /// From a thread that prepared devices.
    Prepared(Box<Prepared>),
    /// A device has become shorter than its datastore.
    Shrunk(DeviceId, String),
    /// From the thread that computes: work that was handed out, and what came of it.
    Computed(u32, Computed),
    /// From the thread that computes: the sample of the pass with that serial number, with the blocks that were handed out.
    Measured(u64, Box<HostSample>),
    /// From the shard that listens: somebody connected.
    Client(Accepted),
}

/// The way to the engine's thread from others.
#[derive(Debug, Clone)]
pub(crate) struct Mailbox {
    sender: Sender<Message>,
    event: Arc<OwnedFd>,
}

impl Mailbox {
    /// A mailbox, and the inbox that its messages arrive in.
    pub(crate) fn new() -> (Mailbox, Inbox) {
        // SAFETY: a fresh descriptor that nobody else has.
        let event = unsafe { OwnedFd::from_raw_fd(libc::eventfd(0, libc::EFD_CLOEXEC)) };
        let event = Arc::new(event);
        let (sender, receiver) = channel();
        (Mailbox { sender, event: Arc::clone(&event) }, Inbox { receiver, event })
    }

    /// Delivers a message and wakes the thread.
    ///
    /// # Errors
    /// [`EngineError::Stopped`] when the inbox is gone.
    pub(crate) fn send(&self, message: Message) -> Result<(), EngineError> {
        self.sender.send(message).map_err(|_| EngineError::Stopped)?;
        let one = 1u64.to_ne_bytes();
        // SAFETY: the descriptor is open as long as this is, and eight bytes are handed in.
        unsafe { libc::write(self.event.as_raw_fd(), one.as_ptr().cast(), one.len()) };
        Ok(())
    }
}

/// What the engine's thread takes its messages from.
#[derive(Debug)]
pub(crate) struct Inbox {
    receiver: Receiver<Message>,
    event: Arc<OwnedFd>,
}

impl Inbox {
    /// The eventfd that can be read once a message has arrived.
    pub(crate) fn event(&self) -> RawFd {
        self.event.as_raw_fd()
    }

    /// The next message, if one has arrived.
    pub(crate) fn next(&self) -> Option<Message> {
        self.receiver.try_recv().ok()
    }

    /// The next message; `None` if none arrives in time.
    #[cfg(test)]
    pub(crate) fn wait(&self, timeout: std::time::Duration) -> Option<Message> {
        self.receiver.recv_timeout(timeout).ok()
    }
}
