//! A disk that clients of the whole cluster are kept from: while it is deleted, made smaller or written over by an import.
//!
//! The host that locks a disk takes the disk's claim as if it had clients (docs/design/0017 and 0028). The directory decides by
//! compare-and-set between the lock and a client that attaches at another host. Must end no connection unless that is asked for.

use super::Cluster;
use super::change::objection;
use super::in_use::BeforeLock;
use crate::cluster::{Place, in_use};
use crate::directory::shared::record::{Attached, ClusterDisk};
use crate::directory::shared::{Outcome, unwritten};
use crate::limits::{ATTACH_POLL, DELETION_POLL, DETACH_WAIT};
use ::cluster::{Access, Claim, DiskState, Objection};
use base::{DiskId, HostId};
use failure::{Code, Failure};
use std::time::Instant;

/// How often a change is tried again that another one came before.
const ATTEMPTS: usize = 20;

impl Cluster {
    /// Keeps the clients of all hosts from a disk. `why` is the end of a sentence about the disk.
    ///
    /// # Errors
    /// When clients have the disk and are not to lose it, a host does not confirm that its clients are gone, or the directory
    /// does not answer. Nothing is locked then.
    pub async fn lock_disk(
        &self,
        id: DiskId,
        why: &str,
        ends_connections: bool,
    ) -> Result<BeforeLock, Failure> {
        self.set_lock(id, Some(why.to_owned()));
        let turn = self.turn(id);
        let claimed = {
            let _turn = turn.lock().await;
            self.claim_alone(id, ends_connections).await
        };
        match claimed {
            Ok((found, others)) => match self.await_detached(id, others).await {
                Ok(()) => Ok(found),
                Err(failure) => {
                    self.unlock_disk(id, found).await;
                    Err(failure)
                }
            },
            Err(failure) => {
                self.unlock_disk(id, BeforeLock { was_shared: false }).await;
                Err(failure)
            }
        }
    }

    /// Lets clients have a disk again, as before.
    pub async fn unlock_disk(&self, id: DiskId, found: BeforeLock) {
        self.set_lock(id, None);
        if found.was_shared
            && let Err(failure) = self.share_again(id).await
        {
            tracing::error!("disk {} is not shared any more: {failure}", self.disk_name(id));
        }
        self.release(id).await;
    }

    /// Makes this host the only one whose clients may have a disk; gives the hosts that had it.
    async fn claim_alone(
        &self,
        id: DiskId,
        ends_connections: bool,
    ) -> Result<(BeforeLock, Vec<HostId>), Failure> {
        let mut hosts = Vec::new();
        for _ in 0..ATTEMPTS {
            let attached = self.fetch_attached(id).await?;
            // It may be a disk that is going already.
            let Some(disk) = self.fetch(id).await? else {
                return Ok((BeforeLock { was_shared: false }, hosts));
            };
            let places = self.places_of(id, &attached).await?;
            if !places.is_empty() && !ends_connections {
                return Err(in_use(&disk.record.name, &places));
            }
            for host in places.iter().map(|place| place.host).filter(|host| *host != self.me) {
                if !hosts.contains(&host) {
                    hosts.push(host);
                }
            }
            let was_shared = disk.record.access.is_shared && disk.record.state == DiskState::Active;
            let claims = [self.me()];
            // Another host would come in by a handover otherwise.
            let known = Attached { handover: None, ..attached };
            let mut changes = vec![known.change(id, &claims)?];
            let mut next = disk.clone();
            if was_shared {
                // Another host would join the claim otherwise.
                let access = Access { is_shared: false, ..disk.record.access.clone() };
                let change = disk.record.with_access(access);
                next = disk.with(change.map_err(|why| Failure::refused(why.to_string()))?.record);
                changes.push(next.change(disk.record.version)?);
            }
            match self.directory().commit(changes).await {
                Outcome::Done { version } => {
                    self.note_attached(id, known.with(version, &claims));
                    if was_shared {
                        next.record.version = version;
                        self.note(&next);
                        self.tell_disk(&next).await?;
                    }
                    return Ok((BeforeLock { was_shared }, hosts));
                }
                Outcome::Conflict { .. } => tokio::time::sleep(DELETION_POLL).await,
                Outcome::Unwritten { why } => return Err(unwritten(why)),
                Outcome::Unknown => return Err(unanswered()),
            }
        }
        Err(restless(id))
    }

