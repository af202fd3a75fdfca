//! Compression of what one host destages (docs/design/0049): components that compress, change how, and stop doing so beside the load, and values that become
//! smaller to different degrees.

use crate::model::{Value, squeezable};
use crate::operation::Operation;
use crate::world::World;
use base::Random;
use diskgroup::format::page::Compression;
use diskgroup::{Completion, GroupError, Input};

/// The state of the feature.
#[derive(Debug)]
pub(crate) struct Compressing {
    /// Where choices come from, if anything is compressed.
    random: Option<Random>,
    /// Where it comes from when components are written anew.
    rewriting: Random,
}

impl Compressing {
    pub(crate) fn new(random: Option<Random>, rewriting: Random) -> Compressing {
        Compressing { random, rewriting }
    }

    /// Whether a group of the plain format is converted now, so that it can compress.
    pub(crate) fn wants_conversion(&mut self) -> bool {
        self.random.as_mut().is_some_and(|random| random.chance(2, 3))
    }

    /// Values that are drawn become smaller to a degree of their own.
    pub(crate) fn mix_in(&mut self, values: &mut [Value]) {
        let Some(random) = &mut self.random else { return };
        let all = random.below(5);
        for value in values.iter_mut().filter(|value| **value & 1 == 1) {
            // Most ranges are of one kind, as guests' data are.
            let degree = if random.chance(1, 4) { random.below(4) } else { all.min(3) };
            *value = squeezable(*value, degree);
        }
    }
}

/// Some components with layers never compress.
fn may_compress(number: u32) -> bool {
    !crate::holding_marks::is_plain_component(number)
}

impl World {
    /// Changes how a component is compressed, now and then. False if another operation is to begin.
    pub(crate) fn begin_compressing(&mut self) -> bool {
        let Some(random) = &mut self.compressing.random else { return false };
        let is_converted = self.superblocks[0].format > diskgroup::format::FORMAT_PLAIN;
        if !is_converted || !random.chance(1, 24) {
            return false;
        }
        let live: Vec<u32> = self
            .components
            .iter()
            .filter(|(number, one)| one.key.is_some() && may_compress(**number))
            .map(|(number, _)| *number)
            .collect();
        if live.is_empty() {
            return false;
        }
        let component = live[random.below(live.len() as u64) as usize];
        let all =
            [Compression::Lz4, Compression::Zstd, Compression::Lz4, Compression::Zstd, Compression::Off];
        let compression = all[random.below(all.len() as u64) as usize];
        let key = self.components[&component].key.expect("it is live");
        self.components.get_mut(&component).expect("it is live").compressions.push(compression);
        self.submit(Operation::Compress { component, compression }, |op| Input::Compress {
            op,
            component: key,
            compression,
        });
        true
    }

    /// Has a component written anew, now and then. False if another operation is to begin.
    pub(crate) fn begin_rewriting(&mut self) -> bool {
        let Compressing { random: Some(_), rewriting } = &mut self.compressing else { return false };
        if !rewriting.chance(1, 24) {
            return false;
        }
        let live = |(number, one): (&u32, &crate::world::Component)| Some((*number, one.key?));
        let all = self.components.iter().filter(|(number, _)| may_compress(**number));
        let live: Vec<_> = all.filter_map(live).collect();
        if live.is_empty() {
            return false;
        }
        let (component, key) = live[rewriting.below(live.len() as u64) as usize];
        self.submit(Operation::Rewrite { component }, |op| Input::Rewrite { op, component: key });
        true
    }

    /// After opening: a component compresses as it was told last, or as it was being told when the host crashed. A damaged page takes the whole component away.
    pub(crate) fn find_compression(&mut self) {
        let group = self.group.as_ref().expect("a group is open");
        let mut wrong = None;
        for (number, component) in &mut self.components {
            let Some(state) = component.key.and_then(|key| group.component_state(key)) else { continue };
            let found = state.record.compression;
            if !component.compressions.contains(&found) {
                wrong = Some(format!("component {number} compresses by {found:?}"));
            }
            component.compressions = vec![found];
        }
        if let Some(why) = wrong {
            self.fail(why);
        }
    }

    /// An operation that changes how a component is compressed was answered, or one that has it written anew.
    pub(crate) fn compressing_ended(
        &mut self,
        component: u32,
        compression: Option<Compression>,
        result: Result<Completion, GroupError>,
    ) {
        match (compression, result) {
            (Some(compression), Ok(Completion::Component(_))) => self.compresses(component, compression),
            (None, Ok(Completion::Done)) => {}
            (_, Ok(_)) => self.fail(format!("component {component}: a strange answer")),
            (_, Err(error)) => self.check_error(component, error),
        }
    }

    /// The change of how a component is compressed was answered.
    fn compresses(&mut self, component: u32, compression: Compression) {
        if let Some(found) = self.components.get_mut(&component) {
            // Those that were asked for later may be stable already, if nobody heard yet.
            let at = found.compressions.iter().position(|one| *one == compression).unwrap_or(0);
            found.compressions.drain(..at);
        }
    }
}
