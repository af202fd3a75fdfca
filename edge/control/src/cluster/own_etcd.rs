//! The etcd that the cluster runs for itself: this host's member, and, on one host, which hosts have one.
//!
//! The list of members is etcd's own and is what counts: who coordinates changes it, and each host runs a member while it stands there.
//! What is decided comes from [`::cluster::next_member_step`]. Must never hold up guests' I/O.

use super::Cluster;
use crate::config::MemberPlace;
use crate::directory::shared::Shared;
use crate::events::Kind;
use crate::limits::{MEMBER_FAILURES_TOLD, MEMBER_GONE_LOOKS, MEMBER_LOOK_PERIOD, MEMBER_RESTART_PAUSE};
use crate::managed;
use crate::system::blocking;
use ::cluster::{Hosts, MemberStep, Seat, next_member_step};
use api::types::{DirectoryMemberView, DirectoryView, MemberRole};
use base::HostId;
use etcd::Member;
use etcd::process::{Spec, Supervisor, url_of};
use failure::Failure;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

/// What a host remembers from one look to the next.
#[derive(Default)]
struct Looks {
    /// Looks in a row that did not find this host's member in the list.
    gone: u32,
    /// Since when the member believes other authorities than this host.
    doubts_since: Option<Instant>,
    /// Failures in a row.
    failures: u32,
}

impl Cluster {
    /// Runs the process of this host's member from now on, or lets it go.
    pub fn hold_member(&self, supervisor: Option<Supervisor>) {
        // The former one is dropped outside the lock: that waits for its process.
        let former =
            std::mem::replace(&mut *self.member.lock().unwrap_or_else(PoisonError::into_inner), supervisor);
        blocking(|| drop(former));
    }

    /// Where the directory stands, and who keeps it.
    pub fn directory_view(&self) -> DirectoryView {
        let config = self.config();
        let Shared::Etcd(directory) = self.directory() else {
            let place = config.cluster.directory.to_string();
            return DirectoryView { place, is_managed: false, members: Vec::new() };
        };
        let silent = self.silent_members();
        let answers = |address: &String| silent.iter().all(|one| one.address != *address);
        let told = self.told_members.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let members = match told {
            Some(members) => {
                let seats = self.seats(&members).into_iter().zip(members);
                seats.map(|(seat, member)| self.seat_view(&seat, member)).collect()
            }
            None => {
                let asked = directory.etcd.endpoints().into_iter().map(|address| DirectoryMemberView {
                    id: None,
                    host: None,
                    answers: answers(&address),
                    address,
                    role: MemberRole::Voter,
                });
                asked.collect()
            }
        };
        let is_managed = config.cluster.member.is_some();
        DirectoryView { place: directory.place.clone(), is_managed, members }
    }

    fn seat_view(&self, seat: &Seat, member: Member) -> DirectoryMemberView {
        let address = member.clients.into_iter().chain(member.peers).next().unwrap_or_default();
        let role = if seat.is_learner { MemberRole::Learner } else { MemberRole::Voter };
        let host = seat.host.map(|host| self.view().host_name(host));
        DirectoryMemberView { id: Some(format!("{:x}", seat.id)), host, address, role, answers: seat.answers }
    }

    /// Where members answer of an etcd that the cluster runs for itself; nothing of another one.
    ///
    /// # Errors
    /// When the host's folder of it cannot be read.
    pub(super) fn own_endpoints(&self) -> Result<Vec<String>, Failure> {
        let config = self.config();
        let folder = managed::folder_of(&config.data_dir);
        let own = config.cluster.member.map(|_| folder.endpoints().map_err(managed::failed(&folder)));
        Ok(own.transpose()?.unwrap_or_default())
    }

