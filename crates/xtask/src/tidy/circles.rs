//! Modules that use each other in a circle.
//!
//! A module is a file. It uses another one if it names an item that is defined there; a re-export is followed to the
//! definition, and does not count as a use by itself. Uses of ancestors do not count: types in the parent and
//! details in its children are one whole. Tests do not count, nor does the crate's root. Files are read as tokens, so that a
//! local name may be taken for an item of the same name.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use proc_macro2::{Delimiter, LexError, TokenStream, TokenTree};

use super::Source;

/// How many re-exports are followed.
const MAX_HOPS: usize = 8;

/// The benchmarks: a crate without a `src` folder.
const BENCHMARKS: &str = "benches/limits";

/// The path of a module from its crate's root: `store::queue`; the root's is empty.
type Path = Vec<String>;

pub(super) fn check(sources: &[Source]) -> Vec<String> {
    let files: Vec<File<'_>> = sources.iter().filter_map(File::of).collect();
    let mut complaints = Vec::new();
    let mut crates: BTreeMap<&str, HashMap<Path, Module>> = BTreeMap::new();
    for file in &files {
        match Module::parse(&file.source.text) {
            Ok(module) => {
                crates.entry(file.crate_dir).or_default().insert(file.module.clone(), module);
            }
            Err(error) => {
                complaints.push(format!("{}: cannot look for circles: {error}", file.source.path));
            }
        }
    }
    for (name, modules) in crates {
        complaints.extend(Graph::new(modules).circles().into_iter().map(|circle| {
            format!("{name}: these modules use each other in a circle:\n    {}", circle.join("\n    "))
        }));
    }
    complaints
}

/// A file of a crate that is not named as one of tests.
struct File<'s> {
    crate_dir: &'s str,
    module: Path,
    source: &'s Source,
}

impl File<'_> {
    fn of(source: &Source) -> Option<File<'_>> {
        let (crate_dir, file) = match source.path.strip_prefix(BENCHMARKS) {
            Some(file) => (BENCHMARKS, file.trim_start_matches('/')),
            None => source.path.split_once("/src/")?,
        };
        let module = module_path(file);
        let is_test = module.iter().any(|part| part == "tests" || part.ends_with("_tests"));
        (!is_test).then_some(File { crate_dir, module, source })
    }
}

fn module_path(file: &str) -> Path {
    let path = file.trim_end_matches(".rs");
    if matches!(path, "lib" | "main") {
        return Vec::new();
    }
    path.trim_end_matches("/mod").split('/').map(str::to_owned).collect()
}

/// The modules of one crate.
struct Graph {
    modules: HashMap<Path, Module>,
}

impl Graph {
    /// Without the files that a parent declares for tests only, and what is below them.
    fn new(mut modules: HashMap<Path, Module>) -> Graph {
        let child = |path: &Path, name: &String| path.iter().chain([name]).cloned().collect();
        let for_tests: Vec<Path> = modules
            .iter()
            .flat_map(|(path, module)| module.test_children.iter().map(move |name| child(path, name)))
            .collect();
        modules.retain(|path, _| !for_tests.iter().any(|test| path.starts_with(test)));
        Graph { modules }
    }

    /// For each circle and each module of it: which others of the circle it uses, and for what.
    fn circles(&self) -> Vec<Vec<String>> {
        let uses: BTreeMap<&Path, BTreeMap<Path, BTreeSet<String>>> =
            self.modules.keys().map(|path| (path, self.uses_of(path))).collect();
        let line = |path: &Path, circle: &[&Path]| {
            let used = uses[path].iter().filter(|(other, _)| circle.contains(other));
            let used = used.map(|(other, names)| {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                format!("{} ({})", other.join("::"), names.join(", "))
            });
            format!("{} -> {}", path.join("::"), used.collect::<Vec<_>>().join("; "))
        };
        let lines = |circle: Vec<&Path>| circle.iter().map(|path| line(path, &circle)).collect();
        components(&uses).into_iter().map(lines).collect()
    }

