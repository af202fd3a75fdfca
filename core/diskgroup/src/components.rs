//! The components of a group, found by key or by id, and what is counted over all of them.

use crate::component::Component;
use crate::window::Window;
use base::{ComponentId, WriteId};
use rustc_hash::FxHashMap;
use slab::Slab;
use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

/// All components of a group.
#[derive(Debug, Default)]
pub(crate) struct Components {
    list: Slab<Component>,
    keys: FxHashMap<ComponentId, u32>,
    /// Entries in the windows of all components that no watermark has passed.
    window_entries: usize,
    /// Those that are being deleted, oldest first.
    deleting: VecDeque<u32>,
}

impl Index<u32> for Components {
    type Output = Component;

    fn index(&self, key: u32) -> &Component {
        &self.list[key as usize]
    }
}

impl IndexMut<u32> for Components {
    fn index_mut(&mut self, key: u32) -> &mut Component {
        &mut self.list[key as usize]
    }
}

impl Components {
    /// A component comes; gives its key.
    pub(crate) fn insert(&mut self, component: Component) -> u32 {
        let id = component.record.id;
        self.window_entries += component.window().undecided();
        let key = self.list.insert(component) as u32;
        self.keys.insert(id, key);
        key
    }

    /// A component goes; its key may be given to another.
    pub(crate) fn remove(&mut self, key: u32) -> Component {
        let component = self.list.remove(key as usize);
        self.window_entries -= component.window().undecided();
        if self.keys.get(&component.record.id) == Some(&key) {
            self.keys.remove(&component.record.id);
        }
        component
    }

    /// In recovery: a component is not found by its id for now, and what its window has is void.
    pub(crate) fn set_aside(&mut self, key: u32) {
        let component = &mut self.list[key as usize];
        self.window_entries -= component.take_window().undecided();
        self.keys.remove(&component.record.id);
    }

    /// In recovery: a component that was set aside is found again.
    pub(crate) fn put_back(&mut self, key: u32) {
        self.keys.insert(self.list[key as usize].record.id, key);
    }

    pub(crate) fn get(&self, key: u32) -> Option<&Component> {
        self.list.get(key as usize)
    }

    pub(crate) fn contains(&self, key: u32) -> bool {
        self.list.contains(key as usize)
    }

    pub(crate) fn key_of(&self, id: ComponentId) -> Option<u32> {
        self.keys.get(&id).copied()
    }

    /// The components with their keys, in the order of these.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Component)> {
        self.list.iter().map(|(key, component)| (key as u32, component))
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Forgets those of a device. Their keys are never given to others while the group is open, for somebody may still hold
    /// them: who does finds no component.
    pub(crate) fn forget_device(&mut self, member: u8) {
        for (_, component) in self.list.iter_mut().filter(|(_, component)| component.member == member) {
            self.keys.remove(&component.record.id);
            component.record.is_deleting = true;
            component.is_stable = false;
            self.window_entries -= component.take_window().undecided();
        }
    }

    /// Changes the window of a component.
    pub(crate) fn change_window(&mut self, key: u32, change: impl FnOnce(&mut Window)) {
        let window = self.list[key as usize].window_mut();
        self.window_entries -= window.undecided();
        change(window);
        self.window_entries += window.undecided();
    }

    /// A watermark of a component goes to the log.
    pub(crate) fn log_watermark(&mut self, key: u32, watermark: WriteId) {
        self.list[key as usize].window_mut().log(watermark);
    }

    /// The log is read: what only a page's watermark tells to be decided is so, and deletions go on.
    pub(crate) fn end_recovery(&mut self) {
        self.window_entries = 0;
        for (key, component) in &mut self.list {
            let watermark = component.record.watermark;
            component.window_mut().end_recovery(watermark);
            self.window_entries += component.window().undecided();
            if component.record.is_deleting {
                self.deleting.push_back(key as u32);
            }
        }
    }

    /// Entries in the windows of all components that no watermark has passed.
    pub(crate) fn window_entries(&self) -> usize {
        self.window_entries
    }

    /// Whether [`Components::window_entries`] is what the windows hold.
    pub(crate) fn is_consistent(&self) -> bool {
        self.window_entries == self.list.iter().map(|(_, one)| one.window().undecided()).sum::<usize>()
    }

    /// Somebody asked for the deletion of a component.
    pub(crate) fn begin_deletion(&mut self, key: u32) {
        self.deleting.push_back(key);
    }

    /// Whether somebody has asked for its deletion.
    pub(crate) fn is_deleting(&self, key: u32) -> bool {
        self.deleting.contains(&key)
    }

    /// The deletion that goes on now.
    pub(crate) fn deletion(&self) -> Option<u32> {
        self.deleting.front().copied()
    }

    /// That deletion ended.
    pub(crate) fn end_deletion(&mut self) {
        self.deleting.pop_front();
    }
}
