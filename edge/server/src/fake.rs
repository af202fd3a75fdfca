//! An engine in memory for the tests of the control plane: it keeps what it is told and can be told to fail.

use crate::engine::{
    Command, DeviceState, DiskRecord, DiskState, EngineError, EngineHandle, GroupSpec, GroupState, HostState,
    Locking,
};
use base::{ClusterId, DeviceId, DiskId, GroupId};
use iostats::{Operation, Recorder};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Size of every device that the fake opens.
pub const DEVICE_SIZE: u64 = 1 << 40;

/// What the fake engine holds; tests look in and change it.
#[derive(Default)]
pub struct Fake {
    /// Disks that are served.
    pub disks: BTreeMap<DiskId, DiskRecord>,
    /// Disks whose components are on the devices.
    pub on_devices: BTreeMap<DiskId, DiskRecord>,
    /// Groups with their devices.
    pub groups: BTreeMap<GroupId, Vec<(DeviceId, PathBuf, bool, bool)>>,
    /// The next command of this name fails so.
    pub fail: Option<(&'static str, EngineError)>,
    /// Names of the commands that came, in order.
    pub commands: Vec<&'static str>,
    /// Epochs with which disks were opened.
    pub epochs: Vec<u32>,
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
        on_devices: former.on_devices,
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
        let holds = |record: &DiskRecord| record.layout.components().any(|(_, c)| c.device == device);
        if self.on_devices.values().any(holds) {
            return Err(EngineError::Refused("components stand on it".to_owned()));
        }
        for devices in self.groups.values_mut() {
            devices.retain(|(id, ..)| *id != device);
        }
        self.groups.retain(|_, devices| devices.iter().any(|(_, _, is_log, _)| *is_log));
        Ok(())
    }

    fn create(&mut self, disk: DiskRecord) -> Result<(), EngineError> {
        self.check("create")?;
        self.on_devices.insert(disk.id, disk.clone());
        self.disks.insert(disk.id, disk);
        Ok(())
    }

    fn open(&mut self, disk: DiskRecord) -> Result<(), EngineError> {
        self.check("open")?;
        self.epochs.push(disk.epoch);
        match self.on_devices.get(&disk.id) {
            Some(found) if found.size == disk.size => {
                self.disks.insert(disk.id, disk);
                Ok(())
            }
            Some(_) => Err(EngineError::Refused("its components have another size".to_owned())),
            None => Err(EngineError::Refused("its components are not there".to_owned())),
        }
    }

    fn state(record: &DiskRecord) -> DiskState {
        let mut recorder = Recorder::new();
        let arrival = recorder.arrive(base::Instant(1000), Operation::Write, 0, 8);
        recorder.complete(base::Instant(101_000), arrival, true);
        DiskState {
            id: record.id,
            allocated_bytes: 4096,
            clients: Vec::new(),
            outstanding: 0,
            overdue: 0,
            unavailable: None,
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
            size: DEVICE_SIZE,
            capacity_bytes: if found.3 { DEVICE_SIZE } else { 0 },
            used_bytes: 0,
            reserved_bytes: 0,
            component_count: 0,
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
            Command::Host { answer } => drop(answer.send(self.host())),
            Command::CreateDisk { disk, answer } => drop(answer.send(self.create(disk))),
            Command::OpenDisk { disk, answer } => drop(answer.send(self.open(disk))),
            Command::UpdateDisk { disk, answer } => {
                let updated = self.check("update").map(|()| {
                    self.on_devices.insert(disk.id, disk.clone());
                    self.disks.insert(disk.id, disk);
                });
                drop(answer.send(updated));
            }
            Command::DeleteDisk { disk, answer } => {
                let deleted = self.check("delete").map(|()| {
                    self.on_devices.remove(&disk);
                    self.disks.remove(&disk);
                });
                drop(answer.send(deleted));
            }
            Command::Lock { answer, .. } => drop(answer.send(Locking::Locked(0))),
            Command::Unlock { answer, .. } => {
                let _ = answer.send(());
            }
            Command::Disks { only, answer } => {
                let chosen = self.disks.values().filter(|disk| only.is_none_or(|id| id == disk.id));
                drop(answer.send(chosen.map(Fake::state).collect()));
            }
            Command::Found { answer } => drop(answer.send(self.on_devices.values().cloned().collect())),
            Command::Cluster(command) => drop(command),
            Command::Stop { answer } => {
                self.stopped = true;
                let _ = answer.send(());
            }
        }
    }
}
