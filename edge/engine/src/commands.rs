//! Carries out what the control plane asks: groups, devices, disks, states.

use crate::command::{Answer, Command, Create, DiskRecord, GroupSpec, Told};
use crate::devices::{self, Belonging, OpenDevice};
use crate::engine::{Device, Engine, Target};
use crate::error::EngineError;
use crate::mailbox::Message;
use crate::prepared::{Prepared, Written};
use crate::registry::Leaving;
use crate::state::{ClientState, DeviceLoad, DeviceState, DiskState, GroupState, HostState};
use base::request::{Request, RequestError, StatusOf};
use base::{DeviceId, DiskId, GroupId, HostId, Instant};
use diskgroup::format::FORMAT_VERSION;
use diskgroup::format::superblock::{MEMBERS_MAX, Superblock};
use diskgroup::{Effort, Event as GroupEvent, Group, Latencies, Lost, RemoveRefusal};
use node::{GroupKey, Token};
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long a stopping engine waits for its clients and requests.
const STOP_PATIENCE: Duration = Duration::from_secs(20);

/// A superblock that is to be written to a device; none if the device is to be blank.
type Rewrite = (PathBuf, File, Option<Superblock>);

impl Engine {
    pub(crate) fn command(&mut self, command: Command) {
        match command {
            Command::OpenGroup { spec, answer } => self.open_group(spec, answer),
            Command::AddCapacity { group, path, file_size, create, answer } => {
                self.add_capacity(group, path, file_size, create, answer);
            }
            Command::RemoveDevice { device, lost, answer } => self.remove_device(device, lost, answer),
            Command::Convert { answer } => {
                let _ = answer.send(self.convert_groups());
                self.node.follow_policies(self.now(), &mut self.outputs);
            }
            Command::Rewrite { disk, answer } => {
                let begun = self.node.rewrite_disk(self.now(), disk, &mut self.outputs);
                let _ = answer.send(begun);
            }
            Command::Host { answer } => drop(answer.send(self.host_state())),
            Command::Loads { answer } => drop(answer.send(self.device_loads())),
            Command::Lock { disk, lock, answer } => drop(answer.send(self.lock(disk, lock))),
            Command::Unlock { disk, answer } => {
                self.registry.locks.remove(&disk);
                let _ = answer.send(());
            }
            Command::Disks { only, answer } => drop(answer.send(self.disk_states(only))),
            Command::Found { answer } => drop(answer.send(self.node.found())),
            Command::Survey { disk, of, range, answer } => self.survey(disk, of, range, answer),
            Command::CopyUp { disk, range, answer } => self.copy_up(disk, &range, answer),
            Command::CopyBack { disk, snapshot, range, answer } => {
                self.copy_back(disk, snapshot, range, answer);
            }
            Command::Pass { order, answer } => drop(answer.send(self.order_pass(order))),
            Command::Cluster(command) => self.cluster_command(*command),
            Command::Stop { answer } => {
                self.registry.stop = Some((answer, std::time::Instant::now() + STOP_PATIENCE));
                self.begin_stop();
            }
        }
    }

    fn belonging(&self) -> Belonging {
        Belonging { cluster: self.settings.fabric.cluster, host: HostId(0) }
    }

    /// Opening reads and formatting writes: that happens on a thread of its own.
    fn open_group(&mut self, spec: GroupSpec, answer: Answer<Result<GroupId, EngineError>>) {
        let belonging = self.belonging();
        let siblings = Arc::clone(&self.siblings);
        in_background(move || {
            let result = devices::open_group(&spec, belonging);
            // The same engine as ever opens it.
            let home = result.as_ref().map_or(0, |open| siblings.home_of(open[0].superblock.group));
            let _ = siblings.send(home, Message::Prepared(Box::new(Prepared::Group { result, answer })));
        });
    }

    fn add_capacity(
        &mut self,
        group: GroupId,
        path: PathBuf,
        file_size: Option<u64>,
        create: Create,
        answer: Answer<Result<DeviceId, EngineError>>,
    ) {
        let found = self.node.groups().find(|(_, one)| one.id() == group);
        let Some((key, state)) = found else {
            return drop(
                answer
                    .send(Err(EngineError::Refused(format!("there is no disk group {group} on this host")))),
            );
        };
        let Some(place) = state.free_index() else {
            let why = format!("disk group {group} is full: it has a log device and seven capacity devices");
            return drop(answer.send(Err(EngineError::Refused(why))));
        };
        let members: Vec<Superblock> = state.superblocks().to_vec();
        let belonging = self.belonging();
        let mailbox = self.mailbox.clone();
        in_background(move || {
            let result =
                devices::open_capacity(&path, file_size, create, belonging, &members, place).map(Box::new);
            let prepared = Prepared::Capacity { group: key, result, answer };
            let _ = mailbox.send(Message::Prepared(Box::new(prepared)));
        });
    }