    fn uses_of(&self, path: &Path) -> BTreeMap<Path, BTreeSet<String>> {
        let module = &self.modules[path];
        let mut uses: BTreeMap<Path, BTreeSet<String>> = BTreeMap::new();
        let mut used = |target: Option<Path>, name: &str| {
            if let Some(target) = target.filter(|target| !target.is_empty() && !path.starts_with(target)) {
                uses.entry(target).or_default().insert(name.to_owned());
            }
        };
        // An imported module, a glob or a re-export uses only the items that are named through it.
        let mut named_through: HashMap<&str, Path> = HashMap::new();
        let mut globs = Vec::new();
        for Import { name, path: import, is_reexport } in &module.imports {
            let Some(absolute) = self.absolute(path, import) else { continue };
            let is_module = self.modules.contains_key(&absolute);
            if name == "*" && is_module {
                globs.push(absolute);
            } else if is_module || *is_reexport {
                named_through.insert(name, absolute);
            } else {
                used(self.definition(&absolute), name);
            }
        }
        for named in &module.names {
            let (first, rest) = (&named[0], &named[1..]);
            let target = if let Some(import) = named_through.get(first.as_str()) {
                self.definition(&[import, rest].concat())
            } else if let Some(absolute) = self.absolute(path, named).filter(|_| !rest.is_empty()) {
                self.definition(&absolute)
            } else if module.defines.contains(first) {
                None
            } else {
                let through = |glob: &Path| self.find(&[&glob[..], named].concat(), Unknown::IsElsewhere, 0);
                globs.iter().find_map(through)
            };
            used(target, &named.join("::"));
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

    /// The module that defines what an absolute path names; `None` if that is another crate.
    fn definition(&self, path: &[String]) -> Option<Path> {
        self.find(path, Unknown::IsDefinedHere, 0)
    }

    fn find(&self, path: &[String], unknown: Unknown, hops: usize) -> Option<Path> {
        let depth = (0..=path.len()).rev().find(|depth| self.modules.contains_key(&path[..*depth]))?;
        let (at, rest) = path.split_at(depth);
        let module = &self.modules[at];
        let Some(name) = rest.first() else { return Some(at.to_vec()) };
        if module.defines.contains(name) || hops == MAX_HOPS {
            return Some(at.to_vec());
        }
        let next = |import: &Import, rest: &[String], unknown| {
            let absolute = self.absolute(at, &import.path)?;
            self.find(&[&absolute, rest].concat(), unknown, hops + 1)
        };
        if module.imported_as(name).next().is_some() {
            return module.imported_as(name).find_map(|import| next(import, &rest[1..], unknown));
        }
        module
            .imported_as("*")
            .find_map(|import| next(import, rest, Unknown::IsElsewhere))
            .or_else(|| (unknown == Unknown::IsDefinedHere).then(|| at.to_vec()))
    }
}

/// What to make of a name of which a module's text shows no definition.
#[derive(Clone, Copy, PartialEq)]
enum Unknown {
    /// A macro defines it.
    IsDefinedHere,
    /// The name may come from another glob.
    IsElsewhere,
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

#[derive(Default)]
struct Module {
    defines: BTreeSet<String>,
    imports: Vec<Import>,
    /// The paths in its code. A path of one name is a type, a constant or a called function.
    names: BTreeSet<Path>,
    /// Its child files that are compiled for tests only.
    test_children: BTreeSet<String>,
}

struct Import {
    /// `*` for a glob.
    name: String,
    path: Path,
    is_reexport: bool,
}

/// Where tokens are read.
#[derive(Clone, Copy)]
struct Place {
    /// How many inline modules enclose them.
    inline_depth: usize,
    /// Whether they are the items of a module.
    has_items: bool,
}

/// Words before the name of an item.
const ITEMS: [&str; 8] = ["const", "enum", "fn", "static", "struct", "trait", "type", "union"];

impl Module {
    fn parse(text: &str) -> Result<Module, LexError> {
        let mut module = Module::default();
        module.read(text.parse()?, Place { inline_depth: 0, has_items: true });
        Ok(module)
    }

    fn imported_as(&self, name: &str) -> impl Iterator<Item = &Import> {
        self.imports.iter().filter(move |import| import.name == name)
    }

    fn read(&mut self, tokens: TokenStream, place: Place) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at..] {
                [TokenTree::Punct(mark), TokenTree::Group(attribute), rest @ ..]
                    if mark.as_char() == '#' && is_for_tests(&attribute.to_string()) =>
                {
                    let item = rest.iter().position(ends_item).map_or(rest.len(), |end| end + 1);
                    if let [.., TokenTree::Ident(word), TokenTree::Ident(name), TokenTree::Punct(_)] =
                        &rest[..item]
                        && word == "mod"
                    {
                        self.test_children.insert(name.to_string());
                    }
                    at += 2 + item;
                }
                [TokenTree::Ident(word), rest @ ..] if word == "use" => {
                    // A tree may end in a group of its own.
                    let is_group = |token: &TokenTree| matches!(token, TokenTree::Group(_));
                    let end = rest
                        .iter()
                        .position(ends_item)
                        .map_or(rest.len(), |end| end + usize::from(is_group(&rest[end])));
                    let is_reexport = match &tokens[..at] {
                        [.., TokenTree::Ident(before)] => before == "pub",
                        [.., TokenTree::Group(scope)] => scope.delimiter() == Delimiter::Parenthesis,
                        _ => false,
                    };
                    self.import(&rest[..end], Vec::new(), is_reexport, place);
                    at += 1 + end;
                }
                [TokenTree::Ident(word), TokenTree::Ident(_), TokenTree::Group(body), ..]
                    if word == "mod" =>
                {
                    let inline_depth = place.inline_depth + 1;
                    self.read(body.stream(), Place { inline_depth, ..place });
                    at += 3;
                }
                [TokenTree::Ident(word), TokenTree::Ident(name), ..]
                    if ITEMS.iter().any(|item| word == item) =>
                {
                    if place.has_items {
                        self.defines.insert(name.to_string());
                    }
                    at += 2;
                }
                [TokenTree::Ident(_), ..] => at += self.name(&tokens[at..], place),
                [TokenTree::Group(group), ..] => {
                    self.read(group.stream(), Place { has_items: false, ..place });
                    at += 1;
                }
                _ => at += 1,
            }
        }
    }

