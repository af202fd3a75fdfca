//! Each rule on a small tree that breaks it, and on one that keeps it.

use super::*;
use crate::imports;
use crate::rules::{ARROWS, CIRCLES_ALLOWED, Exception, WITHOUT_CIRCLES};
use serde_json::json;
use std::path::PathBuf;

/// A tree with one file; the messages of its breaches.
fn messages(path: &str, text: &str) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = folder.path().join(path);
    fs::create_dir_all(file.parent().expect("files stand in folders")).expect("make folders");
    fs::write(&file, text).expect("write the file");
    let breaches = check_sources(folder.path()).expect("the tree can be read");
    breaches.into_iter().map(|breach| breach.to_string()).collect()
}

fn refused(path: &str, code: &str, expected: &str) {
    let found = messages(path, &format!("//! A file.\n{code}"));
    assert!(found.iter().any(|message| message.contains(expected)), "{code}\ngave {found:?}");
    assert_eq!(found.len(), 1, "{code}\ngave {found:?}");
}

fn accepted(path: &str, code: &str) {
    let found = messages(path, &format!("//! A file.\n{code}"));
    assert!(found.is_empty(), "{code}\ngave {found:?}");
}

const CORE: &str = "core/node/src/step.rs";
const EDGE: &str = "edge/server/src/cli.rs";

#[test]
fn core_does_no_io_and_has_no_clock_threads_or_async() {
    for (code, expected) in [
        ("use std::fs;", "`std::fs` under core/"),
        ("use std::{fmt, net::TcpStream};", "`std::net`"),
        ("fn f() { std::thread::sleep(D); }", "`std::thread`"),
        ("fn f() -> Option<String> { std::env::var(\"X\").ok() }", "`std::env`"),
        ("use std::time::Instant;", "`std::time::Instant`"),
        ("use std::time;\nfn f() -> time::SystemTime { g() }", "`std::time::SystemTime`"),
        ("fn f() { let _ = Instant::now(); }", "`Instant::now`"),
        ("use tokio::sync::mpsc;", "`tokio`"),
        ("async fn f() {}", "`async` under core/"),
        ("fn f() { let _ = async { 1 }; }", "`async` under core/"),
        ("use std::sync::Mutex;", "`std::sync`"),
        ("use std::collections::HashMap;", "its order is random"),
        ("use std::process::Command as Program;", "`std::process`"),
        ("use std::fs::*;", "`std::fs`"),
    ] {
        refused(CORE, code, expected);
        accepted(EDGE, code);
    }
}

#[test]
fn comments_have_no_programs_in_them() {
    for fence in ["```", "```rust", "``` no_run"] {
        refused(EDGE, &format!("/// So:\n/// {fence}\n/// f();\n/// ```\nfn f() {{}}"), "make it a test");
    }
    accepted(EDGE, "/// So:\n/// ```text\n/// a line\n/// ```\nfn f() {}");
}

#[test]
fn core_may_use_durations_its_own_instant_and_ordered_maps() {
    accepted(
        CORE,
        "use base::Instant;\nuse std::collections::BTreeMap;\nuse std::time::Duration;\n\
         fn f(now: Instant, map: &BTreeMap<u8, Duration>) { for _ in map.iter() {} }",
    );
    accepted(CORE, "#[cfg(test)]\nmod tests {\n    use std::collections::HashMap;\n    use std::fs;\n}");
}

#[test]
fn core_looks_hash_maps_up_and_never_iterates_them() {
    let field = "struct S { map: FxHashMap<u8, u8> }\n";
    for iteration in [
        "fn f(&self) { for (a, b) in &self.map {} }",
        "fn f(&self) -> usize { self.map.values().count() }",
        "fn f(&mut self) { self.map.retain(|_, _| true); }",
        "fn f(&mut self) { let seen = FxHashSet::default(); for s in seen {} }",
        "fn f(map: &FxHashMap<u8, u8>) -> usize { map.iter().count() }",
    ] {
        refused(CORE, &format!("{field}impl S {{\n    {iteration}\n}}"), "is a hash map and is iterated");
    }
    accepted(CORE, &format!("{field}impl S {{\n    fn f(&self) -> Option<&u8> {{ self.map.get(&1) }}\n}}"));
    accepted(
        CORE,
        &format!(
            "{field}impl S {{\n    fn f(&self) -> usize {{\n        // The order does not matter: a sum.\n        \
             self.map.values().count()\n    }}\n}}"
        ),
    );
}

#[test]
fn a_file_says_first_what_it_is() {
    assert_eq!(messages(EDGE, "fn f() {}\n").len(), 1);
    accepted(EDGE, "fn f() {}\n");
}

