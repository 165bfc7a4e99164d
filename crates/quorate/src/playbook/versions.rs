//! Versions of a playbook (B7): reads its history file, and compares the playbook with its last version and with the
//! ledger's records. These reveal files that were removed with their histories, restored from an old copy, or copied from
//! another workspace.
//!
//! The ledger also has the attempts of texts at gates, and the measurements of scorers (B12). Evidence belongs to a text: it
//! adds up over attempts, over playbooks with the same text, and after a playbook was archived.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use quorate_diagnostics::{Body, codes};
use quorate_kernel::attempts::object;
use quorate_kernel::entropy::{self, sha256_hex};
use quorate_kernel::ports::ledger::{Ledger as _, PlaybookEvent, Record};
use quorate_kernel::record::PlaybookEventData;
use quorate_ledger::Store;
use quorate_ledger::store::address::StoreAddress;
use quorate_manifest::playbook::edit::{Edit, EditError};
use quorate_manifest::playbook::{EntryKind, Gate, HISTORY_SUFFIX, PlaybookFile, Status};
use quorate_manifest::timestamp;
use quorate_manifest::workspace::Scope;
use quorate_playbook::gate::TextIdentity;
use quorate_playbook::history::{self, Version};
use quorate_protocol::Json;
use schemars::JsonSchema;
use serde::{Deserialize as _, Serialize};
use serde_json::json;

use super::change::{ChangeEvent, ChangedFile, PlaybookChange, playbook_event, playbook_stream};
use crate::service::disk::{self, display_path};
use crate::service::environment::Environment;
use crate::service::error::Error;

/// A playbook's file with all of its versions.
#[derive(Debug, Clone, Default)]
pub(crate) struct VersionedFile {
    pub(crate) slug: String,
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    /// The history's text; empty without one.
    pub(crate) history: String,
    /// The versions, oldest first; empty for a playbook without changes.
    pub(crate) versions: Vec<Version>,
    /// The highest version that the playbook's own `history` names; 0 without one.
    pub(crate) named: u32,
    /// What the ledger records of it.
    pub(crate) recorded: RecordedPlaybook,
}

/// The content of a version.
#[derive(Debug, Clone)]
pub(crate) struct NewVersion<'s> {
    pub(crate) kind: EntryKind,
    pub(crate) summary: &'s str,
    pub(crate) by: &'s str,
    /// The gate that was passed.
    pub(crate) gate: Option<Gate>,
}

impl<'s> NewVersion<'s> {
    pub(crate) fn new(kind: EntryKind, summary: &'s str, by: &'s str) -> Self {
        NewVersion { kind, summary, by, gate: None }
    }
}

/// Sets a status.
pub(super) fn set_status(status: Status) -> impl FnOnce(&mut Edit, &str) {
    move |edit, at| {
        edit.set_string("status", status.as_str());
        edit.set_string("updated_at", at);
    }
}

impl VersionedFile {
    /// Reads a playbook's file and its history.
    ///
    /// # Errors
    /// If one of them cannot be read, or the history is incomplete.
    pub(crate) fn read(environment: &Environment, root: &Path, book: &PlaybookFile) -> Result<Self, Error> {
        let path = root.join(book.path.workspace_relative());
        let slug = book.playbook.slug.clone();
        let history_path = history_path(&path, &slug);
        let read = |path: &Path| {
            disk::read_text(path).map(Option::unwrap_or_default).map_err(|error| {
                let body = Body::new(format!("cannot read {}: {error}", display_path(environment, path)));
                Error::configuration(codes::FILE_UNREADABLE, body)
            })
        };
        let (text, history) = (read(&path)?, read(&history_path)?);
        let versions = match history.is_empty() {
            true => Vec::new(),
            false => history::parse(&history).map_err(|broken| {
                let shown = display_path(environment, &history_path);
                let body =
                    Body::new(format!("{shown} was edited, at line {}: {}", broken.line, broken.reason));
                let help =
                    "restore it from a copy or from version control; the ledger also has every version";
                Error::configuration(codes::HISTORY_MUTATION, body.help(help))
            })?,
        };
        Ok(VersionedFile {
            slug,
            path,
            text,
            history,
            versions,
            named: highest_named(book),
            recorded: RecordedPlaybook::default(),
        })
    }

    /// The last version; `None` without changes.
    pub(crate) fn last(&self) -> Option<&Version> {
        self.versions.last()
    }

    /// Whether the file was edited without a new version.
    pub(crate) fn has_drifted(&self) -> bool {
        self.last().is_some_and(|last| last.text != self.text)
    }

    /// Whether the history lacks versions that the playbook names. The gates that it passed are then unknown.
    pub(crate) fn lacks_versions(&self) -> bool {
        self.named > self.last().map_or(0, |last| last.n)
    }

