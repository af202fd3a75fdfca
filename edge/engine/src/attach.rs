//! Clients that come to disks and leave them.
//!
//! On a host among others the control plane says who is let in: the client waits, and nothing of it moves meanwhile. Whether
//! a certificate may be used at all, and which disks a client sees, is decided here at once.

use crate::client::Client;
use crate::command::{DiskLock, Locking};
use crate::engine::Engine;
use crate::listener::Origin;
use crate::notice::{Notice, Ticket, Visitor};
use crate::registry::Registry;
use base::DiskId;
use frontends::{AttachRefusal, Export, Wanted};
use node::DiskKey;
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// A disk that a client may have.
pub(crate) struct Found {
    disk: (DiskId, DiskKey),
    /// The number of the snapshot that is wanted, if one is.
    view: Option<u32>,
    pub(crate) export: Export,
    error_after: Option<Duration>,
}

impl Engine {
    /// Who a client is. Where the cluster's certificates are shown they tell, and who may not attach to disks is refused.
    fn visitor(&mut self, client: u32) -> Result<Visitor, AttachRefusal> {
        let state = &mut self.clients[client as usize];
        if let Some(known) = &state.visitor {
            return Ok(known.clone());
        }
        Ok(match (state.session.client_certificates(), state.origin) {
            (Some(shown), _) if self.settings.tls.is_none() => {
                let read = shown.first().and_then(|first| trust::Certificate::read(first).ok());
                let known = read.and_then(|read| Some((read.identity()?.clone(), read.issued_ns())));
                let (identity, issued_ns) = known
                    .ok_or_else(|| AttachRefusal::Forbidden("the certificate names nobody".to_owned()))?;
                let decided = trust::decide(&identity, trust::Action::AttachDisk);
                decided.map_err(|denied| AttachRefusal::Forbidden(denied.to_string()))?;
                let visitor = Visitor::Known { identity, issued_ns };
                // Only this stays as it is: who shows nothing yet may still encrypt.
                state.visitor = Some(visitor.clone());
                visitor
            }
            (_, Origin::Unix | Origin::Loopback) => Visitor::Here,
            (_, Origin::Elsewhere) => Visitor::Stranger,
        })
    }

    /// The disks that a client may attach to.
    pub(crate) fn exports_for(&mut self, client: u32) -> Vec<Export> {
        match self.visitor(client) {
            Ok(visitor) => self.registry.exports(visitor.guest(), self.settings.fabric.node.host),
            Err(_) => Vec::new(),
        }
    }

    /// The disk that a client wants, if the client may have it.
    pub(crate) fn export_for(&mut self, client: u32, wanted: &Wanted) -> Result<Found, AttachRefusal> {
        let visitor = self.visitor(client)?;
        if self.is_stopping {
            return Err(AttachRefusal::Stopping);
        }
        let record = self.registry.disk_by_name(&wanted.disk).ok_or(AttachRefusal::Unknown)?;
        let named = |name: &String| record.snapshots.iter().find(|one| one.name == *name);
        let snapshot =
            wanted.snapshot.as_ref().map(|name| named(name).ok_or(AttachRefusal::Unknown)).transpose()?;
        let key = self.node.disk(record.id).ok_or(AttachRefusal::Unknown)?;
        if !record.access.admits(visitor.guest(), self.settings.fabric.node.host) {
            return Err(AttachRefusal::Forbidden(not_named(&record.name)));
        }
        if let Some(lock) = self.registry.locks.get(&record.id)
            && lock.export.as_ref() != Some(&wanted.disk)
            && lock.keeps_out(snapshot.is_some())
        {
            return Err(AttachRefusal::Unavailable(format!("disk {} {}", record.name, lock.why)));
        }
        let export = match snapshot {
            Some(snapshot) => Registry::snapshot_export(record, snapshot),
            None => Registry::export(record),
        };
        let view = snapshot.map(|snapshot| snapshot.number);
        Ok(Found { disk: (record.id, key), view, export, error_after: wanted.error_after })
    }