    pub(crate) fn prepared(&mut self, prepared: Prepared) {
        match prepared {
            Prepared::Group { result: Err(error), answer } => drop(answer.send(Err(error))),
            Prepared::Group { result: Ok(open), answer } => self.take_group(open, answer),
            Prepared::Capacity { result: Err(error), answer, .. } => drop(answer.send(Err(error))),
            Prepared::Capacity { group, result: Ok(open), answer } => self.take_capacity(group, open, answer),
            Prepared::Written { result, then } => self.written(result, then),
        }
    }

    fn take_group(&mut self, open: Vec<OpenDevice>, answer: Answer<Result<GroupId, EngineError>>) {
        let first = open[0].superblock.clone();
        if self.node.groups().any(|(_, group)| group.id() == first.group) {
            let why = format!("disk group {} is open already", first.group);
            return drop(answer.send(Err(EngineError::Refused(why))));
        }
        let mut places: Vec<Option<Device>> = Vec::new();
        let mut superblocks = Vec::new();
        for one in open {
            let place = one.superblock.index as usize;
            while places.len() < place {
                superblocks.push(Superblock::vacant(&first, places.len() as u8));
                places.push(None);
            }
            match self.add_device(one) {
                Ok(device) => {
                    superblocks.push(device.open.superblock.clone());
                    places.push(Some(device));
                }
                Err(error) => return drop(answer.send(Err(error))),
            }
        }
        let settings = diskgroup::Settings {
            table_bytes_max: self.settings.table_bytes as usize,
            // Half of the buffers may keep what waits in the log: reading that back to destage it costs more than the
            // write itself.
            retained_bytes_max: (self.settings.buffer_bytes / 2) as usize,
            scrub_bytes_per_second: self.settings.scrub_bytes_per_second,
            ..diskgroup::Settings::default()
        };
        let mut outputs = Vec::new();
        let mut group = Group::open(superblocks, settings, self.pool.clone(), self.now(), &mut outputs);
        for device in places.iter().flatten() {
            if let Some(fault) = &device.open.fault {
                group.note_missing(device.open.superblock.index, fault);
            }
        }
        let key = self.node.add_group(group, outputs, &mut self.outputs);
        while self.devices.len() <= key.0 as usize {
            self.devices.push(Vec::new());
        }
        self.devices[key.0 as usize] = places;
        self.registry.opening.push((key, answer));
        self.share_table_memory();
    }

    /// Divides the memory for tables among the groups: the setting bounds all of them together.
    fn share_table_memory(&mut self) {
        let groups: Vec<GroupKey> = self.node.groups().map(|(key, _)| key).collect();
        let each = self.settings.table_bytes as usize / groups.len().max(1);
        for key in groups {
            self.node.group_mut(key).expect("it was there just now").bound_tables(each);
        }
    }

    fn add_device(&mut self, open: OpenDevice) -> Result<Device, EngineError> {
        use std::os::fd::AsRawFd;
        let failed = |error| EngineError::Device(format!("register {}: {error}", open.path.display()));
        self.siblings.note_device(open.superblock.device, self.shard);
        let Some(file) = &open.file else { return Ok(Device { open, slot: None }) };
        let slot = self.ring.add_file(file.as_raw_fd()).map_err(failed)?;
        if let (None, Ok(copy)) = (&open.fault, file.try_clone()) {
            self.sizes.add(open.superblock.device, open.path.clone(), copy, open.superblock.size);
        }
        Ok(Device { open, slot: Some(slot) })
    }

