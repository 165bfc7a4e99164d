//! A conversation for people: appending a turn, reading turns, and reading what a participant remembers. None of it needs a
//! running runtime or a ledger.

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
use quorate_manifest::runtime::RESERVED_AUTHORS;
use quorate_protocol::locks::look_of_name;
use quorate_protocol::{Json, Name};
use serde_json::Map;

use super::Runtime;
use crate::service::error::{ExitClass, ServiceError, error_chain};

/// The longest name of an author, which each turn contains.
const MAX_NAME_CHARS: usize = 200;

/// The author of messages without a name. No participant can have this id.
pub const DEFAULT_SPEAKER: &str = RESERVED_AUTHORS[0];
/// How many turns are read at once.
const PAGE: usize = 512;

impl Runtime {
    /// Redacts a message and its metadata.
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
    /// Any name that is not, and does not look like, the name of a participant.
    PeopleOnly,
    /// Also the name of a participant: the turn records that a person wrote it.
    Anyone,
}

/// Appends a turn of a person.
///
/// # Errors
/// If the text is empty, the rule forbids the name, or the substrate refuses the turn or fails.
#[crate::boxed]
pub async fn say(runtime: &Runtime, text: &str, by: &str, rule: AuthorRule) -> Result<Turn, ServiceError> {
    let invalid = |message: &str, help: &str| {
        Err(ServiceError::new(ExitClass::Usage, codes::USAGE, Body::new(message).help(help)))
    };
    if text.trim().is_empty() {
        return invalid("the text is empty", "give a text, or `-` for standard input");
    }
    if by.is_empty() || by.contains(char::is_whitespace) || by.contains(char::is_control) {
        return invalid("the name is empty or has white space", "use `-` or `_` between words");
    }
    if by.chars().count() > MAX_NAME_CHARS {
        return invalid("the name is too long", "use at most 200 characters");
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

/// The writer of a turn, if it is not the author. The process of a member may write as a person or as that member.
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
            let help = "use another name, or `quorate say --yes` to write in the participant's name and mark the turn";
            Err(ServiceError::new(
                ExitClass::Usage,
                codes::AUTHOR_IS_PARTICIPANT,
                Body::new(message).help(help),
            ))
        }
    }
}

/// The stamp of a turn that does not answer another. The runtime `say:` cannot be a manifest's id, which has no colon.
pub fn origin_stamp(origin: Origin) -> Stamp {
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

/// Appends a turn of a person to a conversation that other processes can read.
///
/// # Errors
/// As [`say`], and if the conversation is only in the memory of a process.
#[crate::boxed]
pub async fn post(runtime: &Runtime, text: &str, by: &str, rule: AuthorRule) -> Result<Turn, ServiceError> {
    check_shared(runtime, "start the conversation with the text: `quorate run MANIFEST --say TEXT`")?;
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

/// A reader of a conversation that continues where it left off.
pub struct ConversationReader {
    substrate: Arc<dyn Substrate>,
    at: Option<Name>,
    /// Names the authors of turns if the conversation does not.
    evidence: Evidence,
}

impl ConversationReader {
    pub fn new(runtime: &Runtime) -> Self {
        ConversationReader { substrate: runtime.substrate.clone(), at: None, evidence: Evidence::default() }
    }

    /// A reader at the beginning of a conversation that other processes write.
    ///
    /// # Errors
    /// If the conversation is only in the memory of another process, or the ledger cannot be read.
    #[crate::boxed]
    pub async fn shared(runtime: &Runtime) -> Result<Self, ServiceError> {
        check_shared(runtime, "read its records in the ledger with `quorate log MANIFEST --records`")?;
        let mut reader = ConversationReader::new(runtime);
        if reader.substrate.about().keeps == Keeps::Turns {
            reader.evidence = Evidence::from_records(&runtime.records().await?);
        }
        Ok(reader)
    }

    /// The next page of new turns; empty if there are none.
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

    /// Waits until there may be new turns.
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
/// If the participant is unknown, or the store fails.
#[crate::boxed]
pub async fn state(runtime: &Runtime, participant: &str) -> Result<Map<String, Json>, ServiceError> {
    if !runtime.participants.iter().any(|known| *known.id == *participant) {
        return Err(runtime.no_such_participant(participant));
    }
    let read = runtime.state.read(participant).await;
    read.map_err(|error| ServiceError::configuration(codes::STATE_UNREADABLE, Body::new(error_chain(&error))))
}
