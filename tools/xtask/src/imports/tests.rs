//! Arrows that are found in small crates, and what is none.

use super::*;
use std::collections::BTreeSet;

/// The imports of a crate with these files.
fn graph(files: &[(&str, &str)]) -> Graph {
    let sources = files.iter().map(|(path, text)| (PathBuf::from(path), (*text).to_owned()));
    of_sources(&sources.collect()).expect("the crate can be read")
}

/// All arrows, each as `from:line → to`.
fn arrows(files: &[(&str, &str)]) -> Vec<String> {
    let graph = graph(files);
    let mut all = Vec::new();
    for (file, arrows) in graph.files() {
        for (to, sites) in arrows {
            let lines: BTreeSet<usize> = sites.iter().map(|site| site.line).collect();
            let lines: Vec<String> = lines.iter().map(usize::to_string).collect();
            all.push(format!("{}:{} → {}", file.display(), lines.join(","), to.display()));
        }
    }
    all
}

/// The arrows of a file `a.rs` with that text, beside `b.rs`, `b/deep.rs` and `c.rs`.
fn arrows_of_a(text: &str) -> Vec<String> {
    let files = [
        ("lib.rs", "mod a;\nmod b;\nmod c;"),
        ("a.rs", text),
        ("b.rs", "pub mod deep;\npub struct B;\npub fn c() {}"),
        ("b/deep.rs", "pub struct Deep;\npub const LIMIT: u8 = 1;"),
        ("c.rs", "pub struct C;\npub enum State { Open }"),
    ];
    arrows(&files).into_iter().filter(|arrow| arrow.starts_with("a.rs")).collect()
}

const TO_B: &str = "a.rs:1 → b.rs";
const TO_C: &str = "a.rs:1 → c.rs";
const TO_DEEP: &str = "a.rs:1 → b/deep.rs";

#[test]
fn use_trees_are_followed_through_braces_renames_and_self() {
    for (text, expected) in [
        ("use crate::b::B;", vec![TO_B]),
        ("use crate::{b::{B, deep::Deep}, c::C};", vec![TO_DEEP, TO_B, TO_C]),
        ("use crate::b::{self, deep::{self as below}};", vec![TO_DEEP, TO_B]),
        ("use super::c::C as Other;", vec![TO_C]),
        ("pub use super::b::deep::*;", vec![TO_DEEP]),
        ("pub(crate) use crate::c as state;", vec![TO_C]),
        ("use std::collections::BTreeMap;\nuse base::b::B;", vec![]),
        ("use ::b::B;", vec![]),
    ] {
        assert_eq!(arrows_of_a(text), expected, "{text}");
    }
}

#[test]
fn paths_in_code_are_arrows_and_so_are_those_in_the_arguments_of_macros() {
    for (text, expected) in [
        ("fn f() { crate::b::c(); }", vec![TO_B]),
        ("fn f(deep: &super::b::deep::Deep) -> bool { deep.is_some() }", vec![TO_DEEP]),
        ("fn f() { assert!(matches!(g(), super::c::State::Open), \"crate::b::c\"); }", vec![TO_C]),
        ("impl crate::c::C { const A: u8 = <crate::b::B as Default>::default().0; }", vec![TO_B, TO_C]),
        ("fn f() { g::<Vec<crate::c::C>>() }", vec![TO_C]),
        ("#[derive(Debug)] struct S { b: Option<crate::b::B> }", vec![TO_B]),
        ("fn f() { use crate::c; c::g(); }", vec![TO_C]),
        ("fn f() { println!(\"{}\", ::c::g()); }", vec![]),
    ] {
        assert_eq!(arrows_of_a(text), expected, "{text}");
    }
}

#[test]
fn names_that_a_use_line_binds_lead_to_where_they_are_defined() {
    let text = "use crate::b::deep;\nuse crate::c as other;\n\nfn f() { deep::LIMIT + other::State::Open }";
    assert_eq!(arrows_of_a(text), ["a.rs:1,4 → b/deep.rs", "a.rs:2,4 → c.rs"]);
}

