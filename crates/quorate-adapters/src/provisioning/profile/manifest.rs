//! Parses `profile.json` and checks it against the public form; it reports all problems at once, with their places.
//! Unknown keys at its root may belong to other programs and are ignored; an unknown key of a file is reported, since it
//! would have no effect.

use std::ops::Range;

use quorate_diagnostics::{Body, Place, Report, codes};
use quorate_kernel::ports::provisioning::{
    Destination, FileMode, MAX_FILES, PackageError, Strategy, is_slug,
};
use quorate_manifest::tree::{Kind, Node, json};

use super::check_relative_path;
use crate::block::{nearest, quoted_list};

/// The only supported schema.
const SCHEMA: &str = "agentproto/runtime-profile/v1";

const KEYS: &[&str] = &["src", "dest", "strategy", "executable"];

#[derive(Default)]
pub(super) struct Manifest {
    pub(super) slug: String,
    pub(super) version: String,
    pub(super) files: Vec<File>,
}

pub(super) struct File {
    pub(super) src: String,
    pub(super) src_span: Range<usize>,
    pub(super) path: String,
    pub(super) dest: Destination,
    pub(super) strategy: Strategy,
    pub(super) mode: FileMode,
}

/// Reads a manifest. If it adds to the report, the result is incomplete.
pub(super) fn parse(text: &str, display_name: &str, report: &mut Report) -> Manifest {
    let mut parser = Parser { shown: display_name, report };
    let root = match json::parse(text) {
        Ok(root) => root,
        Err(problem) => {
            let mut body = Body::new(format!("this is not JSON: {}", problem.message));
            body.help = problem.help;
            parser.refuse(problem.span, "", body);
            return Manifest::default();
        }
    };
    if !matches!(root.kind, Kind::Map(_)) {
        parser.refuse(root.span.clone(), "", Body::new(format!("it is {}, not an object", root.kind.name())));
        return Manifest::default();
    }
    parser.schema(&root);
    let slug = parser.text(&root, "slug", "").unwrap_or_default();
    if !slug.is_empty() && !is_slug(&slug) {
        let span = root.key("slug").map_or(0..0, |node| node.span.clone());
        parser.refuse(span, "slug", Body::new(PackageError::Slug.to_string()));
    }
    let version = parser.text(&root, "version", "").unwrap_or_default();
    for key in ["name", "description"] {
        if let Some(node) = root.key(key).filter(|node| node.as_str().is_none()) {
            parser.refuse(node.span.clone(), key, wrong(key, "text", node));
        }
    }
    let files = parser.files(&root);
    Manifest { slug, version, files }
}

struct Parser<'r> {
    shown: &'r str,
    report: &'r mut Report,
}

