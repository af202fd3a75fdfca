//! The figures of each disk, each policy and the cluster.

use api::types::{CompressionView, DeduplicationView, ReductionView};
use base::units::BLOCK_SIZE;
use base::{ComponentId, DeviceId, DiskId};
use reduction::{
    Codec, ComponentSample, Compression, Deduplication, Domain, Rate, compression, deduplication,
};
use std::collections::{BTreeMap, BTreeSet};

/// A component that is up to date, and what it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The component.
    pub component: ComponentId,
    /// The device that it stands on.
    pub device: DeviceId,
    /// Its disk.
    pub disk: DiskId,
    /// The name of that.
    pub disk_name: String,
    /// The policy that the disk follows; `-` if it has rules of its own.
    pub policy: String,
    /// Its place.
    pub place: u16,
    /// Whether that has rows with parity, so that each component of it holds other data.
    pub has_rows: bool,
}

/// All figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    /// Of the cluster.
    pub cluster: ReductionView,
    /// Of policies, by name.
    pub policies: Vec<ReductionView>,
    /// Of disks, by name.
    pub disks: Vec<ReductionView>,
}

/// A component with its sample.
struct Sampled<'a> {
    standing: &'a Standing,
    sample: &'a ComponentSample,
    /// Whether it speaks for its place: of the copies of a mirror, one does.
    is_first: bool,
}

/// Computes all figures, from samples that have contents by at least that rate.
pub fn figures(
    standings: &[Standing],
    samples: &BTreeMap<ComponentId, ComponentSample>,
    rate: Rate,
) -> Figures {
    let mut seen = BTreeSet::new();
    let sampled: Vec<Sampled<'_>> = standings
        .iter()
        .filter_map(|standing| {
            let sample = samples.get(&standing.component)?;
            let is_first = standing.has_rows || seen.insert((standing.disk, standing.place));
            Some(Sampled { standing, sample, is_first })
        })
        .collect();
    let of = |name: &str, is_in: &dyn Fn(&Standing) -> bool| {
        let components = standings.iter().filter(|one| is_in(one)).count() as u64;
        let sampled: Vec<&Sampled<'_>> = sampled.iter().filter(|one| is_in(one.standing)).collect();
        reduction_view(name, components, &sampled, rate)
    };
    let policies: BTreeSet<&str> = standings.iter().map(|one| one.policy.as_str()).collect();
    let disks: BTreeMap<DiskId, &str> =
        standings.iter().map(|one| (one.disk, one.disk_name.as_str())).collect();
    let mut disks: Vec<ReductionView> =
        disks.into_iter().map(|(id, name)| of(name, &|one: &Standing| one.disk == id)).collect();
    disks.sort_by(|a, b| a.name.cmp(&b.name));
    Figures {
        cluster: of("cluster", &|_: &Standing| true),
        policies: policies.into_iter().map(|name| of(name, &|one: &Standing| one.policy == name)).collect(),
        disks,
    }
}

