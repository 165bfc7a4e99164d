//! The `capability-match` dispatcher selects the participant whose `meta.capabilities` fit the last turn best.
//!
//! Its only rubric, `skim-and-tag`:
//!
//! 1. The last turn is read as a set of words: split at every character that is neither letter nor digit, in lower
//!    case, without inflection (`migrations`, `migrate` and `migrated` are one word).
//! 2. A capability is a tag and is read in the same way, so that `code-review` has two words.
//! 3. A participant scores one point for each tag whose words all occur. A tie is broken by the number of different
//!    words of its other tags that occur.
//! 4. The highest score wins, then the manifest's order. If all scores are zero, no participant is selected.
//!
//! So a turn about a *schema* goes to `[database, schema]` and not to `[code-review]`, even if it mentions reviews;
//! *please review this* goes to `[code-review]`, since no other participant scores.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use quorate_kernel::conversation::Participant;
use quorate_kernel::ports::dispatcher::{DispatchError, Dispatcher, Input};
use quorate_kernel::ports::executor::ConfigError;
use quorate_kernel::registry::BuildContext;
use quorate_protocol::Name;

use super::{REENTRY, candidates, parse_block};
use crate::block::quoted_list;
use quorate_text::words::stem;

/// The kind that manifests name.
pub const KIND: &str = "capability-match";

/// The `meta` key under which participants list their capabilities.
const CAPABILITIES: &str = "capabilities";
const RUBRICS: [&str; 1] = ["skim-and-tag"];

/// Builds the dispatcher from its block.
///
/// # Errors
/// When the block has an unknown key or an unknown `rubric`.
pub fn new(build: &BuildContext<'_>) -> Result<Arc<dyn Dispatcher>, ConfigError> {
    let block = parse_block(build, &["rubric"])?;
    if let Some(rubric) = block.text("rubric")?.filter(|rubric| !RUBRICS.contains(rubric)) {
        return Err(ConfigError::for_key("rubric", format!("unknown rubric `{rubric}`")).with_help(format!(
            "there is {}; it is also what holds without the key",
            quoted_list(&RUBRICS)
        )));
    }
    Ok(Arc::new(CapabilityMatch { reentry: block.flag(REENTRY)? }))
}

struct CapabilityMatch {
    reentry: bool,
}

#[async_trait]
impl Dispatcher for CapabilityMatch {
    fn kind(&self) -> &'static str {
        KIND
    }

    async fn select(&self, input: Input<'_>) -> Result<Vec<Name>, DispatchError> {
        let Some(trigger) = input.trigger() else { return Ok(Vec::new()) };
        let words = stemmed_words(&trigger.content);
        let mut best: Option<(Score, &Participant)> = None;
        for participant in candidates(&input, self.reentry) {
            let score = score(&words, &participant.meta_texts(CAPABILITIES));
            if score > best.map_or(Score::default(), |(best, _)| best) {
                best = Some((score, participant));
            }
        }
        Ok(best.map(|(_, participant)| participant.id.clone()).into_iter().collect())
    }

    fn warnings(&self, participants: &[Participant]) -> Vec<String> {
        let without =
            participants.iter().filter(|participant| participant.meta_texts(CAPABILITIES).is_empty());
        let say = |participant: &Participant| {
            format!(
                "`{}` is never selected: it has no `meta.{CAPABILITIES}`, which is a list of texts",
                participant.id
            )
        };
        without.map(say).collect()
    }
}

/// Compares whole tags first, then words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Score {
    tags: usize,
    words: usize,
}

fn score(words: &BTreeSet<String>, capabilities: &[&str]) -> Score {
    let tags: BTreeSet<BTreeSet<String>> =
        capabilities.iter().map(|tag| stemmed_words(tag)).filter(|tag| !tag.is_empty()).collect();
    let (whole, parts): (Vec<_>, Vec<_>) = tags.iter().partition(|tag| tag.is_subset(words));
    let words: BTreeSet<&String> = parts.into_iter().flatten().filter(|word| words.contains(*word)).collect();
    Score { tags: whole.len(), words: words.len() }
}

fn stemmed_words(text: &str) -> BTreeSet<String> {
    let text = text.to_lowercase();
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(|word| stem(word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, capabilities: &[&str]) -> (usize, usize) {
        let score = score(&stemmed_words(text), capabilities);
        (score.tags, score.words)
    }

    #[test]
    fn whole_tags_come_before_words() {
        let reviewer = ["code-review", "security"];
        let writer = ["database", "schema"];
        let text = "Please review the migration: it changes two schemas.";
        assert_eq!((of(text, &reviewer), of(text, &writer)), ((0, 1), (1, 0)));
        assert_eq!(of("Review this code", &reviewer), (1, 0));
        assert_eq!(of("Good morning", &reviewer), (0, 0));
    }

    #[test]
    fn inflection_case_and_separators_do_not_matter() {
        for text in ["DATABASES", "data_base x database?", "the database's size"] {
            assert_eq!(of(text, &["Database"]), (1, 0), "{text}");
        }
        for tag in ["schema-migration", "Schema_Migrations", "schema migration", "schema/migrating"] {
            assert_eq!(of("migrate that schema", &[tag]), (1, 0), "{tag}");
        }
    }

    #[test]
    fn a_word_counts_once_and_so_does_a_tag() {
        assert_eq!(of("review", &["code-review", "design-review", "security-review"]), (0, 1));
        assert_eq!(of("review", &["review", "Review", "reviews"]), (1, 0));
        assert_eq!(of("", &["", "-"]), (0, 0));
    }
}