    /// Whether its last version differs from the ledger's: it was restored from an old copy, copied from another workspace,
    /// or its history was rewritten.
    pub(crate) fn contradicts_ledger(&self) -> bool {
        let (n, text) = self.last().map_or((0, &self.text), |last| (last.n, &last.text));
        !self.recorded.is_last(n, &sha256_hex(text.as_bytes()))
    }

    /// Whether it matches its history and the ledger.
    pub(crate) fn is_intact(&self) -> bool {
        !self.has_drifted() && !self.lacks_versions() && !self.contradicts_ledger()
    }

    /// Refuses a playbook that does not match.
    ///
    /// # Errors
    /// `history_mutation`.
    pub(crate) fn ensure_intact(&self, environment: &Environment) -> Result<(), Error> {
        if self.is_intact() {
            return Ok(());
        }
        Err(Error::configuration(codes::HISTORY_MUTATION, self.mutation_body(environment)))
    }

    /// The refusal of a file that differs from its last version.
    pub(crate) fn mutation_body(&self, environment: &Environment) -> Body {
        let n = self.last().map_or(0, |last| last.n);
        let file = display_path(environment, &self.path);
        if self.lacks_versions() {
            let history = display_path(environment, &history_path(&self.path, &self.slug));
            let message =
                format!("{file} is at version {} by its `history`, and {history} ends at {n}", self.named);
            let help = "restore the history from a copy or from version control; or remove `history` from the \
                playbook, set `status: shadow`, and run `quorate playbook repair` to start a new history";
            return Body::new(message).help(help);
        }
        if self.contradicts_ledger() {
            let recorded = self.recorded.last;
            let message = match n == recorded {
                true => format!("version {n} of {file} differs from version {n} in the ledger"),
                false => format!("{file} is at version {n}, and the ledger has version {recorded} of it"),
            };
            let help = "restore the file and its history from a copy or from version control; or run `quorate playbook \
                repair` to adopt the file into shadow, where it has to pass a gate again";
            return Body::new(message).help(help);
        }
        Body::new(format!("{file} differs from version {n} in its history"))
            .help("run `quorate playbook repair` to add the change to the history")
    }

    /// A version by its number.
    ///
    /// # Errors
    /// If it does not exist.
    pub(crate) fn version(&self, n: u32) -> Result<&Version, Error> {
        self.versions.iter().find(|version| version.n == n).ok_or_else(|| {
            let body = Body::new(format!("`{}` has no version {n}", self.slug));
            let help = match self.last() {
                Some(last) => format!("it has the versions 1 to {}", last.n),
                None => "it has no versions: `quorate playbook` never changed it".to_owned(),
            };
            Error::not_found(codes::PLAYBOOK_UNKNOWN, body.help(help))
        })
    }

    /// The number of the next version; a handwritten file is its own first version.
    pub(crate) fn next_n(&self) -> u32 {
        match self.last() {
            Some(last) => last.n + 1,
            None if self.text.is_empty() => 1,
            None => 2,
        }
    }

    fn unusable(&self, why: &EditError) -> Error {
        let body = Body::new(format!("cannot edit {}: {why}", self.path.display()));
        Error::configuration(codes::PLAYBOOK_INVALID, body.help("run `quorate check .` to see its errors"))
    }
}

impl PlaybookChange {
    /// Adds the next version of a playbook, and its event with `words`; returns the version's number. `edit` changes the
    /// current text, or that of `from`; it gets the time.
    ///
    /// # Errors
    /// If the text cannot be edited.
    pub(super) fn add_version(
        &mut self,
        file: &VersionedFile,
        step: &NewVersion<'_>,
        from: Option<&str>,
        (event, words, mut data): (PlaybookEvent, &str, Json),
        edit: impl FnOnce(&mut Edit, &str),
    ) -> Result<u32, Error> {
        let (n, slug, at) = (file.next_n(), &file.slug, timestamp::format(self.at_ms));
        let mut editing = Edit::new(from.unwrap_or(&file.text)).map_err(|why| file.unusable(&why))?;
        edit(&mut editing, &at);
        let mut entry = json!({
            "at": at, "kind": step.kind, "summary": step.summary,
            "source": format!("{slug}{HISTORY_SUFFIX}#v{n}"), "by": step.by,
        });
        if let Some(gate) = step.gate {
            entry["gate"] = json!(gate);
        }
        editing.push_item("history", &object(entry));
        let text = editing.finish().map_err(|why| file.unusable(&why))?;
        let version = Version {
            n,
            at,
            event: step.kind.as_str().to_owned(),
            summary: step.summary.to_owned(),
            by: Some(step.by.to_owned()),
            text,
        };
        let by_hand = Version {
            n: 1,
            event: EntryKind::Created.as_str().to_owned(),
            summary: "found in the workspace".to_owned(),
            by: None,
            text: file.text.clone(),
            ..version.clone()
        };
        let is_by_hand = file.versions.is_empty() && !file.text.is_empty();
        let mut history = file.history.clone();
        for version in is_by_hand.then_some(&by_hand).into_iter().chain([&version]) {
            history = history::append(&history, slug, version).map_err(|broken| {
                let body = Body::new(format!("cannot add to the history of `{slug}`: {broken}"));
                Error::configuration(codes::HISTORY_MUTATION, body)
            })?;
        }
        data["version"] = json!(n);
        data["sha256"] = json!(sha256_hex(version.text.as_bytes()));
        self.files.push(ChangedFile::new(history_path(&file.path, slug), &file.history, history));
        self.files.push(ChangedFile::new(file.path.clone(), &file.text, version.text));
        self.events.push(ChangeEvent::new(event, slug, words, data));
        Ok(n)
    }
}

