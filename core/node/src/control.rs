//! Making, opening, changing and deleting disks: steps over the groups that hold their components.

use crate::disk::{Disk, DiskKey, DiskState, Home};
use crate::fabric::ClusterDisk;
use crate::node::{Node, Output, Token, Waiter};
use crate::pace::IopsLimit;
use crate::record::{DiskRecord, component_count_of, layout_of, shape_of};
use base::request::Request;
use base::units::{BLOCK_SIZE, EXTENT_SIZE};
use base::{ComponentId, DiskId};
use diskgroup::format::page::ComponentRecord;
use diskgroup::{Answer, GroupError, Input};
use layout::{Component, Layout};
use std::collections::{BTreeMap, VecDeque};

/// All that a node needs to know of a disk.
#[derive(Debug, Clone, PartialEq)]
pub struct DiskSpec {
    /// Its identity.
    pub id: DiskId,
    /// Its name.
    pub name: String,
    /// Its size in bytes, a multiple of 512 and at most that of its layout.
    pub size: u64,
    /// Where its blocks stand.
    pub layout: Layout,
    /// The owner's epoch: greater than at every earlier opening.
    pub epoch: u32,
    /// Whether guests may only read it. The frontend enforces it.
    pub read_only: bool,
    /// Whether what is read is compared with its checksum.
    pub verify_checksums: bool,
    /// Whether guests read from the copy on the owner's node, if there is one, and not from all in turn.
    pub reads_locally: bool,
    /// The policy's limit, in I/Os of up to 32 KiB a second.
    pub iops_limit: Option<u64>,
    /// Share of the size that is set aside.
    pub reservation_percent: u8,
    /// The policy as the layer above writes it, kept with the components.
    pub policy: String,
}

/// Why a control operation failed. For people: says what was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// No such disk is open here.
    #[error("disk {0} is not open on this host")]
    NoDisk(DiskId),
    /// A disk of that identity is open already.
    #[error("disk {0} is open already")]
    IsOpen(DiskId),
    /// A component of the disk is missing.
    #[error("the disk cannot be changed now: {0}")]
    Unavailable(String),
    /// A device is not part of any open group.
    #[error("device {0} is not in service on this host")]
    NoDevice(base::DeviceId),
    /// The name, policy and shape of the disk are too long to be kept with its components.
    #[error("the disk's name, policy and layout are too long to be kept on its devices")]
    RecordTooLong,
    /// A group refused a step.
    #[error("component {component}: {error}")]
    Group {
        /// The component.
        component: ComponentId,
        /// Why.
        error: GroupError,
    },
}

/// One step towards a new state of a disk's components.
#[derive(Debug, Clone)]
enum Step {
    Create { index: usize, component: Component },
    Change { index: usize, home: Home },
    Delete { home: Home, id: ComponentId },
}

#[derive(Debug)]
enum Goal {
    Create,
    /// Zeroes what a smaller size leaves out, then changes the components.
    Update {
        disk: u32,
        is_zeroing: bool,
    },
    /// Waits until nothing uses the disk, then deletes its components.
    Delete {
        disk: u32,
        is_waiting: bool,
    },
}

/// A control operation under way.
#[derive(Debug)]
pub(crate) struct ControlState {
    token: Token,
    goal: Goal,
    spec: DiskSpec,
    steps: Vec<Step>,
    outstanding: u32,
    homes: Vec<Option<Home>>,
    error: Option<ControlError>,
}

impl Node {
    /// Makes the components of a new disk. Ends with [`Output::Control`]; then the disk is open.
    pub fn create_disk(&mut self, token: Token, spec: DiskSpec, out: &mut Vec<Output>) {
        if self.disk(spec.id).is_some() {
            return out.push(Output::Control { token, result: Err(ControlError::IsOpen(spec.id)) });
        }
        let steps: Vec<Step> = spec
            .layout
            .components()
            .map(|(index, component)| Step::Create { index, component: *component })
            .collect();
        let homes = vec![None; steps.len()];
        self.run_steps(token, Goal::Create, spec, steps, homes, out);
    }