fn reduction_view(name: &str, components: u64, sampled: &[&Sampled<'_>], rate: Rate) -> ReductionView {
    let sum = |count: fn(&ComponentSample) -> u64| sampled.iter().map(|one| count(one.sample)).sum::<u64>();
    let samples = || sampled.iter().map(|one| one.sample);
    let per_device =
        deduplication(sampled.iter().map(|one| (Domain(one.standing.device.0), one.sample)), rate);
    let firsts = sampled.iter().filter(|one| one.is_first);
    let over_cluster = deduplication(firsts.map(|one| (Domain(0), one.sample)), rate);
    ReductionView {
        name: name.to_owned(),
        components,
        sampled_components: sampled.len() as u64,
        allocated_bytes: sum(|sample| sample.blocks) * BLOCK_SIZE,
        zero_bytes: sum(|sample| sample.zero_blocks) * BLOCK_SIZE,
        blocks: sum(ComponentSample::data_blocks),
        compression_sampled_blocks: sum(|sample| sample.sizes.count()),
        deduplication_sampled_contents: over_cluster.map_or(0, |found| found.contents),
        lz4: compression(samples(), Codec::Lz4).map(compression_view),
        zstd: compression(samples(), Codec::Zstd).map(compression_view),
        deduplication_per_device: per_device.map(deduplication_view),
        deduplication_cluster: over_cluster.map(deduplication_view),
        changed_blocks: sum(|sample| sample.changed),
        unreadable_blocks: sum(|sample| sample.unreadable),
    }
}

fn compression_view(found: Compression) -> CompressionView {
    CompressionView {
        ratio: found.ratio.value,
        ratio_error: found.ratio.error,
        packed_ratio: found.packed_ratio,
    }
}

fn deduplication_view(found: Deduplication) -> DeduplicationView {
    DeduplicationView {
        saved_percent: found.saved.value * 100.0,
        error_percent: found.saved.error.map(|error| error * 100.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reduction::Content;

    fn standing(component: u64, device: u128, disk: u128, place: u16) -> Standing {
        Standing {
            component: ComponentId(component),
            device: DeviceId(device),
            disk: DiskId(disk),
            disk_name: format!("disk-{disk}"),
            policy: if disk == 1 { "gold" } else { "-" }.to_owned(),
            place,
            has_rows: false,
        }
    }

    /// Blocks with these contents, all in the sample, each of which takes 4 units with LZ4 and 2 with zstd.
    fn sample(contents: &[u64]) -> ComponentSample {
        let mut sample = ComponentSample { blocks: contents.len() as u64, ..ComponentSample::default() };
        for content in contents {
            sample.sizes.note(4, 2);
            *sample.contents.entry(Content { checksum: *content as u32, hash: *content }).or_default() += 1;
        }
        sample
    }

    fn saved(view: Option<DeduplicationView>) -> f64 {
        view.expect("contents are in the sample").saved_percent
    }

    #[test]
    fn copies_of_a_mirror_are_no_duplicates_and_other_disks_with_the_same_blocks_are() {
        // Disk 1 has two copies, on devices 10 and 11; disk 2 has one on device 10.
        let standings = [standing(1, 10, 1, 0), standing(2, 11, 1, 0), standing(3, 10, 2, 0)];
        let samples = BTreeMap::from([
            (ComponentId(1), sample(&[1, 2, 3, 4])),
            (ComponentId(2), sample(&[1, 2, 3, 4])),
            (ComponentId(3), sample(&[3, 4, 5, 5])),
        ]);
        let found = figures(&standings, &samples, Rate::ALL);
        // Of the 8 blocks of one copy of each disk, 5 are distinct.
        assert!((saved(found.cluster.deduplication_cluster) - 37.5).abs() < 1e-9);
        // Device 10 has 8 blocks and 5 distinct ones, device 11 has 4 of 4: 9 of 12.
        assert!((saved(found.cluster.deduplication_per_device) - 25.0).abs() < 1e-9);
        assert!(saved(found.disks[0].deduplication_cluster).abs() < 1e-9, "disk 1 alone repeats nothing");
        assert!((saved(found.disks[1].deduplication_cluster) - 25.0).abs() < 1e-9);
        let lz4 = found.cluster.lz4.expect("blocks are in the sample");
        assert!((lz4.ratio - 2.0).abs() < 1e-9 && (lz4.packed_ratio - 2.0).abs() < 1e-9);
        assert!((found.cluster.zstd.expect("the same").ratio - 4.0).abs() < 1e-9);
        assert_eq!(found.policies.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["-", "gold"]);
        assert_eq!((found.policies[1].blocks, found.cluster.allocated_bytes), (8, 12 * BLOCK_SIZE));
    }

    #[test]
    fn members_of_rows_hold_other_data_each() {
        let in_rows = |component, device| Standing { has_rows: true, ..standing(component, device, 1, 0) };
        let standings = [in_rows(1, 10), in_rows(2, 11)];
        let samples = BTreeMap::from([(ComponentId(1), sample(&[1, 2])), (ComponentId(2), sample(&[2, 3]))]);
        let found = figures(&standings, &samples, Rate::ALL);
        assert!((saved(found.cluster.deduplication_cluster) - 25.0).abs() < 1e-9);
        assert!(saved(found.cluster.deduplication_per_device).abs() < 1e-9);
    }

    #[test]
    fn components_without_a_sample_are_told() {
        let standings = [standing(1, 10, 1, 0), standing(2, 11, 1, 0)];
        let samples = BTreeMap::from([(ComponentId(2), sample(&[1]))]);
        let found = figures(&standings, &samples, Rate::ALL);
        assert_eq!((found.cluster.components, found.cluster.sampled_components), (2, 1));
        assert!(found.cluster.deduplication_cluster.is_some(), "the copy that has a sample speaks for both");
        let nothing = figures(&standings, &BTreeMap::new(), Rate::ALL).cluster;
        assert_eq!((nothing.lz4, nothing.deduplication_per_device, nothing.blocks), (None, None, 0));
    }
}
