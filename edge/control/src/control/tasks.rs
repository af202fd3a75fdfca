//! What runs, gathered from where each of it is known: records, owners, and the memory of hosts. Nothing is stored once more.
//!
//! Who asked for a task, and when, tell the events of the host that was asked.

use super::Control;
use super::actions::{call_off_evacuation, end_maintenance, steer_move, stop_estimate};
use crate::cluster::{FoundDevice, Locals, View, compressed_of};
use crate::events::Kind;
use api::types::{
    EventView, HostImportView, HostTasksView, MoveAction, MoveView, PassWord, ResyncsView, RollbackView,
    RollbackWord, TaskView, TaskWord, TasksView,
};
use base::units::format_bytes;
use cluster::DiskState;
use failure::Failure;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};

/// Events by which people begin tasks.
const BEGINNINGS: [(TaskWord, Kind); 8] = [
    (TaskWord::Maintenance, Kind::MaintenanceBegun),
    (TaskWord::Evacuation, Kind::DeviceLeaving),
    (TaskWord::Move, Kind::DiskMoving),
    (TaskWord::Move, Kind::PolicyChanged),
    (TaskWord::Rollback, Kind::DiskRollingBack),
    (TaskWord::Import, Kind::DiskImporting),
    (TaskWord::Rewrite, Kind::DiskRewriting),
    (TaskWord::Estimate, Kind::EstimateBegan),
];

impl Control {
    /// Everything that runs.
    ///
    /// # Errors
    /// When the engine is gone.
    pub async fn tasks(&self) -> Result<TasksView, Failure> {
        let cluster = &self.cluster;
        let state = cluster.state().await?;
        let asked = cluster.ask_others::<HostTasksView>(&state, "/api/v1/tasks/host");
        let (locals, (others, silent)) = tokio::join!(cluster.locals(&state), asked);
        let own = self.host_tasks().await?;
        let view = cluster.view();
        cluster.refresh_sizes_of(&locals);
        let told = Told::of(&view, others.into_iter().chain([(cluster.me, own)]));
        let mut tasks = self.maintenances();
        tasks.extend(self.evacuations());
        tasks.extend(moves(&view, &cluster.moves(&locals)));
        tasks.extend(rollbacks(&view, &told));
        tasks.extend(told.imports.iter().map(import));
        tasks.extend(resyncs(&cluster.resyncs(&state, &locals)));
        tasks.extend(rewrites(&view, &locals));
        tasks.extend(told.passes.clone());
        tasks.extend(deletions(&view));
        tasks.iter_mut().for_each(|task| told.name_who(&view, task));
        tasks.sort_by(|a, b| (a.kind, &a.subject).cmp(&(b.kind, &b.subject)));
        Ok(TasksView { tasks, silent })
    }

    /// What this host alone knows of tasks.
    ///
    /// # Errors
    /// When the engine is gone.
    pub async fn host_tasks(&self) -> Result<HostTasksView, Failure> {
        let view = self.cluster.view();
        let kinds: BTreeSet<&str> = BEGINNINGS.iter().map(|(_, kind)| kind.as_str()).collect();
        let imports: Vec<HostImportView> = {
            let imports = self.imports.lock().unwrap_or_else(PoisonError::into_inner);
            let name = |(id, import): (&base::DiskId, &super::state::Import)| {
                let disk = view.disks.get(id)?.record.name.clone();
                Some(HostImportView { disk, source: import.what.clone() })
            };
            imports.iter().filter_map(name).collect()
        };
        let pass = self.host_pass().await?;
        Ok(HostTasksView {
            begun: self.events.newest_of(|event| kinds.contains(event.kind.as_str()) && event.who.is_some()),
            imports,
            rollbacks: self.rollbacks_here(),
            pass: (pass.state == PassWord::Running).then_some(pass),
        })
    }

    fn maintenances(&self) -> Vec<TaskView> {
        let entering = self.cluster.entering();
        let task = |(host, mode, since, left): (String, _, base::Instant, cluster::Progress)| TaskView {
            text: format!(
                "enters maintenance ({mode}): {} of {} have to leave first",
                counted(left.components_left, "component", "components"),
                counted(left.disks_left, "disk", "disks"),
            ),
            since: seconds_of(since),
            left_bytes: Some(left.bytes_left),
            stop: Some(end_maintenance(&host)),
            ..task(TaskWord::Maintenance, &host, format!("host {host}"))
        };
        entering.into_iter().map(task).collect()
    }

