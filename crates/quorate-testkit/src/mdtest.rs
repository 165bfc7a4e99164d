//! Documents as tests: a heading is a test, fenced blocks with a file name are files, an `expect` block lists every
//! diagnostic of loading them.
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
//! Files under the title exist in every test of the document; together with the test's own they form a workspace, and all
//! of them are checked as `quorate check` checks a directory. Words after the file name modify the block: `above` puts it
//! on top of the shared file of that name (of its keys, if it has frontmatter), `above=FILE` on top of another shared file,
//! `crlf`, `bom` and `unterminated` (no last line break) change its bytes, `escapes` reads `\xFF`, `\u{…}` and `\{TEXT*N}`,
//! `times=N` repeats it, `unreadable` makes reading fail, `outside` makes it a link that leads out of its scope, `folder`
//! makes it an empty folder, and `named` checks the file as if the user had named it instead of the directory.
//!
//! A line of an `expect` block is `refuses CODE` or `warns CODE`, optionally followed by `at FILE:LINE[:COLUMN]`,
//! `in FIELD.PATH`, and `saying` a part of its message or help; or `clean`; or `loads FILE`, for a missing file; or
//! `passes over FILE`, for a file in the directory that is not a manifest. A missing diagnostic fails the test, and so does
//! an unexpected one. `expect no-refs` checks only the form of refs.
//!
//! A block `resolved FILE` lists values of an assembly or a persona with its chain merged, and the file of the chain that
//! each comes from:
//!
//! ````markdown
//! ```resolved view/ASSEMBLY.md
//! chain = ["ASSEMBLY.md", "view/ASSEMBLY.md"]
//! members[id=ciso].weight = 2.5 from view/ASSEMBLY.md
//! members[].id = ["ceo", "ciso"] from ASSEMBLY.md
//! appliesTo absent
//! ```
//! ````
//!
//! `chain` is the files that were merged and `body` the text of a persona; neither is a key of a format.

mod block;
mod document;
mod expect;
mod file;
mod load;
mod memory;
mod resolved;

use std::path::{Path, PathBuf};

use quorate_diagnostics::{Report, codes, render};
use quorate_manifest::Capabilities;

pub use block::ParseError;
pub use document::{Document, Expected, Test};
pub use expect::Expectation;
pub use memory::{Content, Memory};
pub use resolved::ResolvedExpectation;

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

/// Runs one document and returns the failures. `host` supplies the running program's capabilities.
///
/// # Panics
/// When the file cannot be read.
#[expect(clippy::disallowed_methods, reason = "the documents are the runner's input")]
pub fn run_file(path: &Path, host: &dyn Capabilities) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    run(&path.display().to_string(), &text, host)
}

/// Runs a document's text and returns the failures, each with the document's name and a line.
pub fn run(name: &str, text: &str, host: &dyn Capabilities) -> Vec<String> {
    match Document::parse(text) {
        Err(problem) => vec![format!("{name}:{}: {}", problem.line, problem.message)],
        Ok(document) if document.tests.is_empty() => vec![format!("{name}:1: no test")],
        Ok(document) => document.tests.iter().flat_map(|test| run_test(name, test, host)).collect(),
    }
}

fn run_test(document: &str, test: &Test, host: &dyn Capabilities) -> Option<String> {
    let loading = load::load(test, host);
    let expected = &test.expected;
    if loading.loaded == 0 && expected.skipped.is_empty() {
        return Some(format!("{document}:{}: {}: no file that can be loaded", test.line, test.name));
    }
    let mut failures = expect::compare(&expected.diagnostics, &loading.report);
    let unknown = expected.diagnostics.iter().filter(|expected| codes::explain(&expected.code).is_none());
    failures.extend(unknown.map(|expected| format!("unknown code {}", expected.code)));
    failures.extend(without_place(&loading.report));
    let loaded = expected.skipped.iter().filter(|path| !loading.skipped.contains(*path));
    failures.extend(loaded.map(|path| format!("not passed over: {path}")));
    failures.extend(test.resolved.iter().flat_map(|resolves| resolves.compare(&loading.round)));
    if failures.is_empty() {
        return None;
    }
    let diagnostics = render::concise(&loading.report);
    Some(format!(
        "{document}:{}: {}\n  {}\nall of it:\n{diagnostics}",
        test.line,
        test.name,
        failures.join("\n  ")
    ))
}

/// Diagnostics without a place in the text.
fn without_place(report: &Report) -> impl Iterator<Item = String> {
    let refusals = report.refusals.iter().map(|diagnostic| (diagnostic.code.as_str(), &diagnostic.body));
    let warnings = report.warnings.iter().map(|diagnostic| (diagnostic.code.as_str(), &diagnostic.body));
    let nowhere = refusals.chain(warnings).filter(|(_, body)| body.place.is_none());
    nowhere.map(|(code, body)| format!("no place: {code}: {}", body.message))
}

#[cfg(test)]
mod tests;
