//! Arrows between our crates, third-party crates and licences, from `cargo metadata`.

use super::breach::Breach;
use crate::rules::{ARROWS, LICENCE, THIRD_PARTY, THIRD_PARTY_IN_TESTS};
use serde_json::Value;
use std::path::Path;

/// The breaches in the packages of `metadata`.
pub fn check(root: &Path, metadata: &Value) -> Result<Vec<Breach>, String> {
    let packages = metadata["packages"].as_array().ok_or("cargo metadata lists no packages")?;
    Ok(packages.iter().flat_map(|package| check_package(root, package)).collect())
}

fn check_package(root: &Path, package: &Value) -> Vec<Breach> {
    let name = package["name"].as_str().unwrap_or_default();
    let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
    let manifest = manifest.strip_prefix(root).unwrap_or(manifest);
    let breach = |message: String| Breach::new(manifest, 1, message);
    let Some((_, folder, arrows)) = ARROWS.iter().find(|(known, ..)| *known == name) else {
        return vec![breach(format!(
            "crate `{name}` is not in the table of arrows (tools/xtask/src/rules.rs)"
        ))];
    };
    let mut breaches = Vec::new();
    if manifest.parent() != Some(Path::new(folder)) {
        breaches.push(breach(format!("crate `{name}` belongs in {folder}")));
    }
    if package["license"].as_str() != Some(LICENCE) {
        breaches.push(breach(format!("crate `{name}` must say `license = \"{LICENCE}\"`")));
    }
    let dependencies = package["dependencies"].as_array().map_or(&[][..], Vec::as_slice);
    for dependency in dependencies {
        let used = dependency["name"].as_str().unwrap_or_default();
        let in_tests = dependency["kind"].as_str() == Some("dev");
        let ours = ARROWS.iter().any(|(known, ..)| *known == used);
        let allowed = match ours {
            true => arrows.contains(&used) || (in_tests && used == name),
            false => third_party(name).contains(&used) || (in_tests && THIRD_PARTY_IN_TESTS.contains(&used)),
        };
        if !allowed {
            let table = if ours { "the arrows do not allow it" } else { "it is not in the table" };
            breaches
                .push(breach(format!("crate `{name}` uses `{used}`: {table} (tools/xtask/src/rules.rs)")));
        }
    }
    breaches
}

fn third_party(name: &str) -> &'static [&'static str] {
    THIRD_PARTY.iter().find(|(known, _)| *known == name).map_or(&[], |(_, crates)| crates)
}