    fn evacuations(&self) -> Vec<TaskView> {
        let emptying = self.cluster.emptying();
        let task = |(id, (leaving, left)): (base::DeviceId, (cluster::Leaving, cluster::Progress))| {
            let device: FoundDevice = self.cluster.find_device(&id.to_string()).ok()?;
            let why = leaving.fault.map_or_else(String::new, |fault| format!(" ({fault})"));
            let text = match left.is_done() {
                true => format!("is empty and can be removed{why}"),
                false => {
                    let left = counted(left.components_left, "component has", "components have");
                    format!("is being emptied{why}: {left} to leave")
                }
            };
            Some(TaskView {
                text,
                since: seconds_of(leaving.since),
                left_bytes: Some(left.bytes_left),
                progress: left.is_done().then_some(1.0),
                waits_for: left.is_done().then(|| "somebody who removes the device".to_owned()),
                stop: Some(call_off_evacuation(&device)),
                ..task(
                    TaskWord::Evacuation,
                    &id.to_string(),
                    format!("device {} of host {}", device.path, device.host_name),
                )
            })
        };
        emptying.into_iter().filter_map(task).collect()
    }
}

fn task(kind: TaskWord, key: &str, subject: String) -> TaskView {
    TaskView { id: format!("{kind}/{key}"), kind, subject, ..TaskView::default() }
}

