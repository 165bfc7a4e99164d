//! Drift: how a file differs from its installed content.

use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::provisioning::Strategy;

use super::append;
use super::files::FileContent;
use super::merge;
use super::setup::{ContentKind, Error, InstallRecord, Store};

/// How a file differs from its installed content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drift {
    /// The file is unchanged.
    InPlace,
    /// The file was edited, but the profile's content is intact, or its strategy allows edits.
    EditedAround,
    /// The profile's content was edited or removed.
    Edited,
    /// The file does not exist.
    Missing,
}

impl Drift {
    /// Compares a file with its record.
    ///
    /// # Errors
    /// If a stored content cannot be read.
    pub fn of(store: &Store<'_>, fact: &InstallRecord, found: Option<&FileContent>) -> Result<Drift, Error> {
        let Some(found) = found else { return Ok(Drift::Missing) };
        if sha256_hex(&found.bytes) == fact.text {
            return Ok(Drift::InPlace);
        }
        let beside = match (fact.strategy, std::str::from_utf8(&found.bytes)) {
            (Strategy::Preserve, _) => true,
            (Strategy::Overwrite, _) | (_, Err(_)) => false,
            (Strategy::Append, Ok(text)) => appended_text(store, fact, text)?.is_some(),
            (Strategy::MergeJsonDeep, Ok(text)) => {
                let source = stored_text(store, ContentKind::Installed, &fact.source)?;
                merge::merge(text, &source).is_ok_and(|merged| merged == text)
            }
        };
        Ok(if beside { Drift::EditedAround } else { Drift::Edited })
    }
}

/// The appended block that the text still contains, with or without its separating line break.
///
/// # Errors
/// If a stored content cannot be read.
pub fn appended_text(store: &Store<'_>, fact: &InstallRecord, text: &str) -> Result<Option<String>, Error> {
    let source = stored_text(store, ContentKind::Installed, &fact.source)?;
    let whole = match &fact.added {
        Some(added) => stored_text(store, ContentKind::Installed, added)?,
        None => source.clone(),
    };
    let is_present = |one: &String| !one.is_empty() && append::find(text, one).is_some();
    Ok([whole, source].into_iter().find(is_present))
}

/// A stored content as text.
///
/// # Errors
/// If it cannot be read, or is not UTF-8.
pub fn stored_text(store: &Store<'_>, part: ContentKind, sha256: &str) -> Result<String, Error> {
    String::from_utf8(store.load_content(part, sha256)?).map_err(|_| Error::Corrupt {
        path: sha256.to_owned(),
        what: "is stored as a text and is not UTF-8".to_owned(),
    })
}
