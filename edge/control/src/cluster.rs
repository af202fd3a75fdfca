//! A host among others: what it knows of the cluster by the shared directory, and what the engine wants of it.
//!
//! The directory's records come by a watch and are kept here; the engine is told of those that concern it. Guests' I/O never
//! waits for any of this but where the node says so by itself. Must hold no rule of replication or placement.

mod adopt;
mod attach;
mod attachments;
mod change;
mod disks;
mod emptying;
mod follow;
mod follow_policies;
mod gather;
mod grow;
mod handover;
mod hosts;
mod in_use;
mod keeper;
mod kept;
mod leave;
mod lock;
pub mod members;
mod moves;
mod own_etcd;
mod passes;
mod people;
mod pools;
mod progress;
mod rebuild;
mod repair;
mod reports;
mod resync;
mod rewrites;
mod rollback;
mod schedules;
mod settings;
mod silent;
mod snapshots;
mod standing;
mod state;
mod status;
mod together;
mod upgrade;
mod view;
mod watched;

pub use disks::is_taken;
pub use emptying::FoundDevice;
pub use follow_policies::Rules;
pub use gather::{Locals, compressed_of, snapshot_bytes_of, used_bytes_of};
pub use in_use::{BeforeLock, Place, in_use};
pub use passes::{OtherPasses, without_answer};
pub use state::Cluster;
pub use status::{Diagnosis, HostCondition};
pub use view::View;

use crate::addresses::address_of;
use crate::addresses::listen_text;
use crate::config::{Config, DirectoryPlace, paths_of};
use crate::data_dir;
use crate::directory::shared::record::{
    Attached, Believed, ClusterDisk, ClusterHost, HOSTS, Program, check_level,
};
use crate::directory::shared::{
    Change, Changes, Copied, DeviceBeat, Outcome, Remote, Shared, Store, cluster_of, unwritten,
};
use crate::directory::{HostStore, Records};
use crate::events::EventLog;
use crate::limits::{DIRECTORY_PATIENCE, DIRECTORY_RETRY};
use crate::security::Security;
use crate::system::random_bits;
use ::cluster::{DeviceRecord, DeviceState, HostRecord, Level, Maintenance, NodeRecord};
use api::program::RELEASE;
use base::{ClusterId, ComponentId, DiskId, GroupId, HostId, NodeId};
use engine::{
    ClusterCommand, ClusterState, Command, EngineError, EngineHandle, Fabric, HostState, Listen, Notice,
    cluster_on,
};
use failure::{Code, Failure};
use placement::DeviceSpace;
use reports::reports_of;
use state::{COPY_FILE, Standing};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;

/// What a start has found out before the engine runs.
pub struct Found {
    directory: Shared,
    changes: Changes,
    security: Option<Arc<Security>>,
    copy: Option<Arc<Copied>>,
    /// Why the records are those of the copy and not the directory's, if so.
    away: Option<Failure>,
    /// What runs the process of this host's own member of etcd.
    member: Option<::etcd::process::Supervisor>,
}

/// What to do where etcd has lost what it had and this host kept nothing of it.
const NO_COPY: &str = "this host keeps no copy of the directory that was there: rebuild it on another host of the cluster, with \
                       `drystone cluster rebuild-directory`; then start this one";
