//! The modules of a crate: which file each stands in, what its `use` lines bind, which paths its code names.
//!
//! Only modules that `lib.rs` or `main.rs` declares, directly or not, count. Code for tests (`#[cfg(test)]`, `#[test]`) is left
//! out. Comments and strings are not read. The arguments of macros, which syn does not parse, are searched for paths.

use crate::attributes::{self, is_test};
use proc_macro2::{Spacing, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};

/// A path as it is written somewhere, without what it is renamed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// Index of the module that names it.
    pub module: usize,
    /// Its line in the file of that module, from 1 on.
    pub line: usize,
    /// Its segments, at least one.
    pub path: Vec<String>,
}

/// A module, in a file of its own or within one.
#[derive(Debug)]
pub struct Module {
    /// Index of its file in [`Modules::files`].
    pub file: usize,
    /// Index of the module that declares it; none for the root of the crate.
    pub parent: Option<usize>,
    /// The modules that it declares, by name.
    pub children: BTreeMap<String, usize>,
    /// Names that `use` lines bind, and the path that each stands for; a name may be bound in two namespaces.
    pub bindings: Vec<(String, Vec<String>)>,
    /// Paths of which a `use` line imports everything.
    pub globs: Vec<Vec<String>>,
    /// Items that it defines itself.
    pub items: BTreeSet<String>,
}

/// All modules of a crate. The first one is the root.
#[derive(Debug, Default)]
pub struct Modules {
    /// Files, counted from the folder of sources (`src`).
    pub files: Vec<PathBuf>,
    /// The modules.
    pub all: Vec<Module>,
    /// What their code names.
    pub mentions: Vec<Mention>,
}

impl Modules {
    /// The modules of the crate that `root` (`lib.rs` or `main.rs`) is the root of. `sources` holds the text of each file.
    pub fn read(root: &Path, sources: &BTreeMap<PathBuf, String>) -> Result<Modules, String> {
        let mut modules = Modules::default();
        modules.add_file(root, Path::new(""), None, sources)?;
        Ok(modules)
    }

    /// Adds the module of a file and all that it declares; the files of its children stand in `folder`.
    fn add_file(
        &mut self,
        path: &Path,
        folder: &Path,
        parent: Option<usize>,
        sources: &BTreeMap<PathBuf, String>,
    ) -> Result<usize, String> {
        let text = sources.get(path).ok_or_else(|| format!("{}: there is no such file", path.display()))?;
        let file = syn::parse_file(text)
            .map_err(|error| format!("{}:{}: {error}", path.display(), error.span().start().line))?;
        self.files.push(path.to_path_buf());
        let module = self.add_module(self.files.len() - 1, parent);
        self.add_items(module, &file.items, folder, sources)?;
        Ok(module)
    }

    fn add_module(&mut self, file: usize, parent: Option<usize>) -> usize {
        self.all.push(Module {
            file,
            parent,
            children: BTreeMap::new(),
            bindings: Vec::new(),
            globs: Vec::new(),
            items: BTreeSet::new(),
        });
        self.all.len() - 1
    }

    fn add_items(
        &mut self,
        module: usize,
        items: &[syn::Item],
        folder: &Path,
        sources: &BTreeMap<PathBuf, String>,
    ) -> Result<(), String> {
        for item in items.iter().filter(|item| !is_test(attributes::of(item))) {
            let syn::Item::Mod(declared) = item else {
                self.all[module].items.extend(name_of(item));
                Reader { modules: self, module }.visit_item(item);
                continue;
            };
            let name = declared.ident.to_string();
            let inner = folder.join(&name);
            let child = match &declared.content {
                Some((_, items)) => {
                    let child = self.add_module(self.all[module].file, Some(module));
                    self.add_items(child, items, &inner, sources)?;
                    child
                }
                None => {
                    let beside = folder.join(format!("{name}.rs"));
                    let path = if sources.contains_key(&beside) { beside } else { inner.join("mod.rs") };
                    self.add_file(&path, &inner, Some(module), sources)?
                }
            };
            self.all[module].children.insert(name, child);
        }
        Ok(())
    }
}

