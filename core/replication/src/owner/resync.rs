//! A resync under way: what is known of what is to be copied, and how far that is.

use crate::locks::Range;
use base::units::{BLOCK_SIZE, BLOCKS_PER_REGION, REGIONS_PER_EXTENT};
use base::{Instant, WriteId};
use std::collections::{BTreeMap, VecDeque};
use wire::{PartVersions, Versions};

/// What a component said of the versions of its parts.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) parts: VecDeque<PartVersions>,
    /// Where the next listing begins; none if this one was the last.
    pub(crate) next: Option<u32>,
}

/// A run of regions to copy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) range: Range,
    /// The greatest version among them on the source.
    pub(crate) id: WriteId,
}

/// What is copied, and what for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// All that the component may lack: then it is active.
    Return,
    /// All that was changed since the one that it stands in for left: then it stands in.
    StandIn,
    /// What a stand-in that is to be a copy has not got yet: then it is active.
    Fill,
    /// What its stand-in has, onto a component that is to be the only active one.
    Restore,
}

impl Kind {
    /// Whether all that the source holds is copied, however old it is.
    pub(crate) fn takes_all(self) -> bool {
        matches!(self, Kind::Fill | Kind::Restore)
    }
}

/// A resync under way.
#[derive(Debug)]
pub(crate) struct Resync {
    pub(crate) attempt: u32,
    pub(crate) kind: Kind,
    pub(crate) since: WriteId,
    /// Whether what the component itself has changed last, and may be void, is copied over: until then it must not forget what
    /// that was.
    pub(crate) is_clean: bool,
    pub(crate) began: Instant,
    /// The member that is asked what was changed; of rows, one of those.
    pub(crate) source: u8,
    /// What members told that were asked, and how many have not.
    pub(crate) of_sources: Vec<Listing>,
    pub(crate) asked: u8,
    pub(crate) of_target: Option<Listing>,
    pub(crate) is_listing: bool,
    /// Whether all is copied: acknowledgements wait for the component from here on.
    pub(crate) is_ending: bool,
    /// Where the next listing begins; `None` when all was listed.
    pub(crate) next: Option<u32>,
    pub(crate) runs: VecDeque<Run>,
    /// Parts of which the component holds small changes, with their greatest ids: all of them is made anew.
    pub(crate) held: Vec<(u32, WriteId)>,
    pub(crate) copies: u32,
    pub(crate) copied_bytes: u64,
}

impl Resync {
    pub(crate) fn new(attempt: u32, kind: Kind, since: WriteId, source: u8, began: Instant) -> Resync {
        Resync {
            attempt,
            kind,
            since,
            is_clean: true,
            began,
            source,
            of_sources: Vec::new(),
            asked: 0,
            of_target: None,
            is_listing: false,
            is_ending: false,
            next: Some(0),
            runs: VecDeque::new(),
            held: Vec::new(),
            copies: 0,
            copied_bytes: 0,
        }
    }

    /// The component holds small changes of a part.
    pub(crate) fn note_held(&mut self, part: u32, through: WriteId) {
        match self.held.iter_mut().find(|(one, _)| *one == part) {
            Some((_, id)) => *id = through.max(*id),
            None => self.held.push((part, through)),
        }
    }

    /// Whether the component must not forget what it has changed last: nobody tells it a watermark.
    pub(crate) fn keeps_window(&self) -> bool {
        !self.is_clean
    }

    /// Whether all is copied, so that it is only waited for what was acknowledged before.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_ending
    }

    /// Bytes copied, and bytes that are known to be left.
    pub(crate) fn progress(&self) -> (u64, u64) {
        let left: u64 = self.runs.iter().map(|run| u64::from(run.range.count) * BLOCK_SIZE).sum();
        (self.copied_bytes, left)
    }

    /// Parts that have been listed; nothing when all have.
    pub(crate) fn looked_through(&self) -> Option<u32> {
        self.next
    }
}

/// The greatest id of a freeing, where nothing is allocated.
pub(crate) fn hole_of(versions: Option<&Versions>) -> WriteId {
    match versions {
        Some(Versions::Hole(id)) => *id,
        Some(Versions::Regions(_)) | None => WriteId::default(),
    }
}

/// Neighbouring regions of a part that are needed become one run, or several where they are more blocks than one may have.
pub(crate) fn push_runs(
    runs: &mut VecDeque<Run>,
    (part, most): (u32, u16),
    of_source: Option<&Versions>,
    of_target: Option<&Versions>,
    is_needed: impl Fn(WriteId, WriteId) -> bool,
) {
    let version = |versions: Option<&Versions>, region: usize| match versions {
        None => WriteId::default(),
        Some(Versions::Hole(id)) => *id,
        Some(Versions::Regions(regions)) => regions[region],
    };
    let mut open: Option<Run> = None;
    for region in 0..REGIONS_PER_EXTENT {
        let (source, target) = (version(of_source, region), version(of_target, region));
        let is_full = open.is_some_and(|run| run.range.count >= most);
        let is_needed = is_needed(source, target);
        if is_full || !is_needed {
            runs.extend(open.take());
        }
        if !is_needed {
            continue;
        }
        let block = (region * BLOCKS_PER_REGION) as u16;
        let run = open.get_or_insert(Run { range: Range { part, block, count: 0 }, id: source });
        run.range.count += BLOCKS_PER_REGION as u16;
        run.id = run.id.max(source);
    }
    runs.extend(open);
}

/// What several members told of the versions of their parts, as if one had: the greatest of each region.
pub(crate) fn joined(mut listings: Vec<Listing>) -> Listing {
    if listings.len() == 1 {
        return listings.remove(0);
    }
    let next = listings.iter().filter_map(|listing| listing.next).min();
    let mut parts: BTreeMap<u32, Versions> = BTreeMap::new();
    for PartVersions { part, versions } in listings.into_iter().flat_map(|listing| listing.parts) {
        let found = parts.entry(part).or_insert(Versions::Hole(WriteId::default()));
        *found = match (&*found, versions) {
            (Versions::Hole(one), Versions::Hole(other)) => Versions::Hole(other.max(*one)),
            (Versions::Hole(hole), Versions::Regions(ids)) => {
                Versions::Regions(Box::new(ids.map(|id| id.max(*hole))))
            }
            (Versions::Regions(ids), Versions::Hole(hole)) => {
                Versions::Regions(Box::new(ids.map(|id| id.max(hole))))
            }
            (Versions::Regions(one), Versions::Regions(other)) => {
                Versions::Regions(Box::new(std::array::from_fn(|region| one[region].max(other[region]))))
            }
        };
    }
    let parts = parts.into_iter().filter(|(part, _)| next.is_none_or(|next| *part < next));
    Listing { parts: parts.map(|(part, versions)| PartVersions { part, versions }).collect(), next }
}
