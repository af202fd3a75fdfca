//! What the API shows, made from records, the engine's state and samples.

use super::Control;
use super::cluster::Gathered;
use super::policies::rules_of;
use crate::addresses::{listen_text, nbd_address};
use crate::cluster::{Locals, compressed_of, snapshot_bytes_of, used_bytes_of};
use crate::directory::{DiskEntry, State};
use crate::figures::{micros, rate_view};
use crate::limits::SAMPLES_KEPT;
use crate::words;
use ::cluster::without_room;
use ::cluster::{Leaving, Progress};
use api::types::{
    BucketView, ClientView, ComponentView, CompressedView, DeviceLoadView, DeviceRateView, DeviceView,
    DiskQuery, DiskSummary, DiskView, DiskWord, FiguresView, GroupView, HistogramView, HistogramsView,
    HostView, LatencyView, RateView, ScheduleView, TopView,
};
use engine::{ClusterState, DeviceState, DiskRecord, DiskState, GroupState, HostState, Listen};
use failure::Failure;
use iostats::{Direction, Interval, Operations, Statistics};
use placement::{Breach, DeviceSpace};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

impl Control {
    /// The host.
    ///
    /// # Errors
    /// When the engine is gone.
    pub async fn host_view(&self) -> Result<HostView, Failure> {
        let host = self.host_state().await?;
        let states = self.disk_states(None).await?;
        let records = self.records();
        let gathered = self.gather().await?;
        let not_whole = records.disks.values().filter_map(|entry| {
            let lines = gathered.not_whole(entry.record.id);
            (!lines.is_empty()).then(|| (entry.record.name.clone(), lines))
        });
        let not_whole = not_whole.collect();
        let under_way = records
            .disks
            .values()
            .filter_map(|entry| Some((entry.record.name.clone(), gathered.under_way(entry.record.id)?)));
        let under_way = under_way.collect();
        let unavailable = records.disks.values().filter_map(|entry| {
            let reason = unavailable(entry, states.get(&entry.record.id), &gathered)?;
            Some((entry.record.name.clone(), reason))
        });
        Ok(HostView {
            name: self.config().name.clone(),
            version: api::program::RELEASE.to_owned(),
            host: self.store.host.to_string(),
            cluster: host.cluster.to_string(),
            uptime_seconds: host.uptime.as_secs_f64(),
            nbd: self.config().nbd.iter().map(listen_text).collect(),
            http: self.config().http.iter().map(listen_text).collect(),
            buffer_bytes: host.buffer_bytes.0,
            buffer_bytes_max: host.buffer_bytes.1,
            buffer_reads_waiting: host.reads_waiting,
            disk_count: records.disks.len(),
            unavailable: unavailable.collect(),
            groups: self.group_views(&host),
            warnings: self.warnings_now().into_iter().chain(host.devices.iter().filter_map(damage)).collect(),
            space: Some(self.space().await?),
            directory: Some(self.cluster.directory_view()),
            hosts: self.hosts().await?,
            not_whole,
            under_way,
        })
    }

    fn group_views(&self, host: &HostState) -> Vec<GroupView> {
        let mut groups: Vec<GroupView> = host.groups.iter().map(|group| group_view(group, host)).collect();
        self.note_leaving(groups.iter_mut().flat_map(|group| &mut group.devices));
        self.note_loads(groups.iter_mut().flat_map(|group| &mut group.devices));
        groups
    }

