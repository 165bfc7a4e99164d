//! The `mention` dispatcher (K4) selects the participants that the last turn mentions, in the manifest's order.
//! `mention/parser.rs` defines a mention.
//!
//! With `boundary: word` a mention must not be followed by a word character, so that `@Reviewer` does not select a
//! `Rev`.

mod near_miss;
pub mod parser;

use std::sync::Arc;

use async_trait::async_trait;
use quorate_kernel::conversation::{Capability, Participant};
use quorate_kernel::ports::dispatcher::{Dispatcher, Error, Input};
use quorate_kernel::ports::executor::ConfigError;
use quorate_kernel::registry::BuildContext;
use quorate_protocol::Name;

use super::{REENTRY, candidates, parse_block};
use parser::{Boundary, first_word, mentions};

/// The kind that manifests name.
pub const KIND: &str = "mention";

const WORD: &str = "word";

/// Builds the dispatcher from its block.
///
/// # Errors
/// When the block has an unknown key, or a `boundary` other than `word`.
pub fn new(build: &BuildContext<'_>) -> Result<Arc<dyn Dispatcher>, ConfigError> {
    let block = parse_block(build, &["boundary"])?;
    let boundary = match block.text("boundary")? {
        None => Boundary::Anything,
        Some(WORD) => Boundary::Word,
        Some(other) => {
            return Err(ConfigError::for_key("boundary", format!("there is no boundary `{other}`"))
                .with_help("`word`, or leave it out: then a mention may go on as it likes"));
        }
    };
    Ok(Arc::new(Mention { boundary, reentry: block.flag(REENTRY)? }))
}

struct Mention {
    boundary: Boundary,
    reentry: bool,
}

#[async_trait]
impl Dispatcher for Mention {
    fn kind(&self) -> &'static str {
        KIND
    }

    async fn select(&self, input: Input<'_>) -> Result<Vec<Name>, Error> {
        let Some(trigger) = input.trigger() else { return Ok(Vec::new()) };
        if !input.capabilities.contains(&Capability::Mentions) {
            return Ok(Vec::new());
        }
        let mentioned =
            |participant: &&Participant| mentions(&trigger.content, &participant.display_name, self.boundary);
        Ok(candidates(&input, self.reentry)
            .filter(mentioned)
            .map(|participant| participant.id.clone())
            .collect())
    }

    fn near_misses(&self, text: &str, participants: &[Participant]) -> Vec<String> {
        near_miss::near_misses(text, participants, self.boundary)
    }

    /// Warns of names whose mention selects another participant too.
    fn warnings(&self, participants: &[Participant]) -> Vec<String> {
        let mut warnings = Vec::new();
        for (at, first) in participants.iter().enumerate() {
            for second in &participants[at + 1..] {
                let warning = ambiguity_warning(first, second, self.boundary)
                    .or_else(|| ambiguity_warning(second, first, self.boundary));
                warnings.extend(warning);
            }
        }
        warnings
    }
}

/// The warning for a name `meant` whose mention selects `also` too.
fn ambiguity_warning(meant: &Participant, also: &Participant, boundary: Boundary) -> Option<String> {
    let name = &*meant.display_name;
    let spellings = [Some(name), first_word(name)].into_iter().flatten();
    let mention = spellings
        .map(|name| format!("@{name}"))
        .find(|mention| mentions(mention, &also.display_name, boundary))?;
    let help = match boundary {
        Boundary::Anything if !mentions(&mention, &also.display_name, Boundary::Word) => {
            "set `boundary: word` in the dispatcher's block, or give one of them another displayName"
        }
        _ => "give one of them another displayName",
    };
    Some(format!(
        "`{mention}`, which is how `{}` is mentioned, also selects `{}` ({}); {help}",
        meant.id, also.id, also.display_name
    ))
}