#[test]
fn unwrap_is_for_tests_only() {
    refused(EDGE, "fn f() { g().unwrap(); }", "`unwrap()` outside tests");
    refused(EDGE, "fn f() { assert!(g().unwrap()); }", "`unwrap()` outside tests");
    accepted(EDGE, "fn f() { g().expect(\"it was checked\"); h().unwrap_or(1); }");
    accepted(EDGE, "#[cfg(test)]\nmod tests {\n    fn f() { g().unwrap(); }\n}");
    accepted(EDGE, "#[test]\nfn f() { g().unwrap(); }");
    accepted("edge/server/src/cli/tests.rs", "fn f() { g().unwrap(); }");
    accepted("edge/server/tests/demo.rs", "fn f() { g().unwrap(); }");
}

#[test]
fn files_and_functions_have_a_greatest_length() {
    let lines = |count: usize| "    g();\n".repeat(count);
    accepted(EDGE, &format!("fn f() {{\n{}}}\n", lines(68)));
    refused(EDGE, &format!("fn f() {{\n{}}}\n", lines(69)), "function `f` has 71 lines");
    refused(EDGE, &format!("impl S {{\nfn f() {{\n{}}}\n}}\n", lines(69)), "function `f` has 71 lines");
    accepted(EDGE, &"// A line.\n".repeat(799));
    refused(EDGE, &"// A line.\n".repeat(800), "the file has 801 lines without tests");
    let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "    fn f() {}\n".repeat(2000));
    accepted(EDGE, &format!("{}{tests}", "// A line.\n".repeat(790)));
}

#[test]
fn an_open_end_names_its_issue() {
    let word = "TO\u{44}O";
    refused(EDGE, &format!("// {word}: do it.\nfn f() {{}}"), "without an issue");
    accepted(EDGE, &format!("// {word}(#12): do it.\nfn f() {{}}"));
}

#[test]
fn what_is_not_rust_is_told() {
    refused(EDGE, "fn f( {", "this is not Rust");
}

fn package(name: &str, folder: &str, dependencies: serde_json::Value) -> serde_json::Value {
    json!({ "packages": [{
        "name": name,
        "manifest_path": format!("/r/{folder}/Cargo.toml"),
        "license": "Apache-2.0",
        "dependencies": dependencies,
    }]})
}

fn crate_messages(metadata: &serde_json::Value) -> Vec<String> {
    let breaches = crates::check(Path::new("/r"), metadata).expect("packages are listed");
    breaches.into_iter().map(|breach| breach.to_string()).collect()
}

#[test]
fn arrows_go_one_way() {
    let uses = |name: &str| json!([{ "name": name, "kind": null }]);
    for (name, folder, used) in [
        ("layout", "core/layout", "placement"),
        ("frontends", "edge/frontends", "node"),
        ("node", "core/node", "server"),
        ("base", "core/base", "layout"),
        ("sim", "tools/sim", "server"),
    ] {
        let found = crate_messages(&package(name, folder, uses(used)));
        assert_eq!(found.len(), 1, "{name} uses {used}: {found:?}");
        assert!(found[0].contains("the arrows do not allow it"), "{found:?}");
    }
    assert!(crate_messages(&package("placement", "core/placement", uses("layout"))).is_empty());
}

#[test]
fn third_party_crates_stand_in_the_table() {
    let uses = |kind: serde_json::Value| json!([{ "name": "proptest", "kind": kind }]);
    let found = crate_messages(&package("base", "core/base", uses(json!(null))));
    assert_eq!(
        found,
        [
            "core/base/Cargo.toml:1: crate `base` uses `proptest`: it is not in the table (tools/xtask/src/rules.rs)"
        ]
    );
    assert!(crate_messages(&package("base", "core/base", uses(json!("dev")))).is_empty());
    let tokio = json!([{ "name": "tokio", "kind": "dev" }]);
    assert_eq!(crate_messages(&package("node", "core/node", tokio)).len(), 1);
}

#[test]
fn crates_are_known_licensed_and_in_their_place() {
    assert_eq!(crate_messages(&package("extra", "core/extra", json!([]))).len(), 1);
    assert_eq!(crate_messages(&package("base", "edge/base", json!([]))).len(), 1);
    let mut unlicensed = package("base", "core/base", json!([]));
    unlicensed["packages"][0]["license"] = json!(null);
    assert_eq!(crate_messages(&unlicensed).len(), 1);
}

/// The messages about circles in a crate `core/node` with these files.
fn circles(files: &[(&str, &str)], exceptions: &[&Exception]) -> Vec<String> {
    let sources = files.iter().map(|(path, text)| (PathBuf::from(path), (*text).to_owned()));
    let graph = imports::of_sources(&sources.collect()).expect("the crate can be read");
    let breaches = circles::check_crate("core/node", graph, exceptions);
    breaches.into_iter().map(|breach| breach.to_string()).collect()
}

