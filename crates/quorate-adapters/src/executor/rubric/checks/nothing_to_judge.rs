//! Texts that no lens can judge: empty, nearly empty, code alone, or not in English. They block under every lens, so that
//! they do not pass for lack of findings.

use quorate_diagnostics::word_list::WordList;

use super::{Check, Criteria, opening_span};
use crate::executor::rubric::document::{Document, Word, WordKind};
use crate::executor::rubric::finding::{Finding, Repair, Severity};
use crate::executor::rubric::lens::Lens;

const WORDS: &str = include_str!("../words/nothing_to_judge.txt");

/// Every lens runs it, before all others.
pub(super) static CHECK: Check = Check { name: "substance", lens: Lens::General, yields_to: &[], run };

/// Fewer words than this cannot be judged.
const MIN_WORDS: usize = 20;
/// Nor can repeated words, if fewer than this are distinct.
const MIN_DISTINCT_WORDS: usize = 12;
/// A text with fewer distinct words than this counts as empty.
const NONE: usize = 3;
/// About two fifths of English prose are function words; a text with less than one in this many is not English.
const FUNCTION_WORDS_ONE_IN: usize = 12;

/// Nor is a text in which less than one word in this many is a function word that only English has.
const OWN_WORDS_ONE_IN: usize = 30;

static FUNCTION_WORDS: WordList = WordList::new(WORDS, "function words");

/// Function words that other languages have as well: Portuguese `a`, `as`, `do`, `no`; Dutch `in`, `is`, `we`, `was`, `of`;
/// Italian `i`, `in`; Danish `at`, `for`, `have`, `by`; German `so`, `an`, `was`.
static SHARED_WORDS: WordList = WordList::new(WORDS, "shared words");

fn run(document: &Document<'_>, _: &Criteria<'_>) -> Vec<Finding> {
    let words = document.word_count();
    let distinct = document.distinct_words(MIN_DISTINCT_WORDS);
    if distinct < NONE {
        let (issue, fix) = if document.has_code_or_quotations {
            (
                "There is no prose of the author's own, only code, quotations or markup; this council reads prose.",
                "Say in words what the reader is to know.",
            )
        } else {
            ("There is nothing here to judge.", "Write the text first.")
        };
        return vec![Finding::beyond_edit(opening_or_first_line(document), issue, fix)];
    }
    if words < MIN_WORDS || distinct < MIN_DISTINCT_WORDS {
        let issue = format!("{words} words, {distinct} of them different, are too little to judge.");
        let issue = if distinct < MIN_DISTINCT_WORDS {
            issue
        } else {
            format!("{words} words are too little to judge.")
        };
        return vec![Finding::new(
            opening_or_first_line(document),
            Severity::Critical,
            issue,
            "Say what it is about, for whom, and why it matters.",
        )];
    }
    if reads_as_english(document) { Vec::new() } else { vec![not_english(document)] }
}

fn not_english(document: &Document<'_>) -> Finding {
    let issue =
        "This does not read as English, the one language that these checks know, so nothing was checked.";
    let fix = "Have it read by a person or by an executor that knows its language.";
    Finding {
        repair: Repair::Edit,
        ..Finding::new(opening_or_first_line(document), Severity::Critical, issue, fix)
    }
}

/// Whether the whole text reads as English, with less than a third of it in paragraphs that do not.
fn reads_as_english(document: &Document<'_>) -> bool {
    let mut total = WordCounts::default();
    let mut foreign = 0;
    for block in &document.blocks {
        let mut block_counts = WordCounts::default();
        let sentences = &document.sentences[block.sentences.clone()];
        sentences
            .iter()
            .flat_map(|sentence| document.words_of(sentence))
            .for_each(|word| block_counts.count(word));
        if block_counts.all >= MIN_WORDS && !block_counts.is_english() {
            foreign += block_counts.all;
        }
        total.add(&block_counts);
    }
    total.is_english() && foreign * 3 <= total.all
}

/// The number of words, and how many of them are function words.
#[derive(Default)]
struct WordCounts {
    all: usize,
    known: usize,
    english_only: usize,
}

