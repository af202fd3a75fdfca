//! An engine in memory for the tests of the control plane: it keeps what it is told and can be told to fail.

use crate::cluster::{self, Cluster};
use crate::config::Config;
use crate::control::Control;
use crate::directory::HostStore;
use crate::events::EventLog;
use crate::http::caller::Caller;
use crate::http::doors::Doors;
use crate::http::router;
use ::cluster::Encryption;
use api::Client;
use base::request::RequestError;
use base::{ClusterId, ComponentId, DeviceId, DiskId, GroupId, HostId};
use engine::{
    ClusterCommand, ClusterState, Command, DeviceState, DiskRecord, DiskState, EngineError, EngineHandle,
    GroupSpec, GroupState, HeldComponent, HostState, Locking, Order, OrderFailure, PassState,
};
use failure::Failure;
use iostats::{Operation, Recorder};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wire::{NewComponent, Refusal};

/// Size of every device that the fake opens.
pub const DEVICE_SIZE: u64 = 1 << 40;

/// What the fake engine holds; tests look in and change it.
#[derive(Default)]
pub struct Fake {
    /// Disks that are served.
    pub disks: BTreeMap<DiskId, DiskRecord>,
    /// Components that are on the devices.
    pub components: BTreeMap<ComponentId, NewComponent>,
    /// Groups with their devices.
    pub groups: BTreeMap<GroupId, Vec<(DeviceId, PathBuf, bool, bool)>>,
    /// The next command of this name fails so.
    pub fail: Option<(&'static str, EngineError)>,
    /// Names of the commands that came, in order.
    pub commands: Vec<&'static str>,
    next: u128,
    stopped: bool,
}

/// A fake engine and the way to it.
pub fn start() -> (EngineHandle, Arc<Mutex<Fake>>) {
    restart(Fake::default())
}

/// The same on what a former one left behind on its devices.
pub fn restart(former: Fake) -> (EngineHandle, Arc<Mutex<Fake>>) {
    let fake = Arc::new(Mutex::new(Fake {
        components: former.components,
        groups: former.groups,
        next: former.next.max(1),
        ..Fake::default()
    }));
    let shared = Arc::clone(&fake);
    let handle = EngineHandle::new(move |command| {
        let mut fake = shared.lock().expect("no test panicked with it");
        if fake.stopped {
            return Err(EngineError::Stopped);
        }
        fake.answer(command);
        Ok(())
    });
    (handle, fake)
}

impl Fake {
    fn check(&mut self, name: &'static str) -> Result<(), EngineError> {
        self.commands.push(name);
        match self.fail.take() {
            Some((failing, error)) if failing == name => Err(error),
            other => {
                self.fail = other;
                Ok(())
            }
        }
    }

    fn fresh(&mut self) -> u128 {
        self.next += 1;
        self.next
    }

    fn open_group(&mut self, spec: GroupSpec) -> Result<GroupId, EngineError> {
        self.check("open_group")?;
        let known = self.groups.iter().find(|(_, devices)| devices[0].1 == spec.log);
        if let Some((id, _)) = known {
            return Ok(*id);
        }
        let id = GroupId(self.fresh());
        let alone = spec.capacity.is_empty();
        let mut devices = vec![(DeviceId(self.fresh()), spec.log, true, alone)];
        for path in spec.capacity {
            devices.push((DeviceId(self.fresh()), path, false, true));
        }
        self.groups.insert(id, devices);
        Ok(id)
    }

    fn remove_device(&mut self, device: DeviceId) -> Result<(), EngineError> {
        self.check("remove_device")?;
        if self.components.values().any(|one| one.device == device) {
            return Err(EngineError::Refused("components stand on it".to_owned()));
        }
        for devices in self.groups.values_mut() {
            devices.retain(|(id, ..)| *id != device);
        }
        self.groups.retain(|_, devices| devices.iter().any(|(_, _, is_log, _)| *is_log));
        Ok(())
    }

    fn order(&mut self, order: Order) -> Result<(), OrderFailure> {
        let name = match &order {
            Order::Create(_) => "create",
            Order::Change(_) => "change",
            Order::Delete(_) => "delete",
        };
        self.check(name).map_err(|_| OrderFailure::Refused(Refusal::DeviceLost))?;
        match order {
            Order::Create(new) | Order::Change(new) => drop(self.components.insert(new.id, new)),
            Order::Delete(id) => drop(self.components.remove(&id)),
        }
        Ok(())
    }

    fn cluster_state(&self) -> ClusterState {
        let held = |new: &NewComponent| HeldComponent {
            disk: new.disk,
            shard: 0,
            promised: 0,
            used_bytes: 4096,
            size: new.size,
            reservation: new.reservation,
            description: base::checksum::crc32c(&new.disk_label),
            compressed_bytes: 0,
            packed_bytes: 0,
            is_rewriting: false,
            snapshots: Vec::new(),
        };
        let components = self.components.iter().map(|(id, new)| (*id, held(new)));
        ClusterState { components: components.collect(), ..ClusterState::default() }
    }

    fn answer_cluster(&mut self, command: ClusterCommand) {
        match command {
            ClusterCommand::Open { disk, answer, .. } => {
                self.disks.insert(disk.id, *disk);
                let _ = answer.send(());
            }
            ClusterCommand::Forget { disk, answer } => {
                self.disks.remove(&disk);
                let _ = answer.send(());
            }
            ClusterCommand::GiveBack { answer, .. } => drop(answer.send(Ok(()))),
            ClusterCommand::Component { order, answer, .. } => drop(answer.send(self.order(order))),
            ClusterCommand::State { answer } => drop(answer.send(self.cluster_state())),
            ClusterCommand::Join { answer, .. } => drop(answer.send(Ok(vec![None]))),
            ClusterCommand::Nodes { .. }
            | ClusterCommand::Recorded { .. }
            | ClusterCommand::FetchFailed { .. }
            | ClusterCommand::Committed { .. }
            | ClusterCommand::Claim { .. }
            | ClusterCommand::Room { .. }
            | ClusterCommand::Admit { .. }
            | ClusterCommand::CutOff { .. } => {}
        }
    }