impl Parser<'_> {
    fn place(&self, span: Range<usize>, path: &str) -> Place {
        Place { file: self.shown.into(), span, path: path.to_owned() }
    }

    fn refuse(&mut self, span: Range<usize>, path: &str, body: Body) {
        let place = self.place(span, path);
        self.report.refuse(codes::PROFILE_INVALID, body.at(place));
    }

    /// A string that is required and not empty.
    fn text(&mut self, object: &Node, key: &str, prefix: &str) -> Option<String> {
        let path = format!("{prefix}{key}");
        match object.key(key) {
            None => self.refuse(brace(object), &path, Body::new(format!("`{key}` is missing"))),
            Some(node) => match node.as_str() {
                Some(text) if !text.trim().is_empty() => return Some(text.to_owned()),
                Some(_) => self.refuse(node.span.clone(), &path, Body::new(format!("`{key}` is empty"))),
                None => self.refuse(node.span.clone(), &path, wrong(key, "text", node)),
            },
        }
        None
    }

    fn schema(&mut self, root: &Node) {
        if let Some(found) = self.text(root, "schema", "").filter(|found| found != SCHEMA) {
            let span = root.key("schema").map_or(0..0, |node| node.span.clone());
            let body = Body::new(format!("`{found}` is no schema of profiles that can be read here"));
            self.refuse(span, "schema", body.help(format!("the one that can is `{SCHEMA}`")));
        }
    }

    fn files(&mut self, root: &Node) -> Vec<File> {
        let Some(list) = root.key("files") else {
            self.refuse(brace(root), "files", Body::new("`files` is missing"));
            return Vec::new();
        };
        let Kind::Seq(items) = &list.kind else {
            self.refuse(list.span.clone(), "files", wrong("files", "a list", list));
            return Vec::new();
        };
        if items.is_empty() {
            let body = Body::new("`files` is empty, so nothing would be installed");
            let help = "what is installed already is taken out with `quorate provision uninstall`";
            self.refuse(list.span.clone(), "files", body.help(help));
        }
        if items.len() > MAX_FILES {
            let body = Body::new(format!("there are {} files, and {MAX_FILES} are the most", items.len()));
            self.refuse(list.span.start..list.span.start + 1, "files", body);
            return Vec::new();
        }
        let mut files: Vec<(File, Range<usize>)> = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let path = format!("files[{at}]");
            let Some(file) = self.file(item, &path) else { continue };
            let span = item.key("dest").map_or(0..0, |node| node.span.clone());
            match files.iter().find_map(|(first, span)| Some((file.dest.conflict(&first.dest)?, first, span)))
            {
                Some((why, first, first_span)) => {
                    let body = Body::new(format!("`{}` {why} as `{}`", file.dest, first.dest));
                    let related = self.place(first_span.clone(), "");
                    self.refuse(span, &format!("{path}.dest"), body.related(related, "first here"));
                }
                None => files.push((file, span)),
            }
        }
        files.into_iter().map(|(file, _)| file).collect()
    }

    fn file(&mut self, item: &Node, path: &str) -> Option<File> {
        let Kind::Map(entries) = &item.kind else {
            self.refuse(item.span.clone(), path, wrong(path, "an object", item));
            return None;
        };
        for entry in entries.iter().filter(|entry| !KEYS.contains(&entry.key.as_str())) {
            let mut body = Body::new(format!("`{}` of a file is not read here", entry.key))
                .at(self.place(entry.key_span.clone(), &format!("{path}.{}", entry.key)));
            body.help = nearest(&entry.key, KEYS).map(|near| format!("did you mean `{near}`?"));
            self.report.warn(codes::FIELD_WITHOUT_EFFECT, body);
        }
        let prefix = format!("{path}.");
        let src = self.text(item, "src", &prefix);
        let dest = self.text(item, "dest", &prefix);
        let strategy = self.strategy(item, path);
        let mode = self.mode(item, path);
        let src_span = item.key("src").map_or(0..0, |node| node.span.clone());
        let src = src.and_then(|src| match check_relative_path(&src) {
            Ok(src) => Some(src),
            Err(problem) => {
                self.refuse(src_span.clone(), &format!("{path}.src"), Body::new(format!("src {problem}")));
                None
            }
        });
        let dest = dest.and_then(|dest| match Destination::parse(&dest) {
            Ok(dest) if dest.is_in_git_dir() => {
                let span = item.key("dest").map_or(0..0, |node| node.span.clone());
                let body = Body::new(format!(
                    "dest `{dest}` lies in .git, which is Git's own: what is put there runs by itself"
                ));
                let help =
                    "install a script elsewhere, and have people set `core.hooksPath` or a hook of theirs";
                self.refuse(span, &format!("{path}.dest"), body.help(help));
                None
            }
            Ok(dest) => Some(dest),
            Err(problem) => {
                let span = item.key("dest").map_or(0..0, |node| node.span.clone());
                self.refuse(span, &format!("{path}.dest"), Body::new(format!("dest {problem}")));
                None
            }
        });
        Some(File {
            src: src?,
            src_span,
            path: format!("{path}.src"),
            dest: dest?,
            strategy: strategy?,
            mode: mode?,
        })
    }

    fn strategy(&mut self, item: &Node, path: &str) -> Option<Strategy> {
        let word = self.text(item, "strategy", &format!("{path}."))?;
        let strategy = Strategy::parse(&word);
        if strategy.is_none() {
            let words = Strategy::ALL.map(Strategy::as_str);
            let span = item.key("strategy").map_or(0..0, |node| node.span.clone());
            let body = Body::new(format!("there is no strategy `{word}`"));
            let help = format!("the strategies are {}", quoted_list(&words));
            self.refuse(span, &format!("{path}.strategy"), body.help(help));
        }
        strategy
    }

    fn mode(&mut self, item: &Node, path: &str) -> Option<FileMode> {
        match item.key("executable").map(|node| (&node.kind, node)) {
            None | Some((Kind::Bool(false), _)) => Some(FileMode::Plain),
            Some((Kind::Bool(true), _)) => Some(FileMode::Executable),
            Some((_, node)) => {
                let path = format!("{path}.executable");
                self.refuse(node.span.clone(), &path, wrong("executable", "true or false", node));
                None
            }
        }
    }
}

/// The place of an object's opening brace, for missing keys.
fn brace(node: &Node) -> Range<usize> {
    node.span.start..node.span.start + 1
}

fn wrong(key: &str, wanted: &str, found: &Node) -> Body {
    Body::new(format!("`{key}` is {}, not {wanted}", found.kind.name()))
}
