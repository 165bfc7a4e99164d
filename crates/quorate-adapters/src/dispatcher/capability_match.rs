//! The `capability-match` dispatcher: whoever's `meta.capabilities` fit the last turn best.
//!
//! The rubric (`skim-and-tag`, the only one there is):
//!
//! 1. The last turn is read as a set of words: split wherever there is neither letter nor digit, in lower case, without
//!    inflection (`migrations`, `migrate` and `migrated` are one word).
//! 2. A capability is a tag; it is read in the same way, so that `code-review` has two words.
//! 3. A participant counts the tags of which every word is there. Among those with the same count, it counts the
//!    different words of its other tags that are there.
//! 4. The one that counts most is selected; of several, the first in the manifest's order. Where nobody counts
//!    anything, nobody is.
//!
//! So a turn that speaks of a *schema* goes to `[database, schema]` and not to `[code-review]`, whatever else it
//! says of reviews; and *please review this* goes to `[code-review]`, since nobody fits better.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use quorate_kernel::conversation::Participant;
use quorate_kernel::ports::dispatcher::{Dispatcher, Error, Input};
use quorate_kernel::ports::executor::ConfigError;
use quorate_kernel::registry::BuildContext;
use quorate_protocol::Name;

use super::{REENTRY, candidates, parse_block};
use crate::block::quoted_list;
use crate::stem::stem;

/// The kind that manifests name.
pub const KIND: &str = "capability-match";

/// Where participants say what they can do.
const CAPABILITIES: &str = "capabilities";
const RUBRICS: [&str; 1] = ["skim-and-tag"];

/// Builds the dispatcher from its block.
///
/// # Errors
/// When the block has an unknown key, or a `rubric` that there is none of.
pub fn new(build: &BuildContext<'_>) -> Result<Arc<dyn Dispatcher>, ConfigError> {
    let block = parse_block(build, &["rubric"])?;
    if let Some(rubric) = block.text("rubric")?.filter(|rubric| !RUBRICS.contains(rubric)) {
        return Err(ConfigError::for_key("rubric", format!("there is no rubric `{rubric}`")).with_help(
            format!("there is {}; it is also what holds without the key", quoted_list(&RUBRICS)),
        ));
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

    async fn select(&self, input: Input<'_>) -> Result<Vec<Name>, Error> {
        let Some(trigger) = input.trigger() else { return Ok(Vec::new()) };
        let said = stemmed_words(&trigger.content);
        let mut best: Option<(Score, &Participant)> = None;
        for one in candidates(&input, self.reentry) {
            let score = score(&said, &one.meta_texts(CAPABILITIES));
            if score > best.map_or(Score::default(), |(best, _)| best) {
                best = Some((score, one));
            }
        }
        Ok(best.map(|(_, one)| one.id.clone()).into_iter().collect())
    }

    fn warnings(&self, participants: &[Participant]) -> Vec<String> {
        let without = participants.iter().filter(|one| one.meta_texts(CAPABILITIES).is_empty());
        let say = |one: &Participant| {
            format!(
                "`{}` is never selected: it has no `meta.{CAPABILITIES}`, which is a list of texts",
                one.id
            )
        };
        without.map(say).collect()
    }
}

/// How well somebody fits: whole tags first, then words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Score {
    tags: usize,
    words: usize,
}

fn score(said: &BTreeSet<String>, capabilities: &[&str]) -> Score {
    let tags: BTreeSet<BTreeSet<String>> =
        capabilities.iter().map(|tag| stemmed_words(tag)).filter(|tag| !tag.is_empty()).collect();
    let (whole, parts): (Vec<_>, Vec<_>) = tags.iter().partition(|tag| tag.is_subset(said));
    let words: BTreeSet<&String> = parts.into_iter().flatten().filter(|word| said.contains(*word)).collect();
    Score { tags: whole.len(), words: words.len() }
}

/// The words of a text, as they are compared.
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
        let said = "Please review the migration: it changes two schemas.";
        assert_eq!((of(said, &reviewer), of(said, &writer)), ((0, 1), (1, 0)));
        assert_eq!(of("Review this code", &reviewer), (1, 0));
        assert_eq!(of("Good morning", &reviewer), (0, 0));
    }

    #[test]
    fn inflection_case_and_separators_do_not_matter() {
        for said in ["DATABASES", "data_base x database?", "the database's size"] {
            assert_eq!(of(said, &["Database"]), (1, 0), "{said}");
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
