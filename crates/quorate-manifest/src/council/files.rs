//! The files that a council is made of: prompts and context documents, read through the source, each hashed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_diagnostics::codes::{self, RefusalCode};
use quorate_diagnostics::{Body, Report};

use super::prompts::{self, PREFIX};
use super::{ContextFile, Prompt};
use crate::decode::decode;
use crate::source::{Error, Source};
use crate::tree::open::sha256_hex;
use crate::tree::reader::nearest;
use crate::tree::{Field, Fields, Format, open};

/// Where a council is read from besides its own directory, as the host allows it.
#[derive(Clone, Copy)]
pub struct FileAccess<'s> {
    /// The directory in which context documents are looked for that do not lie beside the council.
    pub working_dir: Option<&'s Path>,
    /// Whether a document that was found there may be read.
    pub may_read: &'s dyn Fn(&Path) -> bool,
    /// Whether a path lies in the workspace once links are followed: what is wrong with a file of tier rules is told with
    /// its lines.
    pub is_in_workspace: &'s dyn Fn(&Path) -> bool,
}

impl FileAccess<'_> {
    /// A council that is read by itself.
    pub const NONE: FileAccess<'static> =
        FileAccess { working_dir: None, may_read: &|_| false, is_in_workspace: &|_| true };
}

/// Reads files that a council names and remembers their hashes.
pub(super) struct CouncilFiles<'s> {
    source: &'s dyn Source,
    dir: PathBuf,
    /// What the user calls the council's file.
    display_name: String,
    access: FileAccess<'s>,
    reports: Vec<Report>,
    texts: BTreeMap<String, Arc<str>>,
    hashes: Vec<(String, String)>,
}

/// The codes for one sort of file.
struct FileKind {
    label: &'static str,
    missing: RefusalCode,
    unreadable: RefusalCode,
    /// Whether the working directory is tried as well.
    tries_working_dir: bool,
}

const PROMPT: FileKind = FileKind {
    label: "prompt",
    missing: codes::PROMPT_MISSING,
    unreadable: codes::PROMPT_UNREADABLE,
    tries_working_dir: false,
};
const CONTEXT: FileKind = FileKind {
    label: "context document",
    missing: codes::CONTEXT_MISSING,
    unreadable: codes::CONTEXT_UNREADABLE,
    tries_working_dir: true,
};

impl<'s> CouncilFiles<'s> {
    pub(super) fn new(source: &'s dyn Source, dir: &Path, shown: &str, surroundings: FileAccess<'s>) -> Self {
        let (dir, shown) = (dir.to_path_buf(), shown.to_owned());
        CouncilFiles {
            source,
            dir,
            display_name: shown,
            access: surroundings,
            reports: Vec::new(),
            texts: BTreeMap::new(),
            hashes: Vec::new(),
        }
    }

    /// Remembers the hash of a file.
    pub(super) fn record_hash(&mut self, name: &str, sha256: String) {
        if !self.hashes.iter().any(|(known, _)| known == name) {
            self.hashes.push((name.to_owned(), sha256));
        }
    }

    /// The hashes, in the order in which files were first named, and what there is to say about files of tier rules.
    pub(super) fn finish(self) -> (Vec<(String, String)>, Vec<Report>) {
        (self.hashes, self.reports)
    }

