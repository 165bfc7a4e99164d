//! The conversation of a runtime, without running it: appending a person's turn, reading turns and waiting for new ones, and
//! reading what a participant remembers.
//!
//! For `log`, `check` and `ledger verify` it compares whole conversations with the ledger (D15). A runner compares only the
//! turns that it reads (`kernel/turn/evidence.rs`).

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quorate_adapters::executor::agent_cli::MEMBER_ID_VARIABLE;
use quorate_adapters::substrate;
use quorate_diagnostics::{Body, Place, Report, codes};
use quorate_kernel::attempts::object;
use quorate_kernel::clock::rfc3339;
use quorate_kernel::conversation::{NewTurn, Origin, Participant, Stamp, Turn};
use quorate_kernel::entropy;
use quorate_kernel::ports::ledger::{Ledger as _, Record};
use quorate_kernel::ports::state::StateError;
use quorate_kernel::ports::substrate::{Keeps, Lifetime, Substrate, SubstrateError};
use quorate_kernel::ports::telemetry::{Event, EventKind};
use quorate_kernel::redact::Redactor;
use quorate_kernel::turn::evidence::{Alteration, Evidence, Scope};
use quorate_manifest::runtime::RESERVED_AUTHORS;
use quorate_protocol::locks::look_of_name;
use quorate_protocol::{Json, Name};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Map;
use tokio::sync::{Mutex, MutexGuard, Notify, watch};
use tokio::time::Instant;

use super::{OpenRuntime, Runtime};
use crate::error::Error;
use crate::jobs::Waiter;
use crate::service::disk::{self, display_path};
use crate::service::error::{ErrorKind, error_chain};

/// The longest name of an author, which each turn contains.
const MAX_NAME_CHARS: usize = 200;

/// The author of messages without a name. No participant can have this id.
pub const DEFAULT_SPEAKER: &str = RESERVED_AUTHORS[0];
/// What to do instead of reading a conversation that is in the memory of another process.
pub(crate) const READ_RECORDS: &str = "read its records in the ledger with `quorate log MANIFEST --records`";
/// How many turns are read at once.
const PAGE: usize = 512;

impl Runtime {
    /// A text for display, without the secrets of the conversation's workspace: another program may have written it.
    pub(crate) fn shown(&self, text: &str) -> String {
        self.redactor.without_patterns().redact(text).0
    }

    /// Redacts a message and its metadata.
    pub(crate) async fn redact(&self, text: &str, meta: Map<String, Json>) -> (String, Map<String, Json>) {
        let (text, bytes) = (text.to_owned(), text.len());
        let work = move |redactor: &Redactor| {
            (redactor.redact(&text).0, object(redactor.redact_json(Json::Object(meta)).0))
        };
        self.redactor.run_blocking_if_large(bytes, work).await
    }
}

/// Which names the author of a turn may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AuthorRule {
    /// Any name that is not, and does not look like, the name of a participant.
    #[default]
    PeopleOnly,
    /// Also the name of a participant: the turn records that a person wrote it.
    Anyone,
}

/// A turn of a person to append.
#[derive(Debug, Clone, Default)]
pub struct SayRequest {
    /// The content.
    pub text: String,
    /// The author, without white space; `None` for [`DEFAULT_SPEAKER`].
    pub by: Option<String>,
    /// Whether the author may be a participant.
    pub rule: AuthorRule,
    /// Whether other processes read the conversation: one in the memory of this process is then refused.
    pub is_shared: bool,
}

/// Appends a turn of a person.
///
/// # Errors
/// If the text is empty, the rule forbids the name, or the substrate refuses the turn or fails.
#[crate::boxed]
pub async fn say(runtime: &Runtime, request: &SayRequest) -> Result<Turn, Error> {
    let (text, by) = (&request.text, request.by.as_deref().unwrap_or(DEFAULT_SPEAKER));
    if request.is_shared {
        check_shared(runtime, "start the conversation with the text: `quorate run MANIFEST --say TEXT`")?;
    }
    check_message(text, by)?;
    if by.chars().count() > MAX_NAME_CHARS {
        return Err(invalid_message("the name is too long", "use at most 200 characters"));
    }
    let origin = author_origin(runtime, by, request.rule)?;
    let turn = NewTurn {
        participant: by.into(),
        content: runtime.redact(text, Map::new()).await.0.into(),
        timestamp: rfc3339(runtime.environment.clock.now_ms()),
        meta: Map::new(),
        stamp: origin.map(origin_stamp),
    };
    Ok(runtime.substrate.append(turn).await?.turn)
}