    pub(crate) fn group_opened(&mut self, key: GroupKey, event: GroupEvent) {
        let Some(index) = self.registry.opening.iter().position(|(opening, _)| *opening == key) else {
            return;
        };
        let (_, answer) = self.registry.opening.remove(index);
        match event {
            GroupEvent::OpenFailed(error) => {
                let path = self.path_of(key, 0);
                self.close_group(key);
                drop(
                    answer.send(Err(EngineError::Device(format!("open the disk group of {path}: {error}")))),
                );
            }
            _ => {
                self.fail_unfit(key);
                let id = self.node.group(key).map(Group::id).expect("it has just been opened");
                drop(answer.send(Ok(id)));
            }
        }
    }

    fn close_group(&mut self, key: GroupKey) {
        self.node.remove_group(key);
        self.share_table_memory();
        for device in std::mem::take(&mut self.devices[key.0 as usize]).into_iter().flatten() {
            self.sizes.remove(device.open.superblock.device);
            if let Some(slot) = device.slot
                && let Err(error) = self.ring.remove_file(slot)
            {
                tracing::warn!("unregister {}: {error}", device.open.path.display());
            }
        }
    }

    /// Devices of a group that were found to be unfit when they were opened go out of service.
    fn fail_unfit(&mut self, key: GroupKey) {
        let devices = self.devices[key.0 as usize].iter().flatten();
        let unfit = devices.filter(|device| device.slot.is_some());
        let unfit: Vec<(u8, String)> = unfit
            .filter_map(|device| Some((device.open.superblock.index, device.open.fault.clone()?)))
            .collect();
        let now = self.now();
        for (place, why) in unfit {
            self.node.fail_member(now, key, place, &why, &mut self.outputs);
        }
    }

    /// A device has become shorter than its datastore while it was in use.
    pub(crate) fn shrunk(&mut self, device: DeviceId, why: &str) {
        let Some(key) = self.node.group_of(device) else { return };
        let Some(place) = self.node.group(key).and_then(|group| group.member_of(device)) else { return };
        let now = self.now();
        self.node.fail_member(now, key, place, why, &mut self.outputs);
    }

    /// Makes a formatted device part of an open group: all the group's superblocks name it before it is used.
    fn take_capacity(
        &mut self,
        key: GroupKey,
        open: Box<OpenDevice>,
        answer: Answer<Result<DeviceId, EngineError>>,
    ) {
        let members = open.superblock.members;
        let quiet = self.expect_no_conversion();
        let rewritten =
            quiet.and_then(|()| self.rewritten(key, members)).and_then(|(superblocks, mut rewrites)| {
                let revision = superblocks.iter().map(|one| one.revision).max().unwrap_or(0);
                let format = superblocks[0].format;
                let own = Superblock { revision, format, ..open.superblock.clone() };
                rewrites.extend(copy_of(&open)?.map(|(path, file)| (path, file, Some(own))));
                Ok((superblocks, rewrites))
            });
        match rewritten {
            Ok((superblocks, rewrites)) => {
                self.write_superblocks(rewrites, Written::Joins { group: key, open, superblocks, answer });
            }
            Err(error) => drop(answer.send(Err(error))),
        }
    }

    /// Asks about blocks of a disk on behalf of the control plane.
    fn survey(&mut self, disk: DiskId, of: StatusOf, range: Range<u64>, answer: Answer<Told>) {
        let Some(key) = self.node.disk(disk).filter(|_| !self.is_stopping) else {
            return drop(answer.send(Err(RequestError::Stopping)));
        };
        let token = Token(self.targets.insert(Target::Survey(answer)) as u64);
        let request = Request::Status { of, offset: range.start, len: range.end - range.start };
        self.node.request(self.now(), token, key, request, &mut self.outputs);
    }

    /// Has a clone copy what it shares with its origin on behalf of the control plane.
    fn copy_up(&mut self, disk: DiskId, range: &Range<u64>, answer: Answer<Result<(), RequestError>>) {
        let Some(key) = self.node.disk(disk).filter(|_| !self.is_stopping) else {
            let _ = answer.send(Err(RequestError::Stopping));
            return;
        };
        let token = Token(self.targets.insert(Target::CopyUp(answer)) as u64);
        let request = Request::CopyUp { offset: range.start, len: (range.end - range.start) as u32 };
        self.node.request(self.now(), token, key, request, &mut self.outputs);
    }

