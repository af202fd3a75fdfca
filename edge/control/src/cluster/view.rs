//! The records of the shared directory, as a host last heard of them.

use crate::directory::Records;
use crate::directory::shared::record::{
    ATTACHED, Attached, Believed, CLUSTER, ClusterDisk, ClusterHost, ClusterLevel, ClusterSettings, DISKS,
    HOSTS, LEVEL, NAMES, PEOPLE, POLICIES, PROGRAMS, PersonRecord, Program, SETTINGS, SILENCES, Silences,
    read_policy, revoked_person, unread,
};
use crate::directory::shared::{Changes, Entry};
use ::cluster::{DeviceRecord, DiskState, Levels, RecordLevels, group_name};
use base::{DeviceId, DiskId, HostId, NodeId};
use placement::DeviceSpace;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A host's record and its version.
#[derive(Debug, Clone)]
pub struct KnownHost {
    /// Of the record.
    pub version: u64,
    /// What it says.
    pub host: Arc<ClusterHost>,
}

/// All records.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// The revision up to which they are known.
    pub revision: u64,
    /// Hosts.
    pub hosts: BTreeMap<HostId, KnownHost>,
    /// Disks.
    pub disks: BTreeMap<DiskId, Arc<ClusterDisk>>,
    /// At which hosts disks are attached.
    pub attached: BTreeMap<DiskId, Attached>,
    /// What people set.
    pub settings: ClusterSettings,
    /// Who is believed.
    pub believed: Believed,
    /// People with passwords, by name. Whether a record counts is told by [`View::person`].
    pub people: BTreeMap<String, Arc<PersonRecord>>,
    /// The level of the records.
    pub level: ClusterLevel,
    /// What the programs of hosts understand, with the version of the record.
    pub programs: BTreeMap<HostId, (u64, Program)>,
    /// By key: why records cannot be read. What they said before counts still.
    pub unreadable: BTreeMap<String, String>,
    /// Disks and policies in the form of a single host's directory.
    pub records: Arc<Records>,
}

/// What a change of the view concerns.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Whether hosts came, went or moved.
    pub hosts: bool,
    /// Whether somebody else is believed, or no more.
    pub believed: bool,
    /// Disks that changed or are gone.
    pub disks: BTreeSet<DiskId>,
}

impl View {
    /// The host of an id.
    pub fn host(&self, id: HostId) -> Option<&Arc<ClusterHost>> {
        self.hosts.get(&id).map(|known| &known.host)
    }

    /// The host that people mean: by its name, or its id.
    pub fn find_host(&self, name: &str) -> Option<&Arc<ClusterHost>> {
        let by_name = self.hosts.values().find(|known| known.host.record.name == name);
        by_name.map(|known| &known.host).or_else(|| self.host(name.parse().ok()?))
    }

    /// What people call a host.
    pub fn host_name(&self, id: HostId) -> String {
        self.host(id).map_or_else(|| id.to_string(), |host| host.record.name.clone())
    }

    /// All capacity devices as placement sees them, named with their hosts where there are several; `takes`: whether a host takes something new.
    pub fn spaces(&self, takes: impl Fn(&ClusterHost) -> bool) -> Vec<DeviceSpace> {
        let counts = cluster::component_counts(self.disks.values().map(|disk| &disk.record));
        let is_alone = self.hosts.len() == 1;
        let of_host = |known: &KnownHost| {
            let (host, takes) = (&known.host.record, takes(&known.host));
            let space = |device: &DeviceRecord| DeviceSpace {
                id: device.id,
                name: match is_alone {
                    true => device.name.clone(),
                    false => format!("{}:{}", host.name, device.name),
                },
                host: host.id,
                host_name: host.name.clone(),
                fault_domain: host.fault_domain.clone(),
                group: device.group,
                group_name: is_alone.then(|| group_name(device.group)),
                capacity_bytes: device.capacity_bytes,
                free_bytes: device.free_bytes,
                reserved_bytes: device.reserved_bytes,
                component_count: device.component_count.max(counts.get(&device.id).copied().unwrap_or(0)),
                component_count_max: device.component_count_max,
                in_service: takes && device.takes(),
            };
            host.devices.iter().map(space).collect::<Vec<_>>()
        };
        self.hosts.values().flat_map(of_host).collect()
    }