/// The highest version in the entries of a playbook. Entries from other sources do not count.
fn highest_named(book: &PlaybookFile) -> u32 {
    let entries = book.playbook.history.iter().flatten();
    let versions = entries.filter_map(|entry| {
        let (file, n) = entry.source.as_deref()?.split_once("#v")?;
        file.strip_suffix(HISTORY_SUFFIX).filter(|slug| !slug.contains('/'))?;
        n.parse().ok()
    });
    versions.max().unwrap_or(0)
}

/// The path of a playbook's history.
pub(crate) fn history_path(path: &Path, slug: &str) -> PathBuf {
    path.with_file_name(format!("{slug}{HISTORY_SUFFIX}"))
}

/// The recorded versions of a playbook.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RecordedPlaybook {
    /// The last recorded version; 0 without one. Numbers may restart, so the last record counts and not the highest number.
    pub(crate) last: u32,
    /// SHA-256 of that version's file, if recorded.
    pub(crate) sha256: Option<String>,
    /// Whether the last record archived the playbook.
    is_archived: bool,
    /// SHA-256 of the files recorded under each version number.
    hashes: BTreeMap<u32, BTreeSet<String>>,
}

impl RecordedPlaybook {
    /// Whether the ledger rules out this version. It does not know versions from before its first record.
    pub(crate) fn contradicts(&self, n: u32, sha256: &str) -> bool {
        let is_known = self.hashes.first_key_value().is_some_and(|(first, _)| *first <= n);
        is_known && !self.hashes.get(&n).is_some_and(|hashes| hashes.contains(sha256))
    }

    /// Whether the hash is that of the last recorded version. Without a record every file is.
    pub(crate) fn is_last(&self, n: u32, sha256: &str) -> bool {
        self.last == 0 || (self.last == n && self.sha256.as_deref().is_none_or(|recorded| recorded == sha256))
    }
}

/// The playbooks that were recorded, by slug.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RecordedVersions {
    playbooks: BTreeMap<String, RecordedPlaybook>,
    pub(crate) trials: Trials,
}

impl RecordedVersions {
    /// The recorded versions of a playbook.
    pub(crate) fn playbook(&self, slug: &str) -> RecordedPlaybook {
        self.playbooks.get(slug).cloned().unwrap_or_default()
    }

    /// The playbooks that are not archived, each with its last recorded version.
    pub(crate) fn unarchived(&self) -> impl Iterator<Item = (&str, u32)> {
        self.playbooks
            .iter()
            .filter(|(_, recorded)| !recorded.is_archived)
            .map(|(slug, recorded)| (&**slug, recorded.last))
    }

    /// The recorded versions of a scope's ledger.
    ///
    /// # Errors
    /// When the ledger does not answer.
    #[crate::boxed]
    pub(crate) async fn load(store: &Store, scope: &Scope) -> Result<Self, Error> {
        Ok(RecordedVersions::of(&store.records(&playbook_stream(scope)).await?))
    }

    /// Collects the versions and the trials in these records.
    pub(crate) fn of(records: &[Record]) -> Self {
        let mut recorded = RecordedVersions::default();
        records.iter().for_each(|record| recorded.add(record));
        recorded
    }