fn of_disk(kind: TaskWord, disk: &str) -> TaskView {
    task(kind, disk, format!("disk {disk}"))
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn seconds_of(time: base::Instant) -> Option<u64> {
    // Records of former releases do not say when.
    (time.0 > 0).then_some(time.0 / 1_000_000_000)
}

fn share(done: u64, left: u64) -> Option<f64> {
    (done + left > 0).then(|| done as f64 / (done + left) as f64)
}

fn moves(view: &View, moves: &BTreeMap<base::DiskId, (String, MoveView)>) -> Vec<TaskView> {
    let task = |(id, (line, moving)): (&base::DiskId, &(String, MoveView))| {
        let disk = &view.disks.get(id)?.record.name;
        let turn = if moving.is_back { MoveAction::On } else { MoveAction::Back };
        let pause = if moving.is_paused { MoveAction::Resume } else { MoveAction::Pause };
        let is_paused = moving.is_paused.then(|| "somebody who resumes it".to_owned());
        Some(TaskView {
            text: line.clone(),
            done_bytes: Some(moving.moved_bytes),
            left_bytes: Some(moving.remaining_bytes),
            progress: share(moving.moved_bytes, moving.remaining_bytes),
            seconds_left: moving.seconds_left,
            waits_for: is_paused.or_else(|| moving.stands_still.clone()),
            stop: Some(steer_move(disk, turn)),
            actions: vec![steer_move(disk, pause)],
            ..of_disk(TaskWord::Move, disk)
        })
    };
    moves.iter().filter_map(task).collect()
}

/// The rollbacks of which hosts tell, and those that nobody carries out: records tell these.
fn rollbacks(view: &View, told: &Told) -> Vec<TaskView> {
    let records = view.disks.values().map(|disk| &disk.record);
    let half = records.filter_map(|record| {
        let rollback = record.rollback?;
        let known = told.rollbacks.get(&record.name);
        Some(match known {
            Some(found) => rollback_task(found),
            None => rollback_task(&RollbackView {
                disk: record.name.clone(),
                snapshot: record.snapshot_name(rollback.to),
                state: RollbackWord::Unfinished,
                ..RollbackView::default()
            }),
        })
    });
    half.collect()
}

fn rollback_task(found: &RollbackView) -> TaskView {
    let left = found.changed_bytes.map(|changed| changed.saturating_sub(found.copied_bytes));
    TaskView {
        text: format!("is being rolled back to snapshot {}", found.snapshot),
        done_bytes: found.changed_bytes.map(|_| found.copied_bytes),
        left_bytes: left,
        progress: left.and_then(|left| share(found.copied_bytes, left)),
        seconds_left: left.and_then(|left| {
            let pace = found.copied_bytes as f64 / found.seconds;
            (pace > 0.0 && pace.is_finite()).then(|| left as f64 / pace)
        }),
        waits_for: (found.state == RollbackWord::Unfinished)
            .then(|| "somebody who repeats it: it was cut short".to_owned()),
        ..of_disk(TaskWord::Rollback, &found.disk)
    }
}

fn import(found: &HostImportView) -> TaskView {
    TaskView {
        text: format!("its content is being replaced by {}", found.source),
        ..of_disk(TaskWord::Import, &found.disk)
    }
}

fn resyncs(found: &ResyncsView) -> Vec<TaskView> {
    let task = |disk: &api::types::DiskResyncView| {
        let copied = disk.components.iter().map(|one| one.copied_bytes).sum();
        // Of some it may not be known yet how much there is to copy.
        let is_counted = disk.components.iter().all(|one| one.left_bytes.is_some());
        let is_waiting = disk.components.iter().all(|one| one.waits_for.is_some());
        let waits = disk.components.iter().find_map(|one| one.waits_for.clone());
        let count = counted(disk.components.len(), "component is", "components are");
        TaskView {
            text: disk.line.clone().unwrap_or_else(|| format!("{count} being brought up to date")),
            done_bytes: Some(copied),
            left_bytes: is_counted.then_some(disk.left_bytes),
            progress: if is_counted { share(copied, disk.left_bytes) } else { None },
            seconds_left: disk.seconds_left,
            waits_for: waits.filter(|_| is_waiting),
            ..of_disk(TaskWord::Resync, &disk.disk)
        }
    };
    found.disks.iter().map(task).collect()
}

fn rewrites(view: &View, locals: &Locals) -> Vec<TaskView> {
    let task = |disk: &Arc<crate::directory::shared::record::ClusterDisk>| {
        let found = compressed_of(&disk.record, locals).filter(|found| found.rewriting > 0)?;
        let count = counted(found.rewriting, "component is", "components are");
        Some(TaskView {
            text: format!("{count} written anew, to take less space"),
            ..of_disk(TaskWord::Rewrite, &disk.record.name)
        })
    };
    view.disks.values().filter_map(task).collect()
}

fn deletions(view: &View) -> Vec<TaskView> {
    let records = view.disks.values().map(|disk| &disk.record);
    let deleting = records.filter(|record| record.state == DiskState::Deleting);
    let task = |record: &cluster::DiskRecord| TaskView {
        text: "is being deleted".to_owned(),
        waits_for: Some("hosts and devices that have components of it".to_owned()),
        ..of_disk(TaskWord::Deletion, &record.name)
    };
    deleting.map(task).collect()
}

/// What hosts told.
struct Told {
    /// By what began and on what; the newest.
    begun: BTreeMap<(String, String), EventView>,
    imports: Vec<HostImportView>,
    rollbacks: BTreeMap<String, RollbackView>,
    passes: Vec<TaskView>,
}

impl Told {
    fn of(view: &View, hosts: impl Iterator<Item = (base::HostId, HostTasksView)>) -> Told {
        let (mut begun, mut imports): (BTreeMap<_, EventView>, _) = (BTreeMap::new(), Vec::new());
        let (mut rollbacks, mut passes) = (BTreeMap::new(), Vec::new());
        for (host, told) in hosts {
            for event in told.begun {
                let key = (event.kind.clone(), event.subject.clone());
                if begun.get(&key).is_none_or(|known| known.time_ms < event.time_ms) {
                    begun.insert(key, event);
                }
            }
            imports.extend(told.imports);
            rollbacks.extend(told.rollbacks.into_iter().map(|one| (one.disk.clone(), one)));
            passes.extend(told.pass.map(|pass| {
                let host = view.host_name(host);
                TaskView {
                    text: format!("samples its data for an estimate: {} read", format_bytes(pass.read_bytes)),
                    progress: pass.percent.map(|percent| percent / 100.0),
                    stop: Some(stop_estimate()),
                    ..task(TaskWord::Estimate, &host, format!("host {host}"))
                }
            }));
        }
        Told { begun, imports, rollbacks, passes }
    }

    /// Says who began a task, and when.
    fn name_who(&self, view: &View, task: &mut TaskView) {
        let kinds = BEGINNINGS.iter().filter(|(word, _)| *word == task.kind).map(|(_, kind)| *kind);
        let policy = || {
            let name = task.subject.strip_prefix("disk ")?;
            let follows =
                view.disks.values().find(|disk| disk.record.name == name)?.record.follows.clone()?;
            Some(format!("policy {follows}"))
        };
        let event = |kind: Kind| {
            let subject = if kind == Kind::PolicyChanged { policy()? } else { task.subject.clone() };
            self.begun.get(&(kind.as_str().to_owned(), subject))
        };
        let Some(event) = kinds.into_iter().filter_map(event).max_by_key(|event| event.time_ms) else {
            return;
        };
        // One that was begun later by the cluster itself is not theirs.
        let is_older = task.since.is_some_and(|since| since > event.time + 60);
        if !is_older {
            task.who.clone_from(&event.who);
            task.since = task.since.or(Some(event.time));
        }
    }
}