    /// Converts groups of the former format, one after the other (docs/design/0044): superblocks are written that say so, all else stays as it is. Tells
    /// how many groups are of that format still.
    fn convert_groups(&mut self) -> usize {
        let is_plain = |group: &Group| !group.is_opening() && group.superblocks()[0].format < FORMAT_VERSION;
        let plain = self.node.groups().filter(|(_, group)| is_plain(group));
        let plain: Vec<(GroupKey, [DeviceId; MEMBERS_MAX])> =
            plain.map(|(key, group)| (key, group.superblocks()[0].members)).collect();
        let is_quiet = self.registry.writers == 0 && self.registry.leaving.is_empty();
        if let Some((key, members)) = plain.first().copied().filter(|_| is_quiet) {
            match self.rewritten(key, members) {
                Ok((mut superblocks, mut rewrites)) => {
                    let written = rewrites.iter_mut().filter_map(|one| one.2.as_mut());
                    superblocks.iter_mut().chain(written).for_each(|one| one.format = FORMAT_VERSION);
                    self.registry.converting = Some(key);
                    self.write_superblocks(rewrites, Written::Converts { group: key, superblocks });
                }
                Err(error) => self.converted(key, Err(error), Vec::new()),
            }
        }
        plain.len()
    }

    /// The superblocks of a group say that it is converted, or could not be written: then it is tried again.
    fn converted(&mut self, key: GroupKey, result: Result<(), EngineError>, superblocks: Vec<Superblock>) {
        self.registry.converting = None;
        let path = self.path_of(key, 0);
        match result.and_then(|()| self.take_superblocks(key, superblocks)) {
            Ok(()) => tracing::info!("the disk group of {path} has format {FORMAT_VERSION} from now on"),
            Err(error) => tracing::error!("convert the disk group of {path}: {error}"),
        }
    }

    /// Refuses that a device joins or leaves while superblocks are written for another reason.
    fn expect_no_conversion(&self) -> Result<(), EngineError> {
        match self.registry.converting {
            Some(key) => Err(EngineError::Refused(format!(
                "the disk group of {} is being converted: try again in a moment",
                self.path_of(key, 0)
            ))),
            None => Ok(()),
        }
    }

    /// The superblocks of a group with other members, and those of them that are to be written. A device that is out of service
    /// is not written to.
    fn rewritten(
        &self,
        key: GroupKey,
        members: [DeviceId; 8],
    ) -> Result<(Vec<Superblock>, Vec<Rewrite>), EngineError> {
        let group = self.node.group(key).ok_or(EngineError::Stopped)?;
        let mut superblocks = group.superblocks().to_vec();
        let revision = superblocks.iter().map(|one| one.revision).max().unwrap_or(0) + 1;
        for superblock in &mut superblocks {
            superblock.members = members;
            superblock.revision = revision;
        }
        let mut rewrites = Vec::new();
        let states = group.state().members;
        for ((device, superblock), state) in
            self.devices[key.0 as usize].iter().zip(&superblocks).zip(&states)
        {
            let Some(device) = device.as_ref().filter(|_| state.failure.is_none()) else { continue };
            rewrites
                .extend(copy_of(&device.open)?.map(|(path, file)| (path, file, Some(superblock.clone()))));
        }
        Ok((superblocks, rewrites))
    }

    /// Writes superblocks on a thread of its own: a device may take seconds to make them stable.
    fn write_superblocks(&mut self, rewrites: Vec<Rewrite>, then: Written) {
        self.registry.writers += 1;
        let mailbox = self.mailbox.clone();
        in_background(move || {
            let result = rewrites.iter().try_for_each(rewrite);
            let _ = mailbox.send(Message::Prepared(Box::new(Prepared::Written { result, then })));
        });
    }

    fn written(&mut self, result: Result<(), EngineError>, then: Written) {
        self.registry.writers -= 1;
        match then {
            Written::Joins { group, open, superblocks, answer } => {
                let joined = result.and_then(|()| self.take_member(group, *open, superblocks));
                drop(answer.send(joined));
            }
            Written::Converts { group, superblocks } => self.converted(group, result, superblocks),
            Written::Left { answer } => drop(answer.send(result)),
        }
    }

