//! For people who take part: saying something, reading what was said, looking at what a participant remembers. None of
//! it needs the runtime to run, or the ledger.

use std::sync::Arc;

use quorate_adapters::executor::agent_cli::MEMBER_ID_VARIABLE;
use quorate_diagnostics::{Body, codes};
use quorate_kernel::clock::rfc3339;
use quorate_kernel::consultation::object;
use quorate_kernel::conversation::{NewTurn, Origin, Participant, Stamp, Turn};
use quorate_kernel::entropy;
use quorate_kernel::ports::substrate::{Keeps, Lifetime, Substrate};
use quorate_kernel::redact::Redactor;
use quorate_kernel::turn::evidence::Evidence;
use quorate_manifest::runtime::load::RESERVED_AUTHORS;
use quorate_protocol::locks::look_of_name;
use quorate_protocol::{Json, Name};
use serde_json::Map;

use super::Runtime;
use crate::service::error::{ExitClass, ServiceError, error_chain};

/// Every turn of an author has the name.
const MAX_NAME_CHARS: usize = 200;

/// The author of messages without a name. No participant has it as its id.
pub const DEFAULT_SPEAKER: &str = RESERVED_AUTHORS[0];
/// How many turns are read at once.
const PAGE: usize = 512;

impl Runtime {
    /// The redacted message, and warnings about it.
    #[crate::boxed]
    pub async fn redact(&self, text: &str, meta: Map<String, Json>) -> (String, Map<String, Json>) {
        let (text, bytes) = (text.to_owned(), text.len());
        let work = move |redactor: &Redactor| {
            (redactor.redact(&text).0, object(redactor.redact_json(Json::Object(meta)).0))
        };
        self.redactor.run_blocking_if_large(bytes, work).await
    }
}

/// Which names the author of a turn may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthorRule {
    /// No participant's, and none that looks like one.
    PeopleOnly,
    /// Also a participant's: the turn says that a person wrote it.
    Anyone,
}

/// Appends a turn of a person's.
///
/// # Errors
/// When there is nothing to say, the name is a participant's, or the substrate refuses or fails.
#[crate::boxed]
pub async fn say(runtime: &Runtime, text: &str, by: &str, rule: AuthorRule) -> Result<Turn, ServiceError> {
    let invalid = |message: &str, help: &str| {
        Err(ServiceError::new(ExitClass::Usage, codes::USAGE, Body::new(message).help(help)))
    };
    if text.trim().is_empty() {
        return invalid("there is nothing to say", "give a text, or - for standard input");
    }
    if by.is_empty() || by.contains(char::is_whitespace) || by.contains(char::is_control) {
        return invalid("a name has no white space and is not empty", "use - or _ between words");
    }
    if by.chars().count() > MAX_NAME_CHARS {
        return invalid("the name is too long", "a name has at most 200 characters");
    }
    let origin = author_origin(runtime, by, rule)?;
    let turn = NewTurn {
        participant: by.into(),
        content: runtime.redact(text, Map::new()).await.0.into(),
        timestamp: rfc3339(runtime.environment.clock.now_ms()),
        meta: Map::new(),
        stamp: origin.map(origin_stamp),
    };
    Ok(runtime.substrate.append(turn).await?.turn)
}

/// The writer of a turn, if not its author. A member's process may write as a person or as that member.
///
/// # Errors
/// `quorate:author_is_participant`.
pub fn author_origin(runtime: &Runtime, by: &str, rule: AuthorRule) -> Result<Option<Origin>, ServiceError> {
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
            let help =
                "use another name; `quorate say --yes` writes in a participant's name and marks the turn";
            Err(ServiceError::new(
                ExitClass::Usage,
                codes::AUTHOR_IS_PARTICIPANT,
                Body::new(message).help(help),
            ))
        }
    }
}

/// The stamp of a turn that answers none. No manifest id has a colon.
pub fn origin_stamp(origin: Origin) -> Stamp {
    let key = format!("say/{}", entropy::run_id()).into();
    Stamp { key, runtime: "say:".into(), origin: Some(origin), ..Stamp::default() }
}

impl Runtime {
    /// The participant that a person's turn with this author would be taken for, by its id or its display name.
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

/// Appends a turn of a person's for other processes to find.
///
/// # Errors
/// As [`say`], and where no other process could find it.
#[crate::boxed]
pub async fn post(runtime: &Runtime, text: &str, by: &str, rule: AuthorRule) -> Result<Turn, ServiceError> {
    check_shared(runtime, "post it to the process that answers: `quorate run MANIFEST --say TEXT`")?;
    say(runtime, text, by, rule).await
}

/// Refuses a conversation in the memory of the process that runs it: this process would see an empty one.
///
/// # Errors
/// `quorate:conversation_not_shared`.
pub fn check_shared(runtime: &Runtime, instead: &str) -> Result<(), ServiceError> {
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
    Err(ServiceError::configuration(codes::CONVERSATION_NOT_SHARED, Body::new(message).help(help)))
}

impl Runtime {
    /// Suggestions for mentions that match no participant.
    pub fn probable_addressees(&self, text: &str) -> Vec<String> {
        self.ports.dispatcher.near_misses(text, &self.participants)
    }
}

/// A reading of a conversation that continues where it left off.
pub struct ConversationReader {
    substrate: Arc<dyn Substrate>,
    at: Option<Name>,
    /// Names the authors of turns where the conversation does not.
    evidence: Evidence,
}

impl ConversationReader {
    pub fn new(runtime: &Runtime) -> Self {
        ConversationReader { substrate: runtime.substrate.clone(), at: None, evidence: Evidence::default() }
    }

    /// From the beginning of what other processes have said.
    ///
    /// # Errors
    /// If this process could find no trace of it.
    #[crate::boxed]
    pub async fn shared(runtime: &Runtime) -> Result<Self, ServiceError> {
        check_shared(runtime, "read what the ledger has of it: `quorate log MANIFEST --records`")?;
        let mut reader = ConversationReader::new(runtime);
        if reader.substrate.about().keeps == Keeps::Turns {
            reader.evidence = Evidence::from_records(&runtime.records().await?);
        }
        Ok(reader)
    }

    /// New turns, at most a page; empty without any.
    ///
    /// # Errors
    /// When the substrate fails.
    #[crate::boxed]
    pub async fn next_page(&mut self) -> Result<Vec<Turn>, ServiceError> {
        let mut page = self.substrate.read(self.at.as_ref(), PAGE).await?;
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
    pub async fn last(&mut self, count: Option<usize>) -> Result<Vec<Turn>, ServiceError> {
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

    /// Returns when there may be something new.
    ///
    /// # Errors
    /// When the substrate fails.
    #[crate::boxed]
    pub async fn changed(&self) -> Result<(), ServiceError> {
        Ok(self.substrate.changed().await?)
    }
}

/// What a participant remembers.
///
/// # Errors
/// When there is no such participant, or the store fails.
#[crate::boxed]
pub async fn state(runtime: &Runtime, participant: &str) -> Result<Map<String, Json>, ServiceError> {
    if !runtime.participants.iter().any(|known| *known.id == *participant) {
        return Err(runtime.no_such_participant(participant));
    }
    let read = runtime.state.read(participant).await;
    read.map_err(|error| ServiceError::configuration(codes::STATE_UNREADABLE, Body::new(error_chain(&error))))
}
