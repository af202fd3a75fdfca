//! What the group must remember of the changes it was given: the windows beyond the watermarks, and the versions of
//! regions.

use crate::load::tag_of;
use base::units::BLOCKS_PER_REGION;
use base::{ComponentId, WriteId};
use diskgroup::{Origin, Versions, WindowEntry};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// So many of the last changes that have happened are told of for certain.
const HAPPENED: usize = 16;

/// What is known of one component.
#[derive(Debug, Default)]
struct Account {
    /// Changes that were handed in, by id, and whether they were answered.
    changes: BTreeMap<WriteId, bool>,
    /// Those of them that change no blocks: nobody submits these again.
    marks: BTreeSet<WriteId>,
    /// The greatest watermark that the group was told.
    settled: WriteId,
    /// What came with it: what it passed of older epochs was undone.
    from_epoch: u32,
    /// Changes of which that is so.
    undone: BTreeSet<WriteId>,
    /// The last changes that the group was told to have happened, since the last crash.
    happened: VecDeque<WriteId>,
    /// The greatest id of a change of each region (part, region), trims and copies included.
    regions: BTreeMap<(u32, usize), WriteId>,
}

/// The accounts of all components.
#[derive(Debug, Default)]
pub struct Ledger {
    accounts: BTreeMap<ComponentId, Account>,
}

impl Ledger {
    /// A change is handed in.
    pub fn begin(&mut self, component: ComponentId, id: WriteId) {
        self.accounts.entry(component).or_default().changes.insert(id, false);
    }

    /// A mark is handed in: a change of no blocks, which is remembered until it is decided.
    pub fn begin_mark(&mut self, component: ComponentId, id: WriteId) {
        self.begin(component, id);
        self.accounts.entry(component).or_default().marks.insert(id);
    }

    /// A change was answered: it is stable. `blocks` of `part` were written, or trimmed, which counts as much: a copy that
    /// was away while blocks were trimmed must hear of it.
    pub fn end(
        &mut self,
        component: ComponentId,
        id: WriteId,
        origin: Origin,
        (part, blocks): (u32, std::ops::Range<u16>),
    ) {
        let account = self.accounts.entry(component).or_default();
        if let Origin::Guest(_) = origin {
            account.changes.insert(id, true);
        }
        for region in blocks.map(|block| block as usize / BLOCKS_PER_REGION) {
            let last = account.regions.entry((part, region)).or_default();
            *last = id.max(*last);
        }
    }

    /// A change was refused.
    pub fn refuse(&mut self, component: ComponentId, id: WriteId) {
        self.accounts.entry(component).or_default().changes.remove(&id);
    }

    /// The greatest id up to which all changes of the component are answered, if that says anything new, and the epoch from
    /// which on these have happened: now and then that of the watermark, as where the component was brought up to date.
    pub fn watermark(&mut self, component: ComponentId) -> Option<(WriteId, u32)> {
        let account = self.accounts.get_mut(&component)?;
        let open = account.changes.iter().find(|(_, is_answered)| !**is_answered).map(|(id, _)| *id);
        let decided = account.changes.keys().rev().find(|id| open.is_none_or(|open| **id < open)).copied()?;
        if decided <= account.settled {
            return None;
        }
        account.settled = decided;
        if decided.sequence % 3 == 0 {
            account.from_epoch = decided.epoch;
        }
        let is_undone = |id: &&WriteId| **id <= decided && id.epoch < account.from_epoch;
        account.undone.extend(account.changes.keys().filter(is_undone));
        let marks = &account.marks;
        let has_happened =
            |id: &&WriteId| **id <= decided && id.epoch >= account.from_epoch && !marks.contains(id);
        account.happened.extend(account.changes.keys().filter(has_happened));
        account.happened.drain(..account.happened.len().saturating_sub(HAPPENED));
        account.changes.retain(|id, _| *id > decided);
        Some((decided, account.from_epoch))
    }