/// Waits for the directory that the configuration names, and checks that the host belongs to its cluster.
///
/// # Errors
/// When it does not answer for long, or belongs to another cluster.
pub async fn find(
    config: &Config,
    own: &HostStore,
    security: Option<Arc<Security>>,
) -> Result<Found, Failure> {
    let place = &config.cluster.directory;
    let copy = match place {
        DirectoryPlace::Etcd(_) => Some(Arc::new(Copied::open(&config.data_dir.join(COPY_FILE)))),
        DirectoryPlace::Embedded | DirectoryPlace::Socket(_) => None,
    };
    let directory = match place {
        DirectoryPlace::Embedded => {
            check_alone(own, security.as_deref())?;
            embedded(config, own)?
        }
        DirectoryPlace::Socket(path) => Shared::Remote(Remote::new(path.clone())),
        DirectoryPlace::Etcd(options) => Shared::in_etcd(options, copy.clone())?,
    };
    let member = member_of(config)?;
    let until = Instant::now() + DIRECTORY_PATIENCE;
    let (changes, away) = loop {
        match directory.watch(None).await {
            Ok(changes) => break (changes, None),
            Err(failure) if failure.code == Code::Refused => {
                // etcd answers and has lost what this host knows: it starts from what it kept, so that it can be asked for it.
                let Some(kept) = copy.as_ref().and_then(|copy| copy.contents(false)) else {
                    return Err(match own.cluster()? {
                        Some(_) => failure.hint(NO_COPY),
                        None => failure,
                    });
                };
                tracing::error!(
                    "{failure}: started from this host's copy of the directory, as the last that is known"
                );
                let changes = directory.resume_from(kept)?;
                break (changes, Some(failure));
            }
            Err(failure) if failure.code != Code::Unreachable || Instant::now() >= until => {
                return Err(failure);
            }
            Err(_) => tokio::time::sleep(DIRECTORY_RETRY).await,
        }
    };
    // First of all: what is at another level may mean something else.
    check_level(&changes.entries)?;
    let cluster = cluster_of(&changes)?;
    if let Some(mine) = own.cluster()?.filter(|mine| *mine != cluster) {
        return Err(Failure::refused(format!(
            "this host belongs to cluster {mine}, and the directory at {} to cluster {cluster}",
            config.cluster.directory
        ))
        .hint("correct [cluster] directory, or give the host a data_dir and devices of its own"));
    }
    check_certificate(security.as_deref(), &changes, cluster)?;
    check_holder(security.as_deref(), own.host)?;
    if *place != DirectoryPlace::Embedded {
        own.set_elsewhere()?;
    }
    if own.cluster()?.is_none() {
        own.set_cluster(cluster)?;
    }
    Ok(Found { directory, changes, security, copy, away, member })
}

/// Has this host's own member of etcd run, where the cluster runs etcd for itself.
fn member_of(config: &Config) -> Result<Option<::etcd::process::Supervisor>, Failure> {
    let (Some(_), DirectoryPlace::Etcd(options)) = (config.cluster.member, &config.cluster.directory) else {
        return Ok(None);
    };
    if options.endpoints.is_empty() {
        return Err(Failure::refused("this host knows no member of etcd, and its configuration names none")
            .hint("make a cluster with `drystone cluster init --etcd managed`, join one with `drystone host join`, or name the endpoints in [cluster.etcd]"));
    }
    crate::managed::supervise(&config.data_dir)
}

/// Refuses to stand alone to a host of a cluster of several: it would take what it holds of the cluster's disks for its own.
fn check_alone(own: &HostStore, security: Option<&Security>) -> Result<(), Failure> {
    match own.is_elsewhere()? || security.is_some() {
        false => Ok(()),
        true => Err(Failure::refused("this host belongs to a cluster, and its configuration names no directory")
            .hint("name the cluster's in [cluster], as before; a host that is to stand alone needs a data_dir and devices of its own")),
    }
}

/// The directory of a host that stands alone, in the host's own file. Its cluster is that of its devices, if they have one.
fn embedded(config: &Config, own: &HostStore) -> Result<Shared, Failure> {
    let cluster = match own.cluster()? {
        Some(known) => known,
        None => {
            let of_devices = config.groups.iter().flat_map(paths_of).find_map(|path| cluster_on(path));
            let cluster = of_devices.map_or_else(|| random_bits().map(ClusterId), Ok)?;
            own.set_cluster(cluster)?;
            cluster
        }
    };
    Ok(Shared::Embedded(Arc::new(Store::within(own.file(), cluster)?)))
}

/// Refuses a host without a certificate where hosts have some, and one whose certificate counts no more.
fn check_certificate(
    security: Option<&Security>,
    changes: &Changes,
    cluster: ClusterId,
) -> Result<(), Failure> {
    let mut believed = Believed::default();
    for entry in &changes.entries {
        believed.put(entry).map_err(|why| Failure::failed("read the directory", why))?;
    }
    match (security, &believed.authorities) {
        (None, None) => Ok(()),
        (None, Some(_)) => Err(Failure::refused("the hosts of this cluster have certificates, and this one has none")
            .hint("have a token made with `drystone host token` on one of them, then `drystone host join --config FILE TOKEN` here")),
        (Some(security), _) if security.cluster() != cluster => Err(Failure::refused(format!(
            "this host's certificate is of cluster {}, and the directory of cluster {cluster}",
            security.cluster()
        ))
        .hint("correct [cluster], or give the host a data_dir of its own")),
        (Some(security), _) => {
            let (who, shown) = (security.trust.identity(), security.trust.certificate());
            security.trust.replace_revoked(believed.revoked());
            if believed.revoked().covers(&who, shown.issued_ns()) {
                return Err(Failure::refused(format!("{who} was taken out of its cluster"))
                    .hint("join again with a new token and a data_dir and devices of its own"));
            }
            if let Some((_, record)) = &believed.authorities {
                security.believe(&record.pem())?;
            }
            Ok(())
        }
    }
}

