//! The configuration file of `drystone host`: TOML, refused with the line when a key or a value makes no sense.
//!
//! Relative paths count from the file's folder, sockets from `data_dir`. Must never touch a device: that is the engine's.

mod console;
mod etcd_section;
mod issuer;
mod member_place;

use crate::limits::UNIX_PATH_MAX;
use base::units::{EXTENT_SIZE, MIB, format_bytes, parse_bytes};
pub use console::ConsoleConfig;
use console::ConsoleSection;
use engine::{Create, Endpoint, Fabric, GroupSpec, Listen, Notice, SHARDS_MAX, Settings, TlsFiles};
use etcd_section::EtcdSection;
use failure::Failure;
use frontends::Protocol;
pub use issuer::IssuerConfig;
pub use member_place::MemberPlace;
use member_place::any_loopback_port;
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use tokio::sync::mpsc::UnboundedSender;

/// Most capacity devices of one disk group (design, section 1).
const CAPACITY_DEVICES_MAX: usize = 7;
/// Least memory in block buffers: two of the largest requests.
const BUFFER_BYTES_MIN: u64 = 64 * MIB;
/// Least memory in tables.
const TABLE_BYTES_MIN: u64 = 16 * MIB;

/// A host's configuration, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The file, if it is of one: an absolute path.
    pub path: Option<PathBuf>,
    /// Name of the host.
    pub name: String,
    /// Where the directory, the lock and the sockets stand.
    pub data_dir: PathBuf,
    /// Where NBD clients connect.
    pub nbd: Vec<Listen>,
    /// Where clients of the API connect.
    pub http: Vec<Listen>,
    /// Where browsers connect.
    pub console: ConsoleConfig,
    /// Encryption of NBD over TCP.
    pub tls: Option<TlsFiles>,
    /// Most bytes of memory in block buffers.
    pub buffer_bytes: u64,
    /// Most bytes of memory in tables.
    pub table_bytes: u64,
    /// Pace of scrubbing in bytes per second, while nobody feels it; zero: off.
    pub scrub_bytes_per_second: u64,
    /// The disk groups.
    pub groups: Vec<GroupSpec>,
    /// The cluster that it is a host of; of one that stands alone, a cluster of one.
    pub cluster: ClusterConfig,
}

/// A host's part in its cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterConfig {
    /// Where the directory is.
    pub directory: DirectoryPlace,
    /// Where other hosts connect; nothing on a host that stands alone.
    pub peers: Option<SocketAddr>,
    /// What fails together with this host.
    pub fault_domain: Option<String>,
    /// Whether reads of a disk that is owned here go to a component of this host when there is one.
    pub prefers_local: bool,
    /// Bytes a second that owners on this host copy at least to make copies whole, whatever guests feel.
    pub resync_floor: u64,
    /// What one of a hundred of guests' requests may take beside copies above that, in percent of what it takes without.
    pub resync_latency_percent: u64,
    /// Nodes of this host, each with a thread of its own.
    pub shards: u8,
    /// Where this host's own member of etcd listens, where the cluster runs etcd by itself.
    pub member: Option<MemberPlace>,
}

/// Where a cluster's directory is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectoryPlace {
    /// With the only host, in the file that it keeps for itself.
    Embedded,
    /// Served by another process of this machine at a unix socket.
    Socket(PathBuf),
    /// In etcd.
    Etcd(etcd::Options),
}

impl fmt::Display for DirectoryPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DirectoryPlace::Embedded => "this host".fmt(f),
            DirectoryPlace::Socket(path) => path.display().fmt(f),
            DirectoryPlace::Etcd(options) if options.endpoints.is_empty() => {
                write!(f, "an etcd of its own ({})", options.prefix)
            }
            DirectoryPlace::Etcd(options) => {
                write!(f, "etcd ({}, {})", options.endpoints.join(" "), options.prefix)
            }
        }
    }
}