    /// Looks after members until the engine is gone.
    pub(super) async fn tend_members(self: Arc<Cluster>) {
        let mut looks = Looks::default();
        while self.state().await.is_ok() {
            let place = self.config().cluster.member;
            if let (Some(place), Shared::Etcd(directory)) = (place, self.directory()) {
                let done = match self.look_at_members(&directory.etcd).await {
                    Some(members) => self.tend_etcd(place, &members, &directory.etcd, &mut looks).await,
                    // A directory that is away is told of by the watch.
                    None => Ok(()),
                };
                looks.failures = if done.is_ok() { 0 } else { looks.failures + 1 };
                match done {
                    Err(failure) if looks.failures == MEMBER_FAILURES_TOLD => {
                        tracing::warn!("the cluster's etcd is not as it is to be: {failure}");
                    }
                    Err(failure) => tracing::debug!("{failure}"),
                    Ok(()) => {}
                }
            }
            tokio::time::sleep(MEMBER_LOOK_PERIOD).await;
        }
        self.hold_member(None);
    }

    /// The members that etcd tells of now, which are remembered.
    pub(super) async fn look_at_members(&self, etcd: &etcd::Etcd) -> Option<Vec<Member>> {
        let members = etcd.members().await.ok()?;
        *self.told_members.lock().unwrap_or_else(PoisonError::into_inner) = Some(members.clone());
        Some(members)
    }

    async fn tend_etcd(
        &self,
        place: MemberPlace,
        members: &[Member],
        etcd: &etcd::Etcd,
        looks: &mut Looks,
    ) -> Result<(), Failure> {
        let folder = managed::folder_of(&self.config().data_dir);
        let voters: Vec<&Member> =
            members.iter().filter(|one| !one.is_learner && !one.clients.is_empty()).collect();
        let endpoints: Vec<String> = voters.iter().flat_map(|one| one.clients.iter().cloned()).collect();
        if !endpoints.is_empty() {
            blocking(|| folder.set_endpoints(&endpoints)).map_err(managed::failed(&folder))?;
            etcd.set_endpoints(&endpoints);
        }
        blocking(|| self.tend_own(place, members, looks))?;
        self.have_member_believe(place, (members, etcd), looks).await?;
        if self.keeper().coordinator() != Some(self.me) {
            return Ok(());
        }
        let Some(step) = self.next_member_step(members) else { return Ok(()) };
        self.take_member_step(step, members, etcd).await
    }

    /// Makes this host's member what the list says.
    fn tend_own(&self, place: MemberPlace, members: &[Member], looks: &mut Looks) -> Result<(), Failure> {
        let data_dir = self.config().data_dir.clone();
        let folder = managed::folder_of(&data_dir);
        let failed = managed::failed(&folder);
        let own = url_of(place.peers);
        let listed = members.iter().find(|one| one.peers.contains(&own));
        let wished = folder.spec().map_err(&failed)?;
        looks.gone = if listed.is_some() || wished.is_none() { 0 } else { looks.gone + 1 };
        let authorities = self.security()?.trust.anchors().to_pem();
        match (listed, wished) {
            (Some(listed), Some(wished)) if wished.member == Some(listed.id) => Ok(()),
            // The first member, which had no id when it was started.
            (Some(listed), Some(wished)) if wished.member.is_none() => {
                folder.run(&Spec { member: Some(listed.id), ..wished }, &authorities)
            }
            // A new member: this host had none, or the one that it had was taken out meanwhile.
            (Some(listed), _) => {
                let others = members.iter().filter(|one| one.id != listed.id);
                let known =
                    others.filter_map(|one| Some((one.name.clone()?, one.peers.first()?.clone()))).collect();
                folder.run(
                    &managed::spec(&data_dir, place, (self.id, self.me), known, Some(listed.id)),
                    &authorities,
                )
            }
            (None, _) if looks.gone >= MEMBER_GONE_LOOKS => folder.leave(),
            (None, _) => Ok(()),
        }
        .map_err(&failed)
    }