    fn take_member(
        &mut self,
        key: GroupKey,
        open: OpenDevice,
        superblocks: Vec<Superblock>,
    ) -> Result<DeviceId, EngineError> {
        if self.node.group(key).is_none() {
            return Err(EngineError::Stopped);
        }
        let format = superblocks[0].format;
        let superblock = Superblock { format, ..open.superblock.clone() };
        let device = self.add_device(open)?;
        let place = superblock.index as usize;
        let places = &mut self.devices[key.0 as usize];
        while places.len() <= place {
            places.push(None);
        }
        places[place] = Some(device);
        let group = self.node.group_mut(key).ok_or(EngineError::Stopped)?;
        group.add_member(superblock.clone());
        let mut superblocks = superblocks;
        match superblocks.get_mut(place) {
            Some(own) => *own = superblock.clone(),
            None => superblocks.push(superblock.clone()),
        }
        self.take_superblocks(key, superblocks)?;
        Ok(superblock.device)
    }

    fn take_superblocks(&mut self, key: GroupKey, superblocks: Vec<Superblock>) -> Result<(), EngineError> {
        let group = self.node.group_mut(key).ok_or(EngineError::Stopped)?;
        group.set_superblocks(superblocks.clone());
        for (device, superblock) in self.devices[key.0 as usize].iter_mut().zip(superblocks) {
            if let Some(device) = device {
                device.open.superblock = superblock;
            }
        }
        Ok(())
    }

    fn remove_device(&mut self, device: DeviceId, lost: Lost, answer: Answer<Result<(), EngineError>>) {
        if let Err(error) = self.expect_no_conversion() {
            return drop(answer.send(Err(error)));
        }
        let refuse = |why: String| Err(EngineError::Refused(why));
        let Some(key) = self.node.group_of(device) else {
            return drop(answer.send(refuse(format!("there is no device {device} on this host"))));
        };
        let group = self.node.group_mut(key).expect("it has just been found");
        if group.member_of(device) == Some(0) {
            return self.remove_group((key, device), answer);
        }
        match group.begin_remove(device, lost) {
            Ok(()) => self.registry.leaving.push(Leaving { group: key, device, answer }),
            Err(error @ RemoveRefusal::InUse(_)) => {
                let why = format!("{error}: move them to other devices first (`drystone device evacuate`)");
                drop(answer.send(refuse(why)));
            }
            Err(error @ RemoveRefusal::Lost(_)) => {
                let why = format!("{error}: `drystone device replace` gives them up");
                drop(answer.send(refuse(why)));
            }
            Err(error) => drop(answer.send(refuse(error.to_string()))),
        }
    }

    /// A group goes with its log device, if no component is left in it, once nothing is under way there.
    fn remove_group(&mut self, (key, device): (GroupKey, DeviceId), answer: Answer<Result<(), EngineError>>) {
        let Some(group) = self.node.group(key) else { return drop(answer.send(Err(EngineError::Stopped))) };
        let in_use: u32 = group.state().members.iter().map(|member| member.component_count).sum();
        let refuse = |why: String| Err(EngineError::Refused(why));
        if in_use > 0 {
            let way = "empty the capacity devices of the group first (`drystone device evacuate`)";
            let why = format!(
                "the device holds the log of its disk group, which is in use (components: {in_use}): {way}"
            );
            return drop(answer.send(refuse(why)));
        }
        if !group.is_idle() {
            return self.registry.leaving.push(Leaving { group: key, device, answer });
        }
        let copies = self.devices[key.0 as usize].iter().flatten().map(|device| copy_of(&device.open));
        match copies.collect::<Result<Vec<_>, _>>() {
            Ok(copies) => {
                self.close_group(key);
                let erased = copies.into_iter().flatten().map(|(path, file)| (path, file, None)).collect();
                self.write_superblocks(erased, Written::Left { answer });
            }
            Err(error) => drop(answer.send(Err(error))),
        }
    }

    /// Looks whether devices that are leaving may go now, and whether a stop is complete.
    pub(crate) fn registry_turn(&mut self) {
        let mut index = 0;
        while index < self.registry.leaving.len() {
            let Leaving { group: key, device, .. } = self.registry.leaving[index];
            let group = self.node.group(key);
            let place = group.and_then(|group| group.member_of(device));
            if place == Some(0) && group.is_some_and(Group::is_idle) {
                let Leaving { answer, .. } = self.registry.leaving.remove(index);
                self.remove_group((key, device), answer);
                continue;
            }
            let is_gone = self.node.group_mut(key).is_some_and(|group| group.finish_remove(device));
            if !is_gone {
                index += 1;
                continue;
            }
            let Leaving { answer, .. } = self.registry.leaving.remove(index);
            match place {
                Some(place) => self.let_go(key, place, answer),
                None => drop(answer.send(Ok(()))),
            }
        }
    }