/// Checks the text and the author of a message.
///
/// # Errors
/// If the text is empty, or the name is empty or has white space.
pub(crate) fn check_message(text: &str, by: &str) -> Result<(), Error> {
    if text.trim().is_empty() {
        return Err(invalid_message("the text is empty", "give a text, or `-` for standard input"));
    }
    if by.is_empty() || by.contains(char::is_whitespace) || by.contains(char::is_control) {
        return Err(invalid_message("the name is empty or has white space", "use `-` or `_` between words"));
    }
    Ok(())
}

fn invalid_message(message: &str, help: &str) -> Error {
    Error::usage(Body::new(message).help(help))
}

/// The writer of a turn, if it is not the author. The process of a member may write as a person or as that member.
///
/// # Errors
/// `quorate:author_is_participant`.
pub(crate) fn author_origin(runtime: &Runtime, by: &str, rule: AuthorRule) -> Result<Option<Origin>, Error> {
    let process = runtime.environment.variables.get(MEMBER_ID_VARIABLE).map(|id| Origin::Process(id.into()));
    let Some(participant) = runtime.participant_like(by) else { return Ok(process) };
    match process {
        Some(Origin::Process(id)) if id == participant.id && *id == *by => Ok(Some(Origin::Process(id))),
        None if rule == AuthorRule::Anyone => Ok(Some(Origin::Person)),
        _ => {
            let (id, runtime) = (&participant.id, &runtime.id);
            let message = match **id == *by {
                true => format!("cannot write as `{by}`: it is a participant of `{runtime}`"),
                false => {
                    format!("cannot write as `{by}`: it looks like the participant `{id}` of `{runtime}`")
                }
            };
            let help = "use another name, or `quorate say MANIFEST TEXT --yes` to write in the participant's name and mark the turn";
            Err(Error::new(
                ErrorKind::InvalidRequest,
                codes::AUTHOR_IS_PARTICIPANT,
                Body::new(message).help(help),
            ))
        }
    }
}

/// The stamp of a turn that does not answer another. The runtime `say:` cannot be a manifest's id, which has no colon.
pub(crate) fn origin_stamp(origin: Origin) -> Stamp {
    let key = format!("say/{}", entropy::run_id()).into();
    Stamp { key, runtime: "say:".into(), origin: Some(origin), ..Stamp::default() }
}

impl Runtime {
    /// The participant that this author looks like, by id or by display name.
    fn participant_like(&self, author: &str) -> Option<&Participant> {
        if author == DEFAULT_SPEAKER {
            return None;
        }
        let look = look_of_name(author);
        let is_alike = |name: &str| name == author || look_of_name(name) == look;
        let exact = self.participants.iter().find(|participant| *participant.id == *author);
        exact
            .or_else(|| self.participants.iter().find(|one| is_alike(&one.id) || is_alike(&one.display_name)))
    }
}

/// Refuses a conversation in the memory of the process that runs it: this process would see an empty one.
///
/// # Errors
/// `quorate:conversation_not_shared`.
pub(crate) fn check_shared(runtime: &Runtime, instead: &str) -> Result<(), Error> {
    let about = runtime.substrate.about();
    if about.lifetime == Lifetime::Persistent {
        return Ok(());
    }
    let message = format!(
        "the substrate `{}` of `{}` keeps its conversation in the process that runs it, so other commands cannot read it",
        about.kind, runtime.id
    );
    let help =
        format!("keep it in a file (`substrate: {{kind: file, path: ./conversation.md}}`), or {instead}");
    Err(Error::configuration(codes::CONVERSATION_NOT_SHARED, Body::new(message).help(help)))
}

