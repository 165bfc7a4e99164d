//! The files that a council is made of: prompts and context documents, read through the source, each hashed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_diagnostics::Body;
use quorate_diagnostics::codes::{self, RefusalCode};

use super::prompts::{self, PREFIX};
use super::{ContextFile, Prompt};
use crate::decode::decode;
use crate::source::{Error, Source};
use crate::tree::Field;
use crate::tree::open::sha256_hex;
use crate::tree::reader::nearest;

/// Reads files that a council names and remembers their hashes.
pub(super) struct Files<'s> {
    source: &'s dyn Source,
    dir: PathBuf,
    texts: BTreeMap<String, Arc<str>>,
    hashes: Vec<(String, String)>,
}

/// The codes for one sort of file.
struct Sort {
    what: &'static str,
    missing: RefusalCode,
    unreadable: RefusalCode,
}

const PROMPT: Sort =
    Sort { what: "prompt", missing: codes::PROMPT_MISSING, unreadable: codes::PROMPT_UNREADABLE };
const CONTEXT: Sort =
    Sort { what: "context document", missing: codes::CONTEXT_MISSING, unreadable: codes::CONTEXT_UNREADABLE };

impl<'s> Files<'s> {
    pub(super) fn new(source: &'s dyn Source, dir: &Path) -> Self {
        Files { source, dir: dir.to_path_buf(), texts: BTreeMap::new(), hashes: Vec::new() }
    }

    /// Remembers the hash of a file.
    pub(super) fn note(&mut self, name: &str, sha256: String) {
        if !self.hashes.iter().any(|(known, _)| known == name) {
            self.hashes.push((name.to_owned(), sha256));
        }
    }

    /// The hashes, in the order in which files were first named.
    pub(super) fn finish(self) -> Vec<(String, String)> {
        self.hashes
    }

    /// A prompt: a path, or `builtin:` and a name.
    pub(super) fn prompt(&mut self, field: &Field<'_>) -> Option<Prompt> {
        let written = field.some_text()?;
        let Some(name) = written.strip_prefix(PREFIX) else {
            let text = self.text(field, written, &PROMPT)?;
            return Some(Prompt { path: Some(written.to_owned()), text });
        };
        let found = prompts::find(name);
        match &found {
            Some(prompt) => self.note(written, sha256_hex(prompt.text.as_bytes())),
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

    /// A context document.
    pub(super) fn context(&mut self, field: &Field<'_>) -> Option<ContextFile> {
        let written = field.some_text()?;
        let text = self.text(field, written, &CONTEXT)?;
        Some(ContextFile { path: written.to_owned(), text })
    }

    fn text(&mut self, field: &Field<'_>, written: &str, sort: &Sort) -> Option<Arc<str>> {
        if let Some(text) = self.texts.get(written) {
            return Some(Arc::clone(text));
        }
        let what = sort.what;
        let path = self.dir.join(written);
        let bytes = match self.source.read(&path) {
            Ok(bytes) => bytes,
            Err(Error::Missing) => {
                let body = Body::new(format!("the {what} `{written}` is not there"));
                field.refuse(sort.missing, body.help(format!("paths are relative to {}", self.shown_dir())));
                return None;
            }
            Err(error) => {
                field.refuse(
                    sort.unreadable,
                    Body::new(format!("the {what} `{written}` cannot be read: {error}")),
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
                    Body::new(format!("the {what} `{written}` cannot be read: {error}")),
                );
                return None;
            }
        };
        if text.trim().is_empty() {
            field.refuse(sort.unreadable, Body::new(format!("the {what} `{written}` is empty")));
            return None;
        }
        self.note(written, sha256);
        let text: Arc<str> = text.into();
        self.texts.insert(written.to_owned(), Arc::clone(&text));
        Some(text)
    }

    fn shown_dir(&self) -> String {
        match self.dir.to_string_lossy() {
            here if here == "." => "the directory of this file".to_owned(),
            dir => format!("`{dir}`, the directory of this file"),
        }
    }
}