    fn state(record: &DiskRecord) -> DiskState {
        let mut recorder = Recorder::new();
        let arrival = recorder.arrive(base::Instant(1000), Operation::Write, 0, 8);
        recorder.complete(base::Instant(101_000), arrival, true);
        DiskState {
            id: record.id,
            clients: Vec::new(),
            outstanding: 0,
            overdue: 0,
            statistics: Arc::new(recorder.statistics()),
        }
    }

    fn host(&self) -> HostState {
        let device = |group: GroupId, found: &(DeviceId, PathBuf, bool, bool)| DeviceState {
            id: found.0,
            path: found.1.clone(),
            group,
            shard: 0,
            is_log: found.2,
            is_capacity: found.3,
            spins: false,
            encryption: match found.1.starts_with("/dev/mapper") {
                true => Encryption::Luks2,
                false => Encryption::None,
            },
            size: DEVICE_SIZE,
            capacity_bytes: if found.3 { DEVICE_SIZE } else { 0 },
            used_bytes: 0,
            reserved_bytes: 0,
            component_count: self.components.values().filter(|one| one.device == found.0).count() as u32,
            component_count_max: 4096,
            failure: None,
            is_away: false,
            damaged_blocks: 0,
            read_errors: 0,
            busy: Duration::from_millis(1500),
            requests: 300,
        };
        let group = |id: &GroupId| GroupState {
            id: *id,
            log_bytes: 1 << 30,
            log_used_bytes: 4096,
            congestion: 3,
            destage_pending_bytes: 0,
            destaged_bytes: 8192,
            compressed_bytes: 4096,
            packed_bytes: 1024,
            memory_bytes: 0,
            scrub_progress: 0.5,
            scrub_rounds: 1,
        };
        let devices = self.groups.iter().flat_map(|(id, found)| found.iter().map(|found| device(*id, found)));
        HostState {
            cluster: ClusterId(77),
            uptime: Duration::from_secs(5),
            groups: self.groups.keys().map(group).collect(),
            devices: devices.collect(),
            buffer_bytes: (1, 2),
            reads_waiting: 0,
        }
    }

    fn answer(&mut self, command: Command) {
        match command {
            Command::OpenGroup { spec, answer } => drop(answer.send(self.open_group(spec))),
            Command::AddCapacity { group, path, answer, .. } => {
                let added = self.check("add_capacity").map(|()| {
                    let id = DeviceId(self.fresh());
                    self.groups.get_mut(&group).expect("the group is there").push((id, path, false, true));
                    id
                });
                drop(answer.send(added));
            }
            Command::RemoveDevice { device, answer, .. } => drop(answer.send(self.remove_device(device))),
            Command::Convert { answer } => drop(answer.send(0)),
            Command::Rewrite { answer, .. } => drop(answer.send(1)),
            Command::Host { answer } => drop(answer.send(self.host())),
            Command::Loads { answer } => drop(answer.send(Vec::new())),
            Command::Lock { answer, .. } => drop(answer.send(Locking::Locked(0))),
            Command::Unlock { answer, .. } => {
                let _ = answer.send(());
            }
            Command::Disks { only, answer } => {
                let chosen = self.disks.values().filter(|disk| only.is_none_or(|id| id == disk.id));
                drop(answer.send(chosen.map(Fake::state).collect()));
            }
            Command::Found { answer } => drop(answer.send(Vec::new())),
            Command::Survey { answer, .. } => drop(answer.send(Err(RequestError::NoSnapshot))),
            Command::CopyUp { answer, .. } | Command::CopyBack { answer, .. } => {
                let _ = answer.send(Ok(()));
            }
            Command::Pass { answer, .. } => drop(answer.send(PassState::default())),
            Command::Cluster(command) => self.answer_cluster(*command),
            Command::Stop { answer } => {
                self.stopped = true;
                let _ = answer.send(());
            }
        }
    }
}

/// A control plane over the fake, as a start of the host makes it.
///
/// # Errors
/// Why the host does not start.
pub async fn control(config: Config, engine: EngineHandle) -> Result<Arc<Control>, Failure> {
    let store = HostStore::open(&config.directory_file(), HostId(1))?;
    let found = cluster::find(&config, &store, None).await?;
    let fabric = found.fabric(&config, &store)?;
    let events = Arc::new(EventLog::open(&config.data_dir, &config.name)?);
    let (_, notices) = tokio::sync::mpsc::unbounded_channel();
    let cluster = Cluster::new(found, &config, &fabric, (engine.clone(), vec![None]), events)?;
    Control::start(store, cluster, notices, (engine, Arc::new(Doors::default()))).await
}

/// An API on a fake engine that is kept in a folder, and the way to it.
///
/// # Panics
/// When it does not start: it is for tests.
pub async fn api(folder: &Path) -> Client {
    let text = format!("data_dir = \"{}\"\n[[group]]\nlog = \"/dev/log\"\n", folder.display());
    let config = Config::parse(&text, folder, false).expect("a configuration");
    let (engine, _) = start();
    let router = router(control(config, engine).await.expect("it starts"));
    let socket = folder.join("api.sock");
    let listener = tokio::net::UnixListener::bind(&socket).expect("a socket");
    tokio::spawn(async move {
        axum::serve(listener, router.into_make_service_with_connect_info::<Caller>()).await
    });
    Client::Unix(socket)
}
