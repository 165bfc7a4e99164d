//! Documents as tests: a heading is a test, fenced blocks with a file name are files, an `expect` block says every
//! diagnostic that loading them gives.
//!
//! ````markdown
//! # Council: rounds
//!
//! ```yaml council.yaml
//! adjudicator: {prompt: builtin:adjudicator}
//! ```
//!
//! ## Three rounds are too many
//!
//! ```yaml council.yaml above
//! protocol: {rounds: 3}
//! ```
//!
//! ```expect
//! refuses quorate:council_invalid at council.yaml:1 in protocol.rounds saying 1 or 2
//! refuses quorate:council_invalid at council.yaml:1 saying deliberators
//! ```
//! ````
//!
//! Files under the title are there in every test of the document. Words after the file name change what the block
//! stands for: `above` puts it on top of the shared file of that name, `crlf`, `bom` and `unterminated` (no last line
//! break) change its bytes, `escapes` reads `\xFF` and `\u{…}`, `times=N` repeats it, `unreadable` makes reading fail.
//!
//! A line of an `expect` block is `refuses CODE` or `warns CODE`, then as wanted `at FILE:LINE[:COLUMN]`,
//! `in FIELD.PATH`, `saying` a part of its message or help; or `clean`; or `loads FILE`, for a file that is not there.
//! What is expected and does not come fails, and so does what comes and is not expected.

mod document;
mod expect;
mod memory;

use std::path::{Path, PathBuf};

use quorate_diagnostics::{Report, codes, render};
use quorate_manifest::{Source, council, host};

pub use document::{Document, Test};
pub use expect::Expectation;
pub use memory::Memory;

/// How files of one name are loaded.
struct Loader {
    name: &'static str,
    load: fn(&Path, &str, &dyn Source) -> Report,
}

/// Every file that can be under test. Others are there to be read by these.
const LOADERS: [Loader; 2] = [
    Loader { name: "council.yaml", load: |path, shown, source| council::load(path, shown, source).report },
    Loader { name: "quorate.toml", load: |path, shown, source| host::load(path, shown, source).report },
];

/// Runs every document below a directory and gives the failures.
///
/// # Panics
/// When the directory cannot be read or holds no document.
pub fn run_dir(dir: &Path) -> Vec<String> {
    let paths = documents(dir);
    assert!(!paths.is_empty(), "no documents below {}", dir.display());
    paths.iter().flat_map(|path| run_file(path)).collect()
}

/// The documents below a directory, sorted.
///
/// # Panics
/// When a directory cannot be read.
#[expect(clippy::disallowed_methods, reason = "the documents are the runner's input")]
pub fn documents(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.unwrap_or_else(|error| panic!("{}: {error}", dir.display())).path();
        if path.is_dir() {
            found.extend(documents(&path));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Runs one document and gives the failures.
///
/// # Panics
/// When the file cannot be read.
#[expect(clippy::disallowed_methods, reason = "the documents are the runner's input")]
pub fn run_file(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    run(&path.display().to_string(), &text)
}

/// Runs a document's text and gives the failures, each with the document's name and a line.
pub fn run(name: &str, text: &str) -> Vec<String> {
    match Document::parse(text) {
        Err(problem) => vec![format!("{name}:{}: {}", problem.line, problem.message)],
        Ok(document) if document.tests.is_empty() => vec![format!("{name}:1: no test")],
        Ok(document) => document.tests.iter().flat_map(|test| run_test(name, test)).collect(),
    }
}

/// What loading the files of a page says. `None` where the page shows no file that can be loaded.
///
/// # Panics
/// When a block of the page cannot be understood.
pub fn example(page: &str) -> Option<Report> {
    let example =
        Test::example(page).unwrap_or_else(|problem| panic!("line {}: {}", problem.line, problem.message));
    load(&example)
}

/// Loads everything in a test that can be loaded.
fn load(test: &Test) -> Option<Report> {
    let mut report = None;
    for path in test.under_test() {
        let file = Path::new(path).file_name().unwrap_or_default();
        let Some(loader) = LOADERS.iter().find(|loader| file == loader.name) else { continue };
        let said = (loader.load)(Path::new(path), path, &test.files);
        report.get_or_insert_with(Report::new).absorb(said);
    }
    report
}

fn run_test(document: &str, test: &Test) -> Option<String> {
    let Some(report) = load(test) else {
        return Some(format!("{document}:{}: {}: no file that can be loaded", test.line, test.name));
    };
    let mut failures = expect::compare(&test.expected, &report);
    let unknown = test.expected.iter().filter(|expected| codes::explain(&expected.code).is_none());
    failures.extend(unknown.map(|expected| format!("there is no code {}", expected.code)));
    if failures.is_empty() {
        return None;
    }
    let said = render::concise(&report);
    Some(format!("{document}:{}: {}\n  {}\nall of it:\n{said}", test.line, test.name, failures.join("\n  ")))
}

#[cfg(test)]
mod tests;
