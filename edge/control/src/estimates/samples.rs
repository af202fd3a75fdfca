//! The sample of a host, as one host tells another.

use api::types::{ComponentSampleView, RatesView};
use base::units::{BLOCK_SIZE, COMPONENT_SIZE_MAX};
use base::{ComponentId, hex, unhex};
use reduction::{CONTENTS_MAX, ComponentSample, Content, Rate, Rates, Sizes};
use std::collections::BTreeMap;

/// Bytes of a content: checksum, hash.
const CONTENT_SIZE: usize = 12;
/// Blocks of the largest component: no count is greater.
const BLOCKS_MAX: u64 = COMPONENT_SIZE_MAX / BLOCK_SIZE;

/// Rates for another host.
pub fn rates_view(rates: Rates) -> RatesView {
    RatesView { compression: rates.compression.bits(), deduplication: rates.deduplication.bits() }
}

/// Rates that another host told.
pub fn rates_of(view: RatesView) -> Rates {
    Rates {
        compression: Rate::from_bits(view.compression),
        deduplication: Rate::from_bits(view.deduplication),
    }
}

/// What was found in a component, for another host.
pub fn sample_view(component: ComponentId, sample: &ComponentSample) -> ComponentSampleView {
    let mut bytes = Vec::with_capacity(sample.contents.len() * CONTENT_SIZE);
    for content in sample.contents.keys() {
        bytes.extend(content.checksum.to_be_bytes());
        bytes.extend(content.hash.to_be_bytes());
    }
    ComponentSampleView {
        component: component.to_string(),
        blocks: sample.blocks,
        zero_blocks: sample.zero_blocks,
        lz4: sample.sizes.lz4,
        zstd: sample.sizes.zstd,
        contents: hex(&bytes),
        changed: sample.changed,
        unreadable: sample.unreadable,
    }
}

/// What another host found in a component; nothing if it makes no sense.
pub fn sample_of(view: &ComponentSampleView) -> Option<(ComponentId, ComponentSample)> {
    let bytes = unhex(&view.contents)?;
    let all = bytes.chunks_exact(CONTENT_SIZE);
    let sum = |counts: &[u64; 8]| counts.iter().try_fold(0u64, |sum, count| sum.checked_add(*count));
    let is_sound = all.remainder().is_empty()
        && all.len() <= CONTENTS_MAX
        && view.zero_blocks <= view.blocks
        && [view.blocks, view.changed, view.unreadable, sum(&view.lz4)?]
            .iter()
            .all(|count| *count <= BLOCKS_MAX)
        && sum(&view.lz4)? == sum(&view.zstd)?;
    if !is_sound {
        return None;
    }
    let content = |bytes: &[u8]| {
        let (checksum, hash) = bytes.split_first_chunk::<4>()?;
        let hash = u64::from_be_bytes(hash.try_into().ok()?);
        // How often it was read is of no use to others.
        Some((Content { checksum: u32::from_be_bytes(*checksum), hash }, 1))
    };
    let contents: BTreeMap<Content, u32> = all.filter_map(content).collect();
    let sample = ComponentSample {
        blocks: view.blocks,
        zero_blocks: view.zero_blocks,
        sizes: Sizes { lz4: view.lz4, zstd: view.zstd },
        contents,
        changed: view.changed,
        unreadable: view.unreadable,
    };
    Some((view.component.parse().ok()?, sample))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> ComponentSample {
        let mut sample =
            ComponentSample { blocks: 9, zero_blocks: 2, changed: 1, ..ComponentSample::default() };
        sample.sizes.note(3, 2);
        sample.contents.insert(Content { checksum: 7, hash: u64::MAX - 1 }, 1);
        sample.contents.insert(Content { checksum: u32::MAX, hash: 0 }, 1);
        sample
    }

    #[test]
    fn another_host_reads_what_was_found() {
        let view = sample_view(ComponentId(0xabc), &sample());
        assert_eq!(sample_of(&view), Some((ComponentId(0xabc), sample())));
        let rates = Rates { compression: Rate::of(0.25), deduplication: Rate::ALL };
        assert_eq!(rates_of(rates_view(rates)), rates);
    }

    #[test]
    fn what_makes_no_sense_is_no_sample() {
        let view = || sample_view(ComponentId(1), &sample());
        let broken = [
            ComponentSampleView { contents: "00".to_owned(), ..view() },
            ComponentSampleView { contents: "it rains".to_owned(), ..view() },
            ComponentSampleView { zero_blocks: 10, ..view() },
            ComponentSampleView { blocks: u64::MAX, ..view() },
            ComponentSampleView { lz4: [1; 8], ..view() },
            ComponentSampleView { lz4: [u64::MAX; 8], ..view() },
            ComponentSampleView { component: "web".to_owned(), ..view() },
        ];
        for view in broken {
            assert_eq!(sample_of(&view), None, "{view:?}");
        }
    }
}
