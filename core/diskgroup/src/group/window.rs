//! Windows and watermarks of components in operation: what an owner tells, and what the log is told again.

use super::{Group, Phase};
use crate::component::Component;
use crate::format::batch::{Record, WindowEntry};
use crate::io::{Completion, ComponentKey, Op, Output};
use crate::limits;
use crate::rules::Rule;
use base::request::Buffers;
use base::{ComponentId, WriteId};

impl Group {
    /// The guests' changes of a component that are not known to be decided, by id. All of them are stable.
    pub fn window(&self, component: ComponentKey) -> Vec<WindowEntry> {
        let watermark = self.watermark(component);
        let Some(component) = self.components.get(component.0) else { return Vec::new() };
        component.window().beyond(watermark).map(|(entry, _)| *entry).collect()
    }

    /// The last guests' changes of a component that the watermark has passed and that have happened, by id, as far as they
    /// are remembered: the requests that they are part of may be submitted again, if their answers were lost.
    pub fn decided_lately(&self, component: ComponentKey) -> Vec<WindowEntry> {
        let watermark = self.watermark(component);
        let Some(component) = self.components.get(component.0) else { return Vec::new() };
        component.window().decided_lately(watermark)
    }

    /// The greatest id up to which a component knows all changes to be decided. What it heard counts before it is stable.
    pub fn watermark(&self, component: ComponentKey) -> WriteId {
        let component = self.components.get(component.0);
        component.map_or(WriteId::default(), |one| one.window().watermark().max(one.record.watermark))
    }

    /// The window of a component need not be kept up to `through`, although the watermark stays where it is: the
    /// component is being brought up to date, and only the newest changes will be asked for.
    pub fn forget_window(&mut self, component: ComponentKey, through: WriteId) {
        if self.components.contains(component.0) {
            self.components.change_window(component.0, |window| {
                // What is of older epochs may have been undone by what brings the component up to date.
                window.count_from(through.epoch);
                window.forget_through(through);
            });
            // A component that is brought up to date holds no more of row writes for that than others do.
            self.held.decided(component.0, through);
        }
    }

    pub(super) fn remember(&mut self, component: ComponentId, entry: WindowEntry, position: u64) {
        let Some(key) = self.components.key_of(component) else { return };
        let is_replayed = matches!(self.phase, Phase::Opening(_));
        let component = &self.components[key];
        // A page's watermark may have passed what the log still tells of: it is remembered by that, as it was before.
        let passed = if is_replayed { component.window().watermark() } else { component.record.watermark };
        if entry.last() > passed {
            self.components.change_window(key, |window| window.insert(entry, position));
        }
    }

    pub(super) fn install_watermark(&mut self, component: ComponentId, watermark: WriteId, from_epoch: u32) {
        let is_replayed = matches!(self.phase, Phase::Opening(_));
        let from_epoch = if !self.rules.hold(Rule::ForgetUndone) { 0 } else { from_epoch };
        let Some(key) = self.components.key_of(component) else { return };
        self.components.change_window(key, |window| {
            if is_replayed {
                window.replay_watermark(watermark, from_epoch);
            }
        });
        let component = &mut self.components[key];
        if watermark > component.record.watermark {
            component.record.watermark = watermark;
            self.members[component.member].table.mark_dirty(component.slot);
            self.components.change_window(key, |window| window.forget_through(watermark));
        }
    }

    pub(super) fn settle(
        &mut self,
        op: Option<Op>,
        component: ComponentKey,
        (watermark, from_epoch): (WriteId, u32),
        out: &mut Vec<Output>,
    ) {
        if let Err(error) = self.check_component(component.0, 0) {
            out.extend(op.map(|op| Output::Done { op, result: Err(error) }));
            return;
        }
        let state = &self.components[component.0];
        let (id, member) = (state.record.id, state.member);
        if watermark > state.window().watermark() {
            let takes_back = !self.rules.hold(Rule::KeepHappened);
            self.components.change_window(component.0, |window| match takes_back {
                true => window.hear_alone(watermark, from_epoch),
                false => window.hear(watermark, from_epoch),
            });
        }
        self.held.watermark_moved();
        let state = &self.components[component.0];
        match op {
            Some(op) if state.record.watermark >= watermark => {
                out.push(Output::Done { op, result: Ok(Completion::Done) });
            }
            Some(op) => {
                let from_epoch = state.window().happened_from();
                self.components.log_watermark(component.0, watermark);
                self.submit_record(
                    Some(op),
                    Record::Watermark { member, component: id, id: watermark, from_epoch },
                );
            }
            None if state.window().is_unlogged() => self.watermarks.wait(id, self.now),
            None => {}
        }
    }

    /// A batch goes to the log: the watermarks that are waiting go with it, as far as there is room.
    pub(super) fn gather_watermarks(&mut self) {
        while self.watermarks.is_empty()
            || self.has_room(limits::WATERMARK_RECORD_SIZE, 0, self.checkpoint_room())
        {
            let Some(id) = self.watermarks.take() else { return };
            let Some(key) = self.components.key_of(id) else { continue };
            let Component { member, .. } = self.components[key];
            let window = self.components[key].window();
            if window.is_unlogged() {
                let (watermark, from_epoch) = (window.watermark(), window.happened_from());
                self.components.log_watermark(key, watermark);
                let record = Record::Watermark { member, component: id, id: watermark, from_epoch };
                self.buffer.push(record, None, Buffers::new());
            }
        }
    }

    /// No batch has taken the watermarks along for a while: they go by themselves.
    pub(super) fn advance_watermarks(&mut self) {
        if self.watermarks.due_at().is_some_and(|at| at <= self.now) && self.buffer.is_empty() {
            self.gather_watermarks();
        }
    }

    /// Before the log lets go of what lies before `tail`: the changes that only records there tell of, and that are not
    /// decided, are told again. Says how many records that took; the checkpoint waits for them.
    pub(super) fn tell_again(&mut self, tail: u64) -> u32 {
        if !self.rules.hold(Rule::KeepWindow) {
            return 0;
        }
        let mut records = Vec::new();
        for (_, component) in self.components.iter().filter(|(_, component)| component.is_stable) {
            let watermark = component.window().watermark().max(component.record.watermark);
            let (member, id) = (component.member, component.record.id);
            if component.window().is_passed_before(watermark, tail) {
                // Told first, so that what it decides need not be remembered.
                let from_epoch = component.window().happened_from();
                records.push(Record::Watermark { member, component: id, id: watermark, from_epoch });
            }
            let old = component.window().beyond(watermark).filter(|(_, at)| *at < tail);
            records.extend(old.map(|(entry, _)| Record::Entry { member, component: id, entry: *entry }));
        }
        let count = records.len() as u32;
        records.into_iter().for_each(|record| self.submit_for_checkpoint(record));
        count
    }
}
