//! Whether a component that comes back is one that missed changes, or one that has changes which the record knows nothing of.
//!
//! The record says of a component that left how far it may know changes to be decided ([`Ceiling`]). One that knows of later ones took part
//! in a history that the record has forgotten: the directory is older than the devices (docs/design/0023). What is copied onto it
//! would be laid over acknowledged changes, and what it has beyond would never be looked at. So it is told apart before anything is
//! copied, and the disk waits for a person.

use super::Owner;
use super::asked::{Asked, Unanswered};
use super::interface::{Event, LeftBecause, Output};
use super::member::{At, Proof};
use super::resync::Listing;
use super::windows::{contiguous_end, decided, opened};
use crate::limits;
use crate::roster::Ceiling;
use crate::rules::Rule;
use base::WriteId;
use wire::{PartVersions, Request, Versions};

impl Owner {
    /// What a component that is about to leave may know to be decided at most.
    pub(crate) fn ceiling_of(&self, at: At) -> Ceiling {
        let place = &self.places[usize::from(at.place)];
        if self.has_served {
            let first = WriteId { epoch: self.epoch, sequence: 0 };
            return Ceiling::At(self.member(at).watermark_sent.max(first));
        }
        // All that count have every decided change. What those show that are there bounds what the other one can know.
        let others = place.counting().filter(|(member, one)| *member != at.member && one.opened().is_some());
        let end = others.map(|(_, one)| contiguous_end(opened(one))).min();
        end.map_or(Ceiling::Unknown, |end| Ceiling::At(end.max(decided(place))))
    }

    /// The windows of a place are decided: what all that count show bounds what absent components may know, where these left in the same
    /// epoch. Of another epoch nobody can tell whether it is the one that they know of.
    pub(crate) fn raise_ceilings(&mut self, index: u16) {
        let place = &mut self.places[usize::from(index)];
        let ends = place.counting().filter_map(|(_, one)| one.opened()).map(contiguous_end);
        let Some(end) = ends.min() else { return };
        for member in &mut place.members {
            if let Ceiling::At(ceiling) = &mut member.ceiling
                && ceiling.epoch == end.epoch
            {
                *ceiling = end.max(*ceiling);
            }
        }
    }

    /// A component that does not count serves this owner: it is brought up to date, unless it has what the others lack.
    pub(crate) fn looked_at(&mut self, at: At, watermark: WriteId) {
        let member = self.member(at);
        let is_copy = member.stands_in_for().is_none() && member.is_absent();
        let Ceiling::At(ceiling) = member.ceiling else { return self.begin_resync(at, watermark) };
        if !is_copy || !self.holds(Rule::KeepDivergedApart) {
            return self.begin_resync(at, watermark);
        }
        if watermark > ceiling && watermark.sequence > 0 {
            return self.diverged(at);
        }
        match watermark > ceiling {
            // The first watermark of an epoch that was perhaps never served: what it stands for is to be seen.
            true => self.begin_proof(at, ceiling, watermark),
            false => self.begin_resync(at, watermark),
        }
    }

    fn begin_proof(&mut self, at: At, ceiling: WriteId, watermark: WriteId) {
        self.attempts += 1;
        let proof = Proof { attempt: self.attempts, ceiling, watermark };
        self.member_mut(at).set_proof(Some(proof));
        self.ask_for_proof(at, 0);
    }

    fn ask_for_proof(&mut self, at: At, from_part: u32) {
        let Some(Proof { attempt, ceiling: since, .. }) = self.member(at).proof() else { return };
        let (node, component, epoch) = (self.member(at).node, self.member(at).component, self.epoch);
        self.send(
            node,
            Asked::Proof { at, attempt },
            Request::Changed { component, epoch, since, from_part },
        );
    }

    /// A component told which of its parts have versions beyond its ceiling.
    pub(crate) fn proof_answered(&mut self, at: At, attempt: u32, answer: Result<Listing, Unanswered>) {
        let now = self.now;
        let Some(proof) = self.member(at).proof().filter(|proof| proof.attempt == attempt) else { return };
        let is_decided = |id: &WriteId| *id > proof.ceiling && *id <= proof.watermark;
        let has_decided = |part: &PartVersions| match &part.versions {
            Versions::Hole(id) => is_decided(id),
            Versions::Regions(ids) => ids.iter().any(is_decided),
        };
        match answer {
            Ok(Listing { parts, .. }) if parts.iter().any(has_decided) => self.diverged(at),
            Ok(Listing { next: Some(from_part), .. }) => self.ask_for_proof(at, from_part),
            Ok(Listing { next: None, .. }) => {
                self.member_mut(at).set_proof(None);
                self.begin_resync(at, proof.watermark);
            }
            Err(Unanswered::Lost) => self.member_mut(at).down(now, now),
            Err(Unanswered::Refused(_)) => self.member_mut(at).down(now, now + limits::RETRY),
        }
    }

    /// The record is to say that the component has what the others lack; nobody serves the disk from then on.
    fn diverged(&mut self, at: At) {
        let member = self.member_mut(at);
        member.set_proof(None);
        member.has_diverged = true;
        member.trouble = Some(LeftBecause::Diverged);
        let component = member.component;
        self.out.push(Output::Event(Event::Diverged { component }));
    }
}
