//! A text that mostly boasts: claims without a source, superlatives, absolutes, success stories and promises in two of five
//! sentences. No edit of a phrase repairs it, and it is every lens's concern.

use std::collections::BTreeSet;

use super::{
    Check, Criteria, absolute, irreversible_promise, superlative, survivorship, unsourced_number,
    vague_authority,
};
use crate::executor::rubric::document::{BlockKind, Document};
use crate::executor::rubric::finding::{Finding, Severity};
use crate::executor::rubric::lens::Lens;

/// Every lens runs it.
pub(super) static CHECK: Check = Check { name: "boasting", lens: Lens::General, yields_to: &[], run };

/// What makes a sentence a boast.
static BOASTS: &[&Check] = &[
    &absolute::CHECK,
    &survivorship::CHECK,
    &unsourced_number::CHECK,
    &superlative::CHECK,
    &vague_authority::CHECK,
    &irreversible_promise::CHECK,
];
/// Fewer boasts can be repaired one by one.
const MIN_BOASTS: usize = 4;

fn run(document: &Document<'_>, criteria: &Criteria<'_>) -> Vec<Finding> {
    let sentences = document.sentences.iter();
    let sentences = sentences.filter(|sentence| document.kind_of(sentence) != BlockKind::Cell).count();
    if sentences < MIN_BOASTS {
        return Vec::new();
    }
    let findings = BOASTS.iter().flat_map(|check| (check.run)(document, criteria));
    let places = findings
        .filter(|finding| finding.severity >= Severity::Major && !document.is_verse(finding.span.start))
        .filter_map(|finding| document.sentence_at(finding.span.start));
    let boasts: BTreeSet<usize> = places.collect();
    let Some(first) =
        boasts.first().filter(|_| boasts.len() >= MIN_BOASTS && boasts.len() * 5 >= sentences * 2)
    else {
        return Vec::new();
    };
    vec![Finding::beyond_edit(
        document.sentences[*first].span.clone(),
        format!("{} of {sentences} sentences boast, and say nothing that can be looked up.", boasts.len()),
        "Say what it does, for whom and how that is known; then write the text from that.",
    )]
}

#[cfg(test)]
mod tests {
    use super::super::harness::findings;
    use super::*;
    use crate::executor::rubric::finding::Repair;

    const BOAST: &str = "# The best lamp in the world\n\nEveryone loves our lamp. You will read 40% faster, guaranteed. All our \
                         customers are happy with it, and thousands of teams have moved. Order yours today.";

    #[test]
    fn a_text_that_mostly_boasts_is_beyond_an_edit() {
        assert_eq!(
            findings(&CHECK, BOAST).iter().map(|found| found.repair).collect::<Vec<_>>(),
            [Repair::Rethink]
        );
    }

    #[test]
    fn boasts_among_facts_are_not() {
        let facts = "The lamp stands on the desk by the door. It takes two hours to charge. ".repeat(4);
        assert!(findings(&CHECK, &format!("{BOAST}\n\n{facts}")).is_empty());
        assert!(findings(&CHECK, "Everyone loves it. It is 40% faster. It is the best lamp.").is_empty());
        let sourced = "It is 40% faster ([run](r.md)). According to the count of May, 80% of the 90 readers stay. It was 30% \
                       in April ([log](l.md)). It is the fastest of the four.";
        assert!(findings(&CHECK, sourced).is_empty());
    }
}
