//! One source file: its opening comment, its length, its functions, `unwrap()`, open ends; under `core/` its purity.
//!
//! Tests are code inside `#[cfg(test)]`, `#[test]`, files named `tests.rs` and folders named `tests`, `benches` or
//! `examples`.

use super::breach::Breach;
use super::purity;
use crate::attributes::{self, is_test};
use crate::rules::{FILE_LINES_MAX, FUNCTION_LINES_MAX};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeSet;
use std::path::Path;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// The breaches of the file `text` at `path`, which counts from the root of the repository.
pub fn check(path: &Path, text: &str) -> Vec<Breach> {
    let mut breaches = Vec::new();
    if !text.starts_with("//!") {
        let message = "a file begins with `//!`: what it is, what it relies on, what it must never do";
        breaches.push(Breach::new(path, 1, message));
    }
    breaches.extend(open_ends(path, text));
    breaches.extend(programs_in_comments(path, text));
    let file = match syn::parse_file(text) {
        Ok(file) => file,
        Err(error) => {
            let line = error.span().start().line;
            breaches.push(Breach::new(path, line, format!("this is not Rust: {error}")));
            return breaches;
        }
    };
    if is_test_path(path) {
        return breaches;
    }
    let mut visitor = Visitor { path, breaches: Vec::new(), test_lines: 0 };
    visitor.visit_file(&file);
    breaches.append(&mut visitor.breaches);
    let lines = text.lines().count().saturating_sub(visitor.test_lines);
    if lines > FILE_LINES_MAX {
        let message =
            format!("the file has {lines} lines without tests; split it ({FILE_LINES_MAX} at most)");
        breaches.push(Breach::new(path, 1, message));
    }
    if path.starts_with("core") {
        breaches.extend(purity::check(path, text, &file));
    }
    breaches
}

fn is_test_path(path: &Path) -> bool {
    let folders: BTreeSet<_> = path.iter().filter_map(|part| part.to_str()).collect();
    ["tests", "tests.rs", "benches", "examples"].iter().any(|name| folders.contains(name))
}

/// Comments that say that something is missing and name no issue.
fn open_ends(path: &Path, text: &str) -> Vec<Breach> {
    let open = |(index, line): (usize, &str)| {
        let (_, comment) = line.split_once("//")?;
        let word = ["TO\u{44}O", "FIX\u{4d}E", "XX\u{58}"].into_iter().find(|word| comment.contains(word))?;
        let names_issue =
            comment.split('#').skip(1).any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        let message = format!("{word} without an issue: name it (`#12`) or do it");
        (!names_issue).then(|| Breach::new(path, index + 1, message))
    };
    text.lines().enumerate().filter_map(open).collect()
}

/// Comments with Rust in them, which the tests would have to look for in each crate. Each second fence closes the one before.
fn programs_in_comments(path: &Path, text: &str) -> Vec<Breach> {
    let fence = |(index, line): (usize, &str)| {
        let comment = line.trim_start();
        let text = comment.strip_prefix("///").or_else(|| comment.strip_prefix("//!"))?;
        Some((index + 1, text.trim_start().strip_prefix("```")?.to_owned()))
    };
    let opened = text.lines().enumerate().filter_map(fence).step_by(2);
    let message = "a program in a comment is not compiled: make it a test, or say ```text";
    opened.filter(|(_, kind)| kind != "text").map(|(line, _)| Breach::new(path, line, message)).collect()
}

struct Visitor<'a> {
    path: &'a Path,
    breaches: Vec<Breach>,
    test_lines: usize,
}

fn lines_of(node: &impl Spanned) -> usize {
    let span = node.span();
    span.end().line + 1 - span.start().line
}

impl Visitor<'_> {
    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let line = signature.span().start().line;
        let lines = block.span().end().line + 1 - line;
        if lines > FUNCTION_LINES_MAX {
            let message = format!(
                "function `{}` has {lines} lines; split it ({FUNCTION_LINES_MAX} at most)",
                signature.ident
            );
            self.breaches.push(Breach::new(self.path, line, message));
        }
    }

    fn unwrap(&mut self, line: usize) {
        let message = "`unwrap()` outside tests: say why it cannot fail with `expect`, or handle it";
        self.breaches.push(Breach::new(self.path, line, message));
    }

    /// `.unwrap()` among the arguments of a macro, which are not parsed.
    fn tokens(&mut self, tokens: TokenStream) {
        let trees: Vec<TokenTree> = tokens.into_iter().collect();
        for (index, tree) in trees.iter().enumerate() {
            match tree {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(ident) if ident == "unwrap" => {
                    let before = index.checked_sub(1).map(|before| &trees[before]);
                    let after = trees.get(index + 1);
                    if matches!(before, Some(TokenTree::Punct(dot)) if dot.as_char() == '.')
                        && matches!(after, Some(TokenTree::Group(group)) if group.stream().is_empty())
                    {
                        self.unwrap(ident.span().start().line);
                    }
                }
                TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Visitor<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if is_test(attributes::of(item)) {
            self.test_lines += lines_of(item);
            return;
        }
        visit::visit_item(self, item);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if is_test(&function.attrs) {
            self.test_lines += lines_of(function);
            return;
        }
        self.function(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.function(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.function(&function.sig, block);
        }
        visit::visit_trait_item_fn(self, function);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if call.method == "unwrap" && call.args.is_empty() {
            self.unwrap(call.method.span().start().line);
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.tokens(call.tokens.clone());
        visit::visit_macro(self, call);
    }
}