impl Runtime {
    /// Suggestions for mentions that match no participant.
    pub(crate) fn probable_addressees(&self, text: &str) -> Vec<String> {
        self.ports.dispatcher.near_misses(text, &self.participants)
    }
}

/// Why a conversation is not read on: without this, a store that finds none of its own turns would be read without end.
const DAMAGED: &str = "the conversation is damaged: the turn that was read last is not in it";

/// A reader of a conversation that continues where it left off.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// # let dir = tempfile::tempdir()?;
/// use quorate::Quorate;
/// use quorate::conversation::SayRequest;
///
/// # let manifest = "schema: agentruntimes/v1\nkind: MultiAgentRuntime\nid: desk\nsubstrate: {kind: file, path: desk.txt}\n\
/// #     participants: [{id: skeptic, executor: rubric}]\ndispatcher: {kind: mention}\n";
/// # std::fs::write(dir.path().join("desk.yaml"), manifest)?;
/// let desk = Quorate::builder().workspace(dir.path()).build()?.conversation("desk.yaml")?;
/// let mut reader = desk.reader().await?;
/// assert!(reader.next_page().await?.is_empty());
/// desk.say(&SayRequest { text: "The meeting moved.".to_owned(), ..SayRequest::default() }).await?;
/// assert_eq!(&*reader.next_page().await?[0].content, "The meeting moved.");
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ConversationReader {
    substrate: Arc<dyn Substrate>,
    at: Option<Name>,
    /// Whether the last page began at the beginning again, since the turn read before was gone.
    is_restarted: bool,
    /// Names the authors of turns if the conversation does not.
    evidence: Evidence,
}

impl ConversationReader {
    pub(crate) fn new(runtime: &Runtime) -> Self {
        ConversationReader {
            substrate: runtime.substrate.clone(),
            at: None,
            is_restarted: false,
            evidence: Evidence::default(),
        }
    }

    /// A reader at the beginning of a conversation, which names authors that only the ledger has.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub(crate) async fn with_authors(runtime: &Runtime) -> Result<Self, Error> {
        let mut reader = ConversationReader::new(runtime);
        if reader.substrate.about().keeps == Keeps::Turns {
            reader.evidence = Evidence::from_records(&runtime.records(None).await?);
        }
        Ok(reader)
    }

    /// The next page of new turns; empty if there are none.
    ///
    /// # Errors
    /// When the substrate fails.
    #[crate::boxed]
    pub async fn next_page(&mut self) -> Result<Vec<Turn>, Error> {
        let mut page = self.substrate.read(self.at.as_ref(), PAGE).await?;
        let is_restarted = self.at.is_some() && !page.known;
        if is_restarted && std::mem::replace(&mut self.is_restarted, is_restarted) {
            return Err(SubstrateError::Refused(DAMAGED.to_owned()).into());
        }
        self.is_restarted = is_restarted;
        self.evidence.name_authors(&mut page.turns);
        if let Some(last) = page.turns.last() {
            self.at = Some(last.id.clone());
        }
        Ok(page.turns)
    }

    /// The last `count` turns, or all.
    ///
    /// # Errors
    /// When the substrate fails.
    #[crate::boxed]
    pub async fn last(&mut self, count: Option<usize>) -> Result<Vec<Turn>, Error> {
        let mut turns = Vec::new();
        loop {
            let page = self.next_page().await?;
            if page.is_empty() {
                return Ok(turns);
            }
            turns.extend(page);
            if let Some(count) = count
                && turns.len() > count
            {
                turns.drain(..turns.len() - count);
            }
        }
    }

    /// Waits until there may be new turns.
    ///
    /// # Errors
    /// When the substrate fails.
    #[crate::boxed]
    pub async fn changed(&self) -> Result<(), Error> {
        Ok(self.substrate.changed().await?)
    }
}

/// What a participant remembers.
///
/// # Errors
/// If the participant is unknown, or the store fails.
pub(crate) async fn state(runtime: &Runtime, participant: &str) -> Result<Map<String, Json>, Error> {
    if !runtime.participants.iter().any(|known| *known.id == *participant) {
        return Err(runtime.no_such_participant(participant));
    }
    runtime.state.read(participant).await.map_err(state_unreadable)
}

