//! Files with arrows between them, and the circles of these.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

/// Where a file names another one, and how.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    /// The line, from 1 on.
    pub line: usize,
    /// The path as it is written.
    pub path: String,
}

/// Which file imports from which.
#[derive(Debug, Default, Clone)]
pub struct Graph {
    arrows: BTreeMap<PathBuf, BTreeMap<PathBuf, BTreeSet<Site>>>,
}

impl Graph {
    /// Adds a file.
    pub fn add_file(&mut self, file: &Path) {
        self.arrows.entry(file.to_path_buf()).or_default();
    }

    /// Adds a place where `from` names something of `to`.
    pub fn add(&mut self, from: &Path, to: &Path, site: Site) {
        let arrows = self.arrows.entry(from.to_path_buf()).or_default();
        arrows.entry(to.to_path_buf()).or_default().insert(site);
    }

    /// Removes the arrow between two files.
    pub fn remove(&mut self, from: &Path, to: &Path) {
        if let Some(arrows) = self.arrows.get_mut(from) {
            arrows.remove(to);
        }
    }

    /// All files with what each imports.
    pub fn files(&self) -> impl Iterator<Item = (&Path, &BTreeMap<PathBuf, BTreeSet<Site>>)> {
        self.arrows.iter().map(|(file, arrows)| (file.as_path(), arrows))
    }

    /// Where `from` names something of `to`.
    pub fn sites(&self, from: &Path, to: &Path) -> Option<&BTreeSet<Site>> {
        self.arrows.get(from)?.get(to)
    }

    /// The shortest way from one file to another by at least one arrow: all files on it, with both ends.
    pub fn way<'a>(&'a self, from: &'a Path, to: &Path) -> Option<Vec<&'a Path>> {
        let mut before: BTreeMap<&Path, &Path> = BTreeMap::new();
        let mut queue = VecDeque::from([from]);
        while let Some(file) = queue.pop_front() {
            for next in self.arrows.get(file)?.keys().map(PathBuf::as_path) {
                if before.contains_key(next) {
                    continue;
                }
                before.insert(next, file);
                if next == to {
                    return Some(unwind(&before, from, next));
                }
                queue.push_back(next);
            }
        }
        None
    }

    /// The sets of files that all lead to one another, each with the shortest circle in it. Every file is in one set at most.
    pub fn circles(&self) -> Vec<Circle<'_>> {
        let mut circles: Vec<Circle<'_>> = Vec::new();
        for file in self.arrows.keys().map(PathBuf::as_path) {
            let Some(way) = self.way(file, file) else { continue };
            let is_same = |circle: &&mut Circle<'_>| {
                let known = *circle.files.first().expect("a circle has files");
                self.way(known, file).is_some() && self.way(file, known).is_some()
            };
            match circles.iter_mut().find(is_same) {
                Some(circle) => {
                    circle.files.insert(file);
                    if way.len() < circle.shortest.len() {
                        circle.shortest = way;
                    }
                }
                None => circles.push(Circle { files: BTreeSet::from([file]), shortest: way }),
            }
        }
        circles
    }
}

/// Files that all lead to one another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Circle<'a> {
    /// All of them.
    pub files: BTreeSet<&'a Path>,
    /// The shortest way round: its first file is the last one as well.
    pub shortest: Vec<&'a Path>,
}

/// The way from `from` to `to`, from what each file was reached by.
fn unwind<'a>(before: &BTreeMap<&'a Path, &'a Path>, from: &'a Path, to: &'a Path) -> Vec<&'a Path> {
    let mut way = vec![to];
    loop {
        let file = before[way.last().expect("it has an end")];
        way.push(file);
        if file == from {
            way.reverse();
            return way;
        }
    }
}
