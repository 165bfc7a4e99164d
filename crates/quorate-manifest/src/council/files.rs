//! Reads and hashes the files that a council names: prompts, context documents and tier rules.

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

/// The files outside of the council's directory that the caller allows to read.
#[derive(Clone, Copy)]
pub struct FileAccess<'s> {
    /// Searched for context documents that are not beside the council.
    pub working_dir: Option<&'s Path>,
    /// Whether a document in `working_dir` may be read.
    pub may_read: &'s dyn Fn(&Path) -> bool,
    /// Whether a path is in the workspace after resolving links. Tier rules have to be, since diagnostics quote their lines.
    pub is_in_workspace: &'s dyn Fn(&Path) -> bool,
}

impl FileAccess<'_> {
    /// Only the council's directory.
    pub const NONE: FileAccess<'static> =
        FileAccess { working_dir: None, may_read: &|_| false, is_in_workspace: &|_| true };
}

/// Reads the files of one council, and collects their hashes.
pub(super) struct CouncilFiles<'s> {
    source: &'s dyn Source,
    dir: PathBuf,
    /// The council's path as messages show it.
    display_name: String,
    access: FileAccess<'s>,
    reports: Vec<Report>,
    texts: BTreeMap<String, Arc<str>>,
    hashes: Vec<(String, String)>,
}

/// Label and codes of one kind of file.
struct FileKind {
    label: &'static str,
    missing: RefusalCode,
    unreadable: RefusalCode,
    /// Whether the working directory is searched, too.
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
    pub(super) fn new(source: &'s dyn Source, dir: &Path, shown: &str, access: FileAccess<'s>) -> Self {
        let (dir, shown) = (dir.to_path_buf(), shown.to_owned());
        CouncilFiles {
            source,
            dir,
            display_name: shown,
            access,
            reports: Vec::new(),
            texts: BTreeMap::new(),
            hashes: Vec::new(),
        }
    }

    pub(super) fn record_hash(&mut self, name: &str, sha256: String) {
        if !self.hashes.iter().any(|(known, _)| known == name) {
            self.hashes.push((name.to_owned(), sha256));
        }
    }

    /// The hashes in the order of first use, and the diagnostics of tier rule files.
    pub(super) fn finish(self) -> (Vec<(String, String)>, Vec<Report>) {
        (self.hashes, self.reports)
    }

    /// Reads a file of tier rules; `read` converts its keys.
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

    /// Reads a prompt: a path, or `builtin:` and a name.
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

    fn text(&mut self, field: &Field<'_>, written: &str, kind: &FileKind) -> Option<Arc<str>> {
        if let Some(text) = self.texts.get(written) {
            return Some(Arc::clone(text));
        }
        let label = kind.label;
        // The hash of a file in the working directory is recorded under its full path.
        let mut name = written.to_owned();
        let mut read = self.source.read(&self.dir.join(written));
        if let (Err(Error::Missing), Some(path)) = (&read, self.working_dir_path(written, kind)) {
            read = self.source.read(&path);
            name = path.display().to_string();
        }
        let bytes = match read {
            Ok(bytes) => bytes,
            Err(Error::Missing) => {
                let body = Body::new(format!("the {label} `{written}` does not exist"));
                let also = match (kind.tries_working_dir, self.access.working_dir) {
                    (true, Some(_)) => "; in the workspace the working directory is tried, too",
                    _ => "",
                };
                let help = format!("paths are relative to {}{also}", self.display_dir());
                field.refuse(kind.missing, body.help(help));
                return None;
            }
            Err(error) => {
                field.refuse(
                    kind.unreadable,
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
                    kind.unreadable,
                    Body::new(format!("the {label} `{written}` cannot be read: {error}")),
                );
                return None;
            }
        };
        if text.trim().is_empty() {
            field.refuse(kind.unreadable, Body::new(format!("the {label} `{written}` is empty")));
            return None;
        }
        self.record_hash(&name, sha256);
        let text: Arc<str> = text.into();
        self.texts.insert(written.to_owned(), Arc::clone(&text));
        Some(text)
    }

    /// The path of a file in the working directory, if it may be read.
    fn working_dir_path(&self, written: &str, kind: &FileKind) -> Option<PathBuf> {
        let path = self.access.working_dir.filter(|_| kind.tries_working_dir)?.join(written);
        (self.access.may_read)(&path).then_some(path)
    }

    fn display_dir(&self) -> String {
        match self.dir.to_string_lossy() {
            here if here == "." => "the directory of this file".to_owned(),
            dir => format!("`{dir}`, the directory of this file"),
        }
    }
}
