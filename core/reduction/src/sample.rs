//! What a host keeps of a pass: counts of each component, sizes of compressed blocks, and contents, in bounded memory.

use crate::choice::{Choice, Measured};
use crate::limits::{CONTENTS_MAX, READS_PER_CHECKSUM};
use crate::plan::Rates;
use crate::sizes::Sizes;
use base::ComponentId;
use base::checksum::CRC32C_OF_ZERO_BLOCK;
use std::collections::BTreeMap;

/// What all equal blocks have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Content {
    /// Their CRC-32C, by which they were chosen.
    pub checksum: u32,
    /// The first 64 bits of their SHA-256.
    pub hash: u64,
}

/// What is known of a component.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ComponentSample {
    /// Allocated blocks, counted.
    pub blocks: u64,
    /// Those of them with the checksum of a block of zeroes, counted.
    pub zero_blocks: u64,
    /// The sizes of the blocks in the sample for compression.
    pub sizes: Sizes,
    /// The contents in the sample for deduplication, and how many blocks were read that have it.
    pub contents: BTreeMap<Content, u32>,
    /// Blocks that were chosen and had other bytes, or none, when they were read.
    pub changed: u64,
    /// Blocks that were chosen and could not be read, and blocks whose checksums could not be read.
    pub unreadable: u64,
}

impl ComponentSample {
    /// Allocated blocks that are not zero: what the samples are of.
    pub fn data_blocks(&self) -> u64 {
        self.blocks - self.zero_blocks
    }

    /// Blocks with that checksum that were read for deduplication.
    fn reads_of(&self, checksum: u32) -> u32 {
        let all = Content { checksum, hash: 0 }..=Content { checksum, hash: u64::MAX };
        self.contents.range(all).fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }
}

/// What a host keeps of a pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSample {
    /// The rates. That of deduplication falls where more contents were found than there is room for.
    pub rates: Rates,
    /// By component.
    pub components: BTreeMap<ComponentId, ComponentSample>,
    contents_max: usize,
    content_count: usize,
}

impl HostSample {
    /// One of a pass that begins.
    pub fn new(rates: Rates) -> HostSample {
        HostSample { rates, components: BTreeMap::new(), contents_max: CONTENTS_MAX, content_count: 0 }
    }

    /// Adds what another pass found, on other components. The rates become the lower ones.
    pub fn join(&mut self, other: HostSample) {
        self.rates.compression = self.rates.compression.min(other.rates.compression);
        self.rates.deduplication = self.rates.deduplication.min(other.rates.deduplication);
        self.components.extend(other.components);
        self.content_count = self.components.values().map(|sample| sample.contents.len()).sum();
    }

    /// A component was looked at, be it that nothing is in it.
    pub fn visit(&mut self, component: ComponentId) {
        self.components.entry(component).or_default();
    }

    /// Counts the blocks of a part, by their checksums, and chooses those that are to be read.
    pub fn take_census(
        &mut self,
        component: ComponentId,
        part: u32,
        checksums: &[Option<u32>],
    ) -> Vec<Choice> {
        let Rates { compression, deduplication } = self.rates;
        let sample = self.components.entry(component).or_default();
        let mut choices = Vec::new();
        // Blocks of this part that were chosen for deduplication, by checksum.
        let mut reads: BTreeMap<u32, u32> = BTreeMap::new();
        for (block, checksum) in checksums.iter().enumerate() {
            let (block, Some(checksum)) = (block as u16, *checksum) else { continue };
            sample.blocks += 1;
            if checksum == CRC32C_OF_ZERO_BLOCK {
                sample.zero_blocks += 1;
                continue;
            }
            let for_compression = compression.chooses_position(component, part, block);
            let mut for_deduplication = deduplication.chooses_content(checksum);
            if for_deduplication {
                let reads = reads.entry(checksum).or_insert_with(|| sample.reads_of(checksum));
                for_deduplication = *reads < READS_PER_CHECKSUM;
                *reads += u32::from(for_deduplication);
            }
            if for_compression || for_deduplication {
                choices.push(Choice { block, checksum, for_compression, for_deduplication });
            }
        }
        choices
    }

    /// Takes what was measured of a block.
    pub fn take(&mut self, component: ComponentId, choice: Choice, measured: Measured) {
        let sample = self.components.entry(component).or_default();
        sample.changed += u64::from(measured.has_changed);
        if let Some((lz4, zstd)) = measured.units {
            sample.sizes.note(lz4, zstd);
        }
        // The rate may have fallen since the block was chosen.
        let is_chosen = self.rates.deduplication.chooses_content(choice.checksum);
        if let Some(hash) = measured.hash.filter(|_| is_chosen) {
            let count = sample.contents.entry(Content { checksum: choice.checksum, hash }).or_insert(0);
            self.content_count += usize::from(*count == 0);
            *count = count.saturating_add(1);
        }
        while self.content_count > self.contents_max {
            self.lower_rate();
        }
    }