    /// Whether a component of a disk stands in a hybrid group.
    pub fn spins(&self, disk: &::cluster::DiskRecord) -> bool {
        let spins = |component: &layout::Component| {
            let node = disk.roster.member(component.id).map(|member| member.node.host);
            let host = node.and_then(|host| self.host(host));
            host.is_some_and(|host| {
                host.record.devices.iter().any(|one| one.id == component.device && one.spins)
            })
        };
        disk.layout.components().any(|(_, component)| spins(component))
    }

    /// The nodes that the capacity devices belong to.
    pub fn nodes_of_devices(&self) -> BTreeMap<DeviceId, NodeId> {
        let devices = self.hosts.values().flat_map(|known| &known.host.record.devices);
        devices.map(|device| (device.id, device.node)).collect()
    }

    /// Takes changes in.
    pub fn take(&mut self, changes: Changes) -> Difference {
        let mut difference = Difference::default();
        // Everything up to the view's revision is in it already: who reads all records may have the answer before or after the
        // watch has the same news. Whoever follows the disks has still to be told.
        if changes.revision < self.revision {
            let keys = changes.entries.iter().map(|entry| &entry.key).chain(&changes.gone);
            difference.disks.extend(keys.filter_map(|key| key.strip_prefix(DISKS)?.parse::<DiskId>().ok()));
            return difference;
        }
        if changes.is_complete {
            let keys: BTreeSet<&str> = changes.entries.iter().map(|entry| entry.key.as_str()).collect();
            let named = |key: String| keys.contains(key.as_str());
            let gone = self.disks.keys().filter(|id| !named(ClusterDisk::key(**id))).copied();
            let gone: Vec<DiskId> = gone.collect();
            gone.into_iter().for_each(|id| self.remove_disk(id, &mut difference));
            self.hosts.retain(|id, _| named(ClusterHost::key(*id)));
            self.attached.retain(|id, _| named(Attached::key(*id)));
            if !named(SETTINGS.to_owned()) {
                self.settings = ClusterSettings::default();
            }
            let records = Arc::make_mut(&mut self.records);
            records.policies.clear();
            records.silences = Silences::default();
            self.believed = Believed::default();
            self.people.clear();
            self.level = ClusterLevel::default();
            self.programs.clear();
            difference.hosts = true;
            difference.believed = true;
        }
        for key in &changes.gone {
            self.remove(key, &mut difference);
        }
        let former = match changes.is_complete {
            true => std::mem::take(&mut self.unreadable),
            false => self.unreadable.clone(),
        };
        for entry in changes.entries {
            self.unreadable.remove(&entry.key);
            let Err(why) = self.put(&entry, &mut difference) else { continue };
            if former.get(&entry.key) != Some(&why) {
                tracing::error!("{why}; the cluster's records are at {}", self.level.level);
            }
            self.unreadable.insert(entry.key, why);
        }
        self.revision = changes.revision;
        difference
    }