#[test]
fn comments_strings_tests_and_visibility_are_no_imports() {
    for text in [
        "// use crate::b::B;\n/* crate::b::c() */\n/// See [`crate::b::B`].\nfn f() {}",
        "const TEXT: &str = \"use crate::b::B;\";",
        "#[cfg(test)]\nmod tests { use crate::b::B; }",
        "#[cfg(test)]\nuse crate::b::B;",
        "#[test]\nfn f() { crate::b::c(); }",
        "impl S {\n#[cfg(test)]\nfn f() { crate::b::c(); }\n}",
        "pub(in crate::b) fn f() {}",
        "fn f() { self::g(); }\nfn g() {}",
        "fn f(b: u8) { b.c(); }",
    ] {
        assert!(arrows_of_a(text).is_empty(), "{text}\ngave {:?}", arrows_of_a(text));
    }
}

#[test]
fn modules_within_a_file_count_as_the_file() {
    assert_eq!(
        arrows_of_a("mod inner { use super::super::c::C;\nfn f() { super::g() } }\nfn g() {}"),
        [TO_C]
    );
    let files = [("lib.rs", "mod a;"), ("a.rs", "fn f() { crate::inner() }"), ("a/mod.rs", "never read")];
    assert_eq!(arrows(&files), ["a.rs:1 → lib.rs"]);
}

#[test]
fn a_re_export_leads_to_the_file_that_defines_the_item() {
    let files = [
        ("lib.rs", "mod a;\nmod group;\npub use group::Deep;"),
        ("a.rs", "use crate::Deep;\nuse crate::group::{Instant, Part as Piece};\nuse crate::group::Outer;"),
        ("group/mod.rs", "mod part;\npub use part::*;\npub use base::Instant;\npub struct Outer;"),
        ("group/part.rs", "pub struct Part;\npub struct Deep;"),
    ];
    assert_eq!(
        arrows(&files),
        [
            "a.rs:2,3 → group/mod.rs",
            "a.rs:1,2 → group/part.rs",
            "group/mod.rs:2 → group/part.rs",
            "lib.rs:3 → group/part.rs",
        ]
    );
}

#[test]
fn re_exports_of_one_another_end() {
    let files = [
        ("lib.rs", "mod a;\nmod b;"),
        ("a.rs", "pub use crate::b::Thing;"),
        ("b.rs", "pub use crate::a::Thing;"),
    ];
    assert!(arrows(&files).is_empty(), "nobody defines it");
}

#[test]
fn what_is_named_as_its_crate_or_its_module_ends() {
    assert!(arrows_of_a("use other::{Kind, other};\nfn f() -> Kind { other::g() }").is_empty());
    let files = [("lib.rs", "mod b;\nuse b::b;\nfn f() { b() }"), ("b.rs", "pub fn b() {}")];
    assert_eq!(arrows(&files), ["lib.rs:2 → b.rs"]);
}

#[test]
fn a_file_that_is_missing_or_no_rust_is_told() {
    let read = |files: &[(&str, &str)]| {
        let sources = files.iter().map(|(path, text)| (PathBuf::from(path), (*text).to_owned()));
        of_sources(&sources.collect()).map(|_| ())
    };
    assert_eq!(read(&[("a.rs", "")]), Err("a crate has a lib.rs or a main.rs".to_owned()));
    assert_eq!(read(&[("lib.rs", "mod a;")]), Err("a/mod.rs: there is no such file".to_owned()));
    let error = read(&[("lib.rs", "mod a;"), ("a.rs", "\nfn f( {")]).expect_err("it is not Rust");
    assert!(error.starts_with("a.rs:2: "), "{error}");
}

#[test]
fn the_picture_is_told_as_text_and_for_graphviz() {
    let graph = graph(&[
        ("lib.rs", "mod a;\nmod b;"),
        ("a.rs", "use crate::b::B;\npub struct A;"),
        ("b.rs", "pub struct B(crate::a::A);"),
    ]);
    let expected = "a.rs\n    b.rs: 1 crate::b::B\nb.rs\n    a.rs: 1 crate::a::A\nlib.rs\ncircle of 2 files: a.rs b.rs\n";
    assert_eq!(text(&graph), expected);
    assert_eq!(dot(&graph), "digraph imports {\n  \"a.rs\" -> \"b.rs\";\n  \"b.rs\" -> \"a.rs\";\n}\n");
}
