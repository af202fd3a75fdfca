//! `/metrics` in the text format of Prometheus: counters of disks, gauges of devices, groups and hosts, findings.
//!
//! Made anew for every scrape from the engine's own cumulative figures: no second set of counters is kept. The dashboard and
//! the alerts of `packaging/` rely on the names; `tests/system/monitoring.rs` holds them together.

use crate::control::DiskSpaces;
use crate::control::{Control, NamedLocal};
use ::cluster::{Code, Encryption, Holder};
use api::types::{
    GroupView, HealthView, HostSummary, HostView, HostWord, LimitView, MoveView, RowChecksView, ScheduleView,
    SeverityWord,
};
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use engine::{DeviceLoad, PassOrder, PassState};
use failure::Failure;
use iostats::{FineLatency, Kind, Operations};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, text::encode};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use reduction::{Codec, compression};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// Content type of OpenMetrics, which Prometheus reads.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Content type of the format before it.
const CONTENT_TYPE_PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Answers a scrape.
///
/// # Errors
/// When the engine is gone.
pub async fn metrics(State(control): State<Arc<Control>>, headers: HeaderMap) -> Result<Response, Failure> {
    let accepts = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let text = text(&control).await?;
    Ok(match accepts.contains("application/openmetrics-text") {
        true => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
        false => ([(header::CONTENT_TYPE, CONTENT_TYPE_PLAIN)], plain(&text)).into_response(),
    })
}

/// The same in the format of Prometheus before OpenMetrics, for whoever does not ask for that (`promtool check metrics`, older
/// collectors): counters are declared by the names of their samples, and nothing tells the end. All samples are the same.
fn plain(text: &str) -> String {
    let counter = |line: &str| Some(line.strip_prefix("# TYPE ")?.strip_suffix(" counter")?.to_owned());
    let counters: BTreeSet<String> = text.lines().filter_map(counter).collect();
    let mut out = String::with_capacity(text.len());
    for line in text.lines().filter(|line| *line != "# EOF" && !line.starts_with("# UNIT ")) {
        let comment =
            ["# HELP ", "# TYPE "].iter().find_map(|begin| Some((*begin, line.strip_prefix(begin)?)));
        let named = comment.and_then(|(begin, rest)| Some((begin, rest.split_once(' ')?)));
        match named.filter(|(_, (name, _))| counters.contains(*name)) {
            Some((begin, (name, rest))) => out += &format!("{begin}{name}_total {rest}\n"),
            None => out += &format!("{line}\n"),
        }
    }
    out
}

/// What a scrape gets.
///
/// # Errors
/// When the engine is gone.
pub async fn text(control: &Control) -> Result<String, Failure> {
    let mut registry = Registry::with_prefix("drystone");
    registry.register_collector(Box::new(collect(control).await?));
    let mut text = String::new();
    encode(&mut text, &registry).map_err(|error| Failure::failed("write metrics", error))?;
    Ok(text)
}

