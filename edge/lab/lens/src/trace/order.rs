//! I/Os in order of time, within a bound.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::event::Event;

use super::lines::Raw;

/// Holds back a bounded number of I/Os, so that what stands a little out of order comes in order.
#[derive(Debug)]
pub(super) struct Order {
    bound: usize,
    /// Time, then the order in which they came: equal times keep it.
    waiting: BinaryHeap<Reverse<(i128, u64, Event)>>,
    sequence: u64,
    latest_ns: Option<i128>,
    given_ns: Option<i128>,
    /// When the first that was given on was asked for.
    pub(super) began_ns: Option<i128>,
    /// How many came after a later one.
    pub(super) reordered: u64,
}

impl Order {
    pub(super) fn new(bound: usize) -> Order {
        Order {
            bound,
            waiting: BinaryHeap::new(),
            sequence: 0,
            latest_ns: None,
            given_ns: None,
            began_ns: None,
            reordered: 0,
        }
    }

    /// Takes an I/O; false when a later one was given on already.
    pub(super) fn push(&mut self, raw: Raw) -> bool {
        if self.given_ns.is_some_and(|given| raw.at_ns < given) {
            return false;
        }
        if self.latest_ns.is_some_and(|latest| raw.at_ns < latest) {
            self.reordered += 1;
        }
        self.latest_ns = self.latest_ns.max(Some(raw.at_ns));
        self.waiting.push(Reverse((raw.at_ns, self.sequence, raw.event)));
        self.sequence += 1;
        true
    }

    /// The earliest, if more wait than may.
    pub(super) fn pop_ready(&mut self) -> Option<Event> {
        if self.waiting.len() > self.bound { self.pop() } else { None }
    }

    /// The earliest.
    pub(super) fn pop(&mut self) -> Option<Event> {
        let Reverse((at_ns, _, mut event)) = self.waiting.pop()?;
        self.given_ns = Some(at_ns);
        let began = *self.began_ns.get_or_insert(at_ns);
        event.at_ns = u64::try_from(at_ns - began).unwrap_or(u64::MAX);
        Some(event)
    }
}
