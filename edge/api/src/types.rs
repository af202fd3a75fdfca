//! What the API takes and gives. The OpenAPI document and the command line are made from these types.
//!
//! Sizes are bytes, times are seconds or microseconds as the name says, ids are hexadecimal. Fields may be added in
//! later versions; requests refuse fields that they do not know.

mod actions;
mod attaching;
mod care;
mod devices;
mod directory;
mod disks;
mod estimate;
mod events;
mod figures;
mod health;
mod import;
mod me;
mod members;
mod moves;
mod policies;
mod rebuild;
mod resync;
mod rewrite;
mod series;
mod settings;
mod snapshots;
mod space;
mod stream;
mod support;
mod tasks;
mod versions;
mod what_if;
mod words;

pub use actions::ActionView;
pub use attaching::{AllowedView, AttachedView, HandOver, HandoverView};
pub use care::{
    BalanceView, BeginMaintenance, ChangeSettings, ConfirmHost, EvacuateDevice, EvacuationView, FateView,
    FullnessView, KeepDevice, MaintenanceMode, MaintenanceView, NOT_EMPTIED, RemovedHost, TouchedView,
};
pub use devices::{
    AllDevicesView, DeviceLoadView, DeviceRateView, DeviceView, HostDevicesView, UnclaimedDevice,
};
pub use directory::{DirectoryMemberView, DirectoryView, MemberRole};
pub use disks::{ChangeDisk, CreateDisk, DiskQuery, MoveAction};
pub use estimate::{
    ComponentSampleView, CompressionView, DeduplicationView, EstimateProgressView, EstimateView,
    HostPassView, HostSampleView, RatesView, ReductionView, StartEstimate,
};
pub use events::{EventQuery, EventView, EventsView};
pub use figures::{FiguresView, RateView, TopView};
pub use health::{FindingView, GroupHealthView, HealthView, MakeSilence, NamedSilence, SilenceView};
pub use import::{BeginImport, DeleteDisk, EndImport, ImportView};
pub use me::{LogIn, LogInChoices, MeView, MySession, SessionLink};
pub use members::{
    AddPerson, AuthorityView, CertificateAnswer, CertificateRequest, CertificatesView, ChangeOwnPassword,
    ChangePerson, ConfirmAuthority, EtcdChoice, FoundCluster, FoundedView, HostCertificateView, JoinAnswer,
    JoinRequest, JoinedView, JoiningHost, MakeToken, PersonView, TokenPerson, TokenView,
};
pub use moves::{MoveView, OwnerMoveView};
pub use policies::{
    ChangePolicy, ComplianceView, CreatePolicy, ExplainPolicy, ExplainedPolicy, FollowerView, LimitView,
    PlannedComponent, PlannedDisk, PolicyCapacity, PolicyRefusal, PolicyView,
};
pub use rebuild::{
    CopyRequest, CopyView, KeptCopy, PromisedView, RebuildDirectory, RebuildDisk, RebuildHost, RebuildView,
    UnknownDisk,
};
pub use resync::{ComponentResyncView, DiskResyncView, ResyncsView};
pub use rewrite::{CompressedView, HostRewriteView, PackedView, RewriteHost, RewriteView};
pub use series::{HeatView, HostSeriesQuery, HostSeriesView, SeriesQuery, SeriesRates, SeriesView};
pub use settings::{BalanceMode, SettingsView};
pub use snapshots::{
    ChangeSnapshot, ChangesQuery, ChangesView, CloneDisk, ConfirmSnapshot, CreateSnapshot, CreateSnapshots,
    FlattenDisk, FlattenedView, RollBack, RollbackView, RunView, ScheduleView, SnapshotView,
};
pub use space::{HostShareView, SpaceView};
pub use stream::{Changed, DiskSample, HostSamples, LoadView, StreamFigures, StreamQuery};
pub use support::{SupportFile, SupportView};
pub use tasks::{HostImportView, HostTasksView, TaskView, TasksView};
pub use versions::{HostVersionsView, VersionsView};
pub use what_if::{AddHost, ForecastView, HostSpaceView, MoveRoomView, OutlookView, SetPolicy, WhatIf};
pub use words::{
    BalanceWord, CallerWord, ComplianceWord, ConditionWord, CopyWord, DeviceRoleWord, DiskWord,
    EncryptionWord, FateWord, FollowerWord, HealthGroupWord, HealthWord, HistogramWord, HostWord, LogInWord,
    MethodWord, OperationsWord, PassWord, PhaseWord, PolicyChangeWord, ProofWord, RebuildWord, RightWord,
    RoleWord, RollbackWord, SeverityWord, StandingWord, TaskWord, TopicWord,
};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// A host and what it stores on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HostView {
    /// Name of the host.
    pub name: String,
    /// Version of the program.
    pub version: String,
    /// Identity of the host.
    pub host: String,
    /// Identity of the cluster that the devices belong to.
    pub cluster: String,
    /// Seconds since the engine started.
    pub uptime_seconds: f64,
    /// Where NBD clients connect: `127.0.0.1:10809`, `unix:PATH`.
    pub nbd: Vec<String>,
    /// Where API clients connect.
    pub http: Vec<String>,
    /// Bytes of memory in block buffers.
    pub buffer_bytes: u64,
    /// The most that they may be.
    pub buffer_bytes_max: u64,
    /// Reads of clients that wait for block buffers, which others hold.
    #[serde(default)]
    pub buffer_reads_waiting: u64,
    /// Number of disks.
    pub disk_count: usize,
    /// Disks that cannot be used, with the reason.
    pub unavailable: BTreeMap<String, String>,
    /// Disk groups.
    pub groups: Vec<GroupView>,
    /// What went wrong at the start and was left out.
    pub warnings: Vec<String>,
    /// Space of the cluster, or of the host alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space: Option<SpaceView>,
    /// Where the directory stands, and which members etcd has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<DirectoryView>,
    /// The hosts of the cluster, on a host among others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostSummary>,
    /// Disks that are not whole: why, and when they will be. Those that cannot be used are in `unavailable`, too.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub not_whole: BTreeMap<String, Vec<String>>,
    /// What goes on with disks that are whole: what is copied to where.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub under_way: BTreeMap<String, String>,
}