    /// The records of a scope's playbooks; empty if the ledger is missing or does not answer. A command that needs the ledger
    /// reports that itself.
    pub(crate) fn records_blocking(ledger: &StoreAddress, scope: &Scope) -> Vec<Record> {
        if !ledger.may_exist() {
            return Vec::new();
        }
        let read = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
            runtime.block_on(async {
                let store = Box::pin(Store::open_at(ledger)).await.ok()?.store;
                let records = store.records(&playbook_stream(scope)).await;
                store.close().await;
                records.ok()
            })
        };
        std::thread::scope(|threads| threads.spawn(read).join().ok().flatten()).unwrap_or_default()
    }

    fn add(&mut self, record: &Record) {
        let Some(event) = playbook_event(record) else { return };
        self.trials.add(record, &event);
        let PlaybookEventData { slug: Some(slug), version: Some(last), sha256, .. } = event else { return };
        let known = self.playbooks.entry(slug).or_default();
        known.hashes.entry(last).or_default().extend(sha256.clone());
        known.last = last;
        known.sha256 = sha256;
        known.is_archived = record.kind == PlaybookEvent::Archived.as_str();
    }
}

/// An attempt to pass a gate, before it is recorded.
#[derive(Debug, Clone)]
pub(crate) struct NewAttempt {
    pub(crate) id: String,
    pub(crate) text: TextIdentity,
}

impl NewAttempt {
    /// A new attempt on a text.
    pub(crate) fn new(text: &str) -> Self {
        NewAttempt { id: entropy::hex(&entropy::bytes::<8>()), text: TextIdentity::new(text) }
    }

    /// Adds it to the data of a record.
    pub(crate) fn add_to(&self, data: &mut Json) {
        data["attempt"] = json!(self.id);
        data["text"] = json!(self.text);
    }
}

/// The recorded trials of a scope, the oldest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Trials {
    attempts: Vec<Attempt>,
    /// The texts that went into shadow: the time in milliseconds since the Unix epoch, the playbook's slug, and the text.
    texts: Vec<(i64, String, TextIdentity)>,
}

#[derive(Debug, Clone, PartialEq)]
struct Attempt {
    id: String,
    text: Option<TextIdentity>,
    is_refused: bool,
    /// The scores with the playbook and without it.
    pairs: Vec<(f64, f64)>,
}

/// How often gates were asked about a text and similar ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AttemptCount {
    /// How often a gate was asked about this text or a similar one
    pub attempts: usize,
    /// How often it refused
    pub refused_attempts: usize,
}

impl fmt::Display for AttemptCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} refused", self.attempts, self.refused_attempts)
    }
}

impl Trials {
    /// Adds the attempt or text of a record.
    pub(super) fn add(&mut self, record: &Record, event: &PlaybookEventData) {
        let is = |kind: PlaybookEvent| record.kind == kind.as_str();
        let text = TextIdentity::deserialize(&event.text).ok();
        let Some(id) = &event.attempt else {
            if let (true, Some(slug), Some(text)) = (is(PlaybookEvent::Shadowed), &event.slug, text) {
                self.texts.push((record.at_ms, slug.clone(), text));
            }
            return;
        };
        let at = self.attempts.iter().rposition(|attempt| attempt.id == *id).unwrap_or_else(|| {
            let new = Attempt { id: id.clone(), text: None, is_refused: false, pairs: Vec::new() };
            self.attempts.push(new);
            self.attempts.len() - 1
        });
        let attempt = &mut self.attempts[at];
        attempt.text = attempt.text.take().or(text);
        attempt.is_refused |= is(PlaybookEvent::Rejected);
        attempt.pairs.extend(event.scores.map(|scores| (scores.with, scores.without)));
    }

    /// The scores of all trials, with their texts.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&TextIdentity, (f64, f64))> {
        let attempts =
            self.attempts.iter().filter_map(|attempt| Some((attempt.text.as_ref()?, &attempt.pairs)));
        attempts.flat_map(|(text, pairs)| pairs.iter().map(move |pair| (text, *pair)))
    }

    /// How often gates were asked about a text.
    pub(crate) fn count(&self, text: &TextIdentity) -> AttemptCount {
        let of_it = |attempt: &&Attempt| attempt.text.as_ref().is_some_and(|of| text.is_similar(of));
        let of_it: Vec<&Attempt> = self.attempts.iter().filter(of_it).collect();
        let refused = of_it.iter().filter(|attempt| attempt.is_refused).count();
        AttemptCount { attempts: of_it.len(), refused_attempts: refused }
    }

    /// The text of a playbook in shadow at a time.
    pub(crate) fn text_at(&self, slug: &str, at_ms: i64) -> Option<TextIdentity> {
        let until = self.texts.iter().rfind(|(since, of, _)| of == slug && *since <= at_ms);
        until.map(|(_, _, text)| text.clone())
    }

    /// The first time when a text went into shadow that `is_wanted` accepts.
    pub(crate) fn first_ms(&self, is_wanted: impl Fn(&TextIdentity) -> bool) -> Option<i64> {
        self.texts.iter().filter(|(_, _, text)| is_wanted(text)).map(|(at_ms, ..)| *at_ms).min()
    }
}
