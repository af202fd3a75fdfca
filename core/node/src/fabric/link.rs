//! Channels to and from other nodes: sessions, sequence numbers, heartbeats, silence.
//!
//! A pair of nodes has one channel each way. Within a session messages arrive once and in order; a gap or a double
//! ends the session. Requests of an ended session are answered `Lost`; later messages of it are dropped.

use crate::interface::LinkState;
use base::Instant;
use wire::{Answer, Message, Request, Version};

/// A channel that this node begins.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) state: LinkState,
    pub(super) session: u64,
    /// The version of the protocol that was agreed on.
    pub(super) version: Version,
    pub(super) sent: u64,
    pub(super) received: u64,
    pub(super) last_sent: Instant,
    /// When the last message came, or the node began to owe an answer.
    pub(super) last_received: Instant,
    /// Unanswered requests.
    pub(super) owed: u32,
    /// Attempts to connect since it was last up.
    pub(super) attempts: u32,
}

impl Link {
    pub(super) fn new(now: Instant) -> Link {
        Link {
            state: LinkState::Idle { retry_at: now },
            session: 0,
            version: Version::LATEST,
            sent: 0,
            received: 0,
            last_sent: now,
            last_received: now,
            owed: 0,
            attempts: 0,
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.state == LinkState::Up
    }

    /// The message that carries a request, if the channel is up.
    pub(crate) fn send(&mut self, now: Instant, token: u32, body: Request) -> Option<Message<Request>> {
        if !self.is_up() {
            return None;
        }
        if self.owed == 0 {
            self.last_received = now;
        }
        self.owed += 1;
        self.sent += 1;
        self.last_sent = now;
        Some(Message { session: self.session, sequence: self.sent, stamp: now.0, token, body })
    }

    pub(super) fn is_silent(&self, now: Instant) -> bool {
        self.is_up() && self.owed > 0 && now.since(self.last_received) >= replication::limits::SILENCE
    }

    pub(crate) fn wake_at(&self) -> Option<Instant> {
        match self.state {
            LinkState::Idle { retry_at } => Some(retry_at),
            LinkState::Connecting => None,
            LinkState::Up => {
                let heartbeat = self.last_sent + replication::limits::HEARTBEAT;
                let silence = self.last_received + replication::limits::SILENCE;
                Some(if self.owed > 0 { heartbeat.min(silence) } else { heartbeat })
            }
        }
    }
}

/// A channel that another node began.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(super) session: u64,
    pub(super) sent: u64,
    pub(super) received: u64,
    /// The other node's clock when it sent the newest message received.
    pub(super) stamp: u64,
    /// When that message came.
    pub(super) last_received: Instant,
}

impl Accepted {
    pub(crate) fn send(&mut self, token: u32, body: Answer, grants: bool) -> Message<Answer> {
        self.sent += 1;
        let stamp = if grants { self.stamp } else { 0 };
        Message { session: self.session, sequence: self.sent, stamp, token, body }
    }
}