    /// Says of devices what they did in the last second.
    pub(super) fn note_loads<'a>(&self, devices: impl Iterator<Item = &'a mut DeviceView>) {
        for device in devices {
            let id = device.id.parse().ok();
            let recent = id.and_then(|id: base::DeviceId| self.sampler.recent_device(id));
            device.load = recent.map(|(seconds, done)| device_load_view(seconds, &done));
        }
    }

    /// Says of devices that are to be emptied how far they are.
    pub(super) fn note_leaving<'a>(&self, devices: impl Iterator<Item = &'a mut DeviceView>) {
        let leaving = self.cluster.emptying();
        for device in devices {
            let found = device.id.parse().ok().and_then(|id: base::DeviceId| leaving.get(&id));
            device.leaving = found.map(|(leaving, left)| leaving_text(leaving, left, device.component_count));
        }
    }

    fn warnings_now(&self) -> Vec<String> {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner).clone();
        warnings.extend(self.cluster.directory_away());
        let hint =
            format!("see that its data_dir {} can be written and has room", self.config().data_dir.display());
        warnings.extend(
            self.series.trouble().map(|why| format!("figures are kept in memory alone ({why}): {hint}")),
        );
        warnings.extend(self.cluster.data_trouble().into_iter().map(|trouble| format!("{trouble}: {hint}")));
        warnings
    }

    /// All disks by name.
    ///
    /// # Errors
    /// When the engine is gone.
    pub async fn disk_list(&self) -> Result<Vec<DiskSummary>, Failure> {
        self.disks_of(&DiskQuery::default()).await.map(|(disks, _)| disks)
    }

    /// The disks that are asked for, by name, and whether there are more of them.
    ///
    /// # Errors
    /// When the engine is gone.
    pub async fn disks_of(&self, query: &DiskQuery) -> Result<(Vec<DiskSummary>, bool), Failure> {
        let states = self.disk_states(None).await?;
        let spaces = self.standing_spaces();
        let records = self.records();
        let gathered = self.gather().await?;
        let after = query.after.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let named = records.names.range::<str, _>((after, Bound::Unbounded));
        let part = query.name.as_deref().unwrap_or_default();
        let of_name = named.filter(|(name, _)| name.contains(part));
        let summaries =
            of_name.map(|(_, id)| summary(&records.disks[id], states.get(id), &spaces, &gathered));
        let has_policy = |disk: &DiskSummary| {
            let wanted = query.policy.as_deref();
            wanted.is_none_or(|wanted| disk.follows.as_deref() == Some(wanted) || disk.policy == wanted)
        };
        let wanted: Vec<&str> = query.label.iter().flat_map(|text| text.split(',')).collect();
        let has_labels = |disk: &DiskSummary| wanted.iter().all(|wanted| has_label(&disk.labels, wanted));
        let is_meant = |disk: &DiskSummary| {
            has_policy(disk) && has_labels(disk) && (!query.trouble || disk.trouble.is_some())
        };
        let mut found = summaries.filter(is_meant);
        let disks = found.by_ref().take(query.limit.unwrap_or(usize::MAX)).collect();
        Ok((disks, found.next().is_some()))
    }

    /// One disk.
    ///
    /// # Errors
    /// When there is none of this name, or the engine is gone.
    pub async fn disk_view(&self, name: &str) -> Result<DiskView, Failure> {
        let entry = self.find(name)?;
        let id = entry.record.id;
        let states = self.disk_states(Some(id)).await?;
        let state = states.get(&id);
        let spaces = self.standing_spaces();
        let gathered = self.gather().await?;
        // Of one moment with what is said of its components: they may have changed since.
        let now = gathered.disk(id).map(|disk| disk.entry());
        let entry = now.map_or(entry, Arc::new);
        let record = &entry.record;
        // What stands in for another is in no layout, and comes behind all that is.
        let stand_ins = gathered.stand_ins(id);
        let all = record.layout.components().map(|(index, component)| (index, *component));
        let all = all.chain((record.layout.component_count()..).zip(stand_ins));
        let component = |(index, component)| component_view(index, &component, record.id, &spaces, &gathered);
        let address = |listen| nbd_address(listen, self.must_encrypt(listen), &record.name);
        Ok(DiskView {
            summary: summary(&entry, state, &spaces, &gathered),
            owner: gathered.owner_name(record.id),
            attached: gathered.attached(record.id),
            handover: self.handover_view(record.id, &record.name),
            rules: rules_of(&record.policy),
            created: entry.created,
            epoch: record.epoch,
            addresses: self.config().nbd.iter().map(address).collect(),
            layout: describe(record, &spaces, &gathered),
            why: placement::explain(&record.placed(), &spaces),
            components: all.map(component).collect(),
            clients: state.map_or_else(Vec::new, |state| state.clients.iter().map(client_view).collect()),
            figures: self.figures(&entry, &gathered.state),
            limit: gathered.limit(record.id),
            compressed: gathered.compressed(record.id),
            snapshots: gathered.snapshots(record.id),
            schedules: self.cluster.schedules(record.id),
            rollback: self.rollback_view(record.id).await,
            row_checks: gathered.row_checks(record.id),
            reads_from: gathered.reads_from(record.id, record.policy.read_locality),
            warnings: Vec::new(),
        })
    }

    /// Whether NBD clients that come there must encrypt: as the configuration says, or with the cluster's certificates if
    /// they come from elsewhere.
    pub(super) fn must_encrypt(&self, listen: &Listen) -> bool {
        match (&self.config().tls, listen) {
            (Some(tls), _) => tls.required,
            (None, Listen::Tcp(address)) => self.cluster.certified().is_some() && !address.ip().is_loopback(),
            (None, Listen::Unix(_)) => false,
        }
    }

    fn figures(&self, entry: &DiskEntry, state: &ClusterState) -> FiguresView {
        let disk = entry.record.name.clone();
        let Some(recent) = self.sampler.recent(entry.record.id) else {
            return FiguresView { disk, ..FiguresView::default() };
        };
        let seconds = recent.interval.as_secs_f64();
        let rate = |operations| {
            let found = recent.load.statistics.as_deref();
            found.map_or_else(RateView::default, |found| rate_view(found, operations, seconds))
        };
        FiguresView {
            disk,
            seconds,
            read: rate(Operations::Reads),
            write: rate(Operations::Writes),
            outstanding: recent.load.outstanding,
            client_count: recent.load.client_count,
            limit: self.cluster.limit_view(entry.record.id, state),
        }
    }

    /// What all disks do now, the busiest first.
    ///
    /// # Errors
    /// When the engine is gone.
    pub async fn top(&self) -> Result<TopView, Failure> {
        let host = self.host_state().await?;
        let (records, state) = (self.records(), self.cluster.state().await?);
        let mut disks: Vec<FiguresView> =
            records.names.values().map(|id| self.figures(&records.disks[id], &state)).collect();
        let load = |figures: &FiguresView| figures.read.iops + figures.write.iops;
        disks.sort_by(|a, b| load(b).total_cmp(&load(a)).then_with(|| a.disk.cmp(&b.disk)));
        Ok(TopView {
            seconds: disks.first().map_or(0.0, |figures| figures.seconds),
            disks,
            congestion: host.groups.iter().map(|group| (group.id.to_string(), group.congestion)).collect(),
        })
    }

    /// All histograms of a disk, since the engine started or over the last `since` seconds.
    ///
    /// # Errors
    /// When there is no such disk, the interval is longer than what is kept, or the engine is gone.
    pub async fn histograms(&self, name: &str, since: Option<u64>) -> Result<HistogramsView, Failure> {
        let entry = self.find(name)?;
        let id = entry.record.id;
        let states = self.disk_states(Some(id)).await?;
        let statistics = match (states.get(&id), since) {
            (_, Some(seconds)) if seconds == 0 || seconds > SAMPLES_KEPT.as_secs() => {
                return Err(Failure::usage(format!(
                    "{seconds} seconds are not kept: 1 to {} are",
                    SAMPLES_KEPT.as_secs()
                )));
            }
            (None, _) => Arc::default(),
            (Some(state), None) => Arc::clone(&state.statistics),
            (Some(state), Some(seconds)) => {
                Arc::new(self.sampler.since(Instant::now(), state, Duration::from_secs(seconds)))
            }
        };
        Ok(histograms_view(&entry.record.name, since, &statistics))
    }

    /// For `/metrics`: every disk's name with its sizes, and its cumulative state.
    pub(crate) async fn named_states(&self) -> Result<BTreeMap<String, (DiskSpaces, DiskState)>, Failure> {
        let states = self.disk_states(None).await?;
        let view = self.cluster.view();
        let here = Locals::from([(self.cluster.me, self.local().await?)]);
        let named = states.into_iter().filter_map(|(id, state)| {
            let disk = view.disks.get(&id)?;
            let snapshots = &disk.record.snapshots.taken;
            let held = snapshots.iter().map(|one| snapshot_bytes_of(&disk.record, &here, one.number));
            let spaces = DiskSpaces {
                size: disk.record.size,
                allocated: used_bytes_of(disk, &here).iter().sum(),
                compressed: compressed_of(&disk.record, &here),
                snapshots: snapshots.len(),
                snapshot_bytes: held.sum(),
                scheduled: snapshots.iter().filter(|one| one.schedule.is_some()).count(),
                schedules: self.cluster.schedules(id),
                clones: disk.record.clones.values().sum(),
            };
            Some((disk.record.name.clone(), (spaces, state)))
        });
        Ok(named.collect())
    }
}

