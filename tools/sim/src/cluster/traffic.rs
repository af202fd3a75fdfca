//! Connections and messages of a run: when they arrive, and what becomes of them on the way.

use super::network::Connection;
use super::plan::MS;
use super::world::{Event, World};
use base::NodeId;
use wire::{Answer, Body, Message, Outgoing, Request, Version};

impl World {
    pub(crate) fn connect_arrives(&mut self, from: NodeId, to: NodeId, session: u64) {
        let latency = self.latency();
        let host = self.index_of(to);
        let is_there = self.hosts[host].node.is_some();
        if is_there {
            let connection = Connection { from, to, last: [self.now; 2] };
            self.network.connections.insert((from, session), connection);
            self.with_node(host, |node, now, out| node.accepted(now, from, session, out));
        }
        self.later(latency, Event::Connected { from, to, session, is_there });
    }

    /// One side closes a connection; the other hears of it if anything reaches it.
    pub(crate) fn close(&mut self, from: NodeId, to: NodeId, session: u64, by_initiator: bool) {
        if self.network.connections.remove(&(from, session)).is_none() {
            return;
        }
        let (near, far) = if by_initiator { (from, to) } else { (to, from) };
        if self.network.reaches(near, far, self.now) {
            let latency = self.latency();
            self.later(latency, Event::Closed { from, to, session, at_acceptor: by_initiator });
        }
    }

    /// When a message of a connection arrives; `None` if it never does. What is cut off comes when the cut is over.
    fn arrival(&mut self, begun_by: NodeId, session: u64, near: NodeId, far: NodeId) -> Option<u64> {
        let latency = self.latency();
        let is_cut = !self.network.reaches(near, far, self.now);
        let wait = if is_cut { self.network.cut_until(near, far) - self.now } else { 0 };
        let connection = self.network.connections.get_mut(&(begun_by, session));
        let connection = connection?;
        let direction = usize::from(near != begun_by);
        let at = (self.now + wait + latency).max(connection.last[direction] + 1);
        connection.last[direction] = at;
        Some(at)
    }

    fn is_mangled(&mut self) -> bool {
        self.is_faulty && self.plan.mangled > 0 && self.random.chance(self.plan.mangled, 1000)
    }

    pub(crate) fn send_request(&mut self, from: NodeId, to: NodeId, message: Message<Request>) {
        assert_travels(&message);
        let Some(at) = self.arrival(from, message.session, from, to) else { return };
        if self.is_mangled() {
            match self.random.below(3) {
                0 => return,
                1 => self.at(at + 1, Event::Request { from, to, message: message.clone() }),
                _ => {
                    // The connection breaks, and what was on its way comes in late all the same.
                    self.close(from, to, message.session, false);
                    let late = at + self.random.below(300 * MS);
                    return self.at(late, Event::Request { from, to, message });
                }
            }
        }
        self.at(at, Event::Request { from, to, message });
    }

    pub(crate) fn send_answer(&mut self, from: NodeId, to: NodeId, message: Message<Answer>) {
        assert_travels(&message);
        let Some(at) = self.arrival(to, message.session, from, to) else { return };
        if self.is_mangled() {
            match self.random.below(2) {
                0 => return,
                _ => self.at(at + 1, Event::Answer { from, to, message: message.clone() }),
            }
        }
        self.at(at, Event::Answer { from, to, message });
    }
}

/// Messages travel as they are, without bytes; here they are made into bytes all the same, for what has none would end a real
/// node.
fn assert_travels<T: Body>(message: &Message<T>) {
    let mut outgoing = Outgoing::new(Version::LATEST);
    assert!(outgoing.push(message).is_ok(), "one message fits");
}