/// Refuses the certificate of another host: one that was copied with its files would write itself into the directory as a host
/// of its own, which no other host then listens to.
fn check_holder(security: Option<&Security>, own: HostId) -> Result<(), Failure> {
    let shown = security.map(|security| security.trust.identity());
    match shown {
        Some(who) if who.host() != Some(own) => Err(Failure::refused(format!(
            "the certificate in this host's data_dir is of {who}, and this host is {own}"
        ))
        .hint("an identity is not to be copied: remove it, then join with a token of its own (`drystone host token` on another host)")),
        Some(_) | None => Ok(()),
    }
}

impl Found {
    /// This host's part in the cluster, at a new start.
    ///
    /// # Errors
    /// When the host's store fails, or its certificate cannot be used.
    pub fn fabric(&self, config: &Config, own: &HostStore) -> Result<Fabric, Failure> {
        let settings = &config.cluster;
        Ok(Fabric {
            cluster: cluster_of(&self.changes)?,
            stands_alone: config.cluster.directory == DirectoryPlace::Embedded,
            node: NodeId { host: own.host, shard: 0 },
            incarnation: own.next_incarnation()?,
            listen: config.peer_listener(),
            tls: self.security.as_ref().map(|security| security.peer_tls()).transpose()?,
            buffer_bytes: config.peer_buffer_bytes(),
            prefers_local: settings.prefers_local,
            copy_floor: settings.resync_floor,
            copy_tail_percent: settings.resync_latency_percent,
            groups: groups_of(&self.changes, own.host),
        })
    }
}

impl Cluster {
    /// The cluster as a host knows it whose engine was started with `fabric`, and listens for others at `peers`.
    ///
    /// # Errors
    /// When another host of the cluster has this one's name.
    pub fn new(
        found: Found,
        config: &Config,
        fabric: &Fabric,
        (engine, peers): (EngineHandle, Vec<Option<SocketAddr>>),
        events: Arc<EventLog>,
    ) -> Result<Arc<Cluster>, Failure> {
        let is_certified = found.security.is_some();
        let standing = Standing {
            config: Arc::new(config.clone()),
            directory: found.directory,
            copy: found.copy,
            security: found.security,
            peers,
        };
        let cluster = Arc::new(Cluster {
            id: fabric.cluster,
            me: fabric.node.host,
            incarnation: fabric.incarnation,
            events,
            standing: RwLock::new(Arc::new(standing)),
            engine,
            view: RwLock::default(),
            revision: watch::Sender::new(0),
            progress: Mutex::default(),
            keeper: Mutex::default(),
            attachments: Mutex::default(),
            reports: Mutex::default(),
            pools: pools::Pools::default(),
            silent_members: Mutex::default(),
            told_members: Mutex::default(),
            member: Mutex::new(found.member),
            is_untold: AtomicBool::new(false),
            away: Mutex::new(found.away),
            has_left: AtomicBool::new(false),
            certificates_came: watch::Sender::new(is_certified),
            outgrown: watch::Sender::new(None),
        });
        cluster.check_name(&found.changes)?;
        cluster.take(found.changes);
        Ok(cluster)
    }

    /// Two hosts of one name would be one to people.
    fn check_name(&self, changes: &Changes) -> Result<(), Failure> {
        let hosts = changes.entries.iter().filter(|entry| entry.key.starts_with(HOSTS));
        let mut hosts = hosts.filter_map(|entry| ClusterHost::read(entry).ok()).map(|host| host.record);
        match hosts.find(|host| host.name == self.config().name && host.id != self.me) {
            None => Ok(()),
            Some(other) => Err(Failure::new(
                Code::Conflict,
                format!("there is a host `{}` in this cluster already, with the id {}", other.name, other.id),
            )
            .hint("give this one another `name`, or remove the other if it is gone for good")),
        }
    }