/// How large a disk is, and what of it takes space on this host.
pub(crate) struct DiskSpaces {
    /// As guests see it.
    pub(crate) size: u64,
    /// Bytes that this host backs with space.
    pub(crate) allocated: u64,
    /// What its compressed blocks take on this host, if it has any.
    pub(crate) compressed: Option<CompressedView>,
    /// Its snapshots.
    pub(crate) snapshots: usize,
    /// Bytes on this host that only snapshots hold.
    pub(crate) snapshot_bytes: u64,
    /// Those that schedules took.
    pub(crate) scheduled: usize,
    /// Its schedules.
    pub(crate) schedules: Vec<ScheduleView>,
    /// Disks that are clones of its snapshots.
    pub(crate) clones: u32,
}

/// Whether a disk has a label: `team=db`, or `team` with whatever value.
fn has_label(labels: &BTreeMap<String, String>, wanted: &str) -> bool {
    match wanted.split_once('=') {
        Some((key, value)) => labels.get(key).is_some_and(|found| found == value),
        None => labels.contains_key(wanted),
    }
}

/// Why a disk cannot be used, if so.
fn unavailable(entry: &DiskEntry, state: Option<&DiskState>, gathered: &Gathered) -> Option<String> {
    match (state, entry.state) {
        (_, State::Creating | State::Deleting) => None,
        (None, State::Active) => Some("the storage engine does not serve it".to_owned()),
        (Some(_), State::Active) => gathered.unavailable(entry.record.id),
    }
}

