//! A folder of results, one result after another: whatever it holds, no more than one of them is in memory, or one case of HCIBench.

use super::{CommandError, ErrorKind, file_sets, text_of, unreadable};
use results::{FolderKind, Note, ResultSet};
use std::path::{Path, PathBuf};

/// A folder with more files is no folder of results.
const FILES_MAX: usize = 100_000;
/// Endings that results have; others (archives, pictures, reports) are not opened.
const ENDINGS: [&str; 9] = ["json", "txt", "csv", "xml", "html", "log", "out", "zst", "dat"];

/// Gives every set of results below a folder to `each`.
///
/// # Errors
/// When the folder cannot be read, or there is no result in it.
pub(super) fn visit(folder: &Path, each: &mut dyn FnMut(ResultSet)) -> Result<(), CommandError> {
    let mut walk = Walk { root: folder, each, files: 0, sets: 0, problems: Vec::new() };
    walk.folder(folder)?;
    let Walk { sets, mut problems, .. } = walk;
    if sets == 0 {
        let why = match problems.is_empty() {
            true => "no file in the folder is a known result".to_owned(),
            false => problems.swap_remove(0).text,
        };
        return Err(CommandError::new(ErrorKind::Refused, format!("{}: {why}", folder.display())));
    }
    if !problems.is_empty() {
        let source = folder.display().to_string();
        each(ResultSet {
            source,
            tool: results::Tool::Unknown,
            version: None,
            runs: vec![],
            notes: problems,
        });
    }
    Ok(())
}

struct Walk<'a> {
    root: &'a Path,
    each: &'a mut dyn FnMut(ResultSet),
    files: usize,
    sets: usize,
    /// Files that look like results and cannot be read.
    problems: Vec<Note>,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &Path) -> Result<(), CommandError> {
        let entries = std::fs::read_dir(folder)
            .map_err(|error| CommandError::failed(format!("read the folder {}", folder.display()), error))?;
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) =
            paths.into_iter().partition(|path| path.is_dir());
        self.files += files.len();
        if self.files > FILES_MAX {
            let text = format!(
                "{} has more than {FILES_MAX} files: name a folder with results",
                self.root.display()
            );
            return Err(CommandError::new(ErrorKind::Refused, text));
        }
        let names: Vec<String> = files.iter().map(|file| last_name(file)).collect();
        let summary = folder.with_file_name(format!("{}-res.txt", last_name(folder)));
        match results::folder_kind(names.iter().map(String::as_str)) {
            FolderKind::Vdbench => self.vdbench(folder, &files),
            FolderKind::HcibenchCase => self.case(&files, &summary),
            FolderKind::Files if summary.is_file() => self.case(&files, &summary),
            FolderKind::Files => {
                // The summary of a case is read with its folder.
                let is_of_case = |file: &&PathBuf| {
                    let name = last_name(file);
                    name.strip_suffix("-res.txt").is_some_and(|case| folder.join(case).is_dir())
                };
                files.iter().filter(|file| !is_of_case(file)).for_each(|file| self.file(file));
            }
        }
        // A link may lead back: folders are followed as they are, links are not.
        folders.iter().filter(|folder| !folder.is_symlink()).try_for_each(|folder| self.folder(folder))
    }

    /// The name of a file within the folder that was asked for.
    fn name(&self, path: &Path) -> String {
        path.strip_prefix(self.root).unwrap_or(path).display().to_string()
    }

    fn give(&mut self, set: ResultSet) {
        self.sets += 1;
        (self.each)(set);
    }

    fn file(&mut self, file: &Path) {
        let ending = file.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if !ENDINGS.contains(&ending) {
            return;
        }
        match file_sets(file, &self.name(file), None) {
            Ok(sets) => sets.into_iter().for_each(|set| self.give(set)),
            // What is nothing known (a job, a note of somebody) is no problem; a result that is damaged is.
            Err(error) => {
                let is_known = text_of(file).is_ok_and(|text| results::kind_of(&text).is_some());
                if is_known {
                    self.problems.push(Note::new(format!("left out: {error}")));
                }
            }
        }
    }

    fn vdbench(&mut self, folder: &Path, files: &[PathBuf]) {
        let is_read = |file: &&PathBuf| results::VDBENCH_FILES.contains(&last_name(file).as_str());
        let texts = self.texts(files.iter().filter(is_read));
        let name = self.name(folder);
        let name = if name.is_empty() { folder.display().to_string() } else { name };
        match results::read_vdbench_folder(&name, &borrowed(&texts)) {
            Ok(set) => self.give(set),
            Err(error) => self.problems.push(Note::new(format!("left out: {error}"))),
        }
    }

    fn case(&mut self, files: &[PathBuf], summary: &PathBuf) {
        let is_text = |file: &&PathBuf| {
            file.is_file() && file.extension().is_some_and(|ending| ending == "json" || ending == "txt")
        };
        let texts = self.texts(files.iter().chain([summary]).filter(is_text));
        match results::read_folder(&borrowed(&texts)) {
            Ok(sets) => sets.into_iter().for_each(|set| self.give(set)),
            Err(error) => self.problems.push(Note::new(format!("left out: {}", unreadable(&error)))),
        }
    }

    fn texts<'f>(&self, files: impl Iterator<Item = &'f PathBuf>) -> Vec<(String, String)> {
        files.filter_map(|file| Some((self.name(file), text_of(file).ok()?))).collect()
    }
}

fn borrowed(texts: &[(String, String)]) -> Vec<(&str, &str)> {
    texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect()
}

fn last_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, name: &str, text: &str) {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }

    fn table(iops: u32) -> String {
        format!("workload,iops,latency_ms\n4k random read,{iops},1.0\n")
    }

    /// All texts of a folder stood in memory at once, and results that have nothing to do with each other became VMs of one case.
    #[test]
    fn a_folder_is_read_set_by_set() {
        let folder = tempfile::tempdir().expect("a folder");
        for number in 0..50 {
            write(folder.path(), &format!("day/{number:02}.csv"), &table(1_000 + number));
        }
        write(folder.path(), "notes.txt", "bring milk");
        write(folder.path(), "broken.csv", "workload,iops\n4k\n");
        write(folder.path(), "vdb/summary.html", "no figures");
        write(
            folder.path(),
            "vdb/flatfile.html",
            "tod Run Interval reqrate rate resp\n10:57:02.2 r1 avg_2-2 500 499.0 0.400\n",
        );
        write(
            folder.path(),
            "vdb/sd1.html",
            "tod Run Interval reqrate rate resp\n10:57:02.2 r1 avg_2-2 500 499.0 0.400\n",
        );
        let (mut sources, mut problems, mut rows_at_most) = (Vec::new(), Vec::new(), 0);
        visit(folder.path(), &mut |set| {
            rows_at_most = rows_at_most.max(set.runs.len());
            match set.runs.is_empty() {
                true => problems.extend(set.notes),
                false => sources.push(set.source),
            }
        })
        .expect("a folder of results");
        assert_eq!(rows_at_most, 1, "one set at a time");
        assert_eq!((sources.len(), sources[0].as_str(), sources[50].as_str()), (51, "day/00.csv", "vdb"));
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].text.contains("broken.csv:2"), "{problems:?}");
    }

    #[test]
    fn a_folder_without_results_says_so() {
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path(), "notes.txt", "bring milk");
        let error = visit(folder.path(), &mut |_| ()).expect_err("there is none").to_string();
        assert!(error.contains("no file in the folder is a known result"), "{error}");
    }
}