    /// Opens a disk that exists. A component that is missing makes it unavailable, which its state tells.
    ///
    /// # Errors
    /// When it is open already.
    pub fn open_disk(&mut self, spec: DiskSpec) -> Result<DiskKey, ControlError> {
        if self.disk(spec.id).is_some() {
            return Err(ControlError::IsOpen(spec.id));
        }
        let components = spec.layout.components();
        let homes: Vec<Option<Home>> = components.map(|(_, component)| self.home_of(component)).collect();
        let missing = spec.layout.components().zip(&homes).find(|(_, home)| home.is_none());
        let why = missing.map(|((_, one), _)| {
            format!(
                "component {} is missing: device {} is not there, or is out of service",
                one.id, one.device
            )
        });
        Ok(DiskKey(self.disks.insert(Disk::new(spec, homes, why))))
    }

    /// Opens a disk of the cluster: what its record says of replication, with the record's version.
    ///
    /// # Errors
    /// When it is open already.
    pub fn open_cluster_disk(
        &mut self,
        now: base::Instant,
        spec: DiskSpec,
        (version, roster): (u64, replication::Roster),
    ) -> Result<DiskKey, ControlError> {
        self.now = now;
        if self.disk(spec.id).is_some() {
            return Err(ControlError::IsOpen(spec.id));
        }
        let mut disk = Disk::new(spec, Vec::new(), None);
        disk.cluster = Some(ClusterDisk::new(version, roster));
        let key = self.disks.insert(disk);
        self.look_soon(key);
        Ok(DiskKey(key))
    }

    fn home_of(&self, component: &Component) -> Option<Home> {
        let group = self.group_of(component.device)?;
        Some(Home { group, component: self.group(group)?.component(component.id)? })
    }

    /// Takes over a changed spec: name, size, policy, layout.
    pub fn update_disk(&mut self, token: Token, spec: DiskSpec, out: &mut Vec<Output>) {
        let Some(key) = self.disk(spec.id) else {
            return out.push(Output::Control { token, result: Err(ControlError::NoDisk(spec.id)) });
        };
        let disk = &mut self.disks[key.0];
        if let Some(why) = &disk.unavailable {
            return out.push(Output::Control { token, result: Err(ControlError::Unavailable(why.clone())) });
        }
        let (old_end, new_size) = (disk.spec.layout.size(), spec.size);
        let is_smaller = new_size < disk.spec.size;
        let mut homes: BTreeMap<ComponentId, Home> = BTreeMap::new();
        for (index, component) in disk.spec.layout.components() {
            homes.insert(component.id, disk.home(index));
        }
        let mut steps = Vec::new();
        let mut kept = Vec::new();
        for (index, component) in spec.layout.components() {
            let home = homes.remove(&component.id);
            kept.push(home);
            steps.push(match home {
                Some(home) => Step::Change { index, home },
                None => Step::Create { index, component: *component },
            });
        }
        steps.extend(homes.into_iter().map(|(id, home)| Step::Delete { home, id }));
        let goal = Goal::Update { disk: key.0, is_zeroing: is_smaller };
        if !is_smaller {
            return self.run_steps(token, goal, spec, steps, kept, out);
        }
        // Requests beyond the new size are refused from here on; the space beyond comes back before it goes.
        disk.spec.size = new_size;
        let state = ControlState { token, goal, spec, steps, outstanding: 1, homes: kept, error: None };
        let control = self.controls.insert(state) as u32;
        let request = Request::WriteZeroes { offset: new_size, len: old_end - new_size, allocate: false };
        self.begin_own_request((control, 0), key.0, request, out);
    }

    /// Deletes a disk: requests are refused from now on; when those under way have ended, the components go.
    pub fn delete_disk(&mut self, token: Token, id: DiskId, out: &mut Vec<Output>) {
        let Some(key) = self.disk(id) else {
            return out.push(Output::Control { token, result: Err(ControlError::NoDisk(id)) });
        };
        let disk = &mut self.disks[key.0];
        disk.is_closing = true;
        let spec = disk.spec.clone();
        let goal = Goal::Delete { disk: key.0, is_waiting: true };
        let state = ControlState {
            token,
            goal,
            spec,
            steps: Vec::new(),
            outstanding: 0,
            homes: Vec::new(),
            error: None,
        };
        self.controls.insert(state);
        // Held until all that waits is refused: the last of that would end the operation otherwise, and the disk with it.
        self.disks[key.0].outstanding += 1;
        self.refuse_held(key.0, out);
        self.disks[key.0].outstanding -= 1;
        self.disk_quieter(key.0, out);
    }

