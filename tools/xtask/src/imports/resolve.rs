//! Which files of a crate a path leads to: through `crate::`, `self::`, `super::`, modules, renames and re-exports.
//!
//! A re-export is seen through: whoever names it depends on the file that defines the item, not on the one that passes it on.

use super::modules::Modules;
use std::collections::BTreeSet;

/// The files of the crate that `path` leads to when the module `from` names it: none if it leads to another crate or to something
/// local; more than one if a name means two things (a module and a function).
pub fn files(modules: &Modules, from: usize, path: &[String]) -> BTreeSet<usize> {
    Resolver { modules, seen: BTreeSet::new(), is_glob: false }.resolve(from, path)
}

struct Resolver<'a> {
    modules: &'a Modules,
    /// What is looked up already: re-exports may go in circles.
    seen: BTreeSet<(usize, Vec<String>)>,
    /// Whether it is asked what a glob brings: only what is known to be defined.
    is_glob: bool,
}

impl Resolver<'_> {
    /// A path as it stands in a module.
    fn resolve(&mut self, from: usize, path: &[String]) -> BTreeSet<usize> {
        let Some((head, rest)) = path.split_first() else { return BTreeSet::new() };
        if !self.seen.insert((from, path.to_vec())) {
            return BTreeSet::new();
        }
        match head.as_str() {
            "crate" => self.below(0, rest),
            "self" => self.below(from, rest),
            "super" => {
                let Some(mut module) = self.modules.all[from].parent else { return BTreeSet::new() };
                let mut rest = rest;
                while rest.first().is_some_and(|head| head == "super") {
                    let Some(parent) = self.modules.all[module].parent else { return BTreeSet::new() };
                    (module, rest) = (parent, &rest[1..]);
                }
                self.below(module, rest)
            }
            _ => self.lookup(from, path).unwrap_or_default(),
        }
    }

    /// What `path` names within a module: the file of the item, or of the module if nothing follows.
    fn below(&mut self, module: usize, path: &[String]) -> BTreeSet<usize> {
        let own = BTreeSet::from([self.modules.all[module].file]);
        if path.is_empty() {
            return own;
        }
        match self.lookup(module, path).filter(|found| !found.is_empty()) {
            Some(found) => found,
            None if self.is_glob => BTreeSet::new(),
            // A name that the module passes on from another crate, or that a macro defines, comes from the module's own file.
            None => own,
        }
    }

    /// Looks the first name of a path up in a module; `None` if the module does not know it.
    fn lookup(&mut self, module: usize, path: &[String]) -> Option<BTreeSet<usize>> {
        let (head, rest) = path.split_first()?;
        let this = &self.modules.all[module];
        let mut found = None;
        if let Some(child) = this.children.get(head) {
            found = Some(self.below(*child, rest));
            if !rest.is_empty() {
                return found;
            }
        }
        // `use smallvec::smallvec` binds the name of the crate that it is of: that leads out of this one.
        let leads_out = |target: &[String]| target.first() == Some(head) && !this.children.contains_key(head);
        let bound = this.bindings.iter().filter(|(name, target)| name == head && !leads_out(target));
        for (_, target) in bound {
            let files = self.resolve(module, &[target, rest].concat());
            found.get_or_insert_default().extend(files);
        }
        if this.items.contains(head) {
            found.get_or_insert_default().insert(this.file);
        }
        if found.is_some() {
            return found;
        }
        let was_glob = std::mem::replace(&mut self.is_glob, true);
        let found = this.globs.iter().map(|glob| self.resolve(module, &[glob, path].concat()));
        let found = found.into_iter().find(|files| !files.is_empty());
        self.is_glob = was_glob;
        found
    }
}
