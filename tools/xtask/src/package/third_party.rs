//! Names and licences of the crates that are linked into the program, with their texts, as those licences ask for.
//!
//! Relies on `cargo metadata` and on the sources that cargo fetched for the build.

use super::outside::{files_in, output};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

/// A file whose name begins so is a licence or a notice.
const NAMES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"];
const RULE: &str = "------------------------------------------------------------------------";

/// The notice of the workspace at `root`.
pub fn notice(root: &Path) -> Result<String, String> {
    let host = output(Command::new("rustc").arg("-vV"))?;
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).ok_or("rustc names no host")?;
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version", "1", "--locked", "--filter-platform", host]);
    let text = output(cargo.current_dir(root))?;
    let metadata = serde_json::from_str(&text).map_err(|error| format!("read cargo metadata: {error}"))?;
    let mut crates = Vec::new();
    for package in linked(&metadata)? {
        let manifest = Path::new(package["manifest_path"].as_str().ok_or("a package has no manifest")?);
        let folder = manifest.parent().ok_or("a manifest stands nowhere")?;
        let name = format!("{} {}", text_of(package, "name"), text_of(package, "version"));
        crates.push((name, text_of(package, "license").to_owned(), licences(folder)?));
    }
    Ok(written(&crates))
}

fn text_of<'a>(package: &'a Value, field: &str) -> &'a str {
    package[field].as_str().unwrap_or("not stated")
}

/// The packages of others that are linked into `server`: what it needs and what those need, not for building or tests.
fn linked(metadata: &Value) -> Result<Vec<&Value>, String> {
    let packages = metadata["packages"].as_array().ok_or("cargo metadata lists no packages")?;
    let packages: BTreeMap<&str, &Value> =
        packages.iter().filter_map(|package| Some((package["id"].as_str()?, package))).collect();
    let nodes = metadata["resolve"]["nodes"].as_array().ok_or("cargo metadata resolves nothing")?;
    let nodes: BTreeMap<&str, &Value> =
        nodes.iter().filter_map(|node| Some((node["id"].as_str()?, node))).collect();
    let server = packages.iter().find(|(_, package)| package["name"] == "server");
    let mut open = vec![*server.ok_or("cargo metadata has no crate `server`")?.0];
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        if seen.insert(id) {
            let needed = nodes.get(id).and_then(|node| node["deps"].as_array()).into_iter().flatten();
            let is_linked = |need: &&Value| {
                need["dep_kinds"]
                    .as_array()
                    .is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
            };
            open.extend(needed.filter(is_linked).filter_map(|need| need["pkg"].as_str()));
        }
    }
    let of_others =
        seen.into_iter().filter_map(|id| packages.get(id)).filter(|package| !package["source"].is_null());
    let mut of_others: Vec<&Value> = of_others.copied().collect();
    of_others.sort_by_key(|package| (text_of(package, "name"), text_of(package, "version")));
    Ok(of_others)
}

/// The texts in a crate's folder.
fn licences(folder: &Path) -> Result<Vec<String>, String> {
    let is_licence = |path: &Path| {
        let name = path.file_name().map(|name| name.to_string_lossy().to_uppercase()).unwrap_or_default();
        path.is_file() && NAMES.iter().any(|start| name.starts_with(start))
    };
    let files = files_in(folder)?.into_iter().filter(|path| is_licence(path));
    files
        .map(|path| {
            let text = fs::read(&path).map_err(|error| format!("read {}: {error}", path.display()))?;
            Ok(String::from_utf8_lossy(&text).trim().to_owned())
        })
        .collect()
}

/// The list, then each text once with those that it is the licence of.
fn written(crates: &[(String, String, Vec<String>)]) -> String {
    let mut all =
        "Crates of others that are linked into drystone, with their licences; the texts follow.\n\n"
            .to_owned();
    let mut texts: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, licence, found) in crates {
        all += &format!("{name}: {licence}\n");
        for text in found {
            texts.entry(text).or_default().push(name);
        }
    }
    for (text, names) in texts {
        all += &format!("\n{RULE}\n{}\n{RULE}\n\n{text}\n", names.join(", "));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_is_linked_counts_and_a_text_stands_once() {
        let package =
            |name: &str, source: Value| json!({"id": name, "name": name, "version": "1", "source": source});
        let need = |name: &str, kind: Value| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let metadata = json!({
            "packages": [package("server", Value::Null), package("ours", Value::Null), package("b", json!("r")),
                package("a", json!("r")), package("builds", json!("r")), package("tests", json!("r"))],
            "resolve": {"nodes": [
                {"id": "server", "deps": [need("ours", Value::Null), need("tests", json!("dev"))]},
                {"id": "ours", "deps": [need("b", Value::Null), need("builds", json!("build"))]},
                {"id": "b", "deps": [need("a", Value::Null)]},
            ]},
        });
        let names: Vec<&str> =
            linked(&metadata).expect("crates").iter().map(|package| text_of(package, "name")).collect();
        assert_eq!(names, ["a", "b"]);
        let one = |name: &str| (name.to_owned(), "MIT".to_owned(), vec!["words of a licence".to_owned()]);
        let text = written(&[one("a 1"), one("b 1")]);
        assert_eq!(text.matches("words of a licence").count(), 1, "{text}");
        assert!(text.contains("\na 1, b 1\n"), "{text}");
    }
}