    /// Lets go of a disk without touching its components, as before a clean stop. Nothing may be under way.
    pub fn close_disk(&mut self, key: DiskKey) {
        assert!(self.disks[key.0].outstanding == 0, "a disk in use is not closed");
        self.disks.remove(key.0);
    }

    /// The open disk of that identity.
    pub fn disk(&self, id: DiskId) -> Option<DiskKey> {
        self.disks.key_of(id).map(DiskKey)
    }

    /// The spec of an open disk.
    pub fn spec(&self, key: DiskKey) -> Option<&DiskSpec> {
        self.disks.get(key.0).map(|disk| &disk.spec)
    }

    /// Why a disk cannot be used, if it cannot.
    pub fn unavailable(&self, key: DiskKey) -> Option<&str> {
        self.disks.get(key.0)?.unavailable.as_deref()
    }

    /// The live state of all open disks, in the order of their keys.
    pub fn disk_states(&self) -> Vec<DiskState> {
        self.disks.iter().map(|(key, _)| self.disk_state(DiskKey(key))).collect()
    }

    /// The live state of one disk, which must be open.
    pub fn disk_state(&self, key: DiskKey) -> DiskState {
        let disk = &self.disks[key.0];
        let used = |home: &Home| {
            let group = self.group(home.group)?;
            Some(group.component_state(home.component)?.used_bytes)
        };
        let allocated_bytes = disk.homes.iter().flatten().filter_map(used).sum();
        let lost = disk.homes.iter().flatten().find_map(|home| self.lost_member(home));
        let unavailable = disk.unavailable.clone().or(lost);
        DiskState {
            key,
            id: disk.spec.id,
            allocated_bytes,
            outstanding: disk.outstanding,
            unavailable,
            statistics_version: disk.statistics_version,
        }
    }

    /// The histograms and counters of an open disk since it was opened.
    pub fn statistics(&self, key: DiskKey) -> iostats::Statistics {
        self.disks[key.0].recorder.statistics()
    }

    /// Why the device of a component is out of service, if it is.
    fn lost_member(&self, home: &Home) -> Option<String> {
        let group = self.group(home.group)?;
        let why = group.failure_of(home.component)?;
        let state = group.component_state(home.component)?;
        Some(format!("component {} is lost with device {}: {why}", state.record.id, state.device))
    }

    fn run_steps(
        &mut self,
        token: Token,
        goal: Goal,
        spec: DiskSpec,
        steps: Vec<Step>,
        homes: Vec<Option<Home>>,
        out: &mut Vec<Output>,
    ) {
        let state = ControlState { token, goal, spec, steps, outstanding: 0, homes, error: None };
        let control = self.controls.insert(state) as u32;
        self.begin_steps(control, out);
    }

    /// Hands in all steps at once; their answers end the operation.
    fn begin_steps(&mut self, control: u32, out: &mut Vec<Output>) {
        let steps = self.controls[control as usize].steps.clone();
        self.controls[control as usize].outstanding = 1; // Held until all are handed in.
        for (number, step) in steps.iter().enumerate() {
            if let Err(error) = self.begin_step(control, number as u32, step, out) {
                let state = &mut self.controls[control as usize];
                state.error.get_or_insert(error);
                break;
            }
        }
        self.control_quieter(control, out);
    }

    fn begin_step(
        &mut self,
        control: u32,
        number: u32,
        step: &Step,
        out: &mut Vec<Output>,
    ) -> Result<(), ControlError> {
        let waiter = Waiter::Control { control, step: number };
        match step {
            Step::Create { component, .. } => {
                let group =
                    self.group_of(component.device).ok_or(ControlError::NoDevice(component.device))?;
                let record = component_record(&self.controls[control as usize].spec, component)?;
                let device = component.device;
                self.controls[control as usize].outstanding += 1;
                self.ask(group, waiter, |op| Input::Create { op, device, record }, out);
            }
            Step::Change { index, home } => {
                let spec = &self.controls[control as usize].spec;
                let component = *spec.layout.component(*index).expect("steps follow the layout");
                let record = component_record(spec, &component)?;
                self.controls[control as usize].outstanding += 1;
                let component = home.component;
                self.ask(home.group, waiter, |op| Input::Change { op, component, record }, out);
            }
            Step::Delete { home, .. } => {
                self.controls[control as usize].outstanding += 1;
                let component = home.component;
                self.ask(home.group, waiter, |op| Input::Delete { op, component }, out);
            }
        }
        Ok(())
    }

