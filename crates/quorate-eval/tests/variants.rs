//! Variants of texts: what they change, and what they leave alone.

use std::collections::BTreeSet;

use proptest::prelude::*;
use quorate_eval::variants::{Relation, defects, neutral, seeded};

const DRAFT: &str = "---\ntitle: Acme\n---\n# A launch\n\nToday we launch Lumora, and we hope that it helps.\nWith Lumora you plan a week.\n\n- Plans a week.\n- Reminds you.\n\n```sh\nlumora plan\n```\n\nWrite to hello@Lumora.example or read https://Lumora.example/docs.\nOur Lumora team answers.\n";

fn relation(name: &str) -> Option<String> {
    neutral(DRAFT).into_iter().find(|variant| variant.relation.name() == name).map(|variant| variant.text)
}

#[test]
fn there_are_twenty_kinds_and_each_sentence_differs_from_its_twin() {
    let kinds: BTreeSet<&str> = defects().iter().map(|defect| &*defect.kind).collect();
    assert_eq!(kinds.len(), 20);
    for defect in defects() {
        let [with, without] = seeded(DRAFT, defect).expect("the draft has paragraphs");
        assert_ne!(with.text, without.text, "{}", defect.kind);
        assert_eq!(with.lines, without.lines, "{}", defect.kind);
        assert_eq!(with.relation, Relation::Defect(defect.kind.clone()));
        let last = *with.lines.last().expect("a line");
        let (seen, other) = (with.text.lines().nth(last - 1), without.text.lines().nth(last - 1));
        assert_ne!(seen, other, "{}", defect.kind);
        // Both contain the whole draft: nothing of it is lost.
        let lines: Vec<&str> = with.text.lines().collect();
        for line in DRAFT.lines() {
            assert!(lines.contains(&line), "{}: {line} is lost", defect.kind);
        }
    }
}

#[test]
fn the_same_text_gives_the_same_variants_and_others_get_other_places() {
    for defect in defects() {
        assert_eq!(seeded(DRAFT, defect), seeded(DRAFT, defect));
    }
    let places: BTreeSet<Vec<usize>> =
        defects().iter().map(|defect| seeded(DRAFT, defect).expect("paragraphs")[0].lines.clone()).collect();
    assert!(places.len() > 1, "{places:?}");
}

#[test]
fn neutral_variants_change_what_they_say() {
    assert_eq!(relation("again").as_deref(), Some(DRAFT));
    let reordered = relation("reordered").expect("the draft has a list");
    assert!(reordered.contains("- Reminds you.\n- Plans a week.\n"), "{reordered}");
    let padded = relation("padded").expect("every text can be padded");
    assert!(padded.ends_with("\n\nThank you for reading.\n") && padded.starts_with(DRAFT.trim_end()));
    let renamed = relation("renamed").expect("the draft has a name");
    assert!(!renamed.contains("launch Lumora"), "{renamed}");
    // Addresses and code keep working, and the front matter stays.
    for kept in ["hello@Lumora.example", "https://Lumora.example/docs", "lumora plan", "title: Acme"] {
        assert!(renamed.contains(kept), "{kept}: {renamed}");
    }
}

#[test]
fn sections_change_places_only_where_their_order_does_not_matter() {
    let free = "# Title\n\n## Price\n\nTen euros.\n\n## Place\n\nRome.\n";
    let made =
        neutral(free).into_iter().find(|variant| variant.relation == Relation::Reordered).expect("free");
    assert_eq!(made.text, "# Title\n\n## Place\n\nRome.\n\n## Price\n\nTen euros.\n");
    let bound = "# Title\n\n## Price\n\nTen euros, see below.\n\n## Place\n\nRome.\n";
    assert!(neutral(bound).iter().all(|variant| variant.relation != Relation::Reordered));
    let numbered = "# Title\n\n## 1. Install\n\nRun.\n\n## 2. Use\n\nUse.\n";
    assert!(neutral(numbered).iter().all(|variant| variant.relation != Relation::Reordered));
    let steps = "- First, open it.\n- Then close it.\n";
    assert!(neutral(steps).iter().all(|variant| variant.relation != Relation::Reordered));
}

#[test]
fn a_text_without_a_paragraph_gets_no_defect() {
    for text in ["", "\n\n", "# Only a heading\n", "```\ncode\n```\n", "- one\n- two\n"] {
        assert!(defects().iter().all(|defect| seeded(text, defect).is_none()), "{text:?}");
    }
}

proptest! {
    #[test]
    fn no_text_breaks_the_variants(text in "(\\PC|\n|#|- |\\*|`|\\||é|—| ){0,200}") {
        for variant in neutral(&text) {
            prop_assert!(variant.lines.is_empty());
        }
        for defect in defects() {
            if let Some([with, without]) = seeded(&text, defect) {
                let last = *with.lines.last().expect("a line");
                prop_assert!(with.text.lines().count() >= last);
                prop_assert_ne!(with.text, without.text);
            }
        }
    }
}
