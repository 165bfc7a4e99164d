//! Overlays in the ledger: each assembly has one stream of them, beside the runs. Adds a run's fragments as overlays, lists
//! the active ones, and evicts.

use std::collections::{BTreeMap, BTreeSet};

use quorate_diagnostics::invisible::find_invisible;
use quorate_diagnostics::{Body, codes};
use quorate_kernel::clock::rfc3339;
use quorate_kernel::entropy;
use quorate_kernel::history::History;
use quorate_kernel::ports::ledger::{Append, Durability, Entry, Ledger as _, LedgerError, Record};
use quorate_kernel::record::Fragment;
use quorate_ledger::Store;
use quorate_manifest::timestamp;
use quorate_protocol::assembly::Setup;
use quorate_protocol::overlay::{Eviction, EvictionReason, Overlay, OverlaySet};
use quorate_protocol::{Json, Name};
use serde::Serialize;
use serde_json::json;
use tokio::sync::Mutex;

use super::compose::Projection;
use super::error::{Error, ErrorKind};
use super::session::LedgerSession;
use super::{manifests, run_opened};
use crate::playbook::change::MAX_ATTEMPTS;
use crate::view::layout::{one_line, truncate};
use crate::view::{Doc, Table, Text, Tone};

/// The prefix of an assembly's overlay stream.
const STREAM_PREFIX: &str = "overlays/";
/// The stream of an assembly.
fn stream_of(assembly: &str) -> Name {
    format!("{STREAM_PREFIX}{assembly}").into()
}

async fn load_stream(store: &Store, stream: &Name) -> Result<(OverlaySet, u64), Error> {
    let mut followed = Projection::default();
    let standing = catch_up(store, stream, &mut followed).await?.clone();
    Ok((standing, followed.next_n()))
}

/// Reads the records that were added since the last read.
async fn catch_up<'f>(
    store: &Store,
    stream: &Name,
    followed: &'f mut Projection<OverlaySet>,
) -> Result<&'f OverlaySet, Error> {
    let take = |standing: &mut OverlaySet, record: &Record| {
        let unreadable = |_| {
            let body = Body::new(format!("record {stream}/{} cannot be read", record.n));
            Error::new(ErrorKind::Altered, codes::LEDGER_CORRUPT, body)
        };
        if let Some(overlay) = record.read::<Overlay>().map_err(unreadable)? {
            standing.add(overlay);
        } else if let Some(eviction) = record.read::<Eviction>().map_err(unreadable)? {
            standing.evict(&eviction.overlay);
        }
        Ok(())
    };
    followed.catch_up(store, stream, take).await
}

/// The active texts for a setup's operators, by descending weight, without duplicates.
///
/// # Errors
/// If the ledger does not answer, or a record is malformed.
pub(crate) async fn active_texts(store: &Store, setup: &Setup, now_ms: i64) -> Result<Vec<Json>, Error> {
    let (standing, _) = load_stream(store, &stream_of(&setup.assembly)).await?;
    let mut named = BTreeSet::new();
    let is_wanted =
        |one: &&Overlay| setup.operators.contains(&one.operator) && named.insert(one.text.clone());
    Ok(standing.active(now_ms).into_iter().filter(is_wanted).map(|one| json!(one.text)).collect())
}

/// Adds a run's fragments as overlays, and evicts what exceeds the cap. Idempotent.
///
/// # Errors
/// When the ledger does not answer.
pub(crate) async fn add_from_run(session: &LedgerSession, history: &History) -> Result<(), Error> {
    let Some((setup, outcome)) = run_opened::assembly_setup(history).zip(history.outcome()) else {
        return Ok(());
    };
    let at_ms = history.decided_ms.unwrap_or_else(|| session.environment.clock.now_ms());
    let mut coming = Vec::new();
    for operator in &setup.operators {
        let overlays = outcome.fragments.iter();
        coming.extend(overlays.filter_map(|fragment| overlay(&setup, history, operator, fragment, at_ms)));
    }
    if coming.is_empty() {
        return Ok(());
    }
    let cap = usize::from(setup.overlays.max_active);
    session.sign_stream(&stream_of(&setup.assembly), Some(&history.run)).await?;
    append_with_retry(session, &stream_of(&setup.assembly), |standing, now_ms| {
        let new: Vec<Overlay> =
            coming.iter().filter(|one| !standing.was_ever_added(&one.overlay)).cloned().collect();
        let evicted = if new.is_empty() { Vec::new() } else { standing.evictions(&new, cap, now_ms) };
        (new, evicted)
    })
    .await
    .map(|_| ())
}