fn summary(
    entry: &DiskEntry,
    state: Option<&DiskState>,
    spaces: &[DeviceSpace],
    gathered: &Gathered,
) -> DiskSummary {
    let record = &entry.record;
    let unavailable = unavailable(entry, state, gathered);
    let not_whole = gathered.not_whole(record.id);
    let counts = |component| gathered.is_active(record.id, component);
    let full = without_room(&record.layout, counts, spaces);
    let lines: Vec<String> = match &unavailable {
        // Of one that cannot be used the longer line says more.
        Some(_) if !not_whole.is_empty() => not_whole.clone(),
        _ => unavailable.clone().into_iter().chain(not_whole.clone()).chain(full).collect(),
    };
    let rolling = gathered.disk(record.id).and_then(|disk| disk.record.expect_not_rolling_back().err());
    let lines: Vec<String> = rolling.map(|why| why.to_string()).into_iter().chain(lines).collect();
    let trouble = (!lines.is_empty()).then(|| lines.join("; "));
    DiskSummary {
        name: record.name.clone(),
        id: record.id.to_string(),
        size: record.size,
        policy: record.policy.short(),
        labels: entry.labels.clone(),
        follows: gathered.disk(record.id).and_then(|disk| disk.record.follows.clone()),
        compliance: gathered.compliance(record.id),
        read_only: record.read_only,
        share: record.access.is_shared,
        allowed: gathered.allowed(record.id),
        state: match entry.state {
            State::Creating => DiskWord::Creating,
            State::Active => DiskWord::Active,
            State::Deleting => DiskWord::Deleting,
        },
        allocated_bytes: gathered.allocated_bytes(record.id),
        client_count: state.map_or(0, |state| state.clients.len()),
        unavailable,
        debts: debts(entry, spaces),
        not_whole,
        under_way: gathered.under_way(record.id),
        moving: gathered.moving(record.id),
        trouble,
        clone_of: gathered.clone_of(record.id),
    }
}