/// The file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: Option<String>,
    data_dir: PathBuf,
    #[serde(default)]
    listen: ListenSection,
    #[serde(default)]
    console: ConsoleSection,
    tls: Option<TlsSection>,
    #[serde(default)]
    memory: MemorySection,
    #[serde(default)]
    scrub: ScrubSection,
    #[serde(default)]
    group: Vec<GroupSection>,
    cluster: Option<ClusterSection>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClusterSection {
    directory: Option<String>,
    peers: Option<SocketAddr>,
    fault_domain: Option<String>,
    #[serde(default)]
    prefers_local: bool,
    #[serde(default = "resync_floor", deserialize_with = "size")]
    resync_floor: u64,
    #[serde(default = "resync_latency_percent")]
    resync_latency_percent: u64,
    #[serde(default = "one_shard")]
    shards: u8,
    etcd: Option<EtcdSection>,
}

fn resync_floor() -> u64 {
    node::limits::COPY_RATE_FLOOR
}

fn resync_latency_percent() -> u64 {
    node::limits::COPY_TAIL_PERCENT
}

/// What copies may be let cost guests: below, chance alone would keep them at the floor; above, guests might as well be off.
const RESYNC_LATENCIES: RangeInclusive<u64> = 105..=1000;

/// What owners can be made to copy at least: below, copies of large disks take weeks; above, it is more than links carry.
const RESYNC_FLOORS: RangeInclusive<u64> = MIB..=4096 * MIB;