    fn import(&mut self, tree: &[TokenTree], mut path: Path, is_reexport: bool, place: Place) {
        let mut name = None;
        for token in tree {
            match token {
                TokenTree::Ident(word) if word == "as" => name = Some(String::new()),
                TokenTree::Ident(word) if name.is_some() => name = Some(word.to_string()),
                TokenTree::Ident(word) => path.push(word.to_string()),
                TokenTree::Punct(mark) if mark.as_char() == '*' => name = Some("*".to_owned()),
                TokenTree::Group(group) => {
                    let trees: Vec<TokenTree> = group.stream().into_iter().collect();
                    let trees = trees.split(|token| token.to_string() == ",").filter(|tree| !tree.is_empty());
                    return trees.for_each(|tree| self.import(tree, path.clone(), is_reexport, place));
                }
                _ => {}
            }
        }
        path.pop_if(|last| last == "self");
        let name = name.or_else(|| path.last().cloned()).unwrap_or_default();
        if let Some(path) = at_top_level(path, place) {
            self.imports.push(Import { name, path, is_reexport });
        }
    }

    /// Reads the path that the tokens begin with, and returns its length. One of a single name counts only if it cannot be a
    /// local variable.
    fn name(&mut self, tokens: &[TokenTree], place: Place) -> usize {
        let is_colon = |token: &TokenTree| matches!(token, TokenTree::Punct(mark) if mark.as_char() == ':');
        let steps = tokens[1..].chunks_exact(3).take_while(|step| {
            is_colon(&step[0]) && is_colon(&step[1]) && matches!(step[2], TokenTree::Ident(_))
        });
        let path: Path =
            tokens.iter().take(1).chain(steps.map(|step| &step[2])).map(ToString::to_string).collect();
        let length = 3 * path.len() - 2;
        let is_called = matches!(tokens.get(length), Some(TokenTree::Group(call)) if call.delimiter() == Delimiter::Parenthesis);
        if path.len() > 1 || is_called || path[0].starts_with(char::is_uppercase) {
            self.names.extend(at_top_level(path, place));
        }
        length
    }
}

