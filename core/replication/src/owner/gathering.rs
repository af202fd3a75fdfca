//! Gathering what stands in a range of some members of rows: whom to ask, and who is told (`gather` has what is known so far).

use super::Owner;
use super::asked::{Asked, Step, Unanswered};
use super::data::Data;
use super::gather::{Gather, GatherFailure, GatherFor};
use super::member::{At, Member};
use crate::locks::Range;
use crate::rules::Rule;
use base::units::BLOCK_SIZE;
use layout::Code;
use layout::code::{PARITY_MAX, UNITS_MAX};
use smallvec::SmallVec;
use wire::{Refusal, Request};

impl Owner {
    /// Begins to gather; who wanted it is told, at once if nothing can be asked.
    pub(crate) fn gather(&mut self, mut gather: Gather) {
        let bytes = self.bytes_of_gather(gather.place, gather.range);
        gather.share = Some(self.settings.gathers.take(bytes));
        let key = self.gathers.insert(gather) as u32;
        self.gather_on(key);
    }

    /// Whether a read may gather now. It waits where others hold the memory for it, but for those of other owners alone: whose end nobody here is told of.
    pub(crate) fn may_gather(&self, place: u16, range: Range) -> bool {
        self.gathers.is_empty() || self.settings.gathers.fits(self.bytes_of_gather(place, range))
    }

    /// Memory that is taken by what is gathered of a range: as many members' parts as rows have data units, and what follows from them.
    fn bytes_of_gather(&self, place: u16, range: Range) -> u64 {
        let units = self.places[usize::from(place)].code.map_or(0, |code| u64::from(code.data()));
        (units + 1) * u64::from(range.count) * BLOCK_SIZE
    }

    /// Asks for what is still needed, or ends.
    fn gather_on(&mut self, key: u32) {
        let gather = &self.gathers[key as usize];
        let place = &self.places[usize::from(gather.place)];
        let Some(code) = place.code else { return self.end_gather(key, Err(GatherFailure::Unreachable)) };
        let found = gather.found.positions();
        let missing = gather.wanted.without(found);
        let mut sources: SmallVec<[(u8, u8); UNITS_MAX]> = SmallVec::new();
        for position in (0..code.members()).filter(|position| !found.contains(*position)) {
            sources.extend(self.source_at(gather, position).map(|member| (position, member)));
        }
        let have = found.iter().count();
        let needed = usize::from(code.data());
        let direct: SmallVec<[(u8, u8); UNITS_MAX]> =
            sources.iter().copied().filter(|(position, _)| missing.contains(*position)).collect();
        let asked = if missing.is_empty() || have >= needed {
            return self.gathered(key, code);
        } else if direct.len() == missing.iter().count() {
            direct
        } else if have + sources.len() >= needed {
            sources.sort_by_key(|(position, _)| !missing.contains(*position));
            sources.truncate(needed - have);
            sources
        } else {
            let why = match gather.is_damaged {
                true => GatherFailure::Damaged,
                false => GatherFailure::Unreachable,
            };
            return self.end_gather(key, Err(why));
        };
        self.gathers[key as usize].outstanding = asked.len() as u8;
        let Gather { place, range, snapshot, .. } = self.gathers[key as usize];
        let Range { part, block, count } = range;
        for (_, member) in asked {
            let at = At { place, member };
            let (node, component, epoch) = (self.member(at).node, self.member(at).component, self.epoch);
            let request = match snapshot {
                0 => Request::Read { component, epoch, part, block, count, verify: true },
                snapshot => Request::View { component, epoch, snapshot, part, block, count },
            };
            self.send(node, Asked::Step(Step::Gather { gather: key, at }), request);
        }
    }

    /// The member to ask for what a position has.
    fn source_at(&self, gather: &Gather, position: u8) -> Option<u8> {
        let place = &self.places[usize::from(gather.place)];
        let is_fit = |(index, one): &(u8, &Member)| {
            one.position == position && one.is_open() && !gather.except.contains(*index)
        };
        let takes_any = !self.holds(Rule::DecodeFromActive);
        let members = (0u8..).zip(&place.members).filter(|(_, one)| one.is_active() || takes_any);
        members.filter(is_fit).min_by_key(|(_, one)| !one.is_prompt()).map(|(index, _)| index)
    }

    /// A member gave what it was asked for, or cannot.
    pub(crate) fn gather_answered(&mut self, key: u32, at: At, answer: Result<Data, Unanswered>) {
        let position = self.member(at).position;
        let gather = &mut self.gathers[key as usize];
        gather.outstanding -= 1;
        match answer {
            Ok(data) if data.is_intact() => gather.found.put(position, data),
            Ok(_) | Err(Unanswered::Lost) => gather.except.insert(at.member),
            Err(Unanswered::Refused(refusal)) => {
                gather.except.insert(at.member);
                match refusal {
                    Refusal::Damaged => gather.is_damaged = true,
                    // A host answers Busy while it opens a disk group: the component may be in that group.
                    Refusal::NotOpen | Refusal::Busy => self.lost_session(at),
                    Refusal::NoComponent | Refusal::DeviceLost => self.unreadable(at, refusal),
                    _ => {}
                }
            }
        }
        if self.gathers.get(key as usize).is_some_and(|gather| gather.outstanding == 0) {
            self.gather_on(key);
        }
    }

    /// As much was read as is needed: the rest is put together from it.
    fn gathered(&mut self, key: u32, code: Code) {
        let Gather { found, wanted, .. } = &self.gathers[key as usize];
        let missing = wanted.without(found.positions());
        let decoded = missing.iter().map(|one| Some((one, found.decode(code, one, &self.settings.pool)?)));
        let result = match decoded.collect::<Option<SmallVec<[(u8, Data); PARITY_MAX]>>>() {
            Some(decoded) => {
                let found = &mut self.gathers[key as usize].found;
                decoded.into_iter().for_each(|(one, data)| found.put(one, data));
                Ok(())
            }
            None => {
                self.memory_is_short();
                Err(GatherFailure::Memory)
            }
        };
        self.end_gather(key, result);
    }

    fn end_gather(&mut self, key: u32, result: Result<(), GatherFailure>) {
        let Gather { found, wanted_by, .. } = self.gathers.remove(key as usize);
        let result = result.map(|()| found);
        match wanted_by {
            GatherFor::Change(key) => self.change_gathered(key, result),
            GatherFor::Read(key) => self.read_gathered(key, result),
            GatherFor::Copy(key) => self.copy_gathered(key, result),
            GatherFor::Mend { attempt } => self.mend_gathered(attempt, result),
            GatherFor::Backfill { attempt, part, block } => {
                self.backfill_gathered(attempt, (part, block), result);
            }
            GatherFor::Roll { at, attempt, roll } => self.roll_gathered(at, attempt, roll, result),
        }
    }
}