impl WordCounts {
    fn count(&mut self, word: &Word<'_>) {
        if word.kind != WordKind::Letters {
            return;
        }
        let is_known = FUNCTION_WORDS.contains(&word.text);
        self.all += 1;
        self.known += usize::from(is_known);
        self.english_only += usize::from(is_known && !SHARED_WORDS.contains(&word.text));
    }

    fn add(&mut self, other: &WordCounts) {
        self.all += other.all;
        self.known += other.known;
        self.english_only += other.english_only;
    }

    fn is_english(&self) -> bool {
        self.known * FUNCTION_WORDS_ONE_IN >= self.all && self.english_only * OWN_WORDS_ONE_IN >= self.all
    }
}

/// The opening, else the first line that is not blank.
fn opening_or_first_line(document: &Document<'_>) -> std::ops::Range<usize> {
    let opening = opening_span(document);
    if !opening.is_empty() {
        return opening;
    }
    let start = document.text.find(|c: char| !c.is_whitespace() && c != '\u{feff}').unwrap_or(0);
    let end = document.text[start..].find('\n').map_or(document.text.len(), |length| start + length);
    start..end
}

#[cfg(test)]
mod tests {
    use super::super::harness::findings;
    use super::*;

    #[test]
    fn nothing_is_beyond_an_edit() {
        for text in [
            "",
            " \n\t\n",
            "a",
            "\u{feff}",
            "---\ntitle: x\n---\n",
            "```\nlet x = 1;\n```\n",
            "<br>",
            "aaaa aaaa aaaa",
        ] {
            let found = findings(&CHECK, text);
            assert_eq!(found.iter().map(|f| f.repair).collect::<Vec<_>>(), [Repair::Rethink], "{text:?}");
        }
        assert!(findings(&CHECK, "```\ncode\n```").first().is_some_and(|f| f.issue.contains("code")));
    }

    #[test]
    fn too_little_blocks_but_can_be_mended() {
        for text in ["A short note about one thing.", &"the a of to in and ".repeat(50)] {
            let found = findings(&CHECK, text);
            assert_eq!(
                found.iter().map(|f| (f.severity, f.repair)).collect::<Vec<_>>(),
                [(Severity::Critical, Repair::Edit)]
            );
        }
    }

    #[test]
    fn another_language_is_said_not_judged() {
        for text in [
            "Der Rat liest jeden Entwurf, bevor er das Haus verlässt, und jedes Urteil steht mit seinen Gründen im Buch, \
             damit später alle sehen können, warum es so gefallen ist.",
            "Onze nieuwe stoelen zijn de beste van het land. We hebben ze in de winter getest en iedereen was er blij mee. \
             Als je nu bestelt, is de levering gratis en krijg je altijd je geld terug als het niet bevalt.",
            "As nossas novas cadeiras são as melhores do país. Testamos a linha no inverno e todos ficaram felizes. Se a \
             compra for feita agora, a entrega é grátis e no fim do mês o preço sobe.",
            "Le nostre nuove sedie sono le migliori del paese. Le abbiamo provate in inverno e tutti erano contenti. Se \
             ordini ora, la consegna non costa nulla e i soldi tornano sempre indietro.",
            "Vi har testet stolene i vinter, og alle var glade for dem. Du kan altid have dem hjemme i en uge, og hvis de \
             ikke passer, får du dine penge igen. Det er let at bestille for en god pris.",
            "Nos nouvelles chaises sont les meilleures du pays. On les a testées en hiver, et tout le monde a été content. \
             Si vous commandez maintenant, la livraison ne coûte rien et on vous rend toujours votre argent.",
        ] {
            assert!(findings(&CHECK, text).first().is_some_and(|f| f.issue.contains("English")), "{text}");
            let half =
                format!("The council reads each draft before it leaves the house, and says why.\n\n{text}");
            assert!(!findings(&CHECK, &half).is_empty(), "{half}");
        }
    }

    #[test]
    fn ordinary_prose_passes() {
        let text = "The council reads each draft before it leaves the house, and every verdict stands in the ledger with its \
                    reasons, so that anyone can see later why it fell as it did.";
        assert_eq!(findings(&CHECK, text), []);
    }
}
