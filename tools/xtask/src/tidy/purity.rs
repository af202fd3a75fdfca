//! What code under `core/` must not do: I/O, clocks, threads, `async`, and relying on the order of hash maps.
//!
//! Paths are looked up as written after their `use` lines are taken into account. Iteration over a hash map is found by
//! name: fields and variables of the file that are declared with such a type, or made by its constructor.

use super::breach::Breach;
use crate::attributes::{self, is_test};
use crate::rules::{IMPURE, ITERATING, ORDER_EXCUSE, UNORDERED};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// The breaches of purity in a file.
pub fn check(path: &Path, text: &str, file: &syn::File) -> Vec<Breach> {
    let mut names = Names::default();
    names.visit_file(file);
    let mut visitor = Purity { path, text, names, breaches: Vec::new() };
    visitor.visit_file(file);
    visitor.breaches
}

/// What the file's `use` lines import, and which names are hash maps.
#[derive(Default)]
struct Names {
    imported: BTreeMap<String, String>,
    unordered: BTreeSet<String>,
}

impl Names {
    fn import(&mut self, prefix: &str, tree: &syn::UseTree) {
        let join = |name: &str| match prefix {
            "" => name.to_owned(),
            _ => format!("{prefix}::{name}"),
        };
        match tree {
            syn::UseTree::Path(path) => self.import(&join(&path.ident.to_string()), &path.tree),
            syn::UseTree::Name(name) if name.ident == "self" => {
                let last = prefix.rsplit("::").next().unwrap_or(prefix);
                self.imported.insert(last.to_owned(), prefix.to_owned());
            }
            syn::UseTree::Name(name) => {
                self.imported.insert(name.ident.to_string(), join(&name.ident.to_string()));
            }
            syn::UseTree::Rename(rename) => {
                self.imported.insert(rename.rename.to_string(), join(&rename.ident.to_string()));
            }
            syn::UseTree::Glob(_) => {
                self.imported.insert(format!("{prefix}::*"), prefix.to_owned());
            }
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(prefix, tree);
                }
            }
        }
    }
}

/// Whether a type is a hash map or a reference to one.
fn is_unordered(kind: &syn::Type) -> bool {
    match kind {
        syn::Type::Path(path) => {
            path.path.segments.last().is_some_and(|last| UNORDERED.iter().any(|name| last.ident == name))
        }
        syn::Type::Reference(reference) => is_unordered(&reference.elem),
        _ => false,
    }
}

/// Whether an expression makes a hash map: `FxHashMap::default()`, `.collect::<FxHashMap<…>>()`.
fn makes_unordered(expression: &syn::Expr) -> bool {
    match expression {
        syn::Expr::Call(call) => match &*call.func {
            syn::Expr::Path(path) => {
                let segments = &path.path.segments;
                segments.iter().any(|segment| UNORDERED.iter().any(|name| segment.ident == name))
            }
            _ => false,
        },
        syn::Expr::MethodCall(call) => call.turbofish.as_ref().is_some_and(|turbofish| {
            turbofish
                .args
                .iter()
                .any(|argument| matches!(argument, syn::GenericArgument::Type(kind) if is_unordered(kind)))
        }),
        _ => false,
    }
}

fn pattern_name(pattern: &syn::Pat) -> Option<String> {
    match pattern {
        syn::Pat::Ident(ident) => Some(ident.ident.to_string()),
        syn::Pat::Type(typed) => pattern_name(&typed.pat),
        _ => None,
    }
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.import("", &item.tree);
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if let Some(name) = &field.ident
            && is_unordered(&field.ty)
        {
            self.unordered.insert(name.to_string());
        }
    }

    fn visit_pat_type(&mut self, pattern: &'ast syn::PatType) {
        if let Some(name) = pattern_name(&pattern.pat)
            && is_unordered(&pattern.ty)
        {
            self.unordered.insert(name);
        }
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if let Some(init) = &local.init
            && makes_unordered(&init.expr)
            && let Some(name) = pattern_name(&local.pat)
        {
            self.unordered.insert(name);
        }
        visit::visit_local(self, local);
    }
}