    pub(crate) fn control_step_done(
        &mut self,
        control: u32,
        step: u32,
        result: Result<Answer, GroupError>,
        out: &mut Vec<Output>,
    ) {
        let state = &mut self.controls[control as usize];
        match (state.steps.get(step as usize), result) {
            (Some(Step::Create { index, component }), Ok(Answer::Component(key))) if !state.is_zeroing() => {
                let (index, device) = (*index, component.device);
                let group = self.group_of(device).expect("the group that made it is open");
                self.controls[control as usize].homes[index] = Some(Home { group, component: key });
            }
            (_, Ok(_)) => {}
            // What is lost needs no deleting.
            (Some(Step::Delete { .. }), Err(GroupError::DeviceLost | GroupError::NoComponent)) => {}
            (step, Err(error)) => {
                let component = step.map_or(ComponentId(0), |step| match step {
                    Step::Create { component, .. } => component.id,
                    Step::Delete { id, .. } => *id,
                    Step::Change { index, .. } => {
                        state.spec.layout.component(*index).map_or(ComponentId(0), |component| component.id)
                    }
                });
                state.error.get_or_insert(ControlError::Group { component, error });
            }
        }
        self.control_quieter(control, out);
    }

    /// One thing less that a control operation waits for; at the last it goes on or ends.
    fn control_quieter(&mut self, control: u32, out: &mut Vec<Output>) {
        let state = &mut self.controls[control as usize];
        state.outstanding -= 1;
        if state.outstanding > 0 {
            return;
        }
        if let Goal::Update { is_zeroing: is_zeroing @ true, .. } = &mut state.goal
            && state.error.is_none()
        {
            *is_zeroing = false;
            return self.begin_steps(control, out);
        }
        let state = self.controls.remove(control as usize);
        match (&state.goal, &state.error) {
            (Goal::Create, None) => self.finish_create(state, out),
            (Goal::Create, Some(_)) => self.undo_create(state, out),
            (Goal::Update { .. }, _) => self.finish_update(state, out),
            (Goal::Delete { .. }, _) => self.finish_delete(state, out),
        }
    }

    fn finish_create(&mut self, state: ControlState, out: &mut Vec<Output>) {
        assert!(state.homes.iter().all(Option::is_some), "every step has its answer");
        self.disks.insert(Disk::new(state.spec, state.homes, None));
        out.push(Output::Control { token: state.token, result: Ok(()) });
    }

    /// Some component could not be made: those that were are deleted again.
    fn undo_create(&mut self, state: ControlState, out: &mut Vec<Output>) {
        for home in state.homes.into_iter().flatten() {
            let component = home.component;
            self.ask(home.group, Waiter::Nobody, |op| Input::Delete { op, component }, out);
        }
        let error = state.error.expect("a creation is undone because of an error");
        out.push(Output::Control { token: state.token, result: Err(error) });
    }

    fn finish_update(&mut self, state: ControlState, out: &mut Vec<Output>) {
        let Goal::Update { disk, .. } = state.goal else { unreachable!("an update ends as one") };
        let result = match state.error {
            Some(error) => Err(error),
            None => {
                let disk = &mut self.disks[disk];
                assert!(state.homes.iter().all(Option::is_some), "every step has its answer");
                disk.homes = state.homes;
                disk.limit = IopsLimit::new(state.spec.iops_limit);
                let epoch = disk.spec.epoch;
                disk.spec = DiskSpec { epoch, ..state.spec };
                Ok(())
            }
        };
        out.push(Output::Control { token: state.token, result });
    }

    fn finish_delete(&mut self, state: ControlState, out: &mut Vec<Output>) {
        let Goal::Delete { disk, .. } = state.goal else { unreachable!("a deletion ends as one") };
        let result = state.error.map_or(Ok(()), Err);
        self.disks.remove(disk);
        out.push(Output::Control { token: state.token, result });
    }

    /// A request of the disk has ended: a deletion that waits for the last one may go on.
    pub(crate) fn disk_quieter(&mut self, disk: u32, out: &mut Vec<Output>) {
        let Some(state) = self.disks.get(disk) else { return };
        if !state.is_closing || state.outstanding > 0 {
            return;
        }
        let waits = |(_, state): &(usize, &mut ControlState)| matches!(state.goal, Goal::Delete { disk: of, is_waiting: true } if of == disk);
        let Some((control, state)) = self.controls.iter_mut().find(waits) else { return };
        state.goal = Goal::Delete { disk, is_waiting: false };
        let components = state.spec.layout.components().map(|(_, component)| component.id);
        let homes = self.disks[disk].homes.iter();
        let steps = components.zip(homes).filter_map(|(id, home)| Some(Step::Delete { home: (*home)?, id }));
        state.steps = steps.collect();
        self.begin_steps(control as u32, out);
    }

