//! Overlays in the ledger: each assembly has one stream of them, beside the runs. What a run's fragments become, what is
//! active, and what goes.

use std::collections::BTreeMap;

use quorate_diagnostics::unseen::unseen;
use quorate_diagnostics::{Body, codes};
use quorate_kernel::canonical;
use quorate_kernel::consultation::object;
use quorate_kernel::entropy;
use quorate_kernel::history::History;
use quorate_kernel::ports::ledger::{Append, Durability, Entry, Error, Kind, Ledger as _, Record};
use quorate_ledger::Store;
use quorate_manifest::timestamp;
use quorate_protocol::assembly::Setup;
use quorate_protocol::overlay::{Evicted, Overlay, Standing, Why};
use quorate_protocol::{Json, Name};
use serde_json::json;
use tokio::sync::Mutex;

use super::desk::Desk;
use super::environment::Environment;
use super::follow::Followed;
use super::stop::Stop;
use super::weave;

/// What stands before an assembly's name in the name of its stream.
const STREAMS: &str = "overlays/";
/// How often an append is tried again when somebody else was faster.
const TRIES: usize = 50;

/// The stream of an assembly.
fn stream(assembly: &str) -> Name {
    format!("{STREAMS}{assembly}").into()
}

/// What stands in an assembly's stream.
///
/// # Errors
/// When the ledger does not answer, or a record is not as it should be.
pub async fn standing(store: &Store, assembly: &str) -> Result<Standing, Stop> {
    Ok(read(store, &stream(assembly)).await?.0)
}

async fn read(store: &Store, stream: &Name) -> Result<(Standing, u64), Stop> {
    let mut followed = Followed::default();
    let standing = read_on(store, stream, &mut followed).await?.clone();
    Ok((standing, followed.next()))
}

/// Reads what came to a stream since it was last read.
async fn read_on<'f>(
    store: &Store,
    stream: &Name,
    followed: &'f mut Followed<Standing>,
) -> Result<&'f Standing, Stop> {
    let take = |standing: &mut Standing, record: &Record| {
        let Some(data) = record.data.clone().map(Json::Object) else { return Ok(()) };
        let unreadable = || {
            let body = Body::new(format!("record {stream}/{} cannot be read", record.n));
            Stop::configuration(codes::LEDGER_CORRUPT, body)
        };
        if record.is(Kind::OverlayAdded) {
            standing.add(serde_json::from_value::<Overlay>(data).map_err(|_| unreadable())?);
        } else if record.is(Kind::OverlayEvicted) {
            standing.evict(&serde_json::from_value::<Evicted>(data).map_err(|_| unreadable())?.overlay);
        }
        Ok(())
    };
    followed.catch_up(store, stream, take).await
}

