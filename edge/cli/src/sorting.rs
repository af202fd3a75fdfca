//! The orders of lists of disks, hosts, devices and people.

use api::types::{ComplianceWord, DeviceView, DiskSummary, HostSummary, HostWord, PersonView};
use clap::ValueEnum;
use std::cmp::Reverse;

/// By what disks are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DiskSort {
    /// Name.
    Name,
    /// Size.
    Size,
    /// Allocated space.
    Allocated,
    /// Policy.
    Policy,
    /// Number of clients.
    Clients,
    /// Unavailable disks first, then disks that are not compliant.
    State,
}

impl DiskSort {
    /// Sorts; figures begin with the largest, and equal ones stay in the order of names.
    pub fn apply(self, disks: &mut [DiskSummary], reverse: bool) {
        disks.sort_by(|a, b| a.name.cmp(&b.name));
        match self {
            DiskSort::Name => {}
            DiskSort::Size => disks.sort_by_key(|disk| Reverse(disk.size)),
            DiskSort::Allocated => disks.sort_by_key(|disk| Reverse(disk.allocated_bytes)),
            DiskSort::Policy => disks.sort_by(|a, b| a.policy.cmp(&b.policy)),
            DiskSort::Clients => disks.sort_by_key(|disk| Reverse(disk.client_count)),
            DiskSort::State => {
                disks.sort_by_key(|disk| {
                    let is_compliant = disk.compliance.state != ComplianceWord::NotCompliant;
                    (disk.unavailable.is_none(), disk.not_whole.is_empty(), is_compliant)
                });
            }
        }
        if reverse {
            disks.reverse();
        }
    }
}

/// By what hosts are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HostSort {
    /// Name.
    Name,
    /// Capacity.
    Capacity,
    /// Free capacity.
    Free,
    /// Components on it.
    Components,
    /// Hosts that are not alive first, then hosts with failed devices.
    State,
}

impl HostSort {
    /// Sorts; figures begin with the largest, and equal ones stay in the order of names.
    pub fn apply(self, hosts: &mut [HostSummary], reverse: bool) {
        hosts.sort_by(|a, b| a.name.cmp(&b.name));
        match self {
            HostSort::Name => {}
            HostSort::Capacity => hosts.sort_by_key(|host| Reverse(host.capacity_bytes)),
            HostSort::Free => hosts.sort_by_key(|host| Reverse(host.free_bytes)),
            HostSort::Components => hosts.sort_by_key(|host| Reverse(host.component_count)),
            HostSort::State => hosts.sort_by_key(|host| {
                (host.state == HostWord::Alive, host.failures.is_empty(), host.maintenance.is_none())
            }),
        }
        if reverse {
            hosts.reverse();
        }
    }
}

/// By what devices are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DeviceSort {
    /// Disk group, its log device first.
    Group,
    /// Path.
    Path,
    /// Size.
    Size,
    /// Used bytes.
    Used,
    /// Free bytes.
    Free,
    /// Damaged blocks.
    Damaged,
    /// Devices out of service first, then devices that are being emptied, then damaged ones.
    State,
}

impl DeviceSort {
    /// Sorts; figures begin with the largest, and equal ones stay in the order of paths.
    pub fn apply(self, devices: &mut [DeviceView], reverse: bool) {
        if self != DeviceSort::Group {
            devices.sort_by(|a, b| a.path.cmp(&b.path));
        }
        match self {
            // As hosts tell of them.
            DeviceSort::Group | DeviceSort::Path => {}
            DeviceSort::Size => devices.sort_by_key(|device| Reverse(device.size)),
            DeviceSort::Used => devices.sort_by_key(|device| Reverse(device.used_bytes)),
            DeviceSort::Free => {
                devices.sort_by_key(|device| Reverse(device.capacity_bytes.saturating_sub(device.used_bytes)))
            }
            DeviceSort::Damaged => devices.sort_by_key(|device| Reverse(device.damaged_blocks)),
            DeviceSort::State => devices.sort_by_key(|device| {
                (device.failure.is_none(), device.leaving.is_none(), device.damaged_blocks == 0)
            }),
        }
        if reverse {
            devices.reverse();
        }
    }
}