/// A host in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HostSummary {
    /// Name.
    pub name: String,
    /// Identity.
    pub id: String,
    /// Version of its program.
    pub version: String,
    /// Whether it is the one that answers.
    pub is_this: bool,
    /// Whether the one that answers can reach it.
    pub is_reachable: bool,
    /// Whether it is there.
    #[serde(default)]
    pub state: HostWord,
    /// The same in words: `alive`, `suspect for …` or `away for …`.
    #[serde(default)]
    pub liveness: String,
    /// Whether it is being serviced, and what has to leave it first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<String>,
    /// Where other hosts connect.
    pub peers: String,
    /// Where clients of the API connect.
    pub api: Vec<String>,
    /// Where clients of NBD connect.
    pub nbd: Vec<String>,
    /// The hosts that fail together with it.
    pub fault_domain: Option<String>,
    /// Capacity devices.
    pub device_count: usize,
    /// Bytes that their extents can take in all.
    pub capacity_bytes: u64,
    /// Bytes that none has taken.
    pub free_bytes: u64,
    /// Components that stand there.
    pub component_count: u32,
    /// Devices that are out of service, and why.
    pub failures: Vec<String>,
}

/// What one host of a cluster knows and the others do not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LocalView {
    /// Its identity.
    pub host: String,
    /// The disks that it owns.
    pub owned: Vec<ReplicationView>,
    /// Bytes taken by each component that stands there.
    pub used_bytes: BTreeMap<String, u64>,
    /// Of each component that stands there and has snapshots: the bytes of blocks that only a snapshot sees, or older ones, by its number.
    #[serde(default)]
    pub snapshot_bytes: BTreeMap<String, BTreeMap<u32, u64>>,
    /// Of each component that stands there and has compressed blocks, or is being written anew: what these take.
    #[serde(default)]
    pub packed: BTreeMap<String, PackedView>,
    /// Clients that it has, by the disks that they are attached to.
    #[serde(default)]
    pub attached: BTreeMap<String, usize>,
    /// Disks that it keeps clients from, and why.
    #[serde(default)]
    pub locked: BTreeMap<String, String>,
    /// Other hosts, and whether it can reach them.
    pub links: BTreeMap<String, bool>,
    /// Why the shared directory does not answer it, while that is so.
    pub directory_away: Option<String>,
    /// Members of the directory that it asks.
    #[serde(default)]
    pub directory_members: usize,
    /// Those that did not answer when it last looked.
    #[serde(default)]
    pub directory_members_silent: usize,
    /// How long its devices worked for a request in the last ten seconds; those that did nothing are left out.
    #[serde(default)]
    pub paces: Vec<PaceView>,
    /// Traffic with other hosts, and connections that went wrong.
    pub peers: PeerCountersView,
}

