//! Modules that use each other in a circle.
//!
//! A module is a file. It uses another one if it names an item that is defined there; a re-export is followed to the
//! definition, and is no use by itself. What a module takes from its ancestors does not count: types in the parent and
//! details in its children are one whole.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, File, Item, ItemMod, ItemUse, Macro, UseTree, Visibility};

use super::Source;

/// How many re-exports are followed.
const MAX_HOPS: usize = 8;

/// The path of a module from its crate's root: `store::queue`; the root's is empty.
type Path = Vec<String>;

pub(super) fn check(sources: &[Source]) -> Vec<String> {
    let mut crates: BTreeMap<&str, Vec<(Path, &str)>> = BTreeMap::new();
    for source in sources {
        let Some((name, file)) = source.path.split_once("/src/") else { continue };
        let path = module_path(file);
        if !path.iter().any(|part| part == "tests") {
            crates.entry(name).or_default().push((path, source.without_tests()));
        }
    }
    let complaint = |name: &str, circle: Vec<String>| {
        format!("{name}: these modules use each other in a circle:\n    {}", circle.join("\n    "))
    };
    crates
        .into_iter()
        .flat_map(|(name, files)| circles(&files).into_iter().map(move |circle| complaint(name, circle)))
        .collect()
}

fn module_path(file: &str) -> Path {
    let file = file.trim_end_matches(".rs");
    let parts = file.split('/').filter(|part| !matches!(*part, "lib" | "main" | "mod"));
    parts.map(str::to_owned).collect()
}

/// What a file defines and names.
#[derive(Default)]
struct Module {
    defines: BTreeSet<String>,
    /// The names that it imports, each with its path and whether it is a re-export.
    imports: Vec<(String, Path, bool)>,
    /// Paths of two or more names in its code.
    names: Vec<Path>,
}

/// The circles of a crate: for each module of one, whom it uses and for what.
fn circles(files: &[(Path, &str)]) -> Vec<Vec<String>> {
    let modules: HashMap<Path, Module> = files
        .iter()
        .filter_map(|(path, text)| Some((path.clone(), Module::read(&syn::parse_file(text).ok()?))))
        .collect();
    let graph = Graph { modules };
    let mut uses: BTreeMap<&Path, BTreeMap<Path, BTreeSet<String>>> = BTreeMap::new();
    for path in graph.modules.keys() {
        uses.insert(path, graph.uses_of(path));
    }
    components(&uses)
        .into_iter()
        .map(|circle| {
            let line = |path: &&Path| {
                let used = uses[*path].iter().filter(|(other, _)| circle.contains(other));
                let used = used.map(|(other, names)| {
                    let names: Vec<&str> = names.iter().map(String::as_str).collect();
                    format!("{} ({})", other.join("::"), names.join(", "))
                });
                format!("{} -> {}", path.join("::"), used.collect::<Vec<_>>().join("; "))
            };
            circle.iter().map(line).collect()
        })
        .collect()
}

struct Graph {
    modules: HashMap<Path, Module>,
}

impl Graph {
    fn uses_of(&self, path: &Path) -> BTreeMap<Path, BTreeSet<String>> {
        let module = &self.modules[path];
        let mut uses: BTreeMap<Path, BTreeSet<String>> = BTreeMap::new();
        let mut used = |target: Option<Path>, name: &str| {
            if let Some(target) = target.filter(|target| !target.is_empty() && !path.starts_with(target)) {
                uses.entry(target).or_default().insert(name.to_owned());
            }
        };
        let mut modules: HashMap<&str, Path> = HashMap::new();
        for (name, import, is_reexport) in &module.imports {
            let Some(absolute) = self.absolute(path, import) else { continue };
            if self.modules.contains_key(&absolute) {
                // Only what is named through it is used.
                modules.insert(name, absolute);
            } else if !is_reexport {
                used(self.definition(&absolute, 0), name);
            }
        }
        for named in &module.names {
            let absolute = match modules.get(named[0].as_str()) {
                Some(imported) => Some([imported, &named[1..]].concat()),
                None => self.absolute(path, named),
            };
            used(absolute.and_then(|absolute| self.definition(&absolute, 0)), &named.join("::"));
        }
        uses
    }

    /// A path from the crate's root; `None` where it leads out of the crate.
    fn absolute(&self, from: &[String], path: &[String]) -> Option<Path> {
        let mut base = from.to_vec();
        match path.first()?.as_str() {
            "crate" => Some(path[1..].to_vec()),
            "self" | "super" => {
                let ups = path.iter().take_while(|name| *name == "super" || *name == "self");
                ups.clone().filter(|name| *name == "super").for_each(|_| drop(base.pop()));
                base.extend_from_slice(&path[ups.count()..]);
                Some(base)
            }
            child => {
                base.push(child.to_owned());
                let is_child = self.modules.contains_key(&base);
                base.extend_from_slice(&path[1..]);
                is_child.then_some(base)
            }
        }
    }

    /// The module that defines what an absolute path names.
    fn definition(&self, path: &[String], hops: usize) -> Option<Path> {
        let depth = (0..=path.len()).rev().find(|depth| self.modules.contains_key(&path[..*depth]))?;
        let (at, rest) = path.split_at(depth);
        let module = &self.modules[at];
        let Some(name) = rest.first() else { return Some(at.to_vec()) };
        if module.defines.contains(name) || hops == MAX_HOPS {
            return Some(at.to_vec());
        }
        let next = |import: &Path, rest: &[String]| {
            let absolute = self.absolute(at, import)?;
            self.definition(&[&absolute, rest].concat(), hops + 1)
        };
        if let Some((_, import, _)) = module.imports.iter().find(|(imported, ..)| imported == name) {
            return next(import, &rest[1..]);
        }
        let mut globs = module.imports.iter().filter(|(imported, ..)| imported == "*");
        globs.find_map(|(_, import, _)| next(import, rest)).or_else(|| Some(at.to_vec()))
    }
}