struct Purity<'a> {
    path: &'a Path,
    text: &'a str,
    names: Names,
    breaches: Vec<Breach>,
}

impl Purity<'_> {
    fn breach(&mut self, line: usize, message: String) {
        self.breaches.push(Breach::new(self.path, line, message));
    }

    fn check_path(&mut self, written: &str, line: usize) {
        let (head, tail) = written.split_once("::").unwrap_or((written, ""));
        let full = match (self.names.imported.get(head), tail) {
            (Some(full), "") => full.clone(),
            (Some(full), tail) => format!("{full}::{tail}"),
            (None, _) => written.to_owned(),
        };
        let full = full.replace("core::time", "std::time").replace("alloc::", "std::");
        let found = IMPURE.iter().find(|(forbidden, _)| {
            // base's own Instant has no `now`; a two-word path is forbidden wherever it ends.
            let within = full == *forbidden || full.starts_with(&format!("{forbidden}::"));
            within || (forbidden.ends_with("::now") && full.ends_with(forbidden))
        });
        if let Some((forbidden, instead)) = found {
            self.breach(line, format!("`{forbidden}` under core/: {instead}"));
        }
    }

    /// The name of a plain variable or of the last field: `map`, `self.map`, `&mut self.group.map`.
    fn iterated(&self, expression: &syn::Expr) -> Option<String> {
        let name = match expression {
            syn::Expr::Reference(reference) => return self.iterated(&reference.expr),
            syn::Expr::Paren(inner) => return self.iterated(&inner.expr),
            syn::Expr::Path(path) => path.path.get_ident()?.to_string(),
            syn::Expr::Field(field) => match &field.member {
                syn::Member::Named(name) => name.to_string(),
                syn::Member::Unnamed(_) => return None,
            },
            _ => return None,
        };
        self.names.unordered.contains(&name).then_some(name)
    }

    fn iteration(&mut self, name: &str, line: usize) {
        let before = self.text.lines().skip(line.saturating_sub(3)).take(3.min(line));
        if before.into_iter().any(|line| line.to_lowercase().contains(ORDER_EXCUSE)) {
            return;
        }
        self.breach(
            line,
            format!(
                "`{name}` is a hash map and is iterated: use a BTreeMap, sort, or say in a comment why the {ORDER_EXCUSE}"
            ),
        );
    }

    fn check_async(&mut self, is_async: bool, line: usize) {
        if is_async {
            self.breach(line, "`async` under core/: write a state machine".to_owned());
        }
    }
}

impl<'ast> Visit<'ast> for Purity<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if is_test(attributes::of(item)) {
            return;
        }
        if let syn::Item::Use(item) = item {
            let mut names = Names::default();
            names.import("", &item.tree);
            let line = item.span().start().line;
            for full in names.imported.into_values() {
                // Checked as it stands: an import is not looked up among the imports.
                let imported = std::mem::take(&mut self.names.imported);
                self.check_path(&full, line);
                self.names.imported = imported;
            }
            return;
        }
        visit::visit_item(self, item);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !is_test(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let written: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let line = path.span().start().line;
        // A single word is either local or imported, and the import itself was looked at.
        if written.len() > 1 {
            self.check_path(&written.join("::"), line);
        }
        visit::visit_path(self, path);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.check_async(signature.asyncness.is_some(), signature.span().start().line);
        visit::visit_signature(self, signature);
    }

    fn visit_expr_async(&mut self, block: &'ast syn::ExprAsync) {
        self.check_async(true, block.span().start().line);
        visit::visit_expr_async(self, block);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if ITERATING.iter().any(|method| call.method == method)
            && let Some(name) = self.iterated(&call.receiver)
        {
            self.iteration(&name, call.method.span().start().line);
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_for_loop(&mut self, each: &'ast syn::ExprForLoop) {
        if let Some(name) = self.iterated(&each.expr) {
            self.iteration(&name, each.expr.span().start().line);
        }
        visit::visit_expr_for_loop(self, each);
    }
}