/// How long a device worked for a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PaceView {
    /// Its identity.
    pub device: String,
    /// Whether it holds a log.
    pub is_log: bool,
    /// Microseconds of work for one request.
    pub request_us: u64,
}

/// Traffic with other hosts, and connections that went wrong, since the start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PeerCountersView {
    /// Refused in the greeting, or never greeted.
    pub refused: u64,
    /// Ended because what came was no message.
    pub garbage: u64,
    /// Ended because the other host took too little.
    pub slow: u64,
    /// Bytes received from other hosts.
    #[serde(default)]
    pub received_bytes: u64,
    /// Bytes sent to other hosts.
    #[serde(default)]
    pub sent_bytes: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What the owner of a disk says of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReplicationView {
    /// Identity of the disk.
    pub disk: String,
    /// How far its owner is.
    pub phase: PhaseWord,
    /// The owner's epoch.
    pub epoch: u32,
    /// Whether its clients wait for the directory: it does not serve yet, or cannot reach a component that may count.
    pub waits_for_directory: bool,
    /// Bytes copied to bring components up to date, since it began.
    pub copied_bytes: u64,
    /// Damaged blocks that it wrote again.
    pub repaired_blocks: u64,
    /// Of a disk with parity: blocks that its components hold of small writes and that the parity does not count yet.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub held_blocks: u64,
    /// Blocks of parity that were made to count such writes, since it began.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub folded_blocks: u64,
    /// Bytes of zeroes in guests' writes that became trims at its host, since that opened the disk.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub zero_bytes_trimmed: u64,
    /// Of a disk with parity: what comparing its rows has found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_checks: Option<RowChecksView>,
    /// What the limits of the disk do; nothing where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitView>,
    /// While it moves into another layout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moving: Option<OwnerMoveView>,
    /// The components.
    pub members: Vec<MemberView>,
}

/// What the owner of a disk with parity found when it compared the parity of its rows with their data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RowChecksView {
    /// Rows that it compared, since it began.
    pub checked_rows: u64,
    /// Of these, rows whose parity did not agree with the data.
    pub disagreeing_rows: u64,
    /// Of those, rows whose parity was written again.
    pub mended_rows: u64,
    /// Rows that it passed over, because they were written all the time or could not be read.
    pub skipped_rows: u64,
    /// Seconds since its last pass over all rows ended; nothing before the first one has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed_seconds: Option<u64>,
}

/// What the owner of a disk says of a component.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MemberView {
    /// Identity.
    pub component: String,
    /// Whether it serves the owner.
    pub is_open: bool,
    /// Whether it is on the owner's host and guests' reads pass it over, because it is slow.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_passed_over: bool,
    /// What reads of it took lately, from the question to the answer, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_us: Option<f64>,
    /// While it is brought up to date.
    pub resync: Option<ResyncView>,
    /// Why it does not count.
    pub trouble: Option<String>,
    /// In how many seconds it is tried again, while that waits because of the trouble.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_seconds: Option<u64>,
}

/// How far a component has been brought up to date.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ResyncView {
    /// Bytes that were copied.
    pub copied_bytes: u64,
    /// Bytes still to be copied, as far as they are known.
    pub remaining_bytes: u64,
    /// The pace over the last seconds.
    pub bytes_per_second: Option<f64>,
    /// When it will end at that pace.
    pub seconds_left: Option<f64>,
}

/// A disk group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GroupView {
    /// Identity.
    pub id: String,
    /// Size of the log region.
    pub log_bytes: u64,
    /// Bytes of it in use.
    pub log_used_bytes: u64,
    /// Back-pressure, 0..=255.
    pub congestion: u8,
    /// Bytes in the log that wait for destaging.
    pub destage_pending_bytes: u64,
    /// Bytes destaged since the start.
    pub destaged_bytes: u64,
    /// Bytes of blocks that were compressed when they were destaged, since the start, before that; those that saved nothing among them.
    #[serde(default)]
    pub compressed_bytes: u64,
    /// The same after that.
    #[serde(default)]
    pub packed_bytes: u64,
    /// Bytes of memory in tables.
    pub memory_bytes: u64,
    /// Share of the space at rest that the present round of scrubbing has verified.
    pub scrub_progress: f64,
    /// Rounds of scrubbing completed since the start.
    pub scrub_rounds: u64,
    /// Its devices.
    pub devices: Vec<DeviceView>,
}