    fn put(&mut self, entry: &Entry, difference: &mut Difference) -> Result<(), String> {
        if entry.key.starts_with(HOSTS) {
            let host = ClusterHost::read(entry)?;
            difference.hosts |=
                self.host(host.record.id).is_none_or(|known| known.record.nodes != host.record.nodes);
            self.note_host(entry.version, host);
        } else if entry.key.starts_with(DISKS) {
            let disk = ClusterDisk::read(entry)?;
            difference.disks.insert(disk.record.id);
            self.note(&disk);
        } else if entry.key.starts_with(ATTACHED) {
            let (disk, attached) = Attached::read(entry)?;
            self.note_attached(disk, attached);
        } else if entry.key == SETTINGS {
            self.settings = ClusterSettings::read(entry)?;
        } else if entry.key == SILENCES {
            Arc::make_mut(&mut self.records).silences = Silences::read(entry)?;
        } else if entry.key.starts_with(POLICIES) {
            let policy = read_policy(entry)?;
            let records = Arc::make_mut(&mut self.records);
            records.policies.insert(policy.name.clone(), policy);
        } else if entry.key.starts_with(PEOPLE) {
            let person = PersonRecord::read(entry)?;
            self.people.insert(person.name.to_string(), Arc::new(person));
        } else if entry.key == LEVEL {
            let level = ClusterLevel::read(entry)?;
            if self.level.version < level.version {
                self.level = level;
            }
        } else if entry.key.starts_with(PROGRAMS) {
            let (host, program) = Program::read(entry)?;
            self.note_program(entry.version, host, program);
        } else if self.believed.put(entry)? {
            difference.believed = true;
        } else if entry.key != CLUSTER && !entry.key.starts_with(NAMES) {
            return Err(unread(&entry.key, "there is no such kind of record"));
        }
        Ok(())
    }

    /// A host's record, if it is news.
    pub fn note_host(&mut self, version: u64, host: ClusterHost) {
        let id = host.record.id;
        if self.hosts.get(&id).is_none_or(|known| known.version < version) {
            self.hosts.insert(id, KnownHost { version, host: Arc::new(host) });
        }
    }

    /// A disk's record, if it is news.
    pub fn note(&mut self, disk: &ClusterDisk) {
        let id = disk.record.id;
        let is_news = match self.disks.get(&id) {
            Some(known) => known.record.version < disk.record.version,
            // Up to its revision the view is complete: a disk that it lacks was removed since it was read.
            None => disk.record.version > self.revision,
        };
        if !is_news {
            return;
        }
        let records = Arc::make_mut(&mut self.records);
        records.insert(disk.entry());
        self.disks.insert(id, Arc::new(disk.clone()));
    }

    /// Where a disk is attached, if it is news.
    pub fn note_attached(&mut self, disk: DiskId, attached: Attached) {
        if self.attached.get(&disk).is_none_or(|known| known.version < attached.version) {
            self.attached.insert(disk, attached);
        }
    }

    /// What a host told of its program, if it is news.
    pub fn note_program(&mut self, version: u64, host: HostId, program: Program) {
        if self.programs.get(&host).is_none_or(|(known, _)| *known < version) {
            self.programs.insert(host, (version, program));
        }
    }

    fn remove(&mut self, key: &str, difference: &mut Difference) {
        self.unreadable.remove(key);
        if let Some(id) = key.strip_prefix(DISKS).and_then(|id| id.parse().ok()) {
            self.remove_disk(id, difference);
        } else if let Some(id) = key.strip_prefix(HOSTS).and_then(|id| id.parse().ok()) {
            self.hosts.remove(&id);
            difference.hosts = true;
        } else if let Some(id) = key.strip_prefix(ATTACHED).and_then(|id| id.parse().ok()) {
            self.attached.remove(&id);
        } else if key == SETTINGS {
            self.settings = ClusterSettings::default();
        } else if key == SILENCES {
            Arc::make_mut(&mut self.records).silences = Silences::default();
        } else if let Some(name) = key.strip_prefix(POLICIES) {
            let records = Arc::make_mut(&mut self.records);
            records.policies.remove(name);
        } else if let Some(name) = key.strip_prefix(PEOPLE) {
            self.people.remove(name);
        } else if key == LEVEL {
            self.level = ClusterLevel::default();
        } else if let Some(id) = key.strip_prefix(PROGRAMS).and_then(|id| id.parse().ok()) {
            self.programs.remove(&id);
        } else {
            self.believed.remove(key);
            difference.believed = true;
        }
    }