    /// A device has left its group: the others' superblocks say so, then it is made blank. One that failed is left as it is, if it
    /// cannot be written to: the others know that it is none of theirs.
    fn let_go(&mut self, key: GroupKey, place: u8, answer: Answer<Result<(), EngineError>>) {
        let gone = self.devices[key.0 as usize][place as usize].take();
        gone.iter().for_each(|device| self.sizes.remove(device.open.superblock.device));
        let Some(group) = self.node.group(key) else { return drop(answer.send(Err(EngineError::Stopped))) };
        let mut members = group.superblocks()[0].members;
        members[place as usize] = DeviceId(0);
        let rewritten = self.rewritten(key, members).and_then(|(superblocks, mut rewrites)| {
            self.take_superblocks(key, superblocks)?;
            let leaver = gone.as_ref().map(|device| copy_of(&device.open)).transpose()?.flatten();
            rewrites.extend(leaver.map(|(path, file)| (path, file, None)));
            Ok(rewrites)
        });
        if let Some(slot) = gone.and_then(|device| device.slot) {
            let _ = self.ring.remove_file(slot);
        }
        match rewritten {
            Ok(rewrites) => self.write_superblocks(rewrites, Written::Left { answer }),
            Err(error) => drop(answer.send(Err(error))),
        }
    }

    /// A disk is gone: its clients lose it, and what it waits for is refused.
    pub(crate) fn forget_disk(&mut self, disk: DiskId, answer: Answer<()>) {
        let attached: Vec<u32> = self
            .clients
            .iter()
            .filter(|(_, client)| client.disk.is_some_and(|(of, _)| of == disk))
            .map(|(key, _)| key as u32)
            .collect();
        for client in attached {
            self.clients[client as usize].session.drain();
            self.touch(client);
        }
        self.registry.remove(disk);
        self.lost.remove(&disk);
        let token = Token(self.targets.insert(Target::Closing(answer)) as u64);
        self.node.close_disk(token, disk, &mut self.outputs);
    }

    pub(crate) fn disk_closed(&mut self, token: Token) {
        let Target::Closing(answer) = self.targets.remove(token.0 as usize) else {
            unreachable!("who closes a disk is told so")
        };
        let _ = answer.send(());
    }

    /// Attached clients are held to what the disk is now.
    pub(crate) fn change_clients(&mut self, disk: &DiskRecord) {
        for (_, client) in self.clients.iter_mut() {
            if client.disk.is_some_and(|(of, _)| of == disk.id) {
                client.session.change_export(disk.size, disk.read_only);
            }
        }
    }

    fn device_loads(&self) -> Vec<DeviceLoad> {
        let devices = self.node.groups().flat_map(|(_, group)| group.latencies());
        let load = |(id, effort, latencies): (DeviceId, Effort, &Latencies)| DeviceLoad {
            id,
            busy: Duration::from_nanos(effort.busy_ns),
            read: latencies.read.clone(),
            write: latencies.write.clone(),
        };
        devices.map(load).collect()
    }

    fn host_state(&self) -> HostState {
        let mut groups = Vec::new();
        let mut devices = Vec::new();
        let now = self.now();
        for (key, group) in self.node.groups() {
            let state = group.state_at(now);
            groups.push(GroupState {
                id: group.id(),
                log_bytes: state.log_bytes,
                log_used_bytes: state.log_used_bytes,
                congestion: state.congestion,
                destage_pending_bytes: state.destage_pending_bytes,
                destaged_bytes: state.counters.destaged_bytes + state.counters.direct_bytes,
                compressed_bytes: state.counters.compressed_bytes,
                packed_bytes: state.counters.packed_bytes,
                memory_bytes: state.memory_bytes,
                scrub_progress: group.scrub_progress(),
                scrub_rounds: state.counters.scrub_rounds,
            });
            let log = self.devices[key.0 as usize].first().and_then(Option::as_ref);
            let log_rotates = log.is_none_or(|log| log.open.rotates);
            for (place, member) in state.members.iter().enumerate() {
                let Some(Some(device)) = self.devices[key.0 as usize].get(place) else { continue };
                devices.push(DeviceState {
                    id: member.device,
                    path: device.open.path.clone(),
                    group: group.id(),
                    shard: self.shard,
                    is_log: place == 0,
                    is_capacity: place > 0 || member.capacity_bytes > 0,
                    spins: device.open.rotates && !log_rotates,
                    encryption: device.open.encryption,
                    size: device.open.superblock.size,
                    capacity_bytes: member.capacity_bytes,
                    used_bytes: member.used_bytes,
                    reserved_bytes: member.reserved_bytes,
                    component_count: member.component_count,
                    component_count_max: member.component_count_max,
                    failure: member.failure.clone(),
                    is_away: member.is_away,
                    damaged_blocks: member.damaged_blocks,
                    read_errors: member.read_errors,
                    busy: Duration::from_nanos(member.effort.busy_ns),
                    requests: member.effort.requests,
                });
            }
        }
        HostState {
            cluster: self.settings.fabric.cluster,
            uptime: self.started.elapsed(),
            groups,
            devices,
            buffer_bytes: (self.pool.bytes_used() as u64, self.pool.bytes_max() as u64),
            reads_waiting: self.node.waiting_reads() as u64,
        }
    }