    /// The disks that the open groups' components tell of, with those components that are there.
    pub fn found(&self) -> Vec<DiskSpec> {
        let mut by_disk: BTreeMap<DiskId, Vec<(DiskRecord, Component)>> = BTreeMap::new();
        for (_, group) in self.groups() {
            for (_, state) in group.components() {
                let Some(record) = DiskRecord::decode(&state.record.disk_record) else { continue };
                let component =
                    Component { id: state.record.id, device: state.device, size: state.record.size };
                by_disk.entry(state.record.disk).or_default().push((record, component));
            }
        }
        let whole = |(id, mut parts): (DiskId, Vec<(DiskRecord, Component)>)| {
            parts.sort_by_key(|(record, component)| (record.place, component.id));
            let record = parts.first()?.0.clone();
            let components: Vec<(u16, Component)> =
                parts.into_iter().map(|(record, component)| (record.place, component)).collect();
            // Whether the copies that one machine has are current, it cannot say.
            let is_whole = components.len() == component_count_of(&record.shape);
            let layout = layout_of(&record.shape, &components).filter(|_| is_whole)?;
            Some(DiskSpec {
                id,
                name: record.name,
                size: record.size,
                layout,
                epoch: 0,
                read_only: record.read_only,
                verify_checksums: true,
                reads_locally: false,
                iops_limit: None,
                reservation_percent: 0,
                policy: record.policy,
            })
        };
        by_disk.into_iter().filter_map(whole).collect()
    }

    /// Deletes the components of a disk that is not open: left over from a creation or deletion that a crash cut short.
    pub fn delete_orphans(&mut self, disk: DiskId, out: &mut Vec<Output>) {
        assert!(self.disk(disk).is_none(), "an open disk's components are no orphans");
        let mut orphans = Vec::new();
        for (key, group) in self.groups() {
            let of_disk = group.components().into_iter().filter(|(_, state)| state.record.disk == disk);
            orphans.extend(of_disk.map(|(component, _)| (key, component)));
        }
        for (group, component) in orphans {
            self.ask(group, Waiter::Nobody, |op| Input::Delete { op, component }, out);
        }
    }

    /// Whether no request, control operation or device request is under way.
    pub fn is_idle(&self) -> bool {
        self.requests.is_empty()
            && self.controls.is_empty()
            && self.pending_deletions().is_empty()
            && self.groups().all(|(_, group)| group.is_idle())
            && self.fabric.as_ref().is_none_or(|fabric| fabric.gathers.is_empty())
    }

    fn pending_deletions(&self) -> VecDeque<u32> {
        self.disks.iter().filter(|(_, disk)| disk.is_closing).map(|(key, _)| key).collect()
    }
}

impl ControlState {
    fn is_zeroing(&self) -> bool {
        matches!(self.goal, Goal::Update { is_zeroing: true, .. })
    }
}

fn component_record(spec: &DiskSpec, component: &Component) -> Result<ComponentRecord, ControlError> {
    let mut places = spec.layout.places();
    let place = places.position(|(_, copies)| copies.iter().any(|copy| copy.id == component.id));
    let record = DiskRecord {
        name: spec.name.clone(),
        size: spec.size,
        policy: spec.policy.clone(),
        read_only: spec.read_only,
        place: place.expect("a disk's components are in its layout") as u16,
        shape: shape_of(&spec.layout).ok_or(ControlError::RecordTooLong)?,
    };
    assert!(component.size.is_multiple_of(EXTENT_SIZE), "components are whole MiB");
    let share = component.size / 100 * u64::from(spec.reservation_percent);
    Ok(ComponentRecord {
        id: component.id,
        disk: spec.id,
        size: component.size,
        reservation: share.next_multiple_of(BLOCK_SIZE),
        promised: 0,
        watermark: base::WriteId::default(),
        is_deleting: false,
        disk_record: record.encode().ok_or(ControlError::RecordTooLong)?,
    })
}