fn one_shard() -> u8 {
    1
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListenSection {
    nbd: Option<Vec<String>>,
    http: Option<Vec<String>>,
    console: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TlsSection {
    certificate: PathBuf,
    key: PathBuf,
    client_authorities: Option<PathBuf>,
    #[serde(default)]
    required: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct MemorySection {
    #[serde(deserialize_with = "size")]
    buffers: u64,
    #[serde(deserialize_with = "size")]
    tables: u64,
}

impl Default for MemorySection {
    fn default() -> MemorySection {
        MemorySection { buffers: 512 * MIB, tables: 1024 * MIB }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ScrubSection {
    /// Bytes per second and group, while nobody feels it.
    #[serde(deserialize_with = "size")]
    pace: u64,
}

impl Default for ScrubSection {
    fn default() -> ScrubSection {
        // A terabyte in about 18 hours, and too little to be felt by guests.
        ScrubSection { pace: 16 * MIB }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupSection {
    log: PathBuf,
    #[serde(default)]
    capacity: Vec<PathBuf>,
    #[serde(default, deserialize_with = "some_size")]
    log_size: Option<u64>,
    #[serde(default, deserialize_with = "some_size")]
    file_size: Option<u64>,
    #[serde(default)]
    create: CreateRule,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum CreateRule {
    #[default]
    Never,
    IfBlank,
}

/// A size as text (`10GiB`) or as a number of bytes.
#[derive(Deserialize)]
#[serde(untagged)]
enum SizeText {
    Text(String),
    Number(u64),
}

fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    match SizeText::deserialize(deserializer)? {
        SizeText::Text(text) => parse_bytes(&text).map_err(serde::de::Error::custom),
        SizeText::Number(bytes) => Ok(bytes),
    }
}

fn some_size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    size(deserializer).map(Some)
}

/// Reads a place to listen: `127.0.0.1:10809` or `unix:PATH`, relative paths from `folder`.
///
/// # Errors
/// When it is neither, or the path is too long for a socket.
pub fn parse_listen(text: &str, folder: &Path) -> Result<Listen, Failure> {
    if let Some(path) = text.strip_prefix("unix:") {
        let path = folder.join(path);
        if path.as_os_str().len() > UNIX_PATH_MAX {
            return Err(Failure::usage(format!(
                "the path of the socket {} is too long: {UNIX_PATH_MAX} bytes are possible",
                path.display()
            ))
            .hint("use a shorter data_dir, or an absolute path of its own"));
        }
        return Ok(Listen::Unix(path));
    }
    text.parse::<SocketAddr>().map(Listen::Tcp).map_err(|_| {
        Failure::usage(format!("`{text}` is not a place to listen: `127.0.0.1:10809` and `unix:PATH` are"))
    })
}

impl Config {
    /// The directory's file in the data directory.
    pub fn directory_file(&self) -> PathBuf {
        self.data_dir.join("directory.redb")
    }

    /// Reads and checks the file at `path`. `force` lets it format devices that hold something foreign.
    ///
    /// # Errors
    /// What is wrong, with the line.
    pub fn read(path: &Path, force: bool) -> Result<Config, Failure> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::usage(format!("read {}: {error}", path.display())))?;
        let absolute = std::path::absolute(path)
            .map_err(|error| Failure::usage(format!("{} is not a path: {error}", path.display())))?;
        let folder = absolute.parent().expect("a file that was read stands in a folder");
        let config = Config::parse(&text, folder, force).map_err(|failure| Failure {
            error: format!("{}: {}", path.display(), failure.error.trim_end()),
            ..failure
        })?;
        Ok(Config { path: Some(absolute), ..config })
    }

    /// Checks the text of a file that stands in `folder`.
    ///
    /// # Errors
    /// What is wrong, with the line.
    pub fn parse(text: &str, folder: &Path, force: bool) -> Result<Config, Failure> {
        let file: File = toml::from_str(text).map_err(|error| Failure::usage(error.to_string()))?;
        let data_dir = folder.join(&file.data_dir);
        let listen = |texts: Option<Vec<String>>, standard: &[&str]| -> Result<Vec<Listen>, Failure> {
            let texts = texts.unwrap_or_else(|| standard.iter().map(|text| (*text).to_owned()).collect());
            texts.iter().map(|text| parse_listen(text, &data_dir)).collect()
        };
        let config = Config {
            path: None,
            name: file.name.unwrap_or_else(host_name),
            nbd: listen(file.listen.nbd, &["127.0.0.1:10809", "unix:nbd.sock"])?,
            http: listen(file.listen.http, &["unix:api.sock"])?,
            console: file.console.read(file.listen.console, folder)?,
            tls: file.tls.map(|tls| TlsFiles {
                certificate: folder.join(tls.certificate),
                key: folder.join(tls.key),
                client_authorities: tls.client_authorities.map(|path| folder.join(path)),
                required: tls.required,
            }),
            buffer_bytes: file.memory.buffers,
            table_bytes: file.memory.tables,
            scrub_bytes_per_second: file.scrub.pace,
            cluster: file.cluster.unwrap_or_default().read(folder, &data_dir)?,
            groups: file.group.into_iter().map(|group| group.spec(folder, force)).collect(),
            data_dir,
        };
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), Failure> {
        api::name::check_name(&self.name)?;
        for (memory, bytes, least) in
            [("buffers", self.buffer_bytes, BUFFER_BYTES_MIN), ("tables", self.table_bytes, TABLE_BYTES_MIN)]
        {
            if bytes < least {
                return Err(Failure::usage(format!(
                    "[memory] {memory} = {bytes} bytes is too little: at least {} MiB",
                    least / MIB
                )));
            }
        }
        self.check_cluster()?;
        self.groups.iter().try_for_each(check_group)?;
        let mut paths: Vec<&PathBuf> = self.groups.iter().flat_map(paths_of).collect();
        paths.sort();
        match paths.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(Failure::usage(format!("the device {} is named twice", pair[0].display()))),
            None => Ok(()),
        }
    }

    fn check_cluster(&self) -> Result<(), Failure> {
        let cluster = &self.cluster;
        if let Some(peers) = cluster.peers.filter(|peers| peers.ip().is_unspecified()) {
            return Err(Failure::usage(format!(
                "[cluster] peers = \"{peers}\" does not say where other hosts connect"
            ))
            .hint("name the address of this machine that other hosts reach"));
        }
        if !(1..=SHARDS_MAX).contains(&cluster.shards) {
            return Err(Failure::usage(format!(
                "[cluster] shards = {} is not possible: from 1 to {SHARDS_MAX}",
                cluster.shards
            )));
        }
        let parts = u64::from(cluster.shards) * if self.has_peers() { 2 } else { 1 };
        let least = parts * BUFFER_BYTES_MIN;
        if self.buffer_bytes < least {
            return Err(Failure::usage(format!(
                "[memory] buffers = {} bytes is too little for a host of a cluster with {} shards: at least {} MiB",
                self.buffer_bytes,
                cluster.shards,
                least / MIB
            )));
        }
        match &cluster.fault_domain {
            Some(name) => api::name::check_name(name),
            None => Ok(()),
        }
    }

    /// Bytes of buffers that are kept for what other hosts send: half. Were they shared with the guests of this host, two
    /// hosts whose guests fill them could wait for one another for ever.
    pub fn peer_buffer_bytes(&self) -> u64 {
        if self.has_peers() { self.buffer_bytes / 2 } else { 0 }
    }

    /// Bytes of buffers for the guests of this host: all where there are no others.
    pub fn guest_buffer_bytes(&self) -> u64 {
        self.buffer_bytes - self.peer_buffer_bytes()
    }

    /// Where its nodes listen for others; those of a host that stands alone for each other alone.
    pub fn peer_listener(&self) -> Option<SocketAddr> {
        self.cluster.peers.or_else(|| (self.cluster.shards > 1).then(any_loopback_port))
    }

    /// Whether nodes of it are connected with others: of other hosts, or further shards of its own.
    pub fn has_peers(&self) -> bool {
        self.peer_listener().is_some()
    }

    /// Whether a host that stands alone and was started with this can take up another configuration while it serves: they differ by
    /// where the directory is, where other hosts connect, the fault domain, and places to listen that come along.
    pub fn can_grow_into(&self, other: &Config) -> bool {
        let mut like = other.clone();
        like.nbd.retain(|one| self.nbd.contains(one));
        like.http.retain(|one| self.http.contains(one));
        like.console.clone_from(&self.console);
        like.cluster.directory.clone_from(&self.cluster.directory);
        like.cluster.peers = self.cluster.peers;
        like.cluster.member = self.cluster.member;
        like.cluster.fault_domain.clone_from(&self.cluster.fault_domain);
        // That devices are formatted whatever they hold is said at each start.
        for (group, ours) in like.groups.iter_mut().zip(&self.groups) {
            group.create = ours.create;
        }
        like == *self
    }

    /// Where clients connect, with the protocol that is spoken there.
    pub fn endpoints(&self) -> Vec<Endpoint> {
        let nbd = |listen: &Listen| Endpoint { protocol: Protocol::Nbd, listen: listen.clone() };
        self.nbd.iter().map(nbd).collect()
    }

    /// What the engine needs of it.
    pub fn settings(&self, fabric: Fabric, notices: UnboundedSender<Notice>) -> Settings {
        Settings {
            fabric,
            notices,
            endpoints: self.endpoints(),
            tls: self.tls.clone(),
            cluster_tls: None,
            buffer_bytes: self.guest_buffer_bytes(),
            table_bytes: self.table_bytes,
            scrub_bytes_per_second: self.scrub_bytes_per_second,
            shards: self.cluster.shards,
        }
    }
}

impl Default for ClusterSection {
    /// A host that stands alone.
    fn default() -> ClusterSection {
        ClusterSection {
            directory: None,
            peers: None,
            fault_domain: None,
            prefers_local: false,
            resync_floor: resync_floor(),
            resync_latency_percent: resync_latency_percent(),
            shards: one_shard(),
            etcd: None,
        }
    }
}

impl ClusterSection {
    fn read(mut self, folder: &Path, data_dir: &Path) -> Result<ClusterConfig, Failure> {
        let (directory, member) = self.take_directory(folder, data_dir)?;
        let ClusterSection {
            peers,
            fault_domain,
            prefers_local,
            resync_floor,
            resync_latency_percent,
            shards,
            ..
        } = self;
        let peers = match &directory {
            DirectoryPlace::Embedded => {
                if let Some(peers) = peers {
                    return Err(Failure::usage(format!(
                        "[cluster] peers = \"{peers}\" needs a directory that other hosts reach"
                    ))
                    .hint("name it: `directory = \"etcd\"` with [cluster.etcd] endpoints"));
                }
                None
            }
            DirectoryPlace::Socket(_) | DirectoryPlace::Etcd(_) => {
                Some(peers.unwrap_or_else(any_loopback_port))
            }
        };
        if !RESYNC_FLOORS.contains(&resync_floor) {
            return Err(Failure::usage(format!(
                "[cluster] resync_floor is {} a second: from {} to {} make sense",
                format_bytes(resync_floor),
                format_bytes(*RESYNC_FLOORS.start()),
                format_bytes(*RESYNC_FLOORS.end())
            )));
        }
        if !RESYNC_LATENCIES.contains(&resync_latency_percent) {
            return Err(Failure::usage(format!(
                "[cluster] resync_latency_percent is {resync_latency_percent}: from {} to {} make sense",
                RESYNC_LATENCIES.start(),
                RESYNC_LATENCIES.end()
            )));
        }
        Ok(ClusterConfig {
            directory,
            peers,
            fault_domain,
            prefers_local,
            resync_floor,
            resync_latency_percent,
            shards,
            member,
        })
    }

    /// Where the directory is, and where this host's own member of etcd listens, if the cluster runs etcd for itself.
    fn take_directory(
        &mut self,
        folder: &Path,
        data_dir: &Path,
    ) -> Result<(DirectoryPlace, Option<MemberPlace>), Failure> {
        let etcd = self.etcd.take();
        Ok(match (self.directory.as_deref(), etcd) {
            (None, None) => (DirectoryPlace::Embedded, None),
            (Some("etcd"), etcd) => {
                let (options, place) = etcd.unwrap_or_default().read(self.peers, folder, data_dir)?;
                (DirectoryPlace::Etcd(options), place)
            }
            (_, Some(_)) => {
                return Err(Failure::usage(
                    "[cluster.etcd] is of use only with [cluster] directory = \"etcd\"",
                ));
            }
            (Some(text), None) => match parse_listen(text, data_dir)? {
                Listen::Unix(path) => (DirectoryPlace::Socket(path), None),
                Listen::Tcp(_) => {
                    return Err(Failure::usage(format!(
                        "[cluster] directory = \"{text}\" is not where a directory is: \"etcd\" and \"unix:PATH\" are"
                    )));
                }
            },
        })
    }
}

impl GroupSection {
    fn spec(self, folder: &Path, force: bool) -> GroupSpec {
        let create = match (force, self.create) {
            (true, _) => Create::Force,
            (false, CreateRule::IfBlank) => Create::IfBlank,
            (false, CreateRule::Never) => Create::Never,
        };
        GroupSpec {
            remake: None,
            log: folder.join(self.log),
            capacity: self.capacity.into_iter().map(|path| folder.join(path)).collect(),
            log_size: self.log_size,
            file_size: self.file_size,
            create,
        }
    }
}

/// All devices of a group.
pub fn paths_of(group: &GroupSpec) -> impl Iterator<Item = &PathBuf> {
    std::iter::once(&group.log).chain(&group.capacity)
}

/// Refuses groups that no engine could make.
///
/// # Errors
/// What is wrong.
pub fn check_group(group: &GroupSpec) -> Result<(), Failure> {
    if group.capacity.len() > CAPACITY_DEVICES_MAX {
        return Err(Failure::usage(format!(
            "the group of {} has {} capacity devices; up to {CAPACITY_DEVICES_MAX} are possible",
            group.log.display(),
            group.capacity.len()
        ))
        .hint("make a second group with a log device of its own"));
    }
    if group.capacity.contains(&group.log) {
        return Err(Failure::usage(format!("the device {} is named twice", group.log.display()))
            .hint("a log device holds data too if no capacity device is named"));
    }
    for (key, size) in [("log_size", group.log_size), ("file_size", group.file_size)] {
        if let Some(bytes) = size.filter(|bytes| *bytes == 0 || !bytes.is_multiple_of(EXTENT_SIZE)) {
            return Err(Failure::usage(format!("{key} = {bytes} bytes is not a whole number of MiB")));
        }
    }
    Ok(())
}

/// The machine's name up to its first dot, or `host`.
pub fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let short = name.trim().split('.').next().unwrap_or_default().to_owned();
    if api::name::check_name(&short).is_ok() { short } else { "host".to_owned() }
}

#[cfg(test)]
mod tests;