/// What the policy asks for and the layout does not give.
fn debts(entry: &DiskEntry, spaces: &[DeviceSpace]) -> Vec<String> {
    placement::check(&entry.record.placed(), spaces).iter().map(Breach::to_string).collect()
}

fn component_view(
    index: usize,
    component: &layout::Component,
    disk: base::DiskId,
    spaces: &[DeviceSpace],
    gathered: &Gathered,
) -> ComponentView {
    let standing = gathered.component(disk, component.id);
    let standing = standing.as_ref();
    ComponentView {
        index,
        id: component.id.to_string(),
        device: component.device.to_string(),
        path: path_of(component.device, spaces).map(str::to_owned),
        size: component.size,
        host: standing.map(|standing| standing.host.clone()),
        place: standing.map_or(index, |standing| standing.place),
        standing: standing.map(|standing| standing.standing),
        stands_in_for: standing.and_then(|standing| standing.stands_in_for.clone()),
        trouble: standing.and_then(|standing| standing.trouble.clone()),
        resync: standing.and_then(|standing| standing.resync.clone()),
        used_bytes: standing.and_then(|standing| standing.used_bytes),
    }
}

/// Where a device is: with its host, if there are several.
fn path_of(device: base::DeviceId, spaces: &[DeviceSpace]) -> Option<&str> {
    spaces.iter().find(|space| space.id == device).map(|space| space.name.as_str())
}

/// The layout's lines, with the paths of devices that are there, and how each component stands.
fn describe(record: &DiskRecord, spaces: &[DeviceSpace], gathered: &Gathered) -> Vec<String> {
    let mut lines = record.layout.describe();
    for (_, component) in record.layout.components() {
        let end = format!("component {} of ", component.id);
        let standing = gathered.component(record.id, component.id);
        let Some(line) = lines.iter_mut().find(|line| line.contains(&end)) else { continue };
        let device = format!("device {}", component.device);
        if let Some(path) = path_of(component.device, spaces) {
            *line = line.replace(&device, path);
        }
        if let Some(standing) = standing {
            *line += &format!(": {}", standing.text());
        }
    }
    for component in gathered.stand_ins(record.id) {
        let path =
            path_of(component.device, spaces).map_or_else(|| component.device.to_string(), str::to_owned);
        let standing = gathered.component(record.id, component.id);
        let text = standing.map_or_else(String::new, |standing| format!(": {}", standing.text()));
        lines.push(format!("beside the layout, component {} on {path}{text}", component.id));
    }
    lines
}

/// How far a device is on its way to be empty, and why it is to be.
fn leaving_text(leaving: &Leaving, left: &Progress, standing: u32) -> String {
    let how_far = match (left.is_done(), standing) {
        (true, 0) => "empty: `drystone device remove` takes it out".to_owned(),
        (true, standing) => format!("being emptied, {standing} components are being deleted"),
        (false, _) => {
            let bytes = base::units::format_bytes(left.bytes_left);
            format!("being emptied, {} components with {bytes} left", left.components_left)
        }
    };
    leaving.fault.as_ref().map_or(how_far.clone(), |fault| format!("{how_far}; {fault}"))
}

/// A line about blocks of a device that were found damaged.
fn damage(device: &DeviceState) -> Option<String> {
    let path = device.path.display();
    let blocks = |count: u64| if count == 1 { "1 block".to_owned() } else { format!("{count} blocks") };
    match (device.damaged_blocks, device.read_errors) {
        (0, 0) => None,
        (damaged, 0) => Some(format!("device {path}: {} found damaged since the start", blocks(damaged))),
        (damaged, unread) => Some(format!(
            "device {path}: {} found damaged since the start, {} could not be read; if the numbers grow, replace it",
            blocks(damaged),
            blocks(unread)
        )),
    }
}