/// The texts that are active for a setup's operators, the weightiest first, each once.
pub fn texts(standing: &Standing, setup: &Setup, now_ms: i64) -> Vec<Json> {
    let mut texts: Vec<Json> = Vec::new();
    let active = standing.active(now_ms);
    for one in active.into_iter().filter(|one| setup.operators.contains(&one.operator)) {
        let text = json!(one.text);
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}

/// Makes overlays of a run's fragments, and lets go of what has to go. Doing it again does nothing.
///
/// # Errors
/// When the ledger does not answer.
pub async fn add(desk: &Desk, history: &History) -> Result<(), Stop> {
    let Some((setup, outcome)) = setup(history).zip(history.outcome()) else { return Ok(()) };
    let fragments = outcome.get("fragments").and_then(Json::as_array).map_or(&[][..], Vec::as_slice);
    let at_ms = history.decided_ms.unwrap_or_else(|| desk.environment.clock.now_ms());
    let mut coming = Vec::new();
    for operator in &setup.operators {
        coming.extend(fragments.iter().filter_map(|one| overlay(&setup, history, operator, one, at_ms)));
    }
    if coming.is_empty() {
        return Ok(());
    }
    let cap = usize::from(setup.overlays.max_active);
    desk.sign_beside(&stream(&setup.assembly), Some(&history.run)).await?;
    write(desk, &stream(&setup.assembly), |standing, now_ms| {
        let new: Vec<Overlay> = coming.iter().filter(|one| !standing.knows(&one.overlay)).cloned().collect();
        let evicted = if new.is_empty() { Vec::new() } else { standing.leaving(&new, cap, now_ms) };
        (new, evicted)
    })
    .await
    .map(|_| ())
}

/// The setup of an assembly's run; `None` for other runs.
pub fn setup(history: &History) -> Option<Setup> {
    serde_json::from_value(canonical::normal(history.opened.get("setup")?.clone())).ok()
}

fn overlay(
    setup: &Setup,
    history: &History,
    operator: &str,
    fragment: &Json,
    added_ms: i64,
) -> Option<Overlay> {
    let text = |key: &str| fragment.get(key).and_then(Json::as_str).map(str::to_owned);
    let small = |key: &str| u8::try_from(fragment.get(key)?.as_u64()?).ok();
    let member = text("member")?;
    Some(Overlay {
        overlay: entropy::overlay_id(&history.run, &member, operator),
        assembly: setup.assembly.to_string(),
        operator: operator.to_owned(),
        run: history.run.to_string(),
        rule: text("rule")?,
        text: plain(&text("text")?),
        severity: small("severity")?,
        priority: small("priority")?,
        added_ms,
        expires_ms: timestamp::read(&text("expires")?)?,
        member,
    })
}

/// A text as an agent can be told it: nothing in it that is not seen, and line breaks as `\n` alone.
pub(super) fn plain(text: &str) -> String {
    let (mut plain, mut from) = (String::with_capacity(text.len()), 0);
    for (at, c) in unseen(text) {
        plain.push_str(&text[from..at]);
        from = at + c.len_utf8();
    }
    plain.push_str(&text[from..]);
    plain.retain(|c| c != '\r');
    plain
}

/// Appends to a stream what `decide` says of it, again when somebody else was faster.
async fn write(
    desk: &Desk,
    stream: &Name,
    decide: impl Fn(&Standing, i64) -> (Vec<Overlay>, Vec<Evicted>),
) -> Result<Vec<Evicted>, Stop> {
    let mut tries = 0;
    desk.may_write()?;
    desk.sign_beside(stream, None).await?;
    loop {
        let (standing, next) = read(&desk.store, stream).await?;
        let now_ms = desk.environment.clock.now_ms();
        let (added, evicted) = decide(&standing, now_ms);
        if added.is_empty() && evicted.is_empty() {
            return Ok(evicted);
        }
        let entry = |kind, data: Json| Entry { kind, at_ms: now_ms, data: object(data) };
        let mut entries: Vec<Entry> = added.iter().map(|one| entry(Kind::OverlayAdded, json!(one))).collect();
        entries.extend(evicted.iter().map(|one| entry(Kind::OverlayEvicted, json!(one))));
        let append = Append {
            run: stream.clone(),
            from: next,
            entries,
            bodies: Vec::new(),
            durability: Durability::Synced,
        };
        match desk.store.append(append).await {
            Ok(_) => return Ok(evicted),
            Err(Error::Moved { .. }) if tries < TRIES => tries += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whose overlays are meant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Whose {
    /// Those of this tenant's assemblies alone; a workspace sees all.
    pub tenant: Option<String>,
    /// Those of this assembly alone, by its name in its scope.
    pub assembly: Option<String>,
}

impl Whose {
    /// Whose are meant where somebody works (M10).
    pub fn here(environment: &Environment, assembly: Option<&str>) -> Self {
        let (_, scope) = weave::place(environment, None);
        Whose { tenant: scope.tenant().map(str::to_owned), assembly: assembly.map(str::to_owned) }
    }

    async fn streams(&self, store: &Store) -> Result<Vec<Name>, Stop> {
        let before = self.tenant.as_ref().map_or_else(String::new, |tenant| format!("{tenant}/"));
        match &self.assembly {
            // Somebody may write the name as listings have it.
            Some(assembly) if assembly.starts_with(&before) => Ok(vec![stream(assembly)]),
            Some(assembly) => Ok(vec![stream(&format!("{before}{assembly}"))]),
            None => Ok(store.streams(&format!("{STREAMS}{before}")).await?),
        }
    }
}

/// An overlay as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The overlay.
    pub overlay: Overlay,
    /// Whether it holds now.
    pub holds: bool,
}

/// The overlays that are meant; those that hold, the weightiest first, then those whose time is over and that
/// nobody has swept yet.
///
/// # Errors
/// When the ledger does not answer.
pub async fn list(desk: &Desk, whose: &Whose) -> Result<Vec<Listed>, Stop> {
    let now_ms = desk.environment.clock.now_ms();
    let mut listed = Vec::new();
    for stream in whose.streams(&desk.store).await? {
        let (standing, _) = read(&desk.store, &stream).await?;
        let active = standing.active(now_ms).into_iter().cloned();
        listed.extend(active.map(|overlay| Listed { overlay, holds: true }));
        let over = standing.all().iter().filter(|one| !one.holds(now_ms)).cloned();
        listed.extend(over.map(|overlay| Listed { overlay, holds: false }));
    }
    Ok(listed)
}

async fn streams(store: &Store, assembly: Option<&str>) -> Result<Vec<Name>, Stop> {
    match assembly {
        Some(assembly) => Ok(vec![stream(assembly)]),
        None => Ok(store.streams(STREAMS).await?),
    }
}

/// The overlay that an id or a unique prefix of one names.
///
/// # Errors
/// When there is none, or several.
pub async fn find(desk: &Desk, whose: &Whose, prefix: &str) -> Result<Listed, Stop> {
    let all = list(desk, whose).await?;
    let mut found: Vec<Listed> =
        all.into_iter().filter(|one| one.overlay.overlay.starts_with(&prefix.to_lowercase())).collect();
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => {
            let body = Body::new(format!("there is no overlay `{prefix}`"));
            let help = "`quorate overlays list` shows those that there are";
            Err(Stop::not_found(codes::OVERLAY_UNKNOWN, body.help(help)))
        }
        _ => {
            let body = Body::new(format!("`{prefix}` begins the ids of {} overlays", found.len()));
            Err(Stop::not_found(codes::OVERLAY_UNKNOWN, body.help("give more characters")))
        }
    }
}

/// Takes an overlay away before its time.
///
/// # Errors
/// As [`find`], and when the ledger does not answer.
pub async fn expire(desk: &Desk, whose: &Whose, prefix: &str) -> Result<Overlay, Stop> {
    let overlay = find(desk, whose, prefix).await?.overlay;
    let gone = Evicted {
        overlay: overlay.overlay.clone(),
        why: Why::Person,
        by: Some(desk.environment.user.clone()),
    };
    write(desk, &stream(&overlay.assembly), |standing, _| {
        let there = standing.all().iter().any(|one| one.overlay == gone.overlay);
        (Vec::new(), there.then(|| gone.clone()).into_iter().collect())
    })
    .await?;
    Ok(overlay)
}

/// Lets go of everything whose time is over; says what went.
///
/// # Errors
/// When the ledger does not answer.
pub async fn sweep(desk: &Desk, whose: &Whose) -> Result<Vec<Evicted>, Stop> {
    let mut evicted = Vec::new();
    for stream in whose.streams(&desk.store).await? {
        let leaving = |standing: &Standing, now_ms| (Vec::new(), standing.leaving(&[], usize::MAX, now_ms));
        evicted.extend(write(desk, &stream, leaving).await?);
    }
    Ok(evicted)
}

/// The overlays of an assembly, or of all, that were not evicted; a weave says of each whether its time is over.
///
/// # Errors
/// When the ledger does not answer.
pub async fn holding(store: &Store, assembly: Option<&str>) -> Result<Vec<Overlay>, Stop> {
    Watched::default().holding(store, assembly).await
}

/// The streams of assemblies as they were last read: what asks for them again and again reads what is new.
#[derive(Debug, Default)]
pub struct Watched(Mutex<BTreeMap<Name, Followed<Standing>>>);

impl Watched {
    /// As [`holding`].
    ///
    /// # Errors
    /// When the ledger does not answer.
    pub async fn holding(&self, store: &Store, assembly: Option<&str>) -> Result<Vec<Overlay>, Stop> {
        let mut known = self.0.lock().await;
        let mut all = Vec::new();
        for stream in streams(store, assembly).await? {
            let standing = read_on(store, &stream, known.entry(stream.clone()).or_default()).await?;
            all.extend(standing.all().iter().cloned());
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
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

    async fn add(store: &Store, n: u64) {
        let data = object(json!(overlay(n)));
        let entry = Entry { kind: Kind::OverlayAdded, at_ms: 1_000, data };
        store.append(Append::one(&stream("a"), n, entry, Durability::Written)).await.expect("appended");
    }

    async fn ids(watched: &Watched, store: &Store) -> Result<Vec<String>, Stop> {
        Ok(watched.holding(store, None).await?.into_iter().map(|one| one.overlay).collect())
    }

    #[tokio::test]
    async fn a_prompt_reads_what_came_since_the_last_one() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("ledger.db");
        let store = Store::open(&path).await.expect("it opens").store;
        let watched = Watched::default();
        assert!(ids(&watched, &store).await.expect("none yet").is_empty());
        for n in 0..3 {
            add(&store, n).await;
        }
        assert_eq!(ids(&watched, &store).await.expect("three"), ["o0", "o1", "o2"]);
        // What was read is not read again: who reads all of it finds that it was changed.
        let url = format!("sqlite://{}", path.display());
        let mut sqlite = <sqlx::SqliteConnection as sqlx::Connection>::connect(&url).await.expect("it opens");
        sqlx::raw_sql("UPDATE record SET data = '{}' WHERE n = 1")
            .execute(&mut sqlite)
            .await
            .expect("changed");
        add(&store, 3).await;
        assert!(holding(&store, None).await.is_err());
        assert_eq!(ids(&watched, &store).await.expect("four"), ["o0", "o1", "o2", "o3"]);
        // Where the ledger is another one, what was read of it does not hold.
        sqlx::raw_sql("DELETE FROM record").execute(&mut sqlite).await.expect("emptied");
        assert!(ids(&watched, &store).await.expect("none").is_empty());
    }
}