    /// Begins to serve the cluster's disks, and to follow its records. The devices are open.
    ///
    /// # Errors
    /// When the engine is gone, or the directory does not take this host's record.
    pub async fn begin(self: &Arc<Cluster>, notices: UnboundedReceiver<Notice>) -> Result<(), Failure> {
        // First, so that the directory's clock is known.
        let state = self.state().await?;
        self.beat(&state).await;
        let host = self.engine.call(|answer| Command::Host { answer }).await?;
        if self.stands_alone() {
            self.settle_former(&host, &state).await?;
            self.adopt_found(&host).await?;
        }
        match self.put_host(&host).await {
            Err(failure) if self.directory_away().is_some() => tracing::warn!("{failure}"),
            done => done?,
        }
        let view = self.view();
        self.tell_nodes(&view)?;
        for disk in view.disks.values() {
            self.tell_disk(disk).await?;
        }
        tokio::spawn(Arc::clone(self).follow());
        tokio::spawn(Arc::clone(self).serve_notices(notices));
        tokio::spawn(Arc::clone(self).keep_record());
        tokio::spawn(Arc::clone(self).clean_up());
        tokio::spawn(Arc::clone(self).keep());
        tokio::spawn(Arc::clone(self).keep_sizes());
        tokio::spawn(Arc::clone(self).keep_following());
        tokio::spawn(Arc::clone(self).keep_schedules());
        tokio::spawn(Arc::clone(self).keep_certificate());
        tokio::spawn(Arc::clone(self).keep_attachments());
        tokio::spawn(Arc::clone(self).watch_members());
        tokio::spawn(Arc::clone(self).tend_members());
        tokio::spawn(Arc::clone(self).be_watched());
        Ok(())
    }

    /// The cluster.
    pub fn id(&self) -> ClusterId {
        self.id
    }

    /// Whether this host has its directory for itself: nobody can join it as it is.
    pub fn stands_alone(&self) -> bool {
        matches!(self.standing().directory, Shared::Embedded(_))
    }

    /// Told whenever records have changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    /// The records as they were last heard of.
    pub fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Disks and policies in the form of a single host's directory.
    pub fn records(&self) -> Arc<Records> {
        Arc::clone(&self.view().records)
    }

    /// Why the directory does not answer, while it does not.
    pub fn directory_away(&self) -> Option<String> {
        let away = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        let text = |away: &Failure| match (&away.hint, away.code) {
            (Some(hint), Code::Refused) => format!("{}: {hint}", away.error),
            (Some(_) | None, _) => away.error.clone(),
        };
        away.as_ref().map(text)
    }

    /// What to do about a directory that answers and is not this host's, while it is so.
    pub fn directory_remedy(&self) -> Option<(String, String)> {
        let away = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        let away = away.as_ref().filter(|away| away.code == Code::Refused)?;
        Some((away.error.clone(), away.hint.clone()?))
    }

    /// What is wrong with this host's data directory.
    pub fn data_trouble(&self) -> Vec<String> {
        let copy = self.copy().and_then(|copy| copy.trouble());
        let copy = copy.map(|why| {
            format!("no copy of the directory is kept, which would count if etcd lost its data ({why})")
        });
        copy.into_iter().chain(self.events.trouble()).chain(data_dir::low(&self.config().data_dir)).collect()
    }

    /// What a heartbeat tells of this host's devices and groups.
    fn device_reports(&self) -> DeviceBeat {
        DeviceBeat::of(&self.reports.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What the engine knows.
    ///
    /// # Errors
    /// When it is gone.
    pub async fn state(&self) -> Result<ClusterState, EngineError> {
        self.engine.call(|answer| Command::cluster(ClusterCommand::State { answer })).await
    }

    /// Bytes per second at which a component is brought up to date, by this host as the disk's owner.
    pub fn pace(&self, component: ComponentId) -> Option<f64> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).pace(component)
    }