fn exception(from: &'static str, to: &'static str) -> Exception {
    Exception { package: "node", from, to, reason: "a test needs it" }
}

const TWO: [(&str, &str); 3] = [
    ("lib.rs", "mod a;\nmod b;"),
    ("a.rs", "//! A.\nuse crate::b::B;\npub struct A;"),
    ("b.rs", "//! B.\n\npub struct B(crate::a::A);"),
];

#[test]
fn a_circle_of_two_files_is_told_with_its_lines() {
    assert_eq!(
        circles(&TWO, &[]),
        [
            "core/node/src/a.rs:2: these files import from one another in a circle: a.rs:2 → b.rs (`crate::b::B`); \
          b.rs:3 → a.rs (`crate::a::A`). Move what they share to a file of its own"
        ]
    );
}

#[test]
fn a_circle_of_three_files_is_found_beside_files_in_none() {
    let found = circles(
        &[
            ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\npub use a::A;"),
            ("a.rs", "use crate::b::B;\nuse crate::d::D;\npub struct A;"),
            ("b.rs", "use crate::c::C;\npub struct B;"),
            ("c.rs", "use crate::{a::A, d::D};\npub struct C;"),
            ("d.rs", "pub struct D;"),
        ],
        &[],
    );
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("a.rs:1 → b.rs"), "{found:?}");
    assert!(found[0].contains("b.rs:1 → c.rs"), "{found:?}");
    assert!(found[0].contains("c.rs:1 → a.rs"), "{found:?}");
    assert!(!found[0].contains("d.rs"), "{found:?}");
}

#[test]
fn a_parent_that_imports_from_a_child_which_names_it_by_super_is_a_circle() {
    let found = circles(
        &[
            ("lib.rs", "mod disk;"),
            ("disk.rs", "mod part;\nuse part::Part;\npub struct Disk(Part);"),
            ("disk/part.rs", "use super::Disk;\npub struct Part;\nimpl Disk {}"),
        ],
        &[],
    );
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("disk.rs:2 → disk/part.rs (`part::Part`)"), "{found:?}");
    assert!(found[0].contains("disk/part.rs:1 → disk.rs (`super::Disk`)"), "{found:?}");
}

#[test]
fn a_circle_through_a_parent_that_passes_names_on_is_one_of_the_children() {
    let found = circles(
        &[
            ("lib.rs", "mod disk;"),
            ("disk/mod.rs", "mod a;\nmod b;\npub use a::A;\npub use b::B;"),
            ("disk/a.rs", "use super::B;\npub struct A;"),
            ("disk/b.rs", "pub struct B;\nfn f(_: super::A) {}"),
        ],
        &[],
    );
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("disk/a.rs:1 → disk/b.rs (`super::B`)"), "{found:?}");
    assert!(found[0].contains("disk/b.rs:2 → disk/a.rs (`super::A`)"), "{found:?}");
    assert!(!found[0].contains("mod.rs"), "{found:?}");
}

#[test]
fn a_larger_knot_is_told_by_its_shortest_circle_and_all_its_files() {
    let found = circles(
        &[
            ("lib.rs", "mod a;\nmod b;\nmod c;"),
            ("a.rs", "use crate::b::B;\npub struct A;"),
            ("b.rs", "use crate::a::A;\nuse crate::c::C;\npub struct B;"),
            ("c.rs", "use crate::a::A;\npub struct C;"),
        ],
        &[],
    );
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("3 files in all: a.rs, b.rs, c.rs"), "{found:?}");
}

#[test]
fn an_exception_allows_a_circle_and_is_refused_once_it_allows_none() {
    assert_eq!(circles(&TWO, &[&exception("b.rs", "a.rs")]), [""; 0]);
    for (from, to) in [("a.rs", "lib.rs"), ("lib.rs", "a.rs"), ("gone.rs", "a.rs")] {
        let files = [TWO[0], TWO[1], ("b.rs", "pub struct B;")];
        let found = circles(&files, &[&exception(from, to)]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("allows no circle any more"), "{found:?}");
    }
    let found = circles(&[TWO[0], TWO[1], ("b.rs", "pub struct B;")], &[&exception("a.rs", "b.rs")]);
    assert_eq!(found.len(), 1, "an arrow in no circle needs no exception: {found:?}");
}

#[test]
fn exceptions_have_reasons_and_crates_without_circles_exist() {
    for one in CIRCLES_ALLOWED {
        assert!(one.reason.len() > 20, "{} → {}: say why", one.from, one.to);
        assert!(ARROWS.iter().any(|(name, ..)| *name == one.package), "there is no crate {}", one.package);
    }
    for name in WITHOUT_CIRCLES {
        assert!(ARROWS.iter().any(|(known, ..)| known == name), "there is no crate {name}");
    }
}