    fn remove_disk(&mut self, id: DiskId, difference: &mut Difference) {
        difference.disks.insert(id);
        let Some(disk) = self.disks.remove(&id) else { return };
        let records = Arc::make_mut(&mut self.records);
        records.disks.remove(&id);
        if records.names.get(&disk.record.name) == Some(&id) {
            records.names.remove(&disk.record.name);
        }
    }

    /// A person with a password. One who was removed since is none: a host of a former release leaves the record of the password where
    /// it is.
    pub fn person(&self, name: &str) -> Option<&Arc<PersonRecord>> {
        let record = self.people.get(name)?;
        self.removed_ns(name).is_none_or(|removed| record.changed_ns > removed).then_some(record)
    }

    /// When a person was removed last, in nanoseconds since 1970.
    pub fn removed_ns(&self, name: &str) -> Option<u64> {
        self.believed.revoked.get(&revoked_person(name)).map(|record| record.before_ns)
    }

    /// The level of the records, and what each host understands: what its program told at this start of the host. One
    /// that tells nothing knows of no levels.
    pub fn record_levels(&self) -> RecordLevels {
        let levels = |known: &KnownHost| {
            let incarnation = known.host.record.nodes.first().map(|node| node.incarnation);
            let (_, program) = self.programs.get(&known.host.record.id)?;
            program.levels().filter(|_| incarnation == Some(program.incarnation))
        };
        let hosts = self.hosts.iter().map(|(id, known)| (*id, levels(known).unwrap_or(Levels::FIRST)));
        RecordLevels {
            level: self.level.level,
            hosts: hosts.collect(),
            unreadable: self.unreadable.values().cloned().collect(),
        }
    }

    /// Hosts whose program tells nothing of levels: it reads no record with a field that came with them or later.
    pub fn without_levels(&self) -> Vec<String> {
        let is_told = |known: &&KnownHost| {
            let incarnation = known.host.record.nodes.first().map(|node| node.incarnation);
            let program = self.programs.get(&known.host.record.id);
            program.is_some_and(|(_, program)| incarnation == Some(program.incarnation))
        };
        let hosts = self.hosts.values().filter(|known| !is_told(known));
        hosts.map(|known| known.host.record.name.clone()).collect()
    }