/// The name that an item defines in its module.
fn name_of(item: &syn::Item) -> Option<String> {
    let ident = match item {
        syn::Item::Const(item) => &item.ident,
        syn::Item::Enum(item) => &item.ident,
        syn::Item::Fn(item) => &item.sig.ident,
        syn::Item::Static(item) => &item.ident,
        syn::Item::Struct(item) => &item.ident,
        syn::Item::Trait(item) => &item.ident,
        syn::Item::Type(item) => &item.ident,
        syn::Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

/// Collects what the code of one module names.
struct Reader<'a> {
    modules: &'a mut Modules,
    module: usize,
}

impl Reader<'_> {
    fn mention(&mut self, path: Vec<String>, line: usize) {
        self.modules.mentions.push(Mention { module: self.module, line, path });
    }

    fn bind(&mut self, name: String, path: Vec<String>, line: usize) {
        self.modules.all[self.module].bindings.push((name, path.clone()));
        self.mention(path, line);
    }

    fn import(&mut self, prefix: &[String], tree: &syn::UseTree) {
        let with = |ident: &syn::Ident| [prefix, &[ident.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.import(&with(&path.ident), &path.tree),
            syn::UseTree::Name(name) if name.ident == "self" && !prefix.is_empty() => {
                let last = prefix.last().expect("it is not empty").clone();
                self.bind(last, prefix.to_vec(), name.ident.span().start().line);
            }
            syn::UseTree::Name(name) => {
                let line = name.ident.span().start().line;
                self.bind(name.ident.to_string(), with(&name.ident), line);
            }
            syn::UseTree::Rename(rename) => {
                let is_itself = rename.ident == "self" && !prefix.is_empty();
                let path = if is_itself { prefix.to_vec() } else { with(&rename.ident) };
                self.bind(rename.rename.to_string(), path, rename.ident.span().start().line);
            }
            syn::UseTree::Glob(glob) => {
                self.modules.all[self.module].globs.push(prefix.to_vec());
                self.mention(prefix.to_vec(), glob.star_token.spans[0].start().line);
            }
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(prefix, tree);
                }
            }
        }
    }

    /// Paths of two segments or more among tokens: `matches!(x, super::State::Open)`.
    fn search(&mut self, tokens: TokenStream) {
        let trees: Vec<TokenTree> = tokens.into_iter().collect();
        let is_separator = |at: usize| {
            let colon = |at: usize| match trees.get(at) {
                Some(TokenTree::Punct(punct)) if punct.as_char() == ':' => Some(punct.spacing()),
                _ => None,
            };
            colon(at) == Some(Spacing::Joint) && colon(at + 1).is_some()
        };
        let mut at = 0;
        while at < trees.len() {
            match &trees[at] {
                TokenTree::Group(group) => self.search(group.stream()),
                TokenTree::Ident(first) => {
                    let line = first.span().start().line;
                    let is_global = at >= 2 && is_separator(at - 2);
                    let mut path = vec![first.to_string()];
                    while is_separator(at + 1)
                        && let Some(TokenTree::Ident(next)) = trees.get(at + 3)
                    {
                        path.push(next.to_string());
                        at += 3;
                    }
                    if path.len() > 1 && !is_global {
                        self.mention(path, line);
                    }
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
            at += 1;
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_test(attributes::of(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if item.leading_colon.is_none() {
            self.import(&[], &item.tree);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !is_test(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {} // It says who may see, not what is used.

    fn visit_path(&mut self, path: &'ast syn::Path) {
        // A lone name is bound by a `use` line, which is a mention already, or defined here.
        if path.leading_colon.is_none() && path.segments.len() > 1 {
            let line = path.segments[0].ident.span().start().line;
            self.mention(path.segments.iter().map(|segment| segment.ident.to_string()).collect(), line);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.search(call.tokens.clone());
        visit::visit_macro(self, call);
    }
}
