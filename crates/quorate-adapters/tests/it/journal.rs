//! The journal: the public format in both directions, writes that were cut off, people and other programs that change
//! it, and several processes.
mod concurrent_edits;
mod contents;
mod length;
mod model;
mod other_programs;
mod processes;
mod public_format;
mod torn;
mod warnings;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_adapters::default_registry;
use quorate_kernel::conversation::{NewTurn, Turn};
use quorate_kernel::ports::executor::ConfigError;
use quorate_kernel::ports::substrate::Substrate;
use quorate_testkit::conformance::build_adapter;
use quorate_testkit::conformance::substrate::read_all;
use serde_json::json;

/// A journal in a folder of its own.
struct Journal {
    dir: tempfile::TempDir,
}

impl Journal {
    fn new() -> Self {
        Journal { dir: tempfile::tempdir().expect("a folder") }
    }

    fn with_content(text: impl AsRef<[u8]>) -> Self {
        let journal = Journal::new();
        journal.write(text);
        journal
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("conversation.md")
    }

    fn sibling(&self, ending: &str) -> PathBuf {
        self.dir.path().join(format!("conversation.md{ending}"))
    }

    fn open(&self) -> Arc<dyn Substrate> {
        open(self.dir.path())
    }

    fn write(&self, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(), text).expect("a file");
    }

    fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.path()).expect("a file")
    }

    fn text(&self) -> String {
        String::from_utf8(self.bytes()).expect("UTF-8")
    }

    /// Adds to the end of the file, without a lock.
    fn add(&self, text: impl AsRef<[u8]>) {
        use std::io::Write as _;
        let file = std::fs::OpenOptions::new().append(true).create(true).open(self.path());
        file.expect("a file").write_all(text.as_ref()).expect("a file");
    }

    /// The turns that a new reader sees.
    async fn read_fresh(&self) -> Vec<Turn> {
        let copy = Journal::with_content(std::fs::read(self.path()).unwrap_or_default());
        read_all(&*copy.open(), 1_000).await
    }
}

fn open(dir: &Path) -> Arc<dyn Substrate> {
    try_open(dir).expect("a block that fits")
}

fn try_open(dir: &Path) -> Result<Arc<dyn Substrate>, ConfigError> {
    let new = default_registry().expect("no kind twice").substrates["file"].clone();
    let block = json!({"kind": "file", "path": "conversation.md", "sync": false});
    build_adapter(&new, dir, &block)
}

async fn append(substrate: &Arc<dyn Substrate>, turn: NewTurn) -> Turn {
    let appended = substrate.append(turn).await.expect("it can be appended");
    assert!(appended.fresh);
    appended.turn
}

async fn read_everything(substrate: &Arc<dyn Substrate>) -> Vec<Turn> {
    read_all(&**substrate, 1_000).await
}

fn contents(turns: &[Turn]) -> Vec<&str> {
    turns.iter().map(|turn| &*turn.content).collect()
}