    /// Bytes per second of a disk that is owned here and moves into another layout, once that is known.
    pub fn pace_of_move(&self, disk: DiskId) -> Option<f64> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).pace_of_move(disk)
    }

    /// A component as people know it: by its host.
    fn component_text(&self, view: &View, disk: DiskId, component: ComponentId) -> String {
        let member = view.disks.get(&disk).and_then(|disk| disk.record.roster.member(component));
        match member {
            Some(member) => format!("the copy on host {}", view.host_name(member.node.host)),
            None => format!("component {component}"),
        }
    }

    /// All capacity devices of the cluster, as if all hosts were there.
    pub fn all_spaces(&self) -> Vec<DeviceSpace> {
        self.view().spaces(|_| true)
    }

    /// All capacity devices of the cluster; those of hosts that this one cannot reach, or that are being serviced, take
    /// nothing new.
    ///
    /// # Errors
    /// When the engine is gone.
    pub async fn spaces(&self) -> Result<Vec<DeviceSpace>, Failure> {
        let state = self.state().await?;
        let takes =
            |host: &ClusterHost| self.reaches(&state, host) && host.record.maintenance == Maintenance::Off;
        Ok(self.view().spaces(takes))
    }

    /// Whether this host reaches a node, as one of its own at any rate.
    pub fn is_up(&self, state: &ClusterState, node: NodeId) -> bool {
        node.host == self.me || state.links.get(&node) == Some(&true)
    }

    /// Whether this host reaches all nodes of another.
    pub fn reaches(&self, state: &ClusterState, host: &ClusterHost) -> bool {
        host.record.nodes.iter().all(|node| self.is_up(state, node.id))
    }

    /// Takes records in, and says which disks they change or remove. At a level that is not understood nothing is taken in
    /// any more, and the host ends.
    fn take(&self, changes: Changes) -> view::Difference {
        if let Err(why) = check_level(&changes.entries) {
            self.outgrow(why);
        }
        if self.outgrown.borrow().is_some() {
            return view::Difference::default();
        }
        let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = View::clone(&view);
        let difference = next.take(changes);
        let revision = next.revision;
        *view = Arc::new(next);
        drop(view);
        self.revision.send_replace(revision);
        difference
    }

    /// Takes a disk's record in that was read or written by this host: the watch would tell of it later.
    fn note(&self, disk: &ClusterDisk) {
        let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = View::clone(&view);
        next.note(disk);
        *view = Arc::new(next);
    }

    /// Takes in where a disk is attached, as this host has just recorded it.
    fn note_attached(&self, disk: DiskId, attached: Attached) {
        let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = View::clone(&view);
        next.note_attached(disk, attached);
        *view = Arc::new(next);
    }

    /// Takes in what this host has just told of its program.
    fn note_program(&self, version: u64, program: Program) {
        let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = View::clone(&view);
        next.note_program(version, self.me, program);
        *view = Arc::new(next);
    }

    /// Tells the directory at once what devices this host has now: a disk that is made next may stand on a new one. What it does
    /// not take is told again within a second.
    pub async fn tell_devices(&self) {
        let Ok(host) = self.engine.call(|answer| Command::Host { answer }).await else { return };
        if let Err(failure) = self.put_host(&host).await {
            tracing::debug!("{failure}");
        }
    }

    /// Puts this host's record, if it says something new. What people set in it stays.
    async fn put_host(&self, state: &HostState) -> Result<(), Failure> {
        if self.is_out() {
            return Err(Failure::refused("this host was taken out of its cluster")
                .hint("to have it back: `drystone host token` on another host, then `drystone host join --replace` on it"));
        }
        *self.reports.lock().unwrap_or_else(PoisonError::into_inner) = reports_of(state);
        for attempt in 0..3 {
            let known = self.view().hosts.get(&self.me).cloned();
            let known = match known.filter(|_| attempt == 0) {
                Some(known) => Some((known.version, ClusterHost::clone(&known.host))),
                None => self.fetch_host(self.me).await?,
            };
            let host = self.own_record(state, known.as_ref().map(|(_, host)| host));
            if known.as_ref().is_some_and(|(_, known)| *known == host) && self.has_told_program() {
                return Ok(());
            }
            if self.commit_own(known.map_or(0, |(version, _)| version), host).await? {
                return Ok(());
            }
        }
        Err(Failure::new(Code::Unreachable, "the directory does not take this host's record"))
    }

    /// A host's record as the directory has it now, with its version.
    async fn fetch_host(&self, id: base::HostId) -> Result<Option<(u64, ClusterHost)>, Failure> {
        let Some(entry) = self.directory().get(&ClusterHost::key(id)).await? else { return Ok(None) };
        let host =
            ClusterHost::read(&entry).map_err(|error| Failure::failed("read a host's record", error))?;
        Ok(Some((entry.version, host)))
    }

    /// Sets a host's record; false when it changed meanwhile.
    async fn commit_host(&self, expected: u64, host: ClusterHost) -> Result<bool, Failure> {
        Ok(self.commit_host_with(Vec::new(), expected, host).await?.is_some())
    }

    /// The same, as a whole with other changes; gives the version that it has then.
    async fn commit_host_with(
        &self,
        mut changes: Vec<Change>,
        expected: u64,
        host: ClusterHost,
    ) -> Result<Option<u64>, Failure> {
        changes.push(host.change(expected)?);
        match self.directory().commit(changes).await {
            Outcome::Done { version } => {
                let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
                let mut next = View::clone(&view);
                next.note_host(version, host);
                *view = Arc::new(next);
                Ok(Some(version))
            }
            Outcome::Unwritten { why } => Err(unwritten(why)),
            Outcome::Conflict { .. } | Outcome::Unknown => Ok(None),
        }
    }

    fn own_record(&self, state: &HostState, known: Option<&ClusterHost>) -> ClusterHost {
        let (now, standing) = (self.directory_now(), self.standing());
        let former = |id| known?.record.devices.iter().find(|device| device.id == id);
        let device = |device: &engine::DeviceState| DeviceRecord {
            id: device.id,
            name: device.path.display().to_string(),
            group: device.group,
            node: NodeId { host: self.me, shard: device.shard },
            capacity_bytes: device.capacity_bytes,
            free_bytes: device.capacity_bytes.saturating_sub(device.used_bytes),
            reserved_bytes: device.reserved_bytes,
            component_count: device.component_count,
            component_count_max: device.component_count_max,
            state: device_state(device, former(device.id).map(|former| &former.state), now),
            leaving: former(device.id).and_then(|former| former.leaving.clone()),
            spins: device.spins && self.view().level.level >= Level::LIMITS,
        };
        let node = |(shard, address): (u8, &Option<SocketAddr>)| NodeRecord {
            id: NodeId { host: self.me, shard },
            peer_addresses: address.iter().map(SocketAddr::to_string).collect(),
            incarnation: self.incarnation,
        };
        let config = &standing.config;
        let api: Vec<String> = config.http.iter().map(|listen| api_text(&standing, listen)).collect();
        ClusterHost {
            record: HostRecord {
                id: self.me,
                name: config.name.clone(),
                nodes: (0u8..).zip(&standing.peers).map(node).collect(),
                api_address: api.first().cloned().unwrap_or_default(),
                fault_domain: config.cluster.fault_domain.clone(),
                maintenance: known.map_or(Maintenance::Off, |known| known.record.maintenance),
                devices: state.devices.iter().filter(|device| device.is_capacity).map(device).collect(),
                release: RELEASE.to_owned(),
                clock_ahead_ns: 0,
                data_trouble: Vec::new(),
                reports: ::cluster::DeviceReports::default(),
                last_seen: base::Instant(0),
            },
            api,
            nbd: config.nbd.iter().map(listen_text).collect(),
            nbd_tls: config.tls.as_ref().is_some_and(|tls| tls.required),
            certificate: self.certificate(),
            member: self.config().cluster.member.map(|place| ::etcd::process::url_of(place.peers)),
            level: self.view().level.level,
        }
    }
}