    /// Has this host's member believe the authorities that the host believes. It starts anew for that: one member after another, and
    /// only while all answer, so that a majority does all the while.
    async fn have_member_believe(
        &self,
        place: MemberPlace,
        (members, etcd): (&[Member], &etcd::Etcd),
        looks: &mut Looks,
    ) -> Result<(), Failure> {
        let config = self.config();
        let own = url_of(place.peers);
        let turn = members.iter().position(|one| one.peers.contains(&own));
        let authorities = self.security()?.trust.anchors().to_pem();
        let believed = blocking(|| managed::believed_by_member(&config.data_dir))?;
        let doubts = believed.is_some_and(|believed| believed != authorities);
        let Some(turn) = turn.filter(|_| doubts) else {
            looks.doubts_since = None;
            return Ok(());
        };
        let since = *looks.doubts_since.get_or_insert_with(Instant::now);
        let is_due = since.elapsed() >= MEMBER_RESTART_PAUSE * turn as u32;
        if is_due && etcd.silent_members().await.is_empty() {
            let folder = managed::folder_of(&config.data_dir);
            blocking(|| folder.believe(&authorities)).map_err(managed::failed(&folder))?;
        }
        Ok(())
    }

    /// The members, with the hosts that run them.
    pub(super) fn seats(&self, members: &[Member]) -> Vec<Seat> {
        let (view, silent) = (self.view(), self.silent_members());
        let host_at = |member: &Member| -> Option<HostId> {
            let by_address = view
                .hosts
                .values()
                .map(|known| &known.host)
                .find(|host| host.member.as_ref().is_some_and(|url| member.peers.contains(url)));
            let by_name = || member.name.as_ref()?.parse().ok();
            by_address.map(|host| host.record.id).or_else(by_name)
        };
        let seat = |member: &Member| Seat {
            id: member.id,
            host: host_at(member),
            is_learner: member.is_learner,
            answers: !silent.iter().any(|one| member.clients.contains(&one.address)),
        };
        members.iter().map(seat).collect()
    }

    fn next_member_step(&self, members: &[Member]) -> Option<MemberStep> {
        let seats = self.seats(members);
        let view = self.view();
        let able = view.hosts.values().filter(|known| known.host.member.is_some());
        let able: Vec<HostId> = able.map(|known| known.host.record.id).collect();
        let patience = view.settings.of_repairs().delay;
        let keeper = self.keeper();
        let facts = &keeper.facts;
        let hosts = Hosts { records: &facts.hosts, liveness: &facts.liveness, patience, now: keeper.now() };
        next_member_step(&seats, &able, hosts)
    }

    async fn take_member_step(
        &self,
        step: MemberStep,
        members: &[Member],
        etcd: &etcd::Etcd,
    ) -> Result<(), Failure> {
        let name = |id: u64| {
            let seat = self.seats(members).into_iter().find(|seat| seat.id == id);
            let host = seat.and_then(|seat| seat.host);
            host.map_or_else(|| format!("{id:x}"), |host| self.view().host_name(host))
        };
        let failed = |what: &str, error: etcd::Error| Failure::failed(what, error);
        match step {
            MemberStep::Add(host) => {
                let view = self.view();
                let Some(url) = view.host(host).and_then(|host| host.member.clone()) else { return Ok(()) };
                etcd.add_member(&url).await.map_err(|error| failed("add a member", error))?;
                let text = format!("it becomes a member of the cluster's etcd, at {url}");
                self.events.host(Kind::DirectoryMembers, &view.host_name(host), text);
            }
            MemberStep::Promote(id) => match etcd.promote_member(id).await {
                Ok(()) => {
                    let text = "it is a full member of the cluster's etcd: it has caught up".to_owned();
                    self.events.host(Kind::DirectoryMembers, &name(id), text);
                }
                // It has not caught up, or does not run yet.
                Err(error) => tracing::debug!("{error}"),
            },
            MemberStep::Remove(id) => {
                let host = name(id);
                etcd.remove_member(id).await.map_err(|error| failed("take a member out", error))?;
                let text = "it is no member of the cluster's etcd any more".to_owned();
                self.events.host(Kind::DirectoryMembers, &host, text);
            }
        }
        Ok(())
    }
}