pub(crate) fn state_unreadable(error: StateError) -> Error {
    Error::configuration(codes::STATE_UNREADABLE, Body::new(error_chain(&error)))
}

/// What to do about an altered conversation.
pub(crate) const HELP: &str = "restore the text (`quorate log MANIFEST --records` lists the recorded turns), or continue in a \
                        conversation at another place, or accept this one with `quorate run MANIFEST --from-now`: then no \
                        participant sees the existing turns";

/// The refusal of an altered turn.
pub(super) fn refusal(alteration: &Alteration) -> Error {
    let body = Body::new(format!("the conversation was altered: {}", alteration.what));
    Error::new(ErrorKind::Refused, codes::CONVERSATION_ALTERED, body.help(HELP))
}

impl Runtime {
    /// Whether reading the conversation creates no file and connects to no other system.
    pub(in crate::service) fn is_readable_locally(&self) -> bool {
        let kind = self.substrate.about().kind;
        [substrate::file::KIND, substrate::sqlite::KIND].contains(&kind) && self.missing_databases.is_empty()
    }

    /// Refuses turns that do not match their ids, before another system gets them as their authors' words.
    ///
    /// # Errors
    /// `quorate:conversation_altered`.
    pub(crate) fn ensure_proven(&self, turns: &[Turn]) -> Result<(), Error> {
        let proof = |turn: &Turn| self.substrate.id_proof(turn);
        let found = Evidence::default().compare_each(&self.id, turns, proof);
        found.first().map_or(Ok(()), |altered| Err(refusal(altered)))
    }

    /// Refuses each turn of the conversation that differs from the ledger.
    ///
    /// # Errors
    /// If conversation or ledger cannot be read.
    pub(crate) async fn find_alterations(&self) -> Result<Report, Error> {
        self.report_alterations(&self.records(None).await?).await
    }

    /// As [`Runtime::find_alterations`], for `check`, which is synchronous and connects to no other system: it does not
    /// compare a conversation on a server, and with a ledger on a server it compares only the ids.
    pub(super) fn find_local_alterations(&self) -> Report {
        if !self.is_readable_locally() {
            return Report::new();
        }
        let compare = async {
            match self.ledger.file() {
                Some(_) => self.find_alterations().await,
                None => self.report_alterations(&[]).await,
            }
        };
        // On its own thread, since the caller may be inside of an asynchronous runtime.
        let wait = || match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime.block_on(compare),
            Err(error) => {
                let body = Body::new(format!("cannot read the conversation: {error}"));
                Err(Error::configuration(codes::SUBSTRATE_UNAVAILABLE, body))
            }
        };
        let found = std::thread::scope(|scope| scope.spawn(wait).join());
        match found.unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
            Ok(report) => report,
            Err(error) => *error.report,
        }
    }

    async fn report_alterations(&self, records: &[Record]) -> Result<Report, Error> {
        let mut report = Report::new();
        for alteration in self.alterations(records).await? {
            let mut body = Body::new(format!("the conversation was altered: {}", alteration.what));
            if let Some((file, line)) = self.substrate.locate(&alteration.turn) {
                let shown = display_path(&self.environment, &file);
                let at = line_offset(&file, line, &shown, &mut report);
                body = body.at(Place { file: shown.into(), span: at..at, path: String::new() });
            }
            report.refuse(codes::CONVERSATION_ALTERED, body.help(HELP));
        }
        Ok(report)
    }

    /// The turns of the conversation that differ from these records.
    ///
    /// # Errors
    /// If the conversation cannot be read.
    pub(in crate::service) async fn alterations(&self, records: &[Record]) -> Result<Vec<Alteration>, Error> {
        let evidence = Evidence::from_records(records);
        let mut turns = ConversationReader::new(self).last(None).await?;
        let substrate = &*self.substrate;
        if substrate.about().keeps == Keeps::Turns {
            evidence.name_authors(&mut turns);
        }
        let proof = |turn: &Turn| substrate.id_proof(turn);
        Ok(evidence.compare(&self.id, &turns, proof, Scope::Whole))
    }
}