/// Where clients of the API connect: with the address that other hosts know where it is every one.
fn api_text(standing: &Standing, listen: &Listen) -> String {
    match (listen, &standing.security, standing.peers.first()) {
        (Listen::Tcp(address), Some(_), Some(Some(known))) => {
            format!("https://{}", address_of(*address, known.ip()))
        }
        _ => listen_text(listen),
    }
}

/// The nodes of a host's groups, as its record tells.
fn groups_of(changes: &Changes, host: HostId) -> BTreeMap<GroupId, u8> {
    let mine = changes.entries.iter().find(|entry| entry.key == ClusterHost::key(host));
    let devices = mine.and_then(|entry| ClusterHost::read(entry).ok()).map(|host| host.record.devices);
    devices.into_iter().flatten().map(|device| (device.group, device.node.shard)).collect()
}

/// How a device is, and since when: it counts from when that was first said.
fn device_state(
    device: &engine::DeviceState,
    former: Option<&DeviceState>,
    now: base::Instant,
) -> DeviceState {
    match (&device.failure, device.is_away, former) {
        (_, true, Some(DeviceState::Away { since })) => DeviceState::Away { since: *since },
        (_, true, _) => DeviceState::Away { since: now },
        (Some(error), false, Some(DeviceState::Failed { since, .. })) => {
            DeviceState::Failed { since: *since, error: error.clone() }
        }
        (Some(error), false, _) => DeviceState::Failed { since: now, error: error.clone() },
        (None, false, _) => DeviceState::InService,
    }
}
