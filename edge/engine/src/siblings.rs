//! What the engines of a host know of each other: how they are reached, which groups and devices each has, and how many clients.

use crate::error::EngineError;
use crate::listener::Accepted;
use crate::mailbox::{Mailbox, Message};
use base::{DeviceId, GroupId};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// What the engines of a host know of each other.
#[derive(Debug)]
pub(crate) struct Siblings {
    mailboxes: OnceLock<Vec<Mailbox>>,
    /// Clients that each has.
    clients: Vec<AtomicUsize>,
    homes: Mutex<Homes>,
    is_stopping: AtomicBool,
}

/// Which engine has what.
#[derive(Debug, Default)]
struct Homes {
    groups: BTreeMap<GroupId, u8>,
    devices: BTreeMap<DeviceId, u8>,
}

impl Siblings {
    /// What `count` engines know of each other before one of them can be reached; `groups` have their engines already.
    pub(crate) fn new(count: u8, groups: BTreeMap<GroupId, u8>) -> Siblings {
        Siblings {
            mailboxes: OnceLock::new(),
            clients: (0..count).map(|_| AtomicUsize::new(0)).collect(),
            homes: Mutex::new(Homes { groups, devices: BTreeMap::new() }),
            is_stopping: AtomicBool::new(false),
        }
    }

    /// Says how the engines are reached, in their order. Once, before any of them has a client or a command.
    pub(crate) fn connect(&self, mailboxes: Vec<Mailbox>) {
        let _ = self.mailboxes.set(mailboxes);
    }

    /// The engines are told to stop: one that ends from now on does not end by itself.
    pub(crate) fn begin_stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }

    /// Whether the engines were told to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    fn homes(&self) -> MutexGuard<'_, Homes> {
        self.homes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The engine of a group; a group that none has yet goes to the one that has fewest.
    pub(crate) fn home_of(&self, group: GroupId) -> u8 {
        let mut homes = self.homes();
        if let Some(home) = homes.groups.get(&group) {
            return *home;
        }
        let count = |shard: u8| homes.groups.values().filter(|home| **home == shard).count();
        let home = (0..self.clients.len() as u8).min_by_key(|shard| count(*shard)).unwrap_or(0);
        homes.groups.insert(group, home);
        home
    }

    /// Notes whose a device is.
    pub(crate) fn note_device(&self, device: DeviceId, shard: u8) {
        self.homes().devices.insert(device, shard);
    }

    /// The engine that has a device.
    pub(crate) fn home_of_device(&self, device: DeviceId) -> Option<u8> {
        self.homes().devices.get(&device).copied()
    }

    /// Delivers a message to one of the engines.
    pub(crate) fn send(&self, shard: u8, message: Message) -> Result<(), EngineError> {
        let mailbox = self.mailboxes.get().and_then(|all| all.get(usize::from(shard)));
        mailbox.ok_or(EngineError::Stopped)?.send(message)
    }

    /// Gives a new client to the engine that has fewest: to `shard` itself by giving it back.
    pub(crate) fn seat(&self, shard: u8, client: Accepted) -> Option<Accepted> {
        let fewest = (0u8..).zip(&self.clients).min_by_key(|(_, count)| count.load(Ordering::Relaxed));
        let to = fewest.map_or(shard, |(to, _)| to);
        self.clients[usize::from(to)].fetch_add(1, Ordering::Relaxed);
        if to == shard {
            return Some(client);
        }
        // An engine that is gone ends the host.
        let _ = self.send(to, Message::Client(client));
        None
    }

    /// A client of an engine has left.
    pub(crate) fn left(&self, shard: u8) {
        self.clients[usize::from(shard)].fetch_sub(1, Ordering::Relaxed);
    }
}