    /// What a file of tier rules holds: what `read` makes of its keys.
    pub(super) fn tier_rules<T>(
        &mut self,
        field: &Field<'_>,
        read: impl FnOnce(Fields<'_>) -> T,
    ) -> Option<T> {
        let written = field.non_blank_text()?;
        let path = self.dir.join(written);
        if !(self.access.is_in_workspace)(&path) {
            let body = Body::new(format!("the tier rules `{written}` lie outside of the workspace"));
            field.refuse(codes::CONFIG_UNREADABLE, body.help("put them beside this file"));
            return None;
        }
        let display_path = Path::new(&self.display_name).with_file_name("").join(written);
        let display_name = display_path.strip_prefix("./").unwrap_or(&display_path).display().to_string();
        match open(self.source, &path, &display_name, Format::Yaml, codes::COUNCIL_INVALID) {
            Ok(opened) => {
                self.record_hash(written, opened.sha256.clone());
                let rules = opened.fields().map(read);
                self.reports.push(opened.source_file.into_report());
                rules
            }
            Err(_) => {
                let body = Body::new(format!("the tier rules `{written}` cannot be read"));
                field.refuse(
                    codes::CONFIG_MISSING,
                    body.help(format!("paths are relative to {}", self.display_dir())),
                );
                None
            }
        }
    }

    /// A prompt: a path, or `builtin:` and a name.
    pub(super) fn prompt(&mut self, field: &Field<'_>) -> Option<Prompt> {
        let written = field.non_blank_text()?;
        let Some(name) = written.strip_prefix(PREFIX) else {
            let text = self.text(field, written, &PROMPT)?;
            return Some(Prompt { path: Some(written.to_owned()), text });
        };
        let found = prompts::find(name);
        match &found {
            Some(prompt) => self.record_hash(written, sha256_hex(prompt.text.as_bytes())),
            None => {
                let names: Vec<_> = prompts::all().map(|(name, _)| name).collect();
                let help = match nearest(name, &names) {
                    Some(near) => format!("did you mean `{PREFIX}{near}`?"),
                    None => format!("the built-in prompts are: {}", names.join(", ")),
                };
                let body = Body::new(format!("there is no built-in prompt `{name}`")).help(help);
                field.refuse(codes::PROMPT_MISSING, body);
            }
        }
        found
    }

    pub(super) fn context(&mut self, field: &Field<'_>) -> Option<ContextFile> {
        let written = field.non_blank_text()?;
        let text = self.text(field, written, &CONTEXT)?;
        Some(ContextFile { path: written.to_owned(), text })
    }

    fn text(&mut self, field: &Field<'_>, written: &str, sort: &FileKind) -> Option<Arc<str>> {
        if let Some(text) = self.texts.get(written) {
            return Some(Arc::clone(text));
        }
        let label = sort.label;
        // By which name its hash is kept: what lies elsewhere is named by where it lies.
        let mut name = written.to_owned();
        let mut read = self.source.read(&self.dir.join(written));
        if let (Err(Error::Missing), Some(path)) = (&read, self.working_dir_path(written, sort)) {
            read = self.source.read(&path);
            name = path.display().to_string();
        }
        let bytes = match read {
            Ok(bytes) => bytes,
            Err(Error::Missing) => {
                let body = Body::new(format!("the {label} `{written}` is not there"));
                let from = match (sort.tries_working_dir, self.access.working_dir) {
                    (true, Some(_)) => "; in the workspace the working directory is tried, too",
                    _ => "",
                };
                let help = format!("paths are relative to {}{from}", self.display_dir());
                field.refuse(sort.missing, body.help(help));
                return None;
            }
            Err(error) => {
                field.refuse(
                    sort.unreadable,
                    Body::new(format!("the {label} `{written}` cannot be read: {error}")),
                );
                return None;
            }
        };
        let sha256 = sha256_hex(&bytes);
        let text = match decode(bytes) {
            Ok(text) => text,
            Err(error) => {
                field.refuse(
                    sort.unreadable,
                    Body::new(format!("the {label} `{written}` cannot be read: {error}")),
                );
                return None;
            }
        };
        if text.trim().is_empty() {
            field.refuse(sort.unreadable, Body::new(format!("the {label} `{written}` is empty")));
            return None;
        }
        self.record_hash(&name, sha256);
        let text: Arc<str> = text.into();
        self.texts.insert(written.to_owned(), Arc::clone(&text));
        Some(text)
    }

    /// Where a file is tried that is not beside the council.
    fn working_dir_path(&self, written: &str, sort: &FileKind) -> Option<PathBuf> {
        let path = self.access.working_dir.filter(|_| sort.tries_working_dir)?.join(written);
        (self.access.may_read)(&path).then_some(path)
    }

    fn display_dir(&self) -> String {
        match self.dir.to_string_lossy() {
            here if here == "." => "the directory of this file".to_owned(),
            dir => format!("`{dir}`, the directory of this file"),
        }
    }
}