/// The offset of a line. Adds its file to the report's sources.
fn line_offset(file: &Path, line: usize, shown: &str, report: &mut Report) -> usize {
    if !report.sources.contains_key(shown)
        && let Ok(Some(text)) = disk::read_text(file)
    {
        report.add_source(shown, text);
    }
    let text = report.sources.get(shown);
    text.map_or(0, |text| text.split_inclusive('\n').take(line - 1).map(str::len).sum())
}

/// How many of the last records a window is compared with.
const WINDOW_RECORDS: u32 = 1_024;

impl OpenRuntime {
    /// Refuses a window with an altered turn, and names the authors of its turns.
    ///
    /// # Errors
    /// `quorate:conversation_altered`, and if the ledger cannot be read.
    pub(in crate::service) async fn check_window(
        &self,
        substrate: &dyn Substrate,
        window: &mut Vec<Turn>,
    ) -> Result<(), Error> {
        let records = self.store.tail(&self.runtime.stream(), WINDOW_RECORDS).await?;
        let evidence = Evidence::from_records(&records);
        evidence.remove_accepted(window);
        if substrate.about().keeps == Keeps::Turns {
            evidence.name_authors(window);
        }
        let found = evidence.compare_each(&self.runtime.id, window, |turn| substrate.id_proof(turn));
        found.first().map_or(Ok(()), |altered| Err(refusal(altered)))
    }
}

/// The pause after each wake-up, since a substrate may wake its waiter without news.
const WAKE_PAUSE: Duration = Duration::from_millis(20);

/// The turns of a read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TurnPage {
    /// Oldest first.
    pub turns: Vec<Turn>,
    /// Whether there are more in the direction of the read.
    pub more: bool,
    /// Whether the turn that the read started from exists.
    pub known: bool,
}

/// What a participant does
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Doing {
    /// It is being asked.
    Asked,
    /// It has answered in this run.
    Answered,
    /// It was asked in this run and has not answered.
    Failed,
}

/// The activity of this process in a conversation.
#[derive(Debug, Clone, Default)]
pub struct Activity {
    /// The participants that were asked, by id, each with the reason where it failed.
    pub participants: BTreeMap<Name, (Doing, Option<String>)>,
    /// Whether a run answers open turns now.
    pub is_answering: bool,
}

/// What all handles of a conversation in this process share.
#[derive(Default)]
pub(crate) struct Shared {
    activity: watch::Sender<Activity>,
    /// Held by the run that answers.
    alone: Mutex<()>,
    /// Notified of reads and appends. A substrate wakes only its last reader, and readers wake each other.
    news: Notify,
}

/// A run's turn to answer. No participant is being asked once it is dropped.
pub(crate) struct Answering<'s> {
    shared: &'s Shared,
    _alone: MutexGuard<'s, ()>,
}

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        self.shared.activity.send_modify(|activity| {
            activity.is_answering = false;
            activity.participants.retain(|_, (doing, _)| *doing != Doing::Asked);
        });
        self.shared.notify_appended();
    }
}

impl Shared {
    /// Notifies waiters of an append by this process.
    pub(crate) fn notify_appended(&self) {
        self.news.notify_waiters();
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Activity> {
        self.activity.subscribe()
    }

    /// Waits until no other run of this process answers.
    pub(crate) async fn begin(&self) -> Answering<'_> {
        let alone = self.alone.lock().await;
        self.activity.send_modify(|activity| activity.is_answering = true);
        Answering { shared: self, _alone: alone }
    }

    /// Tracks the participants of a run.
    pub(crate) fn observe(&self, event: &Event) {
        let (participant, doing, why) = match &event.kind {
            EventKind::ParticipantStarted { participant, .. } => (participant, Doing::Asked, None),
            EventKind::ParticipantFinished { participant, .. } => (participant, Doing::Answered, None),
            EventKind::ParticipantFailed { participant, error, .. } => {
                (participant, Doing::Failed, Some(error.clone()))
            }
            _ => return,
        };
        self.activity.send_modify(|activity| {
            activity.participants.insert(participant.clone(), (doing, why));
        });
    }
}