    /// What must be reported as changed after `since`.
    pub fn changed(&self, component: ComponentId, since: WriteId) -> BTreeMap<(u32, usize), WriteId> {
        let Some(account) = self.accounts.get(&component) else { return BTreeMap::new() };
        account.regions.iter().filter(|(_, id)| **id > since).map(|(place, id)| (*place, *id)).collect()
    }

    /// Compares a window after a crash with what was handed in; what was under way may be there or not, from now on.
    ///
    /// # Errors
    /// What is missing, or should not be there.
    pub fn check_window(&mut self, component: ComponentId, window: &[WindowEntry]) -> Result<(), String> {
        let account = self.accounts.entry(component).or_default();
        let found: BTreeSet<WriteId> = window.iter().map(|entry| entry.id).collect();
        let is_missing = |(id, is_answered): &(&WriteId, &bool)| **is_answered && !found.contains(*id);
        if let Some((id, _)) = account.changes.iter().find(is_missing) {
            return Err(format!("change {id:?} of component {component} is not in its window"));
        }
        let is_strange = |id: &&WriteId| **id > account.settled && !account.changes.contains_key(*id);
        if let Some(id) = found.iter().find(is_strange) {
            return Err(format!("change {id:?} of component {component} is in its window and never was"));
        }
        if let Some(entry) = window.iter().find(|entry| entry.tag != tag_of(entry.id)) {
            return Err(format!("change {:?} of component {component} has another tag: {entry:?}", entry.id));
        }
        account.changes.retain(|id, _| found.contains(id));
        account.changes.values_mut().for_each(|is_answered| *is_answered = true);
        Ok(())
    }

    /// Looks at what the group says to have happened.
    ///
    /// # Errors
    /// What has not.
    pub fn check_decided(&self, component: ComponentId, decided: &[WindowEntry]) -> Result<(), String> {
        let Some(account) = self.accounts.get(&component) else { return Ok(()) };
        match decided.iter().find(|entry| account.undone.contains(&entry.id) || entry.id > account.settled) {
            Some(entry) => {
                Err(format!("change {:?} of component {component} is said to have happened", entry.id))
            }
            None => Ok(()),
        }
    }

    /// After a crash a group knows of what has happened what its log still tells.
    pub fn crashed(&mut self) {
        self.accounts.values_mut().for_each(|account| account.happened.clear());
    }

    /// Looks for what the group was told to have happened in what it says.
    ///
    /// # Errors
    /// What it does not know any more.
    pub fn check_told(&self, component: ComponentId, decided: &[WindowEntry]) -> Result<(), String> {
        let Some(account) = self.accounts.get(&component) else { return Ok(()) };
        let is_told = |id: &&WriteId| decided.iter().any(|entry| entry.id == **id);
        match account.happened.iter().find(|id| !is_told(id)) {
            Some(id) => Err(format!("change {id:?} of component {component} is not known to have happened")),
            None => Ok(()),
        }
    }

    /// Compares an answer about what was changed with what must be in it.
    ///
    /// # Errors
    /// What is missing.
    pub fn check_changed(
        expected: &BTreeMap<(u32, usize), WriteId>,
        parts: &[(u32, Versions)],
        next: Option<u32>,
    ) -> Result<(), String> {
        for ((part, region), id) in
            expected.iter().filter(|((part, _), _)| next.is_none_or(|end| *part < end))
        {
            let found = parts.iter().find(|(number, _)| number == part).map(|(_, versions)| match versions {
                Versions::Hole(id) => *id,
                Versions::Regions(regions) => regions[*region],
            });
            if found.is_none_or(|found| found < *id) {
                return Err(format!(
                    "region {region} of part {part} was changed by {id:?}; told is {found:?}"
                ));
            }
        }
        Ok(())
    }

    /// A component is gone.
    pub fn forget(&mut self, component: ComponentId) {
        self.accounts.remove(&component);
    }
}
