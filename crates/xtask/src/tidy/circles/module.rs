//! What one file defines, imports and names, without its tests.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ExprCall, ImplItem, Item, ItemMod, ItemUse, Macro, Meta, UseTree, Visibility};

use super::Path;

#[derive(Default)]
pub(super) struct Module {
    pub(super) defines: BTreeSet<String>,
    pub(super) imports: Vec<Import>,
    /// The paths in its code. A path of one name is a type, a constant or a called function.
    pub(super) names: BTreeSet<Path>,
    /// Its child files that are compiled for tests only.
    pub(super) test_children: BTreeSet<String>,
    /// How many inline modules enclose what is being read.
    inline_depth: usize,
}

pub(super) struct Import {
    /// `*` for a glob.
    pub(super) name: String,
    pub(super) path: Path,
    pub(super) is_reexport: bool,
}

impl Module {
    pub(super) fn parse(text: &str) -> syn::Result<Module> {
        let mut module = Module::default();
        module.visit_file(&syn::parse_file(text)?);
        Ok(module)
    }

    pub(super) fn imported_as(&self, name: &str) -> impl Iterator<Item = &Import> {
        self.imports.iter().filter(move |import| import.name == name)
    }

    fn import(&mut self, tree: &UseTree, mut path: Path, is_reexport: bool) {
        let (name, last) = match tree {
            UseTree::Path(step) => {
                path.push(step.ident.to_string());
                return self.import(&step.tree, path, is_reexport);
            }
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.import(tree, path.clone(), is_reexport));
            }
            UseTree::Glob(_) => ("*".to_owned(), None),
            UseTree::Name(name) if name.ident == "self" => (path.last().cloned().unwrap_or_default(), None),
            UseTree::Name(name) => (name.ident.to_string(), Some(&name.ident)),
            UseTree::Rename(rename) => {
                (rename.rename.to_string(), Some(&rename.ident).filter(|ident| *ident != "self"))
            }
        };
        path.extend(last.map(ToString::to_string));
        if let Some(path) = self.at_top_level(path) {
            self.imports.push(Import { name, path, is_reexport });
        }
    }

    /// A path as the file's top level would write it; `None` if it stays inside an inline module.
    fn at_top_level(&self, path: Path) -> Option<Path> {
        let ups = path.iter().take_while(|name| *name == "super").count();
        if self.inline_depth == 0 || (ups == 0 && path.first().is_some_and(|first| first != "self")) {
            return Some(path);
        }
        let outer = path.get(self.inline_depth..).filter(|_| ups >= self.inline_depth)?;
        let start = (ups == self.inline_depth).then(|| "self".to_owned());
        Some(start.into_iter().chain(outer.iter().cloned()).collect())
    }

    fn name(&mut self, path: Path) {
        self.names.extend(self.at_top_level(path));
    }

    /// A path that may be of one name: then it counts only if it cannot be a local variable.
    fn name_item(&mut self, path: Path) {
        let is_capital = |name: &String| name.starts_with(|first: char| first.is_uppercase());
        if path.len() > 1 || path.first().is_some_and(is_capital) {
            self.name(path);
        }
    }

    /// The paths in the tokens of a macro or an attribute.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Path = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.name_item(std::mem::take(&mut path));
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                other => {
                    self.name_item(std::mem::take(&mut path));
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.tokens(group.stream());
                    }
                }
            }
        }
        self.name_item(path);
    }
}

impl<'ast> Visit<'ast> for Module {
    fn visit_item(&mut self, item: &'ast Item) {
        if let Item::Mod(ItemMod { attrs, ident, content: None, .. }) = item
            && is_for_tests(attrs)
        {
            self.test_children.insert(ident.to_string());
        }
        let (name, attributes) = match item {
            Item::Const(item) => (Some(&item.ident), &item.attrs),
            Item::Enum(item) => (Some(&item.ident), &item.attrs),
            Item::Fn(item) => (Some(&item.sig.ident), &item.attrs),
            Item::Macro(item) => (item.ident.as_ref(), &item.attrs),
            Item::Static(item) => (Some(&item.ident), &item.attrs),
            Item::Struct(item) => (Some(&item.ident), &item.attrs),
            Item::Trait(item) => (Some(&item.ident), &item.attrs),
            Item::Type(item) => (Some(&item.ident), &item.attrs),
            Item::Union(item) => (Some(&item.ident), &item.attrs),
            Item::Impl(item) => (None, &item.attrs),
            Item::Mod(item) => (None, &item.attrs),
            Item::Use(item) => (None, &item.attrs),
            _ => return visit::visit_item(self, item),
        };
        if !is_for_tests(attributes) {
            self.defines.extend(name.map(ToString::to_string));
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let attributes = match item {
            ImplItem::Const(item) => &item.attrs,
            ImplItem::Fn(item) => &item.attrs,
            ImplItem::Type(item) => &item.attrs,
            _ => return visit::visit_impl_item(self, item),
        };
        if !is_for_tests(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.import(&item.tree, Vec::new(), !matches!(item.vis, Visibility::Inherited));
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        self.inline_depth += 1;
        visit::visit_item_mod(self, item);
        self.inline_depth -= 1;
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.name_item(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if let Expr::Path(function) = &*call.func
            && let Some(name) = function.path.get_ident()
        {
            self.name(vec![name.to_string()]);
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        self.tokens(called.tokens.clone());
        visit::visit_macro(self, called);
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if let Meta::List(list) = &attribute.meta {
            self.tokens(list.tokens.clone());
        }
    }
}

/// Whether the attributes have `cfg(test)` or `cfg(all(test, …))`.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).any(|attribute| {
        attribute.meta.require_list().is_ok_and(|list| {
            let condition = list.tokens.to_string().replace(' ', "");
            condition == "test" || condition.starts_with("all(test,")
        })
    })
}