    /// A client wants a disk.
    pub(crate) fn attach(&mut self, client: u32, wanted: Wanted) {
        let visitor = self.visitor(client);
        let found = self.export_for(client, &wanted);
        let has_lock = self.registry.locked_by_export(&wanted.disk).is_some();
        let former = self.clients[client as usize].ticket.take();
        self.give_ticket_back(former);
        match (found, visitor) {
            // Any number of clients may read a snapshot, wherever the disk is attached.
            (Ok(found @ Found { view: Some(_), .. }), Ok(_)) => self.answer_attach(client, Ok(found)),
            (Ok(Found { disk: (disk, _), .. }), Ok(visitor)) => {
                self.tickets += 1;
                let ticket = Ticket { shard: self.shard, client, number: self.tickets };
                let state = &mut self.clients[client as usize];
                (state.ticket, state.waits_for) = (Some((disk, ticket)), Some(wanted));
                self.notify(Notice::Attach { disk, ticket, visitor, has_lock });
            }
            (Err(refusal), _) | (Ok(_), Err(refusal)) => self.answer_attach(client, Err(refusal)),
        }
    }

    fn answer_attach(&mut self, client: u32, found: Result<Found, AttachRefusal>) {
        let state = &mut self.clients[client as usize];
        state.disk = found.as_ref().ok().map(|found| found.disk);
        state.view = found.as_ref().ok().and_then(|found| found.view);
        state.error_after = found.as_ref().ok().and_then(|found| found.error_after);
        state.session.export(found.map(|found| found.export));
        if let Some((disk, _)) = state.disk {
            self.note_use(disk);
        }
    }

    /// The client of a ticket, if it is still there.
    fn holder_of(&self, ticket: Ticket) -> Option<u32> {
        let state = self.clients.get(ticket.client as usize)?;
        state.ticket.is_some_and(|(_, known)| known == ticket).then_some(ticket.client)
    }

    /// A client that waits for a disk gets it, or is told why not.
    pub(crate) fn admitted(&mut self, ticket: Ticket, refusal: Option<String>) {
        let Some(client) = self.holder_of(ticket) else { return };
        let state = &mut self.clients[client as usize];
        let Some(wanted) = state.waits_for.take().filter(|_| !state.session.is_finished()) else { return };
        let (disk, _) = state.ticket.expect("it was just found by it");
        let found = match refusal {
            Some(why) => Err(AttachRefusal::Forbidden(why)),
            // Its name may be another's by now.
            None => self.export_for(client, &wanted).and_then(|found| match found.disk.0 == disk {
                true => Ok(found),
                false => Err(AttachRefusal::Unknown),
            }),
        };
        if let Err(why) = &found {
            let peer = &self.clients[client as usize].peer;
            tracing::info!(peer, disk = wanted.disk, "client refused: {why}");
            let ticket = self.clients[client as usize].ticket.take();
            self.give_ticket_back(ticket);
        }
        self.answer_attach(client, found);
        self.touch(client);
    }

    /// The control plane hears that a client wants a disk no more.
    pub(crate) fn give_ticket_back(&mut self, ticket: Option<(DiskId, Ticket)>) {
        if let Some((disk, ticket)) = ticket {
            self.notify(Notice::Left { disk, ticket });
        }
    }

    /// A client loses its disk: both ends see the connection end, and what has not begun of its requests never does.
    pub(crate) fn cut_off(&mut self, ticket: Ticket) {
        if let Some(client) = self.holder_of(ticket) {
            self.end_connection(client);
        }
    }

    /// Keeps clients from a disk. What the clients asked for that lose it and has not begun never does; what has begun ends
    /// before they count as gone.
    pub(crate) fn lock(&mut self, disk: DiskId, lock: DiskLock) -> Locking {
        let has_it = |client: &Client| {
            client.disk.is_some_and(|(of, _)| of == disk) && lock.keeps_out(client.view.is_some())
        };
        let clients =
            self.clients.iter().filter(|(_, client)| has_it(client) && !client.session.is_finished());
        let clients: Vec<u32> = clients.map(|(key, _)| key as u32).collect();
        if !lock.ends_connections && !clients.is_empty() {
            return Locking::InUse(clients.len());
        }
        self.registry.locks.insert(disk, lock);
        clients.iter().for_each(|client| self.end_connection(*client));
        Locking::Locked(clients.len())
    }

    fn end_connection(&mut self, client: u32) {
        // Of whatever kind the socket is: only its descriptor counts.
        let socket = self.clients[client as usize].socket.try_clone().map(TcpStream::from);
        if let Err(error) = socket.and_then(|socket| socket.shutdown(Shutdown::Both)) {
            tracing::warn!("end the connection of a client: {error}");
        }
    }
}

/// What a client is told that is not among those who may attach to a disk.
pub fn not_named(disk: &str) -> String {
    format!(
        "disk {disk} is only for those who are named with it: an admin changes that with `drystone disk allow {disk}`"
    )
}
