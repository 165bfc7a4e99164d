//! The public examples: one manifest a file, Markdown with frontmatter or YAML.

use std::path::Path;

use quorate_manifest::capabilities::NoCapabilities;
use quorate_manifest::doctype::Doctype;
use quorate_manifest::loader::{Loader, OpenResult, Options};
use quorate_manifest::workspace::{Memory, WorkspacePath};
use serde_json::Value;

/// A file.
pub(crate) struct Example {
    /// Its path from the folder of examples.
    pub(crate) name: String,
    text: String,
}

/// Every file below a folder.
pub(crate) fn read(folder: &Path) -> Vec<Example> {
    let mut found = Vec::new();
    below(folder, folder, &mut found);
    found
}

fn below(root: &Path, folder: &Path, found: &mut Vec<Example>) {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.expect("an entry of a folder").path();
        if path.is_dir() {
            below(root, &path, found);
            continue;
        }
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
        found.push(Example { name, text });
    }
}

impl Example {
    /// The manifest, loaded like a user's file: it must have the doctype and no diagnostics.
    pub(crate) fn manifest(&self, doctype: Doctype) -> Value {
        let workspace = Memory::new().with(&self.name, self.text.clone());
        let loader = Loader::new(&workspace, &NoCapabilities, Options::default());
        let OpenResult::Document(document) = loader.open(&WorkspacePath::new(&self.name).expect("a path"))
        else {
            panic!("{}: unknown document type", self.name);
        };
        assert_eq!(document.doctype, doctype, "{}", self.name);
        assert!(document.report.is_empty(), "{}: {:?}", self.name, document.report);
        document.root.to_json()
    }
}