/// A path as the file's top level would write it; `None` if it stays inside an inline module.
fn at_top_level(path: Path, place: Place) -> Option<Path> {
    let (depth, ups) = (place.inline_depth, path.iter().take_while(|name| *name == "super").count());
    if depth == 0 || (ups == 0 && path.first().is_some_and(|first| first != "self")) {
        return Some(path);
    }
    let outer = path.get(depth..).filter(|_| ups >= depth)?;
    let start = (ups == depth).then(|| "self".to_owned());
    Some(start.into_iter().chain(outer.iter().cloned()).collect())
}

/// Whether an item ends with a token.
fn ends_item(token: &TokenTree) -> bool {
    match token {
        TokenTree::Punct(mark) => mark.as_char() == ';',
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        _ => false,
    }
}

/// Whether an attribute is `cfg(test)` or `cfg(all(test, …))`.
fn is_for_tests(attribute: &str) -> bool {
    let attribute = attribute.replace(' ', "");
    attribute == "[cfg(test)]" || attribute.starts_with("[cfg(all(test,")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The circles of a crate that consists of these files.
    fn circles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let parse = |(file, text): &(&str, &str)| (module_path(file), Module::parse(text).unwrap());
        Graph::new(files.iter().map(parse).collect()).circles()
    }

    const NONE: [[&str; 0]; 0] = [];
    /// The other half of a circle with a file `a.rs`.
    const B_USES_A: (&str, &str) = ("b.rs", "use crate::a::A; pub struct B;");

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
    fn a_longer_way_round_is_a_circle_without_those_who_only_watch() {
        let found = circles_of(&[
            ("a.rs", "use crate::b::B; pub struct A;"),
            ("b.rs", "use crate::c::C; pub struct B;"),
            ("c.rs", "use crate::a::A; use crate::d::D; pub struct C;"),
            ("d.rs", "pub struct D;"),
            ("e.rs", "use crate::a::A;"),
        ]);
        assert_eq!(found, [["a -> b (B)", "b -> c (C)", "c -> a (A)"]]);
    }

    #[test]
    fn what_an_ancestor_defines_may_be_used_below_it() {
        let found = circles_of(&[
            ("a.rs", "mod b; pub struct A; fn f() { b::g() }"),
            ("a/b.rs", "use super::A; pub fn g() -> A { A }"),
        ]);
        assert_eq!(found, NONE);
    }

    #[test]
    fn a_reexport_is_followed_and_is_no_use_by_itself() {
        let face = ("a.rs", "mod b; mod c; pub use c::C; pub use b::B;");
        let one_way = [face, ("a/b.rs", "pub struct B;"), ("a/c.rs", "use super::B; pub struct C;")];
        assert_eq!(circles_of(&one_way), NONE);
        let both =
            [face, ("a/b.rs", "use crate::a::C; pub struct B;"), ("a/c.rs", "use super::B; pub struct C;")];
        assert_eq!(circles_of(&both), [["a::b -> a::c (C)", "a::c -> a::b (B)"]]);
    }

    #[test]
    fn a_reexport_of_another_crate_is_no_use() {
        let found = circles_of(&[
            ("a.rs", "pub use std::sync::Arc; use crate::b::B;"),
            ("b.rs", "use crate::a::Arc; pub struct B;"),
        ]);
        assert_eq!(found, NONE);
    }

    #[test]
    fn a_reexport_that_its_own_file_names_is_a_use() {
        for code in ["fn f(b: B) {}", "fn f() { B::new() }", "fn f() { make!(B) }"] {
            let a = format!("pub use crate::b::B; pub struct A; {code}");
            assert_eq!(circles_of(&[("a.rs", &a), B_USES_A]).len(), 1, "{code}");
        }
        let called = ("a.rs", "pub use crate::b::make; pub struct A; fn f() { make() }");
        assert_eq!(circles_of(&[called, ("b.rs", "use crate::a::A; pub fn make() {}")]).len(), 1);
    }

    #[test]
    fn a_glob_uses_what_is_named_through_it() {
        let named = ("a.rs", "use crate::b::*; pub struct A { b: B }");
        assert_eq!(circles_of(&[named, B_USES_A]), [["a -> b (B)", "b -> a (A)"]]);
        let unnamed = ("a.rs", "use crate::b::*; pub struct A { other: Other }");
        assert_eq!(circles_of(&[unnamed, B_USES_A]), NONE);
    }

    #[test]
    fn what_a_macro_defines_is_in_the_file_that_is_named() {
        let found = circles_of(&[
            ("a.rs", "use crate::b::Id; pub struct A;"),
            ("b.rs", "use crate::a::A; identifier!(Id);"),
        ]);
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn super_in_an_inline_module_is_the_file() {
        let sibling = ("a/b.rs", "use super::c::C; pub struct B;");
        let inner = ("a/c.rs", "pub struct C; mod inner { use super::super::b::B; }");
        assert_eq!(circles_of(&[("a.rs", ""), sibling, inner]).len(), 1);
        let own = ("a/c.rs", "pub struct C; mod b { pub struct B; } mod inner { use super::C; }");
        assert_eq!(circles_of(&[("a.rs", ""), sibling, own]), NONE);
    }

    #[test]
    fn tests_do_not_count() {
        for a in [
            "pub struct A; #[cfg(test)] mod tests { use crate::b::B; }",
            "pub struct A; #[cfg(all(test, unix))] mod tests { use crate::b::B; }",
            "pub struct A; #[cfg(test)] use crate::b::B;",
            "pub struct A; impl A { #[cfg(test)] fn b() -> crate::b::B { crate::b::B } }",
        ] {
            assert_eq!(circles_of(&[("a.rs", a), B_USES_A]), NONE, "{a}");
        }
        let fixture = ("a/fixture.rs", "use crate::b::B; pub struct F;");
        let b = ("b.rs", "use crate::a::fixture::F; pub struct B;");
        assert_eq!(circles_of(&[("a.rs", "#[cfg(test)] mod fixture;"), fixture, b]), NONE);
        assert_eq!(circles_of(&[("a.rs", "mod fixture;"), fixture, b]).len(), 1);
    }

    #[test]
    fn code_after_a_test_counts() {
        let a = ("a.rs", "#[cfg(test)] mod tests; use crate::b::B; pub struct A;");
        assert_eq!(circles_of(&[a, B_USES_A]).len(), 1);
    }

    #[test]
    fn each_crate_is_looked_at_alone_and_the_benchmarks_are_one() {
        let source = |path: &str, text: &str| Source { path: path.to_owned(), text: text.to_owned() };
        let found = check(&[
            source("crates/x/src/a.rs", "use crate::b::B; pub struct A;"),
            source("crates/y/src/b.rs", "use crate::a::A; pub struct B;"),
            source("benches/limits/a.rs", "use crate::b::B; pub struct A;"),
            source("benches/limits/b.rs", "use crate::a::A; pub struct B;"),
        ]);
        let expected =
            "benches/limits: these modules use each other in a circle:\n    a -> b (B)\n    b -> a (A)";
        assert_eq!(found, [expected]);
    }

    #[test]
    fn a_file_that_cannot_be_parsed_is_a_complaint() {
        let broken = Source { path: "crates/x/src/a.rs".to_owned(), text: "fn {".to_owned() };
        let found = check(&[broken]);
        assert!(found.len() == 1 && found[0].starts_with("crates/x/src/a.rs: cannot look"), "{found:?}");
    }
}