/// A device that takes the place of another.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplaceDevice {
    /// Name of the host that has the device [default: the host that is asked].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The path or id of the device that failed, or is empty. Of a group that could not be opened: the path of its log device.
    pub device: String,
    /// The path of the new device. It may be the same path.
    pub with: String,
    /// Make a file of this size where the new path does not exist.
    #[serde(default)]
    pub file_size: Option<u64>,
    /// Format the new device although it holds something else.
    #[serde(default)]
    pub force: bool,
    /// Only tell what that would do.
    #[serde(default)]
    pub dry_run: bool,
    /// The device once more, where nothing else holds what stood on it.
    #[serde(default)]
    pub confirm: Option<String>,
}

/// What replacing a device does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReplacementView {
    /// The path of the former device.
    pub device: String,
    /// The path of the new one.
    pub with: String,
    /// Whether it is a log device, so that the whole group is made anew.
    pub is_log: bool,
    /// Disks that had components there.
    pub disks: Vec<String>,
    /// Those of them of which no other component holds the data: they are lost.
    pub lost_disks: Vec<String>,
    /// The group that the new device is in; nothing in a dry run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// What else should be done, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// Devices to be added.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddDevices {
    /// Name of the host that has the devices [default: the host that is asked].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The group that gets them as capacity devices. Left out: a new group is made.
    #[serde(default)]
    pub group: Option<String>,
    /// Log device of a new group.
    #[serde(default)]
    pub log: Option<String>,
    /// Capacity devices. A new group may have none: its log device then holds everything.
    #[serde(default)]
    pub capacity: Vec<String>,
    /// Size of the log region of a new group.
    #[serde(default)]
    pub log_size: Option<u64>,
    /// Make files of this size where paths do not exist.
    #[serde(default)]
    pub file_size: Option<u64>,
    /// Format devices that hold something else.
    #[serde(default)]
    pub force: bool,
}

/// What was added.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AddedDevices {
    /// The group.
    pub group: String,
    /// Its devices, those that were there too.
    pub devices: Vec<DeviceView>,
}

/// A disk in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DiskSummary {
    /// Name.
    pub name: String,
    /// Identity.
    pub id: String,
    /// Size that guests see.
    pub size: u64,
    /// Its rules, in short: `single,stripes=2`.
    pub policy: String,
    /// Labels: what people and programs say of it, by key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The named policy that it follows: its rules change with that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<String>,
    /// Whether it is as its policy says.
    #[serde(default)]
    pub compliance: ComplianceView,
    /// Whether clients may only read.
    pub read_only: bool,
    /// Whether clients of several hosts may have it at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub share: bool,
    /// The only ones who may attach to it; left out: whoever may attach to disks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<AllowedView>,
    /// How far its making is.
    pub state: DiskWord,
    /// Bytes of its size that are backed by space.
    pub allocated_bytes: u64,
    /// Clients attached.
    pub client_count: usize,
    /// Why it cannot be used, if so.
    pub unavailable: Option<String>,
    /// What its policy asks for and it does not have.
    pub debts: Vec<String>,
    /// Which copies do not count or cannot be reached, why, and when they will; empty: it is whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_whole: Vec<String>,
    /// What goes on with it although it is whole: what is copied to where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under_way: Option<String>,
    /// While it moves into another layout: how far it is, and why it stands still.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moving: Option<MoveView>,
    /// All that is wrong with it, and what it waits for, in one line; nothing when nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// What it is a clone of, as long as not all of that is copied: `golden@base`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clone_of: Option<String>,
}

/// All of one disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DiskView {
    /// What a list shows.
    #[serde(flatten)]
    pub summary: DiskSummary,
    /// Every rule with its value.
    pub rules: BTreeMap<String, String>,
    /// When it was made, in seconds since 1970.
    pub created: u64,
    /// The owner's epoch.
    pub epoch: u32,
    /// The host that owns it, in a cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// In a cluster: at which hosts clients have it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attached: Vec<AttachedView>,
    /// The host that may attach it, too, for a while: a running guest moves there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handover: Option<HandoverView>,
    /// Addresses for NBD clients.
    pub addresses: Vec<String>,
    /// The layout as lines of text.
    pub layout: Vec<String>,
    /// Why it is so.
    pub why: Vec<String>,
    /// The components.
    pub components: Vec<ComponentView>,
    /// Clients attached.
    pub clients: Vec<ClientView>,
    /// What its guests do now.
    pub figures: FiguresView,
    /// What its limits do, if its owner could be asked; nothing where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitView>,
    /// What its compressed blocks take, if it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compressed: Option<CompressedView>,
    /// Its snapshots, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub snapshots: Vec<SnapshotView>,
    /// The schedules by which snapshots are taken, as its policy says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schedules: Vec<ScheduleView>,
    /// Its rollback to a snapshot, until it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback: Option<RollbackView>,
    /// Of a disk with parity: what comparing its rows has found, if its owner could be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_checks: Option<RowChecksView>,
    /// Where its guests read, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reads_from: String,
    /// What whoever has just made it is to know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A component.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ComponentView {
    /// Place in the layout, depth first.
    pub index: usize,
    /// Identity.
    pub id: String,
    /// Identity of its device.
    pub device: String,
    /// Path of its device, if it is there.
    pub path: Option<String>,
    /// Size.
    pub size: u64,
    /// In a cluster: the host that it stands on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The place that it is a copy of.
    #[serde(default)]
    pub place: usize,
    /// In a cluster: what it counts for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<StandingWord>,
    /// The component that it stands in for, or is to stand in for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stands_in_for: Option<String>,
    /// What is wrong with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// While it is brought up to date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resync: Option<ResyncView>,
    /// Bytes of it that are backed by space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_bytes: Option<u64>,
}

