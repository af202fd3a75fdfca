//! Clients that ask for errors: a request that has had no answer for the time that its client names ends with an I/O error. So does at
//! once a request of a disk that is lost: the device with its only copy of something is out of service.
//!
//! The request may still take effect: whatever of it has begun goes on, and the client learns nothing more of it. Whatever has
//! not begun never does. Clients that name no time wait without limit.

use crate::engine::{Engine, Target};
use base::{DiskId, Instant};
use node::Token;
use std::time::Duration;

/// What a client is told.
const TEXT: &str = "the disk gave no answer within the time that the client named (error-after)";
/// What the clients of a lost disk are told.
const LOST_TEXT: &str = "a device with the only copy of a part of the disk is out of service";
/// The least time between two looks at the requests.
const LOOK: Duration = Duration::from_millis(50);

impl Engine {
    /// How long a client's requests may go without an answer; without limit if nothing.
    fn patience(&self, client: u32) -> Option<Duration> {
        let state = self.clients.get(client as usize)?;
        let is_lost = !self.lost.is_empty() && state.disk.is_some_and(|(disk, _)| self.lost.contains(&disk));
        if is_lost { Some(Duration::ZERO) } else { state.error_after }
    }

    /// A device went out of service: looks which disks are lost.
    pub(crate) fn look_for_lost(&mut self) {
        self.lost = self.node.lost_disks().collect();
        if !self.lost.is_empty() {
            self.overdue_at = Some(self.now());
        }
    }

    /// A client has a request to submit. True if it ended with an error at once, for too many before it have had no answer.
    pub(crate) fn is_overdue_at_once(&mut self, client: u32, cookie: u64) -> bool {
        let patience = self.patience(client);
        let state = &mut self.clients[client as usize];
        let (Some(_), Some((disk, _))) = (patience, state.disk) else { return false };
        let Some(overdue) = self.overdue.get_mut(&disk) else { return false };
        if !overdue.is_full() {
            return false;
        }
        overdue.total += 1;
        state.session.fail(cookie, TEXT);
        self.touch(client);
        true
    }

    /// A client's request is about to be submitted: remembers when to look whether it has an answer.
    pub(crate) fn note_patience(&mut self, client: u32, now: Instant) {
        if let Some(after) = self.patience(client) {
            let at = now + after;
            self.overdue_at = Some(self.overdue_at.map_or(at, |known| known.min(at)));
        }
    }

    /// Ends requests that have had no answer for too long.
    pub(crate) fn end_overdue(&mut self) {
        let now = self.now();
        if self.overdue_at.is_none_or(|at| at > now) {
            return;
        }
        let (mut overdue, mut next) = (Vec::new(), None::<Instant>);
        for (key, target) in &self.targets {
            let Target::Guest { client, since, .. } = target else { continue };
            let Some(after) = self.patience(*client) else { continue };
            match *since + after {
                at if at <= now => overdue.push(Token(key as u64)),
                at => next = Some(next.map_or(at, |known| known.min(at))),
            }
        }
        self.overdue_at = next.map(|at| at.max(now + LOOK));
        for token in overdue {
            self.end_one_overdue(token, now);
        }
    }

    fn end_one_overdue(&mut self, token: Token, now: Instant) {
        let target = &mut self.targets[token.0 as usize];
        let Target::Guest { client, cookie, bytes, .. } = *target else {
            unreachable!("only guests' requests are overdue")
        };
        let state = &mut self.clients[client as usize];
        let (disk, _) = state.disk.expect("requests come from attached clients");
        *target = Target::Overdue { disk, bytes };
        let text = if self.lost.contains(&disk) { LOST_TEXT } else { TEXT };
        state.session.fail(cookie, text);
        let overdue = self.overdue.entry(disk).or_default();
        if overdue.begin(bytes) {
            let peer = &self.clients[client as usize].peer;
            tracing::warn!(peer, %disk, "requests end with an I/O error: {text}");
        }
        self.touch(client);
        self.node.abandon(now, token, &mut self.outputs);
    }

    /// A request that ended with an error has its answer after all.
    pub(crate) fn overdue_ended(&mut self, disk: DiskId, bytes: u64) {
        if let Some(overdue) = self.overdue.get_mut(&disk) {
            overdue.end(bytes);
        }
    }
}