/// By what people are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PersonSort {
    /// Name.
    Name,
    /// Role.
    Role,
    /// Issue of the certificate, the oldest first.
    Issued,
    /// End of the certificate, the next one first.
    Expires,
}

impl PersonSort {
    /// Sorts; equal ones stay in the order of names.
    pub fn apply(self, people: &mut [PersonView], reverse: bool) {
        people.sort_by(|a, b| a.name.cmp(&b.name));
        match self {
            PersonSort::Name => {}
            // Who may most comes first.
            PersonSort::Role => people.sort_by_key(|person| std::cmp::Reverse(person.role)),
            // Times are in one form, which sorts as they do.
            PersonSort::Issued => people.sort_by(|a, b| a.issued.cmp(&b.issued)),
            PersonSort::Expires => people.sort_by(|a, b| a.expires.cmp(&b.expires)),
        }
        if reverse {
            people.reverse();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::types::{DeviceRoleWord, EncryptionWord, RoleWord};

    fn person(name: &str, role: RoleWord, expires: &str) -> PersonView {
        let [name, expires] = [name, expires].map(str::to_owned);
        PersonView { name, role, issued: expires.clone(), expires, authorities: Vec::new() }
    }

    fn device(path: &str, used_bytes: u64, damaged_blocks: u64, failure: Option<&str>) -> DeviceView {
        DeviceView {
            id: path.to_owned(),
            path: path.to_owned(),
            group: "g".to_owned(),
            role: DeviceRoleWord::Capacity,
            size: 100,
            capacity_bytes: 100,
            used_bytes,
            reserved_bytes: 0,
            component_count: 0,
            component_count_max: 10,
            failure: failure.map(str::to_owned),
            damaged_blocks,
            read_errors: 0,
            leaving: None,
            busy_seconds: 0.0,
            requests: 0,
            load: None,
            encryption: EncryptionWord::Luks2,
        }
    }

    #[test]
    fn people_are_sorted_by_each_column() {
        let people = [
            person("b", RoleWord::Admin, "2027-01-02"),
            person("a", RoleWord::Viewer, "2027-01-01"),
            person("c", RoleWord::Admin, "2026-01-01"),
        ];
        let order = |sort: PersonSort, reverse| {
            let mut people = people.clone();
            sort.apply(&mut people, reverse);
            people.iter().map(|person| person.name.clone()).collect::<String>()
        };
        assert_eq!(
            (order(PersonSort::Name, false), order(PersonSort::Name, true)),
            ("abc".into(), "cba".into())
        );
        assert_eq!(order(PersonSort::Role, false), "bca");
        assert_eq!(order(PersonSort::Expires, false), "cab");
        assert_eq!(order(PersonSort::Issued, true), "bac");
    }

    #[test]
    fn devices_are_sorted_by_figures_and_by_what_is_wrong_with_them() {
        let devices = [device("z", 5, 0, None), device("a", 9, 3, None), device("m", 1, 0, Some("gone"))];
        let order = |sort: DeviceSort| {
            let mut devices = devices.clone();
            sort.apply(&mut devices, false);
            devices.iter().map(|device| device.path.clone()).collect::<String>()
        };
        assert_eq!(order(DeviceSort::Group), "zam", "as the host tells of them");
        assert_eq!(order(DeviceSort::Path), "amz");
        assert_eq!(order(DeviceSort::Used), "azm");
        assert_eq!(order(DeviceSort::Free), "mza");
        assert_eq!(order(DeviceSort::Damaged), "amz");
        assert_eq!(order(DeviceSort::State), "maz");
    }
}
