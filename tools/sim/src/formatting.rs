//! Disk groups of virtual devices, as formatting leaves them.

use crate::device::Device;
use base::units::MIB;
use base::{ClusterId, DeviceId, GroupId, HostId, Random};
use diskgroup::format::anchor::{Anchor, anchor_offset};
use diskgroup::format::superblock::{Geometry, MEMBERS_MAX, Superblock};

/// Bytes of a log.
pub const LOG_SIZE: u64 = 4 * MIB;

/// The devices of a group, identities counted from `first_device`: the log's first, `capacity_count` capacity devices of so
/// many extents, or one device for both.
pub fn format_devices(
    random: &mut Random,
    capacity_count: u64,
    extents: u64,
    log_size: u64,
    first_device: DeviceId,
) -> (Vec<Superblock>, Vec<Device>) {
    let mut members = [DeviceId(0); MEMBERS_MAX];
    for (place, member) in members.iter_mut().enumerate().take(1 + capacity_count as usize) {
        *member = DeviceId(first_device.0 + place as u128);
    }
    let mut superblocks = Vec::new();
    let mut devices = Vec::new();
    for place in 0..=capacity_count {
        let has_log = place == 0;
        let is_capacity = place > 0 || capacity_count == 0;
        let size =
            if is_capacity { (extents + 4) * MIB } else { 4 * MIB } + if has_log { log_size } else { 0 };
        let geometry = Geometry::plan(size, has_log.then_some(log_size), is_capacity)
            .expect("the simulator's sizes fit");
        let log_mark = if has_log { random.bits() } else { 0 };
        let superblock = Superblock {
            format: diskgroup::format::FORMAT_PLAIN,
            revision: 1,
            cluster: ClusterId(1),
            host: HostId(first_device.0 >> 8),
            group: GroupId(first_device.0),
            device: members[place as usize],
            index: place as u8,
            members,
            log_mark,
            size,
            geometry,
        };
        let mut device = Device::new(size);
        if has_log {
            let anchor = Anchor { revision: 1, log_mark, tail_batch: 1, ..Anchor::default() };
            [0, 1].into_iter().for_each(|copy| device.preset(anchor_offset(copy), &anchor.encode()));
        }
        superblocks.push(superblock);
        devices.push(device);
    }
    (superblocks, devices)
}
