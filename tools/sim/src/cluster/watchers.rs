//! Who watches over the processes of hosts, and tells the others when one ends: in time, late, or never.

use super::plan::MS;
use super::scenes::SceneEvent;
use super::world::{Event, World};
use base::{NodeId, Random};

/// The watchers of all hosts.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    /// Their choices; none: hosts have no watchers.
    random: Option<Random>,
    /// Whether all words are late.
    is_late: bool,
    /// Words that are on their way for so long that they arrive in the worst moment.
    late: Vec<LastWord>,
}

/// The process of `of` has ended, and its sessions up to `through` with it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LastWord {
    pub(crate) of: NodeId,
    pub(crate) through: u64,
    pub(crate) to: NodeId,
    /// Whether it has left its host long ago: no cut keeps it back.
    is_late: bool,
}

impl Watchers {
    /// Those that choose from `random`; hosts have none if there is none.
    pub(crate) fn new(random: Option<Random>) -> Watchers {
        Watchers { random, ..Watchers::default() }
    }

    /// Those whose words are all late.
    pub(crate) fn late(seed: u64) -> Watchers {
        Watchers { random: Some(Random::new(seed)), is_late: true, late: Vec::new() }
    }
}

impl World {
    /// The process of a host, which still has its number, ends. What others hear of it comes soon, some seconds later, while
    /// the host is cut off long after, or never.
    pub(crate) fn watcher_sees_end(&mut self, host: usize) {
        let of = self.hosts[host].id;
        let through = (self.hosts[host].incarnation << 32) | u64::from(u32::MAX);
        let others: Vec<NodeId> = self.hosts.iter().map(|one| one.id).filter(|id| *id != of).collect();
        let is_late = self.watchers.is_late;
        let Some(random) = self.watchers.random.as_mut() else { return };
        let mut soon = Vec::new();
        for to in others {
            let word = LastWord { of, through, to, is_late: false };
            match random.below(8) {
                0 if !is_late => {}
                _ if is_late => self.watchers.late.push(LastWord { is_late: true, ..word }),
                1 => self.watchers.late.push(LastWord { is_late: true, ..word }),
                2 => soon.push((random.below(6000 * MS), word)),
                _ => soon.push((random.below(10 * MS), word)),
            }
        }
        soon.into_iter().for_each(|(delay, word)| self.later(MS + delay, Event::Word(word)));
    }

    /// The host is back; if word of its former process is still on its way, a guest moves there, the host may be isolated
    /// soon, and the word arrives.
    pub(crate) fn isolate_after_word(&mut self, host: usize) {
        let of = self.hosts[host].id;
        let is_awaited = self.watchers.late.iter().any(|word| word.of == of);
        let Some(random) = self.watchers.random.as_mut().filter(|_| is_awaited) else { return };
        if random.chance(2, 3) {
            let delay = random.range(800 * MS..2500 * MS);
            let guest = random.below(self.guests.len() as u64) as usize;
            self.move_guest_to(guest, host);
            let incarnation = self.hosts[host].incarnation;
            self.later(delay, Event::Scene(SceneEvent::Isolate { host, incarnation }));
        }
    }

    /// A host is being cut off: what was said of its former processes arrives only now.
    pub(crate) fn late_words_arrive(&mut self, host: usize) {
        let of = self.hosts[host].id;
        let (late, rest) = self.watchers.late.drain(..).partition(|word| word.of == of);
        self.watchers.late = rest;
        let late: Vec<LastWord> = late;
        late.into_iter().for_each(|word| self.later(MS, Event::Word(word)));
    }

    pub(crate) fn word_arrives(&mut self, word: LastWord) {
        let LastWord { of, through, to, is_late } = word;
        if is_late || self.network.reaches(of, to, self.now) {
            self.say(|| format!("{to:?} hears that a process of {of:?} has ended"));
            let host = self.index_of(to);
            self.with_node(host, |node, now, out| node.process_ended(now, of, through, out));
        }
    }
}