    /// Where clients have a disk, as far as that counts.
    async fn places_of(&self, id: DiskId, attached: &Attached) -> Result<Vec<Place>, Failure> {
        let state = self.state().await?;
        let counts = |claim: &&Claim| claim.host != self.me && !self.is_void(claim, &state);
        let mut places = Vec::new();
        for claim in attached.claims.iter().filter(counts) {
            let clients = self.clients_at(id, claim.host, &state).await;
            places.push(Place { host: claim.host, name: self.view().host_name(claim.host), clients });
        }
        let here = self.clients_here(id);
        if here > 0 {
            let name = self.view().host_name(self.me);
            places.push(Place { host: self.me, name, clients: Some(here) });
        }
        Ok(places)
    }

    /// Waits until hosts that have lost a disk say that no client has it there any more.
    async fn await_detached(&self, id: DiskId, hosts: Vec<HostId>) -> Result<(), Failure> {
        let until = Instant::now() + DETACH_WAIT;
        for host in hosts {
            loop {
                let state = self.state().await?;
                let count = self.clients_at(id, host, &state).await;
                let is_gone = self.view().host(host).is_none();
                if count == Some(0) || is_gone {
                    break;
                }
                if Instant::now() >= until {
                    let (disk, name) = (self.disk_name(id), self.view().host_name(host));
                    let found = match count {
                        Some(count) => format!("{count} clients are still attached at host {name}"),
                        None => format!("host {name} does not answer: its clients may still be attached"),
                    };
                    return Err(Failure::new(Code::Unreachable, format!("disk {disk} is in use: {found}"))
                        .hint("try again; a host that is gone counts as away after 45 s at most"));
                }
                tokio::time::sleep(ATTACH_POLL).await;
            }
        }
        Ok(())
    }

    async fn share_again(&self, id: DiskId) -> Result<(), Failure> {
        for _ in 0..ATTEMPTS {
            let Some(disk) = self.fetch(id).await? else { return Ok(()) };
            let access = Access { is_shared: true, ..disk.record.access.clone() };
            let change = disk.record.with_access(access);
            let next = disk.with(change.map_err(|why| Failure::refused(why.to_string()))?.record);
            match self.commit_disk(next, disk.record.version).await {
                Ok(Some(next)) => return Ok(self.tell_disk(&next).await?),
                Ok(None) | Err(_) => tokio::time::sleep(DELETION_POLL).await,
            }
        }
        Err(restless(id))
    }

    /// Marks a locked disk as going. One transaction names the claim, too: a client that attached meanwhile at another host
    /// prevents it.
    ///
    /// # Errors
    /// When another host has the disk by now, or the directory does not answer.
    pub(super) async fn mark_locked_as_deleting(&self, id: DiskId) -> Result<(), Failure> {
        for _ in 0..ATTEMPTS {
            let attached = self.fetch_attached(id).await?;
            let Some(disk) = self.fetch(id).await? else { return Ok(()) };
            if attached.claims != [self.me()] {
                let name = &disk.record.name;
                return Err(Failure::new(
                    Code::Conflict,
                    format!("another host attached disk {name} meanwhile"),
                )
                .hint("see `drystone disk show`, and try again"));
            }
            let change = match disk.record.begin_delete(&self.clones()) {
                Ok(change) => change,
                Err(Objection::State(_)) => return Ok(()),
                Err(why) => return Err(objection(why)),
            };
            let mut next: ClusterDisk = disk.with(change.record);
            let changes = vec![next.change(disk.record.version)?, attached.change(id, &attached.claims)?];
            match self.directory().commit(changes).await {
                Outcome::Done { version } => {
                    next.record.version = version;
                    self.note(&next);
                    return Ok(self.tell_disk(&next).await?);
                }
                Outcome::Unwritten { why } => return Err(unwritten(why)),
                Outcome::Conflict { .. } | Outcome::Unknown => tokio::time::sleep(DELETION_POLL).await,
            }
        }
        Err(restless(id))
    }
}

fn unanswered() -> Failure {
    Failure::new(Code::Unreachable, "the directory does not answer")
}

fn restless(id: DiskId) -> Failure {
    Failure::new(Code::Conflict, format!("the records of disk {id} change all the time")).hint("try again")
}
