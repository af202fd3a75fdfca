//! Which file of a crate imports from which: `cargo xtask imports CRATE`, and what `tidy` looks for circles in.
//!
//! A file imports from another one if a `use` line or a path in its code (`super::state::open()`) leads to something that the other
//! one defines. `mod` lines are no imports, nor are calls of methods.

mod graph;
mod modules;
mod resolve;

use crate::rules::ARROWS;
use crate::sources;
pub use graph::{Circle, Graph, Site};
use modules::Modules;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// The imports of a crate, from the text of each of its files. Paths count from its folder of sources (`src`).
pub fn of_sources(sources: &BTreeMap<PathBuf, String>) -> Result<Graph, String> {
    let mut graph = Graph::default();
    let roots: Vec<&Path> =
        ["lib.rs", "main.rs"].into_iter().map(Path::new).filter(|root| sources.contains_key(*root)).collect();
    if roots.is_empty() {
        return Err("a crate has a lib.rs or a main.rs".to_owned());
    }
    for root in roots {
        let modules = Modules::read(root, sources)?;
        for file in &modules.files {
            graph.add_file(file);
        }
        for mention in &modules.mentions {
            let from = modules.all[mention.module].file;
            for to in resolve::files(&modules, mention.module, &mention.path) {
                if to != from {
                    let site = Site { line: mention.line, path: mention.path.join("::") };
                    graph.add(&modules.files[from], &modules.files[to], site);
                }
            }
        }
    }
    Ok(graph)
}

/// The imports of the crate in `folder`, which counts from the root of the repository.
pub fn of_crate(root: &Path, folder: &str) -> Result<Graph, String> {
    let source = root.join(folder).join("src");
    let mut sources = BTreeMap::new();
    for path in sources::below(&source)? {
        let text = fs::read_to_string(&path).map_err(|error| format!("read {}: {error}", path.display()))?;
        sources.insert(path.strip_prefix(&source).unwrap_or(&path).to_path_buf(), text);
    }
    of_sources(&sources).map_err(|error| format!("{folder}/src: {error}"))
}

/// `cargo xtask imports CRATE [--dot]`: the picture of a crate's imports, as text or for graphviz.
pub fn run(root: &Path, arguments: &[String]) -> Result<String, String> {
    let (names, flags): (Vec<_>, Vec<_>) = arguments.iter().partition(|argument| !argument.starts_with('-'));
    let [name] = names[..] else { return Err("name one crate: `cargo xtask imports node`".to_owned()) };
    let folder = ARROWS.iter().find(|(known, ..)| known == name).map(|(_, folder, _)| *folder);
    let folder = folder.ok_or_else(|| format!("there is no crate `{name}`"))?;
    let graph = of_crate(root, folder)?;
    match flags[..] {
        [] => Ok(text(&graph)),
        [flag] if flag == "--dot" => Ok(dot(&graph)),
        _ => Err("the only flag is --dot".to_owned()),
    }
}

/// Places of one arrow that the picture names.
const SITES_TOLD: usize = 4;

fn text(graph: &Graph) -> String {
    let mut text = String::new();
    for (file, arrows) in graph.files() {
        writeln!(text, "{}", file.display()).expect("a string takes all");
        for (to, sites) in arrows {
            let told = sites.iter().take(SITES_TOLD).map(|site| format!("{} {}", site.line, site.path));
            let more = sites.len().checked_sub(SITES_TOLD + 1).map(|more| format!("and {} more", more + 1));
            let sites: Vec<String> = told.chain(more).collect();
            writeln!(text, "    {}: {}", to.display(), sites.join(", ")).expect("a string takes all");
        }
    }
    let circles = graph.circles();
    for circle in &circles {
        let files: Vec<String> = circle.files.iter().map(|file| file.display().to_string()).collect();
        writeln!(text, "circle of {} files: {}", files.len(), files.join(" ")).expect("a string takes all");
    }
    text
}

fn dot(graph: &Graph) -> String {
    let mut text = "digraph imports {\n".to_owned();
    for (file, arrows) in graph.files() {
        for to in arrows.keys() {
            writeln!(text, "  \"{}\" -> \"{}\";", file.display(), to.display()).expect("a string takes all");
        }
    }
    text + "}\n"
}

#[cfg(test)]
mod tests;