pub(super) fn device_view(device: &DeviceState) -> DeviceView {
    DeviceView {
        id: device.id.to_string(),
        path: device.path.display().to_string(),
        group: device.group.to_string(),
        role: words::device_role(device),
        size: device.size,
        capacity_bytes: device.capacity_bytes,
        used_bytes: device.used_bytes,
        reserved_bytes: device.reserved_bytes,
        component_count: device.component_count,
        component_count_max: device.component_count_max,
        failure: device.failure.clone(),
        damaged_blocks: device.damaged_blocks,
        read_errors: device.read_errors,
        leaving: None,
        busy_seconds: device.busy.as_secs_f64(),
        requests: device.requests,
        load: None,
        encryption: words::encryption(device.encryption),
    }
}

fn device_load_view(seconds: Duration, done: &Interval) -> DeviceLoadView {
    let seconds = seconds.as_secs_f64().max(f64::MIN_POSITIVE);
    let rate = |direction: &Direction| DeviceRateView {
        iops: direction.count() as f64 / seconds,
        latency_us_mean: micros(direction.mean()),
        latency_us_p50: micros(direction.percentile(0.5)),
        latency_us_p99: micros(direction.percentile(0.99)),
    };
    DeviceLoadView {
        read: rate(&done.read),
        write: rate(&done.write),
        busy_percent: (done.busy_ns as f64 / 1e7 / seconds).min(100.0),
    }
}

fn group_view(group: &GroupState, host: &HostState) -> GroupView {
    GroupView {
        id: group.id.to_string(),
        log_bytes: group.log_bytes,
        log_used_bytes: group.log_used_bytes,
        congestion: group.congestion,
        destage_pending_bytes: group.destage_pending_bytes,
        destaged_bytes: group.destaged_bytes,
        compressed_bytes: group.compressed_bytes,
        packed_bytes: group.packed_bytes,
        memory_bytes: group.memory_bytes,
        scrub_progress: group.scrub_progress,
        scrub_rounds: group.scrub_rounds,
        devices: host.devices.iter().filter(|device| device.group == group.id).map(device_view).collect(),
    }
}

fn client_view(client: &engine::ClientState) -> ClientView {
    ClientView {
        peer: client.peer.clone(),
        tls: client.tls,
        attached_seconds: client.attached.as_secs_f64(),
        error_after_seconds: client.error_after.map(|after| after.as_secs()),
    }
}

fn latency_view(statistics: &Statistics, operations: Operations) -> LatencyView {
    let percentile = |q| micros(statistics.percentile(operations, q));
    LatencyView {
        count: statistics.completed(operations),
        bytes: statistics.bytes(operations),
        errors: statistics.errors(operations),
        latency_us_mean: micros(statistics.latency_mean(operations)),
        latency_us_p50: percentile(0.5),
        latency_us_p90: percentile(0.9),
        latency_us_p99: percentile(0.99),
        latency_us_p999: percentile(0.999),
    }
}

fn histograms_view(disk: &str, since: Option<u64>, statistics: &Statistics) -> HistogramsView {
    let bucket = |bucket: &iostats::Bucket| BucketView { limit: bucket.limit, count: bucket.count };
    let histogram = |found: iostats::HistogramView| HistogramView {
        kind: words::histogram(found.kind),
        title: found.kind.title(found.operations).to_owned(),
        unit: found.kind.unit().to_owned(),
        operations: words::operations(found.operations),
        count: found.count,
        min: found.min,
        max: found.max,
        mean: found.mean,
        buckets: found.buckets.iter().map(bucket).collect(),
    };
    HistogramsView {
        disk: disk.to_owned(),
        seconds: since.map(|seconds| seconds as f64),
        read: latency_view(statistics, Operations::Reads),
        write: latency_view(statistics, Operations::Writes),
        trims: statistics.counters.trims,
        flushes: statistics.counters.flushes,
        histograms: statistics.histograms().map(histogram).collect(),
        encoded: base::hex(&statistics.encode()),
    }
}