fn overlay(
    setup: &Setup,
    history: &History,
    operator: &str,
    fragment: &Fragment,
    added_ms: i64,
) -> Option<Overlay> {
    Some(Overlay {
        overlay: entropy::overlay_id(&history.run, &fragment.member, operator),
        assembly: setup.assembly.to_string(),
        operator: operator.to_owned(),
        run: history.run.to_string(),
        rule: fragment.rule.clone(),
        text: sanitize_text(&fragment.text),
        severity: u8::try_from(fragment.severity).ok()?,
        priority: u8::try_from(fragment.priority).ok()?,
        added_ms,
        expires_ms: timestamp::parse(&fragment.expires)?,
        member: fragment.member.clone(),
    })
}

/// Prepares a text for a prompt: removes invisible characters and `\r`.
fn sanitize_text(text: &str) -> String {
    let invisible: BTreeSet<usize> = find_invisible(text).map(|(at, _)| at).collect();
    let is_kept = |(at, c): &(usize, char)| *c != '\r' && !invisible.contains(at);
    text.char_indices().filter(is_kept).map(|(_, c)| c).collect()
}

/// Appends what `decide` returns, and retries if another process appended first.
async fn append_with_retry(
    session: &LedgerSession,
    stream: &Name,
    decide: impl Fn(&OverlaySet, i64) -> (Vec<Overlay>, Vec<Eviction>),
) -> Result<Vec<Eviction>, Error> {
    let mut tries = 0;
    session.ensure_writable()?;
    session.sign_stream(stream, None).await?;
    loop {
        let (standing, next) = load_stream(&session.store, stream).await?;
        let now_ms = session.environment.clock.now_ms();
        let (added, evicted) = decide(&standing, now_ms);
        if added.is_empty() && evicted.is_empty() {
            return Ok(evicted);
        }
        let added = added.iter().map(|overlay| Entry::of(overlay, now_ms));
        let entries = added.chain(evicted.iter().map(|eviction| Entry::of(eviction, now_ms))).collect();
        let (run, durability) = (stream.clone(), Durability::Synced);
        let append = Append { run, from: next, entries, bodies: Vec::new(), durability };
        match session.store.append(append).await {
            Ok(_) => return Ok(evicted),
            Err(LedgerError::Conflict { .. }) if tries < MAX_ATTEMPTS => tries += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Selects overlays. In a tenant's folder only those of its assemblies are selected.
///
/// ```
/// use quorate::playbook::OverlayFilter;
///
/// let of_mentors = OverlayFilter { assembly: Some("mentors".to_owned()) };
/// assert_ne!(of_mentors, OverlayFilter::default(), "which selects all assemblies");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OverlayFilter {
    /// Selects this assembly, by its name in its scope; `None` selects all
    pub assembly: Option<String>,
}

impl OverlayFilter {
    async fn streams(&self, session: &LedgerSession) -> Result<Vec<Name>, Error> {
        let (_, scope) = manifests::root_and_scope(&session.environment, None);
        let before = scope.tenant().map_or_else(String::new, |tenant| format!("{tenant}/"));
        match &self.assembly {
            // The name may already carry the tenant, as listings write it.
            Some(assembly) if assembly.starts_with(&before) => Ok(vec![stream_of(assembly)]),
            Some(assembly) => Ok(vec![stream_of(&format!("{before}{assembly}"))]),
            None => Ok(session.store.streams(&format!("{STREAM_PREFIX}{before}")).await?),
        }
    }
}

/// Overlays of advisory runs
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OverlayList {
    /// Active ones by descending weight, then expired ones that no sweep has evicted
    pub overlays: Vec<ListedOverlay>,
}

/// An overlay, and whether it is in force
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListedOverlay {
    /// As the ledger has it
    #[serde(flatten)]
    pub overlay: Overlay,
    /// Whether it is in force now
    #[serde(rename = "holds")]
    pub active: bool,
    /// When it was added, RFC 3339
    pub added: String,
    /// When it expires, RFC 3339
    pub expires: String,
    /// How long it is still in force, in words
    #[serde(skip)]
    pub time_left: String,
}

impl ListedOverlay {
    fn new(overlay: Overlay, now_ms: i64) -> ListedOverlay {
        // Rounded down to minutes, so that fourteen days stay fourteen days a second later.
        let minutes = (overlay.expires_ms - now_ms).max(0) / 60_000;
        let hours = (minutes + 30) / 60;
        ListedOverlay {
            active: overlay.is_active(now_ms),
            added: rfc3339(overlay.added_ms),
            expires: rfc3339(overlay.expires_ms),
            time_left: match (overlay.is_active(now_ms), hours) {
                (false, _) => "expired".to_owned(),
                (true, 48..) => format!("{} d", (hours + 12) / 24),
                (true, _) => format!("{hours} h"),
            },
            overlay,
        }
    }

    fn operator(&self) -> &str {
        if self.overlay.operator.is_empty() { "(no operator)" } else { &self.overlay.operator }
    }

    /// The text, and all facts.
    pub fn doc(&self) -> Doc {
        let overlay = &self.overlay;
        let mut doc = Doc::new();
        doc.title(Text::strong(&overlay.overlay));
        doc.prose(&overlay.text);
        doc.facts([
            ("assembly", overlay.assembly.clone()),
            ("operator", self.operator().to_owned()),
            ("run", overlay.run.clone()),
            ("member", overlay.member.clone()),
            ("rule", overlay.rule.clone()),
            ("severity", overlay.severity.to_string()),
            ("priority", overlay.priority.to_string()),
            ("added", self.added.clone()),
            ("expires", format!("{} ({})", self.expires, self.time_left)),
        ]);
        doc
    }
}

/// The longest text in a list, in characters.
const MAX_LISTED_CHARS: usize = 60;

impl OverlayList {
    /// A table of the overlays.
    pub fn doc(&self) -> Doc {
        let mut table = Table::new(["overlay", "priority", "left", "assembly", "operator", "text"]);
        for one in &self.overlays {
            let overlay = &one.overlay;
            let tone = if one.active { Tone::Plain } else { Tone::Absent };
            table.row([
                Text::strong(&overlay.overlay),
                overlay.priority.to_string().into(),
                Text::toned(tone, &one.time_left),
                (&overlay.assembly).into(),
                one.operator().into(),
                truncate(&one_line(&overlay.text), MAX_LISTED_CHARS).into(),
            ]);
        }
        Doc::of_table(table, "no overlays")
    }
}

/// An overlay that was evicted before its time
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExpiredOverlay {
    /// Its id
    pub expired: String,
}

impl ExpiredOverlay {
    /// The result in words.
    pub fn doc(&self) -> Doc {
        Doc::of_lines([format!("{} has expired", self.expired)], "")
    }
}

/// The overlays that were evicted
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EvictedOverlays {
    /// Each with the reason
    pub evicted: Vec<Eviction>,
}

impl EvictedOverlays {
    /// Their ids.
    pub fn doc(&self) -> Doc {
        let ids: Vec<&str> = self.evicted.iter().map(|eviction| eviction.overlay.as_str()).collect();
        let swept = (!ids.is_empty()).then(|| format!("swept: {}", ids.join(", ")));
        Doc::of_lines(swept, "nothing to sweep")
    }
}

/// The overlays that the filter selects: active ones by descending weight, then expired ones that no sweep has evicted.
///
/// # Errors
/// When the ledger does not answer.
pub(crate) async fn list(session: &LedgerSession, whose: &OverlayFilter) -> Result<OverlayList, Error> {
    let now_ms = session.environment.clock.now_ms();
    let mut overlays = Vec::new();
    for stream in whose.streams(session).await? {
        let (standing, _) = load_stream(&session.store, &stream).await?;
        let over = standing.all().iter().filter(|one| !one.is_active(now_ms));
        let listed = standing.active(now_ms).into_iter().chain(over).cloned();
        overlays.extend(listed.map(|overlay| ListedOverlay::new(overlay, now_ms)));
    }
    Ok(OverlayList { overlays })
}

/// Finds an overlay of the working directory's scope by its id or a unique prefix of it.
///
/// # Errors
/// If none or several match.
pub(crate) async fn find(session: &LedgerSession, prefix: &str) -> Result<ListedOverlay, Error> {
    let mut found = list(session, &OverlayFilter::default()).await?.overlays;
    found.retain(|one| one.overlay.overlay.starts_with(&prefix.to_lowercase()));
    let (message, help) = match found.len() {
        1 => return Ok(found.remove(0)),
        0 => {
            let message = format!("no overlay has an id that starts with `{prefix}`");
            (message, "run `quorate overlays list` to see the available overlays")
        }
        several => {
            (format!("{several} overlays have an id that starts with `{prefix}`"), "give more characters")
        }
    };
    Err(Error::not_found(codes::OVERLAY_UNKNOWN, Body::new(message).help(help)))
}

/// Evicts an overlay before it expires.
///
/// # Errors
/// As [`find`], and if the ledger does not answer.
pub(crate) async fn expire(session: &LedgerSession, prefix: &str) -> Result<ExpiredOverlay, Error> {
    let overlay = find(session, prefix).await?.overlay;
    let gone = Eviction {
        overlay: overlay.overlay.clone(),
        why: EvictionReason::Person,
        by: Some(session.environment.user.clone()),
    };
    append_with_retry(session, &stream_of(&overlay.assembly), |standing, _| {
        let gone = standing.all().iter().any(|one| one.overlay == gone.overlay).then(|| gone.clone());
        (Vec::new(), Vec::from_iter(gone))
    })
    .await?;
    Ok(ExpiredOverlay { expired: overlay.overlay })
}

/// Evicts every expired overlay and returns the evictions.
///
/// # Errors
/// When the ledger does not answer.
pub(crate) async fn sweep(session: &LedgerSession, whose: &OverlayFilter) -> Result<EvictedOverlays, Error> {
    let mut evicted = Vec::new();
    for stream in whose.streams(session).await? {
        let leaving =
            |standing: &OverlaySet, now_ms| (Vec::new(), standing.evictions(&[], usize::MAX, now_ms));
        evicted.extend(append_with_retry(session, &stream, leaving).await?);
    }
    Ok(EvictedOverlays { evicted })
}

/// The overlays that were not evicted, of one assembly or of all. It includes expired overlays, which a weave filters.
///
/// # Errors
/// When the ledger does not answer.
pub(crate) async fn unevicted(store: &Store, assembly: Option<&str>) -> Result<Vec<Overlay>, Error> {
    OverlayCache::default().holding(store, assembly).await
}

/// The streams as last read, so that repeated queries read only new records.
#[derive(Debug, Default)]
pub(crate) struct OverlayCache(Mutex<BTreeMap<Name, Projection<OverlaySet>>>);

impl OverlayCache {
    /// As [`unevicted`].
    ///
    /// # Errors
    /// When the ledger does not answer.
    pub(crate) async fn holding(&self, store: &Store, assembly: Option<&str>) -> Result<Vec<Overlay>, Error> {
        let mut known = self.0.lock().await;
        let mut all = Vec::new();
        let streams = match assembly {
            Some(assembly) => vec![stream_of(assembly)],
            None => store.streams(STREAM_PREFIX).await?,
        };
        for stream in streams {
            let standing = catch_up(store, &stream, known.entry(stream.clone()).or_default()).await?;
            all.extend(standing.all().iter().cloned());
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use quorate_diagnostics::render::TextOptions;

    use super::*;

    fn overlay(n: u64) -> Overlay {
        Overlay {
            overlay: format!("o{n}"),
            assembly: "a".into(),
            operator: "ada".into(),
            run: "r1".into(),
            rule: "r".into(),
            text: format!("Be brief, {n}."),
            severity: 1,
            priority: 1,
            added_ms: 1,
            expires_ms: 1 << 50,
            member: "m".into(),
        }
    }

    const ADDED_MS: i64 = 1_772_600_700_007;

    fn listed(id: &str, priority: u8, operator: &str, text: &str, days: i64) -> ListedOverlay {
        let overlay = Overlay {
            overlay: id.to_owned(),
            assembly: "mentors".to_owned(),
            operator: operator.to_owned(),
            run: "r7k2m9q4xa1bc".to_owned(),
            rule: "gravest".to_owned(),
            text: text.to_owned(),
            severity: 6,
            priority,
            added_ms: ADDED_MS,
            expires_ms: ADDED_MS + days * 86_400_000,
            member: "critic".to_owned(),
        };
        ListedOverlay::new(overlay, ADDED_MS)
    }

    #[test]
    fn a_line_for_each_overlay() {
        let current = listed("o7k2m9q4xa1bc", 100, "support", "Name one\nargument \u{1b}[31magainst.", 14);
        let expired = listed("ozzzzzz4xa1bc", 49, "", &"word ".repeat(40), 0);
        let details = current.doc().text(TextOptions::default());
        let list = OverlayList { overlays: vec![current, expired] };
        insta::assert_snapshot!(list.doc().text(TextOptions::default()), @"
        overlay        priority  left     assembly  operator       text
        ────────────────────────────────────────────────────────────────────────────────────────────────────
        o7k2m9q4xa1bc  100       14 d     mentors   support        Name one argument [U+001B][31magainst.
        ozzzzzz4xa1bc  49        expired  mentors   (no operator)  word word word word word word word word
                                                                   word word word word…
        ");
        insta::assert_snapshot!(details, @"
        o7k2m9q4xa1bc

        Name one argument [U+001B][31magainst.

        assembly  mentors
        operator  support
        run       r7k2m9q4xa1bc
        member    critic
        rule      gravest
        severity  6
        priority  100
        added     2026-03-04T05:05:00.007Z
        expires   2026-03-18T05:05:00.007Z (14 d)
        ");
        let none = OverlayList { overlays: Vec::new() };
        assert_eq!(none.doc().text(TextOptions::default()), "no overlays\n");
    }

    async fn add(store: &Store, n: u64) {
        let entry = Entry::of(&overlay(n), 1_000);
        store.append(Append::one(&stream_of("a"), n, entry, Durability::Written)).await.expect("appended");
    }

    async fn ids(watched: &OverlayCache, store: &Store) -> Result<Vec<String>, Error> {
        Ok(watched.holding(store, None).await?.into_iter().map(|one| one.overlay).collect())
    }

    #[tokio::test]
    async fn the_cache_reads_only_new_records() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("ledger.db");
        let store = Store::open(&path).await.expect("it opens").store;
        let watched = OverlayCache::default();
        assert!(ids(&watched, &store).await.expect("none yet").is_empty());
        for n in 0..3 {
            add(&store, n).await;
        }
        assert_eq!(ids(&watched, &store).await.expect("three"), ["o0", "o1", "o2"]);
        // Records that were read are not read again; only a full read detects a change.
        let url = format!("sqlite://{}", path.display());
        let mut sqlite = <sqlx::SqliteConnection as sqlx::Connection>::connect(&url).await.expect("it opens");
        sqlx::raw_sql("UPDATE record SET data = '{}' WHERE n = 1")
            .execute(&mut sqlite)
            .await
            .expect("changed");
        add(&store, 3).await;
        assert!(unevicted(&store, None).await.is_err());
        assert_eq!(ids(&watched, &store).await.expect("four"), ["o0", "o1", "o2", "o3"]);
        // For another ledger the cached records are discarded.
        sqlx::raw_sql("DELETE FROM record").execute(&mut sqlite).await.expect("emptied");
        assert!(ids(&watched, &store).await.expect("none").is_empty());
    }
}