    /// Blocks that were chosen are holes by now.
    pub fn note_gone(&mut self, component: ComponentId, blocks: u64) {
        self.components.entry(component).or_default().changed += blocks;
    }

    /// Blocks cannot be read.
    pub fn note_unreadable(&mut self, component: ComponentId, blocks: u64) {
        self.components.entry(component).or_default().unreadable += blocks;
    }

    /// Halves the rate of deduplication, and drops the contents that the lower rate does not choose.
    fn lower_rate(&mut self) {
        self.rates.deduplication = self.rates.deduplication.halved();
        let rate = self.rates.deduplication;
        for sample in self.components.values_mut() {
            sample.contents.retain(|content, _| rate.chooses_content(content.checksum));
        }
        self.content_count = self.components.values().map(|sample| sample.contents.len()).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::Rate;

    const ALL: Rates = Rates { compression: Rate::ALL, deduplication: Rate::ALL };
    const COMPONENT: ComponentId = ComponentId(5);

    fn measured(hash: u64) -> Measured {
        Measured { units: Some((4, 3)), hash: Some(hash), has_changed: false }
    }

    #[test]
    fn a_census_counts_all_blocks_and_chooses_none_of_zeroes() {
        let mut sample = HostSample::new(ALL);
        let checksums = [Some(1), None, Some(CRC32C_OF_ZERO_BLOCK), Some(1)];
        let choices = sample.take_census(COMPONENT, 0, &checksums);
        assert_eq!(choices.iter().map(|choice| choice.block).collect::<Vec<_>>(), [0, 3]);
        let found = &sample.components[&COMPONENT];
        assert_eq!((found.blocks, found.zero_blocks, found.data_blocks()), (3, 1, 2));
        for choice in choices {
            sample.take(COMPONENT, choice, measured(9));
        }
        let found = &sample.components[&COMPONENT];
        assert_eq!(found.contents.values().copied().collect::<Vec<_>>(), [2]);
        assert_eq!(found.sizes.count(), 2);
        sample.visit(COMPONENT);
        sample.visit(ComponentId(6));
        let blocks: Vec<u64> = sample.components.values().map(|one| one.blocks).collect();
        assert_eq!(blocks, [3, 0], "a component without data has a sample, too");
    }

    #[test]
    fn a_content_that_comes_again_and_again_is_read_a_few_times() {
        let mut sample = HostSample::new(Rates { compression: Rate::from_bits(0), ..ALL });
        let mut read = 0;
        for part in 0..3 {
            let choices = sample.take_census(COMPONENT, part, &[Some(7); 256]);
            read += choices.len();
            choices.into_iter().for_each(|choice| sample.take(COMPONENT, choice, measured(9)));
        }
        assert_eq!((read, sample.components[&COMPONENT].blocks), (READS_PER_CHECKSUM as usize, 768));
        assert_eq!(sample.take_census(ComponentId(6), 0, &[Some(7)]).len(), 1, "components are apart");
    }

    #[test]
    fn a_block_that_changed_counts_for_compression_alone() {
        let mut sample = HostSample::new(ALL);
        let choice = sample.take_census(COMPONENT, 0, &[Some(1)])[0];
        sample.take(COMPONENT, choice, Measured { units: Some((8, 8)), hash: None, has_changed: true });
        sample.note_gone(COMPONENT, 2);
        sample.note_unreadable(COMPONENT, 3);
        let found = &sample.components[&COMPONENT];
        assert_eq!((found.changed, found.unreadable, found.contents.len()), (3, 3, 0));
        assert_eq!(found.sizes.count(), 1);
    }

    #[test]
    fn memory_is_bounded_and_what_stays_is_what_the_lower_rate_chooses() {
        let mut sample = HostSample { contents_max: 100, ..HostSample::new(ALL) };
        for checksum in 1..=1000 {
            let choice = sample.take_census(COMPONENT, checksum, &[Some(checksum)])[..].first().copied();
            if let Some(choice) = choice {
                sample.take(COMPONENT, choice, measured(u64::from(checksum)));
            }
        }
        let rate = sample.rates.deduplication;
        let found = &sample.components[&COMPONENT];
        assert!(rate <= Rate::ALL.halved().halved().halved(), "1,000 do not fit into 100");
        assert!((20..=100).contains(&found.contents.len()), "{}", found.contents.len());
        let expected = (1..=1000).filter(|checksum| rate.chooses_content(*checksum)).count();
        assert_eq!(found.contents.len(), expected, "each content that the final rate chooses is there");
        assert_eq!(found.sizes.count(), 1000, "compression keeps its rate");
    }
}