    /// Disks of which something is to be deleted on that host.
    pub fn to_clean(&self) -> Vec<Arc<ClusterDisk>> {
        let is_going = |disk: &&Arc<ClusterDisk>| disk.record.state == DiskState::Deleting;
        self.disks.values().filter(is_going).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::shared::record::OURS;
    use ::cluster::Level;
    use serde_json::{Value, json};

    fn entry(key: &str, version: u64, value: Value) -> Entry {
        Entry { key: key.to_owned(), version, value }
    }

    fn host(id: u128, version: u64, incarnation: u64) -> Entry {
        let value = json!({
            "id": HostId(id).to_string(), "name": format!("h{id}"), "version": "0.1.0", "incarnation": incarnation,
            "peers": "127.0.0.1:1", "api": [], "nbd": [], "nbd_tls": false, "fault_domain": null, "devices": [],
        });
        entry(&ClusterHost::key(HostId(id)), version, value)
    }

    fn program(id: u128, version: u64, incarnation: u64, highest: u16) -> Entry {
        let value =
            json!({ "release": "0.2.0", "incarnation": incarnation, "lowest": 1, "highest": highest });
        entry(&Program::key(HostId(id)), version, value)
    }

    fn changes(is_complete: bool, entries: Vec<Entry>, gone: &[&str]) -> Changes {
        let gone = gone.iter().map(|key| (*key).to_owned()).collect();
        Changes { cluster: String::new(), revision: 9, is_complete, entries, gone }
    }

    fn highest(view: &View) -> Vec<u16> {
        view.record_levels().hosts.values().map(|levels| levels.highest().number()).collect()
    }

    #[test]
    fn what_a_program_understands_counts_for_the_start_of_the_host_that_told_it() {
        let mut view = View::default();
        view.take(changes(true, vec![host(1, 1, 5), program(1, 1, 5, 3), host(2, 2, 8)], &[]));
        assert_eq!(highest(&view), [3, 1], "one that tells nothing knows of no levels");
        view.take(changes(false, vec![host(1, 3, 6)], &[]));
        assert_eq!(highest(&view), [1, 1], "another program may have been started");
        view.take(changes(false, vec![program(1, 4, 6, 2), program(7, 4, 1, 9)], &[]));
        assert_eq!(highest(&view), [2, 1], "who is no host counts for nothing");
        view.take(changes(false, vec![program(1, 3, 6, 4)], &[]));
        assert_eq!(highest(&view), [2, 1], "that was told before");
        view.take(changes(false, Vec::new(), &[&Program::key(HostId(1))]));
        assert_eq!(highest(&view), [1, 1]);
    }

    #[test]
    fn what_cannot_be_read_is_told_until_it_can_and_changes_nothing() {
        let mut view = View::default();
        let told = |view: &View| view.record_levels().unreadable;
        view.take(changes(
            true,
            vec![host(1, 1, 5), entry(NAMES, 1, json!("x")), entry(CLUSTER, 1, json!({}))],
            &[],
        ));
        assert!(told(&view).is_empty());
        let mut later = host(1, 2, 6);
        later.value["colour"] = json!("red");
        view.take(changes(false, vec![later.clone(), entry("gadgets/1", 2, json!({}))], &[]));
        assert_eq!(told(&view).len(), 2);
        for why in told(&view) {
            assert!(why.contains(api::program::RELEASE) && why.contains(&OURS.to_string()), "{why}");
        }
        let known = view.host(HostId(1)).map(|host| host.record.nodes[0].incarnation);
        assert_eq!(known, Some(5), "what it said before counts");
        view.take(changes(false, vec![host(1, 3, 6)], &["gadgets/1"]));
        assert!(told(&view).is_empty());
        view.take(changes(false, vec![later], &[]));
        view.take(changes(true, vec![host(1, 4, 6)], &[]));
        assert!(told(&view).is_empty());
    }

    #[test]
    fn what_was_read_before_the_view_changes_nothing_in_it_and_its_disks_are_told_all_the_same() {
        let mut view = View::default();
        let at = |revision, changes| Changes { revision, ..changes };
        view.take(at(5, changes(true, vec![host(1, 1, 5)], &[])));
        view.take(at(7, changes(false, vec![host(2, 7, 8)], &[])));
        let disk = entry(&ClusterDisk::key(DiskId(3)), 6, json!({}));
        let earlier = at(6, changes(true, vec![host(1, 1, 5), disk], &[&ClusterDisk::key(DiskId(4))]));
        let difference = view.take(earlier);
        assert_eq!(
            difference,
            Difference { disks: BTreeSet::from([DiskId(3), DiskId(4)]), ..Difference::default() }
        );
        assert!(view.host(HostId(2)).is_some() && view.revision == 7, "{}", view.revision);
        assert!(view.record_levels().unreadable.is_empty());
    }

    #[test]
    fn the_level_is_the_newest_that_was_heard_of() {
        let mut view = View::default();
        let level = |number, version| entry(LEVEL, version, json!({ "level": number }));
        let at = |view: &View| view.record_levels().level.number();
        view.take(changes(true, vec![host(1, 1, 5)], &[]));
        assert_eq!((at(&view), view.level.version), (Level::FIRST.number(), 0));
        view.take(changes(false, vec![level(3, 7)], &[]));
        view.take(changes(false, vec![level(2, 5)], &[]));
        assert_eq!((at(&view), view.level.version), (3, 7));
        view.take(changes(true, vec![host(1, 1, 5)], &[]));
        assert_eq!(at(&view), 1, "a directory without the record is at level 1");
    }
}