/// A client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ClientView {
    /// Where it comes from.
    pub peer: String,
    /// Whether the connection is encrypted.
    pub tls: bool,
    /// Seconds since it attached.
    pub attached_seconds: f64,
    /// Seconds that a request may go without an answer before it ends with an I/O error; none if requests wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_after_seconds: Option<u64>,
}

/// How a device is removed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct RemoveOptions {
    /// Whether the whole group may go, where the device holds its log.
    #[serde(default)]
    pub group: bool,
    /// Name of the host that has the device [default: the one that the cluster's records name, else the host that is asked].
    #[serde(default)]
    pub host: Option<String>,
}

/// What one host orders another to do with its devices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OrderDevices {
    /// Who asked for it, for the other host's events.
    pub who: Option<String>,
    /// What is to be done.
    pub order: DeviceOrder,
}

/// Something that is to be done with devices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeviceOrder {
    /// Create a disk group, or add devices to one.
    Add(AddDevices),
    /// Replace a device.
    Replace(ReplaceDevice),
    /// Remove a device.
    Remove {
        /// Its id or path.
        device: String,
        /// Whether its group may go.
        group: bool,
    },
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeviceOrderDone {
    /// Devices were added.
    Added(AddedDevices),
    /// A device was replaced, or it was told what that would do.
    Replaced(ReplacementView),
    /// A device was removed.
    Removed(RemovedDevice),
}

/// An interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct Since {
    /// The last so many seconds; left out: since the engine started.
    #[serde(default)]
    pub since: Option<u64>,
}

/// All histograms of a disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HistogramsView {
    /// Name of the disk.
    pub disk: String,
    /// Seconds that they cover; nothing: since the engine started.
    pub seconds: Option<f64>,
    /// Reads.
    pub read: LatencyView,
    /// Writes.
    pub write: LatencyView,
    /// Trims and zero-writes.
    pub trims: u64,
    /// Flushes.
    pub flushes: u64,
    /// The histograms, with the buckets of vSCSI.
    pub histograms: Vec<HistogramView>,
    /// All of it with the fine latencies, for programs: the bytes of docs/formats/statistics.md in hexadecimal.
    #[serde(default)]
    pub encoded: String,
}

/// Counts and latencies of one operation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LatencyView {
    /// I/Os that completed well.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// I/Os that failed.
    pub errors: u64,
    /// Mean latency in microseconds.
    pub latency_us_mean: Option<f64>,
    /// Median.
    pub latency_us_p50: Option<f64>,
    /// 90th percentile.
    pub latency_us_p90: Option<f64>,
    /// 99th percentile.
    pub latency_us_p99: Option<f64>,
    /// 99.9th percentile.
    pub latency_us_p999: Option<f64>,
}

/// One histogram.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HistogramView {
    /// What it counts.
    pub kind: HistogramWord,
    /// The title that vSCSI gives it.
    pub title: String,
    /// Unit of the limits.
    pub unit: String,
    /// Of which I/Os.
    pub operations: OperationsWord,
    /// Number of values.
    pub count: u64,
    /// Smallest value.
    pub min: Option<i64>,
    /// Largest value.
    pub max: Option<i64>,
    /// Mean.
    pub mean: Option<f64>,
    /// Buckets, empty ones too.
    pub buckets: Vec<BucketView>,
}

/// One bucket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BucketView {
    /// Largest value that falls in it; nothing for the last.
    pub limit: Option<i32>,
    /// How many fell in it.
    pub count: u64,
}

/// A device was removed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RemovedDevice {
    /// What else should be done, if anything.
    pub advice: Option<String>,
}