/// One series: its labels and its value.
type Series = (Vec<(&'static str, String)>, Value);

#[derive(Debug, Clone, PartialEq)]
enum Value {
    Counter(u64),
    /// A counter of seconds.
    Seconds(f64),
    Gauge(f64),
    /// Sum, count and cumulative-free buckets by their upper limit.
    Histogram(f64, u64, Vec<(f64, u64)>),
}

/// All series of one name.
#[derive(Debug)]
struct Family {
    name: &'static str,
    help: &'static str,
    series: Vec<Series>,
}

#[derive(Debug, Default)]
struct Snapshot {
    families: Vec<Family>,
}

impl Snapshot {
    fn add(&mut self, name: &'static str, help: &'static str, labels: &[(&'static str, &str)], value: Value) {
        let labels = labels.iter().map(|(key, value)| (*key, (*value).to_owned())).collect();
        let family = match self.families.iter().position(|family| family.name == name) {
            Some(place) => &mut self.families[place],
            None => {
                self.families.push(Family { name, help, series: Vec::new() });
                self.families.last_mut().expect("it was added")
            }
        };
        family.series.push((labels, value));
    }
}

impl Value {
    fn kind(&self) -> MetricType {
        match self {
            Value::Counter(_) | Value::Seconds(_) => MetricType::Counter,
            Value::Gauge(_) => MetricType::Gauge,
            Value::Histogram(..) => MetricType::Histogram,
        }
    }
}

impl Value {
    fn write(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        match self {
            Value::Counter(value) => ConstCounter::new(*value).encode(encoder),
            Value::Seconds(value) => ConstCounter::new(*value).encode(encoder),
            Value::Gauge(value) => ConstGauge::new(*value).encode(encoder),
            Value::Histogram(sum, count, buckets) => {
                encoder.encode_histogram::<Vec<(&str, String)>>(*sum, *count, buckets, None)
            }
        }
    }
}

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        for family in &self.families {
            let kind = family.series[0].1.kind();
            let mut metric = encoder.encode_descriptor(family.name, family.help, None, kind)?;
            if let [(labels, value)] = &family.series[..]
                && labels.is_empty()
            {
                value.write(metric)?;
                continue;
            }
            for (labels, value) in &family.series {
                value.write(metric.encode_family(labels)?)?;
            }
        }
        Ok(())
    }
}

async fn collect(control: &Control) -> Result<Snapshot, Failure> {
    let mut snapshot = Snapshot::default();
    let host = control.host_view().await?;
    add_host(&mut snapshot, &host);
    add_health(&mut snapshot, &control.health().await?);
    for group in &host.groups {
        add_group(&mut snapshot, group);
    }
    add_loads(&mut snapshot, &host.groups, &control.device_loads().await?);
    for (name, (spaces, state)) in control.named_states().await? {
        add_disk(&mut snapshot, &name, &spaces, &state);
    }
    add_cluster(&mut snapshot, &control.named_local().await?);
    add_estimate(&mut snapshot, &control.pass_state(PassOrder::Nothing).await?);
    Ok(snapshot)
}

/// The pass of this host that samples its data, and what the last one found. Absent: there was none.
fn add_estimate(snapshot: &mut Snapshot, pass: &PassState) {
    let running = f64::from(u8::from(pass.running.is_some()));
    snapshot.add("estimate_running", "Whether the host samples its data", &[], Value::Gauge(running));
    if let Some(running) = &pass.running {
        let share = running.parts as f64 / running.parts_total.max(1) as f64;
        snapshot.add("estimate_progress", "Share of the pass that is done", &[], Value::Gauge(share));
    }
    let Some(result) = &pass.result else { return };
    let age = Value::Gauge(result.ended.elapsed().as_secs_f64());
    snapshot.add("estimate_sample_age_seconds", "Age of the host's sample", &[], age);
    for (name, codec) in [("lz4", Codec::Lz4), ("zstd", Codec::Zstd)] {
        let Some(found) = compression(result.sample.components.values(), codec) else { continue };
        let labels = [("codec", name)];
        let help = "Estimated ratio of compression of the host's data that is not zero";
        snapshot.add("estimate_compression_ratio", help, &labels, Value::Gauge(found.ratio.value));
        let help = "Standard error of that estimate";
        let error = Value::Gauge(found.ratio.error.unwrap_or(f64::NAN));
        snapshot.add("estimate_compression_ratio_error", help, &labels, error);
    }
}

/// This host, and what it knows of the others.
fn add_host(snapshot: &mut Snapshot, host: &HostView) {
    let build = [("host", host.name.as_str()), ("version", host.version.as_str())];
    snapshot.add("build_info", "The host's name and release; always 1", &build, Value::Gauge(1.0));
    for (name, help, value) in [
        ("uptime_seconds", "Time since the engine started", host.uptime_seconds),
        ("buffer_bytes", "Memory in block buffers", host.buffer_bytes as f64),
        ("buffer_bytes_max", "Most memory that block buffers may take", host.buffer_bytes_max as f64),
        (
            "buffer_reads_waiting",
            "Reads of clients that wait for block buffers, which others hold",
            host.buffer_reads_waiting as f64,
        ),
        ("warnings", "What went wrong at the start and was left out", host.warnings.len() as f64),
        ("disks", "Virtual disks", host.disk_count as f64),
        ("disks_unavailable", "Virtual disks that cannot be used", host.unavailable.len() as f64),
        (
            "disks_not_whole",
            "Virtual disks in use of which a copy does not count",
            host.not_whole.len() as f64,
        ),
    ] {
        snapshot.add(name, help, &[], Value::Gauge(value));
    }
    let used = clock_gettime(ClockId::ProcessCPUTime);
    let help = "Processor time of the host's process, user and kernel";
    snapshot.add(
        "processor_seconds",
        help,
        &[],
        Value::Seconds(used.tv_sec as f64 + used.tv_nsec as f64 / 1e9),
    );
    for other in &host.hosts {
        add_member(snapshot, other);
    }
}

/// A host of the cluster, as its record says.
fn add_member(snapshot: &mut Snapshot, host: &HostSummary) {
    let flag = |is: bool| f64::from(u8::from(is));
    for (name, help, value) in [
        ("host_alive", "Whether the host tells that it is there", flag(host.state == HostWord::Alive)),
        ("host_in_maintenance", "Whether the host is being serviced", flag(host.maintenance.is_some())),
        ("host_capacity_bytes", "Bytes that the host's extents can take", host.capacity_bytes as f64),
        ("host_free_bytes", "Bytes of the host that none has taken", host.free_bytes as f64),
    ] {
        snapshot.add(name, help, &[("host", &host.name)], Value::Gauge(value));
    }
}

/// How many findings there are of each kind, those of which there are none too, so that an alert has a series to end on. Those
/// that are silenced count only as such.
fn add_health(snapshot: &mut Snapshot, health: &HealthView) {
    let count = |is: &dyn Fn(&api::types::FindingView) -> bool| {
        Value::Gauge(health.findings.iter().filter(|finding| is(finding)).count() as f64)
    };
    for severity in [SeverityWord::Critical, SeverityWord::Warning, SeverityWord::Notice] {
        let found = count(&|finding| finding.severity == severity);
        let labels = [("severity", severity.as_str())];
        snapshot.add("health_findings", "What is wrong, by severity", &labels, found);
    }
    let silenced = Value::Gauge(health.silenced.len() as f64);
    snapshot.add("health_findings_silenced", "What is wrong and silenced", &[], silenced);
    for code in Code::ALL.map(Code::as_str) {
        let found = count(&|finding| finding.code == code);
        snapshot.add("health_findings_by_code", "What is wrong, by kind", &[("code", code)], found);
    }
}

/// Other hosts, the directory, and the disks that this host owns.
fn add_cluster(snapshot: &mut Snapshot, named: &NamedLocal) {
    let NamedLocal { local, disks, hosts, certificates, compliance, moves } = named;
    add_certificates(snapshot, certificates);
    moves.iter().for_each(|(disk, moving)| add_move(snapshot, disk, moving));
    let peers = &local.peers;
    for (reason, count) in [("refused", peers.refused), ("garbage", peers.garbage), ("slow", peers.slow)] {
        let help = "Connections with other hosts that went wrong";
        snapshot.add("peer_failures", help, &[("reason", reason)], Value::Counter(count));
    }
    for (name, help, bytes) in [
        ("peer_received_bytes", "Bytes received from other hosts", peers.received_bytes),
        ("peer_sent_bytes", "Bytes sent to other hosts", peers.sent_bytes),
    ] {
        snapshot.add(name, help, &[], Value::Counter(bytes));
    }
    for (host, is_up) in &local.links {
        let name = hosts.get(host).unwrap_or(host);
        let up = Value::Gauge(f64::from(u8::from(*is_up)));
        snapshot.add("peer_reachable", "Whether the host can be reached", &[("host", name)], up);
    }
    let away = f64::from(u8::from(local.directory_away.is_some()));
    snapshot.add("directory_away", "Whether the directory does not answer", &[], Value::Gauge(away));
    for (name, help, count) in [
        ("directory_members", "Members of the directory that this host asks", local.directory_members),
        (
            "directory_members_silent",
            "Members of the directory that do not answer",
            local.directory_members_silent,
        ),
    ] {
        snapshot.add(name, help, &[], Value::Gauge(count as f64));
    }
    for (disk, is_compliant) in compliance {
        let help = "Whether the disk is as its policy says, or moves to be; 0 if not";
        let value = Value::Gauge(f64::from(u8::from(*is_compliant)));
        snapshot.add("disk_compliant", help, &[("disk", disk)], value);
    }
    for owned in &local.owned {
        let disk = [("disk", disks.get(&owned.disk).unwrap_or(&owned.disk).as_str())];
        add_limit(snapshot, &disk, owned.limit.as_ref());
        let missing = owned.members.iter().filter(|one| !one.is_open || one.resync.is_some()).count();
        let left: u64 =
            owned.members.iter().filter_map(|one| Some(one.resync.as_ref()?.remaining_bytes)).sum();
        for (name, help, value) in [
            ("disk_components_not_current", "Components that are not up to date", missing as f64),
            ("disk_resync_remaining_bytes", "Bytes still to be copied to components", left as f64),
            (
                "disk_unfolded_blocks",
                "Blocks held of small writes that parity does not count yet",
                owned.held_blocks as f64,
            ),
        ] {
            snapshot.add(name, help, &disk, Value::Gauge(value));
        }
        for (name, help, value) in [
            ("disk_resync_copied_bytes", "Bytes copied to components by this owner", owned.copied_bytes),
            ("disk_repaired_blocks", "Damaged blocks written again by this owner", owned.repaired_blocks),
            ("disk_folded_blocks", "Blocks of parity made to count small writes", owned.folded_blocks),
            (
                "disk_zero_bytes_trimmed",
                "Bytes of zeroes that were written and trimmed",
                owned.zero_bytes_trimmed,
            ),
        ] {
            snapshot.add(name, help, &disk, Value::Counter(value));
        }
        owned.row_checks.iter().for_each(|checks| add_row_checks(snapshot, &disk, checks));
    }
}

/// What comparing the rows of a disk has found that this host owns.
fn add_row_checks(snapshot: &mut Snapshot, disk: &[(&'static str, &str)], checks: &RowChecksView) {
    for (name, help, value) in [
        ("disk_rows_checked", "Rows whose parity was compared with their data", checks.checked_rows),
        ("disk_rows_disagreeing", "Rows whose parity did not agree with their data", checks.disagreeing_rows),
        ("disk_rows_mended", "Rows whose parity was written again", checks.mended_rows),
        ("disk_rows_skipped", "Rows that were passed over when rows were compared", checks.skipped_rows),
    ] {
        snapshot.add(name, help, disk, Value::Counter(value));
    }
    if let Some(seconds) = checks.passed_seconds {
        let help = "Seconds since the last pass over all rows ended";
        snapshot.add("disk_rows_passed_seconds", help, disk, Value::Gauge(seconds as f64));
    }
}

/// How far a disk is that this host owns and that moves into another layout.
fn add_move(snapshot: &mut Snapshot, disk: &str, moving: &MoveView) {
    let flag = |is: bool| f64::from(u8::from(is));
    for (name, help, value) in [
        ("disk_move_moved_bytes", "Bytes of the disk moved into another layout", moving.moved_bytes as f64),
        (
            "disk_move_remaining_bytes",
            "Bytes of the disk still to be moved into another layout",
            moving.remaining_bytes as f64,
        ),
        ("disk_move_paused", "Whether the move into another layout is paused", flag(moving.is_paused)),
        (
            "disk_move_stands_still",
            "Whether the move into another layout stands still for want of room or of a component",
            flag(moving.stands_still.is_some()),
        ),
    ] {
        snapshot.add(name, help, &[("disk", disk)], Value::Gauge(value));
    }
}

/// What the limits of a disk do that this host owns.
fn add_limit(snapshot: &mut Snapshot, disk: &[(&'static str, &str)], limit: Option<&LimitView>) {
    let Some(limit) = limit else { return };
    let help = "Requests that wait for a limit of the disk";
    snapshot.add("disk_limit_waiting", help, disk, Value::Gauge(f64::from(limit.waiting)));
    let help = "Requests that waited for a limit of the disk";
    snapshot.add("disk_limit_waited", help, disk, Value::Counter(limit.waited));
    let help = "99th percentile of the waits for a limit of the disk, over the last 10 to 20 s";
    let seconds = limit.wait_us_p99.unwrap_or(0.0) / 1e6;
    snapshot.add("disk_limit_wait_p99_seconds", help, disk, Value::Gauge(seconds));
}

/// When certificates end: an alert compares that with the time.
fn add_certificates(snapshot: &mut Snapshot, certificates: &[(Holder, String, u64)]) {
    for (holder, name, ends) in certificates {
        let (metric, help, label) = match holder {
            Holder::Host(_) => {
                ("certificate_expires_timestamp_seconds", "When the host's certificate ends", "host")
            }
            Holder::Authority(_) => {
                ("authority_expires_timestamp_seconds", "When the authority's certificate ends", "authority")
            }
        };
        snapshot.add(metric, help, &[(label, name)], Value::Gauge(*ends as f64));
    }
}

fn add_group(snapshot: &mut Snapshot, group: &api::types::GroupView) {
    let labels = [("group", group.id.as_str())];
    for (name, help, value) in [
        ("log_bytes", "Size of the group's log", group.log_bytes as f64),
        ("log_used_bytes", "Bytes of the log in use", group.log_used_bytes as f64),
        ("congestion", "Back-pressure of the group, 0 to 255", f64::from(group.congestion)),
        (
            "destage_pending_bytes",
            "Bytes in the log that wait for destaging",
            group.destage_pending_bytes as f64,
        ),
        ("table_bytes", "Memory in the group's tables", group.memory_bytes as f64),
        ("scrub_progress", "Share verified in this round of scrubbing", group.scrub_progress),
    ] {
        snapshot.add(name, help, &labels, Value::Gauge(value));
    }
    snapshot.add("destaged_bytes", "Bytes destaged", &labels, Value::Counter(group.destaged_bytes));
    for (name, help, value) in [
        ("compressed_bytes", "Bytes of blocks before they were compressed", group.compressed_bytes),
        ("packed_bytes", "Bytes of the same blocks after that", group.packed_bytes),
    ] {
        snapshot.add(name, help, &labels, Value::Counter(value));
    }
    snapshot.add(
        "scrub_rounds",
        "Rounds of scrubbing completed",
        &labels,
        Value::Counter(group.scrub_rounds),
    );
    for device in &group.devices {
        let labels = [("device", device.path.as_str()), ("group", group.id.as_str())];
        let in_service = f64::from(u8::from(device.failure.is_none()));
        for (name, help, value) in [
            ("device_in_service", "Whether the device is in service", in_service),
            ("device_capacity_bytes", "Bytes that extents can take", device.capacity_bytes as f64),
            ("device_used_bytes", "Bytes in extents that are taken", device.used_bytes as f64),
            ("device_reserved_bytes", "Bytes promised to reservations", device.reserved_bytes as f64),
            ("device_components", "Components that stand on the device", f64::from(device.component_count)),
            ("device_components_max", "Components that it can hold", f64::from(device.component_count_max)),
        ] {
            snapshot.add(name, help, &labels, Value::Gauge(value));
        }
        // Absent where it is unknown: neither 0 nor 1 would be true.
        if let Some(is_encrypted) = Encryption::read(device.encryption.as_str()).is_encrypted() {
            let help = "Whether all data of the device is encrypted at rest, by dm-crypt below it";
            snapshot.add("device_encrypted", help, &labels, Value::Gauge(f64::from(u8::from(is_encrypted))));
        }
        let help = "Blocks found damaged";
        snapshot.add("device_damaged_blocks", help, &labels, Value::Counter(device.damaged_blocks));
        let help = "Blocks that failed reads";
        snapshot.add("device_read_errors", help, &labels, Value::Counter(device.read_errors));
        let leaving = f64::from(u8::from(device.leaving.is_some()));
        snapshot.add("device_leaving", "Whether the device is being emptied", &labels, Value::Gauge(leaving));
        let help = "Requests that ended: reads, writes and flushes";
        snapshot.add("device_requests", help, &labels, Value::Counter(device.requests));
        let help = "Seconds in which requests were under way";
        snapshot.add("device_busy_seconds", help, &labels, Value::Seconds(device.busy_seconds));
    }
}

/// How long reads and writes of devices took.
fn add_loads(snapshot: &mut Snapshot, groups: &[GroupView], loads: &[DeviceLoad]) {
    for (group, device) in groups.iter().flat_map(|group| group.devices.iter().map(move |one| (group, one))) {
        let Some(load) = loads.iter().find(|load| load.id.to_string() == device.id) else { continue };
        for (operation, found) in [("reads", &load.read), ("writes", &load.write)] {
            let labels =
                [("device", device.path.as_str()), ("group", group.id.as_str()), ("operation", operation)];
            let help = "Latency of the device's requests, from when it was handed them";
            snapshot.add("device_latency_seconds", help, &labels, fine_latency(found));
        }
    }
}

/// In the buckets of disks' latencies.
fn fine_latency(found: &FineLatency) -> Value {
    let limits = Kind::Latency.limits().iter().map(|limit| f64::from(*limit) / 1e6);
    let mut buckets: Vec<(f64, u64)> = limits.chain([f64::INFINITY]).map(|limit| (limit, 0)).collect();
    for bucket in found.buckets() {
        let at = bucket.from_ns as f64 / 1e9;
        let place = buckets.partition_point(|(limit, _)| *limit < at);
        buckets[place].1 += bucket.count;
    }
    Value::Histogram(found.sum_ns as f64 / 1e9, found.count, buckets)
}

/// When the schedules of a disk take snapshots.
fn add_schedules(snapshot: &mut Snapshot, disk: &str, schedules: &[ScheduleView]) {
    for one in schedules {
        let labels = [("disk", disk), ("schedule", one.every.as_str())];
        if let Some(last) = one.last {
            let help = "When the last snapshot of the schedule was due";
            snapshot.add("disk_schedule_last_timestamp_seconds", help, &labels, Value::Gauge(last as f64));
        }
        let help = "When the next snapshot of the schedule is due";
        snapshot.add("disk_schedule_next_timestamp_seconds", help, &labels, Value::Gauge(one.next as f64));
        let late = f64::from(u8::from(one.late.is_some()));
        let help = "Whether a snapshot of the schedule is due and is not taken";
        snapshot.add("disk_schedule_late", help, &labels, Value::Gauge(late));
    }
}

fn add_disk(snapshot: &mut Snapshot, name: &str, spaces: &DiskSpaces, state: &engine::DiskState) {
    let disk = [("disk", name)];
    for (metric, help, value) in [
        ("disk_size_bytes", "Size that guests see", spaces.size as f64),
        ("disk_allocated_bytes", "Bytes backed by space on this host", spaces.allocated as f64),
        ("disk_snapshots", "Snapshots of the disk", spaces.snapshots as f64),
        ("disk_snapshot_bytes", "Bytes on this host that only snapshots hold", spaces.snapshot_bytes as f64),
        ("disk_clones", "Disks that are clones of snapshots of the disk", f64::from(spaces.clones)),
        ("disk_snapshots_scheduled", "Snapshots of the disk that schedules took", spaces.scheduled as f64),
        ("disk_outstanding", "Requests under way", f64::from(state.outstanding)),
        ("disk_clients", "Clients attached", state.clients.len() as f64),
    ] {
        snapshot.add(metric, help, &disk, Value::Gauge(value));
    }
    let (compressed, packed) =
        spaces.compressed.map_or((0, 0), |found| (found.compressed_bytes, found.packed_bytes));
    let help = "Bytes of blocks on this host that are compressed, before that";
    snapshot.add("disk_compressed_bytes", help, &disk, Value::Gauge(compressed as f64));
    let help = "Bytes that the compressed blocks on this host take";
    snapshot.add("disk_packed_bytes", help, &disk, Value::Gauge(packed as f64));
    add_schedules(snapshot, name, &spaces.schedules);
    let statistics = &state.statistics;
    for operations in [Operations::Reads, Operations::Writes] {
        let labels = [("disk", name), ("operation", operations.name())];
        let count = |value| Value::Counter(value);
        snapshot.add("disk_ios", "I/Os completed", &labels, count(statistics.completed(operations)));
        snapshot.add("disk_bytes", "Bytes of I/Os completed", &labels, count(statistics.bytes(operations)));
        snapshot.add("disk_errors", "I/Os failed", &labels, count(statistics.errors(operations)));
        let help = "Latency of I/Os";
        snapshot.add("disk_latency_seconds", help, &labels, latency(statistics, operations));
    }
    let counters = &statistics.counters;
    snapshot.add("disk_trims", "Trims and zero-writes", &disk, Value::Counter(counters.trims));
    let help = "Requests that ended with an I/O error since the disk gave no answer within the time that the client named";
    snapshot.add("disk_timed_out_requests", help, &disk, Value::Counter(state.overdue));
    snapshot.add("disk_flushes", "Flushes", &disk, Value::Counter(counters.flushes));
}

/// The vSCSI latency buckets in seconds.
fn latency(statistics: &iostats::Statistics, operations: Operations) -> Value {
    let view = statistics.histogram(Kind::Latency, operations);
    let buckets = view.buckets.iter().map(|bucket| {
        let limit = bucket.limit.map_or(f64::INFINITY, |limit| f64::from(limit) / 1e6);
        (limit, bucket.count)
    });
    let sum = view.mean.unwrap_or(0.0) * view.count as f64 / 1e6;
    Value::Histogram(sum, view.count, buckets.collect())
}