    fn disk_states(&mut self, only: Option<DiskId>) -> Vec<DiskState> {
        let states = match only {
            None => self.node.disk_activities(),
            Some(id) => self.node.disk(id).map(|key| self.node.disk_activity(key)).into_iter().collect(),
        };
        let mut clients: BTreeMap<DiskId, Vec<ClientState>> = BTreeMap::new();
        for (_, client) in &self.clients {
            if let Some((disk, _)) = client.disk {
                clients.entry(disk).or_default().push(ClientState {
                    peer: client.peer.clone(),
                    tls: client.session.is_encrypted(),
                    attached: client.since.elapsed(),
                    error_after: client.error_after,
                });
            }
        }
        let state = |state: node::DiskActivity| DiskState {
            id: state.id,
            clients: clients.remove(&state.id).unwrap_or_default(),
            outstanding: state.outstanding,
            overdue: self.overdue.get(&state.id).map_or(0, |overdue| overdue.total),
            statistics: self
                .registry
                .statistics(state.id, state.statistics_version, || self.node.statistics(state.key)),
        };
        states.into_iter().map(state).collect()
    }

    /// Whether a stop was asked for and nothing is left to wait for.
    pub(crate) fn may_end(&mut self) -> bool {
        let Some((_, deadline)) = &self.registry.stop else { return false };
        let is_late = std::time::Instant::now() >= *deadline;
        let owned = if self.clients.is_empty() { self.owned_disks() } else { Vec::new() };
        if !owned.is_empty() && !self.registry.is_releasing {
            self.registry.is_releasing = true;
            self.release_disks();
        }
        let is_quiet = self.clients.is_empty() && owned.is_empty() && self.node.is_idle();
        if !is_quiet && !is_late {
            return false;
        }
        if let Some((answer, _)) = self.registry.stop.take() {
            let _ = answer.send(());
        }
        true
    }

    /// When the engine must look at the clock again although nothing happens.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let waits = self.registry.stop.is_some() || !self.registry.leaving.is_empty();
        let registry = waits.then(|| self.now() + Duration::from_millis(20));
        [registry, self.peers_deadline()].into_iter().flatten().min()
    }
}

/// Another descriptor of a device, for a thread that writes to it; none if it is not there.
fn copy_of(open: &OpenDevice) -> Result<Option<(PathBuf, File)>, EngineError> {
    let copy = open.file.as_ref().map(File::try_clone).transpose();
    let copy = copy
        .map_err(|error| EngineError::Device(format!("open {} once more: {error}", open.path.display())))?;
    Ok(copy.map(|file| (open.path.clone(), file)))
}

/// Writes a superblock, or makes a device blank.
fn rewrite((path, file, superblock): &Rewrite) -> Result<(), EngineError> {
    match superblock {
        Some(superblock) => devices::write_superblock(file, superblock).map_err(|error| {
            EngineError::Device(format!("write the superblock of {}: {error}", path.display()))
        }),
        None => {
            if let Err(error) = devices::erase(file) {
                tracing::warn!(
                    "device {} has left its group and cannot be made blank: {error}",
                    path.display()
                );
            }
            Ok(())
        }
    }
}

fn in_background(prepare: impl FnOnce() + Send + 'static) {
    // A thread that does not start drops the answer, which its receiver sees as a stopped engine.
    let _ = std::thread::Builder::new().name("devices".to_owned()).spawn(prepare);
}