impl Module {
    fn read(file: &File) -> Module {
        let mut module = Module::default();
        module.visit_file(file);
        module
    }

    fn import(&mut self, tree: &UseTree, mut path: Path, is_reexport: bool) {
        match tree {
            UseTree::Path(step) => {
                path.push(step.ident.to_string());
                self.import(&step.tree, path, is_reexport);
            }
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.import(tree, path.clone(), is_reexport));
            }
            UseTree::Glob(_) => self.imports.push(("*".to_owned(), path, is_reexport)),
            UseTree::Name(name) if name.ident == "self" => {
                self.imports.push((path.last().cloned().unwrap_or_default(), path, is_reexport));
            }
            UseTree::Name(name) => {
                path.push(name.ident.to_string());
                self.imports.push((name.ident.to_string(), path, is_reexport));
            }
            UseTree::Rename(rename) => {
                if rename.ident != "self" {
                    path.push(rename.ident.to_string());
                }
                self.imports.push((rename.rename.to_string(), path, is_reexport));
            }
        }
    }

    /// The paths in the tokens of a macro's arguments.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Path = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.name(std::mem::take(&mut path));
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                other => {
                    self.name(std::mem::take(&mut path));
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.tokens(group.stream());
                    }
                }
            }
        }
        self.name(path);
    }

    fn name(&mut self, path: Path) {
        if path.len() > 1 {
            self.names.push(path);
        }
    }
}

impl<'ast> Visit<'ast> for Module {
    fn visit_item(&mut self, item: &'ast Item) {
        let (name, attributes) = match item {
            Item::Const(item) => (Some(&item.ident), &item.attrs),
            Item::Enum(item) => (Some(&item.ident), &item.attrs),
            Item::Fn(item) => (Some(&item.sig.ident), &item.attrs),
            Item::Macro(item) => (item.ident.as_ref(), &item.attrs),
            Item::Static(item) => (Some(&item.ident), &item.attrs),
            Item::Struct(item) => (Some(&item.ident), &item.attrs),
            Item::Trait(item) => (Some(&item.ident), &item.attrs),
            Item::Type(item) => (Some(&item.ident), &item.attrs),
            Item::Impl(item) => (None, &item.attrs),
            _ => return visit::visit_item(self, item),
        };
        if !is_for_tests(attributes) {
            self.defines.extend(name.map(ToString::to_string));
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if !is_for_tests(&item.attrs) {
            self.import(&item.tree, Vec::new(), !matches!(item.vis, Visibility::Inherited));
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.name(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        self.tokens(called.tokens.clone());
        visit::visit_macro(self, called);
    }
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "test")
    })
}

/// The strongly connected components of more than one module: those that reach each other.
fn components<'g>(uses: &BTreeMap<&'g Path, BTreeMap<Path, BTreeSet<String>>>) -> Vec<Vec<&'g Path>> {
    let reach = |from: &Path| {
        let mut reached: BTreeSet<&'g Path> = BTreeSet::new();
        let mut open = vec![from.clone()];
        while let Some(path) = open.pop() {
            for next in uses.get(&path).into_iter().flatten().map(|(next, _)| next) {
                if let Some((known, _)) = uses.get_key_value(next)
                    && reached.insert(*known)
                {
                    open.push(next.clone());
                }
            }
        }
        reached
    };
    let reached: BTreeMap<&Path, BTreeSet<&Path>> = uses.keys().map(|path| (*path, reach(path))).collect();
    let mut circles: BTreeSet<Vec<&'g Path>> = BTreeSet::new();
    for (path, all) in &reached {
        let circle: Vec<&Path> = all.iter().copied().filter(|other| reached[other].contains(path)).collect();
        if circle.len() > 1 {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let files: Vec<(Path, &str)> = files.iter().map(|(file, text)| (module_path(file), *text)).collect();
        circles(&files)
    }

    #[test]
    fn two_files_that_use_each_other_are_a_circle() {
        let found = circles_of(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::B; pub struct A;"),
            ("b.rs", "use super::a; pub struct B; fn f() { println!(\"{:?}\", a::A) }"),
        ]);
        assert_eq!(found, [["a -> b (B)", "b -> a (a::A)"]]);
    }

    #[test]
    fn what_an_ancestor_defines_may_be_used_below_it() {
        let found = circles_of(&[
            ("a.rs", "mod b; pub struct A; fn f() { b::g() }"),
            ("a/b.rs", "use super::A; pub fn g() -> A { A }"),
        ]);
        assert_eq!(found, Vec::<Vec<String>>::new());
    }

    #[test]
    fn a_reexport_is_followed_and_is_no_use_by_itself() {
        let face = ("a.rs", "mod b; mod c; pub use c::C; pub use b::B;");
        let one_way = [face, ("a/b.rs", "pub struct B;"), ("a/c.rs", "use super::B; pub struct C;")];
        assert_eq!(circles_of(&one_way), Vec::<Vec<String>>::new());
        let both =
            [face, ("a/b.rs", "use crate::a::C; pub struct B;"), ("a/c.rs", "use super::B; pub struct C;")];
        assert_eq!(circles_of(&both), [["a::b -> a::c (C)", "a::c -> a::b (B)"]]);
    }

    #[test]
    fn tests_do_not_count() {
        let found = circles_of(&[
            ("a.rs", "pub struct A; #[cfg(test)] mod tests { use crate::b::B; }"),
            ("b.rs", "use crate::a::A; pub struct B;"),
        ]);
        assert_eq!(found, Vec::<Vec<String>>::new());
    }
}
