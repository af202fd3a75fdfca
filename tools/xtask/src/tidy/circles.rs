//! Circles of imports among the files of a crate: none in `core/`, nor in the crates of a list.

use super::breach::Breach;
use crate::imports::{self, Circle, Graph};
use crate::rules::{ARROWS, CIRCLES_ALLOWED, Exception, WITHOUT_CIRCLES};
use std::path::Path;

/// The circles of all crates that must have none, and the exceptions that allow none.
pub fn check(root: &Path) -> Result<Vec<Breach>, String> {
    let mut breaches = Vec::new();
    for (name, folder, _) in ARROWS {
        if folder.starts_with("core/") || WITHOUT_CIRCLES.contains(name) {
            let graph = imports::of_crate(root, folder)?;
            let exceptions: Vec<_> = CIRCLES_ALLOWED.iter().filter(|one| one.package == *name).collect();
            breaches.extend(check_crate(folder, graph, &exceptions));
        }
    }
    Ok(breaches)
}

/// The circles of a crate in `folder`. An exception takes one arrow out of the picture; it is stale if it is in no circle.
pub fn check_crate(folder: &str, mut graph: Graph, exceptions: &[&Exception]) -> Vec<Breach> {
    let source = Path::new(folder).join("src");
    let mut breaches = Vec::new();
    for Exception { from, to, reason, .. } in exceptions {
        let (from, to) = (Path::new(from), Path::new(to));
        let is_circle = graph.sites(from, to).is_some() && graph.way(to, from).is_some();
        if !is_circle {
            let message = format!(
                "the exception for {} → {} ({reason}) allows no circle any more: remove it (tools/xtask/src/rules.rs)",
                from.display(),
                to.display()
            );
            breaches.push(Breach::new(&source.join(from), 1, message));
        }
    }
    for Exception { from, to, .. } in exceptions {
        graph.remove(Path::new(from), Path::new(to));
    }
    breaches.extend(graph.circles().iter().map(|circle| breach(&source, &graph, circle)));
    breaches
}

fn breach(source: &Path, graph: &Graph, circle: &Circle<'_>) -> Breach {
    let steps: Vec<String> = circle.shortest.windows(2).map(|step| tell(graph, step[0], step[1])).collect();
    let mut message = format!("these files import from one another in a circle: {}", steps.join("; "));
    if circle.files.len() + 1 > circle.shortest.len() {
        let files: Vec<String> = circle.files.iter().map(|file| file.display().to_string()).collect();
        message.push_str(&format!(
            "; and longer ways round, {} files in all: {}",
            files.len(),
            files.join(", ")
        ));
    }
    message.push_str(". Move what they share to a file of its own");
    let first = circle.shortest[0];
    let line =
        graph.sites(first, circle.shortest[1]).and_then(|sites| sites.first()).map_or(1, |site| site.line);
    Breach::new(&source.join(first), line, message)
}

/// One step of a circle, with the first line that makes it.
fn tell(graph: &Graph, from: &Path, to: &Path) -> String {
    let site = graph.sites(from, to).and_then(|sites| sites.first());
    let (line, path) = site.map_or((1, ""), |site| (site.line, &site.path));
    format!("{}:{line} → {} (`{path}`)", from.display(), to.display())
}