/// The turns of a conversation, for concurrent readers.
pub struct Turns {
    substrate: Arc<dyn Substrate>,
    /// The newest turn seen so far, so that a search for newer turns starts there.
    newest: Mutex<Option<Name>>,
    shared: Arc<Shared>,
}

impl Turns {
    pub(crate) fn new(substrate: Arc<dyn Substrate>, shared: Arc<Shared>) -> Turns {
        Turns { substrate, newest: Mutex::new(None), shared }
    }

    /// The newest turns.
    ///
    /// # Errors
    /// When the substrate fails.
    #[crate::boxed]
    pub async fn newest(&self, limit: usize) -> Result<TurnPage, Error> {
        let Some(last) = self.newest_id().await? else {
            return Ok(TurnPage { known: true, ..TurnPage::default() });
        };
        let mut turns = self.substrate.window(&last, limit + 1).await?;
        let more = turns.len() > limit;
        turns.drain(..turns.len().saturating_sub(limit));
        Ok(TurnPage { turns, more, known: true })
    }

    /// The turns right before `at`.
    ///
    /// # Errors
    /// When the substrate fails.
    #[crate::boxed]
    pub async fn before(&self, at: &Name, limit: usize) -> Result<TurnPage, Error> {
        let mut turns = self.substrate.window(at, limit + 2).await?;
        let known = turns.pop().is_some();
        let more = turns.len() > limit;
        turns.drain(..turns.len().saturating_sub(limit));
        Ok(TurnPage { turns, more, known })
    }

    /// The turns right after `at`; the first ones if it is `None` or does not exist.
    ///
    /// # Errors
    /// When the substrate fails.
    #[crate::boxed]
    pub async fn after(&self, at: Option<&Name>, limit: usize) -> Result<TurnPage, Error> {
        let page = self.substrate.read(at, limit + 1).await?;
        let (mut turns, known) = (page.turns, at.is_none() || page.known);
        if !turns.is_empty() {
            self.shared.notify_appended();
        }
        let more = turns.len() > limit;
        turns.truncate(limit);
        Ok(TurnPage { turns, more, known })
    }

    /// As [`Turns::after`], once there are any; empty if none arrive within `wait`. Without a turn to start from,
    /// the newest.
    ///
    /// # Errors
    /// When the substrate fails.
    pub async fn wait_for_turns(
        &self,
        at: Option<&Name>,
        limit: usize,
        wait: Duration,
        caller: &impl Waiter,
    ) -> Result<TurnPage, Error> {
        let error = Instant::now() + wait;
        loop {
            let news = self.shared.news.notified();
            tokio::pin!(news);
            // From here on no notification is missed, even if another reader reads the turn first.
            news.as_mut().enable();
            let found = match at {
                Some(_) => self.after(at, limit).await?,
                None => self.newest(limit).await?,
            };
            if !found.turns.is_empty() || !found.known {
                return Ok(found);
            }
            tokio::select! {
                biased;
                () = caller.cancelled() => return Ok(found),
                () = tokio::time::sleep_until(error) => return Ok(found),
                () = news => {}
                changed = self.substrate.changed() => {
                    changed?;
                    self.shared.notify_appended();
                    tokio::time::sleep(WAKE_PAUSE).await;
                }
            }
        }
    }

    /// The id of the newest turn; `None` without turns.
    ///
    /// # Errors
    /// When the substrate fails.
    #[crate::boxed]
    pub async fn newest_id(&self) -> Result<Option<Name>, Error> {
        let mut newest = self.newest.lock().await;
        let mut is_restarted = false;
        loop {
            let page = self.substrate.read(newest.as_ref(), PAGE).await?;
            if newest.is_some() && !page.known {
                // The conversation was truncated or replaced: the page is from its beginning.
                if std::mem::replace(&mut is_restarted, true) {
                    return Err(SubstrateError::Refused(DAMAGED.to_owned()).into());
                }
                *newest = None;
            }
            let Some(last) = page.turns.last() else { return Ok(newest.clone()) };
            *newest = Some(last.id.clone());
            self.shared.notify_appended();
        }
    }
}
