//! Whether a text can be judged by rule at all: English prose of some length. A text that is not gets no answer, so that
//! its review ends without a verdict (C15).
//!
//! English is recognized by its function words. Names, quotations, code and the cells of tables say nothing about a text's
//! language and are left out.
//!
//! This file also lists the places of a text that were not read although they may hold prose.

use std::ops::Range;

use quorate_diagnostics::invisible::{find_invisible, is_invisible};
use quorate_diagnostics::text::WordList;

use super::document::{Block, BlockKind, Document, Word, WordKind};
use super::substance;

const WORDS: &str = include_str!("words/substance.txt");

/// Fewer words of prose than this cannot be judged.
const MIN_WORDS: usize = 20;
/// Nor can repeated words, if fewer than this are distinct.
const MIN_DISTINCT_WORDS: usize = 12;
/// About two fifths of English prose are function words; prose with less than one in this many is not English.
const FUNCTION_WORDS_ONE_IN: usize = 12;
/// Nor is prose in which less than one word in this many is one that only English has.
const OWN_WORDS_ONE_IN: usize = 30;
/// Prose of another language has at least one in this many function words of that language.
const OTHER_WORDS_ONE_IN: usize = 12;
/// A shorter passage counts as another language only by its function words.
const MIN_PASSAGE_WORDS: usize = 20;

/// The longest character reference, in bytes.
const MAX_REFERENCE_BYTES: usize = 10;

/// What the names of files of code or data end with.
const CODE_OR_DATA: &[&str] = &[
    "bat", "c", "conf", "cpp", "cs", "css", "csv", "go", "h", "ini", "java", "js", "json", "jsonl", "kt",
    "lock", "log", "php", "ps1", "py", "rb", "rs", "scss", "sh", "sql", "svg", "swift", "toml", "ts", "tsv",
    "tsx", "xml", "yaml", "yml",
];

/// Function words and common verbs of English.
static ENGLISH: WordList = WordList::new(WORDS, "english");
/// Those that other languages have as well: Portuguese `a`, `as`, `do`, `no`; Dutch `in`, `is`, `we`, `was`, `of`; Italian
/// `i`, `in`; Danish `at`, `for`, `have`, `by`; German `so`, `an`, `was`.
static SHARED: WordList = WordList::new(WORDS, "shared");
/// Function words of other languages that English does not have, nor names: no `de`, `la`, `van`.
static OTHER: WordList = WordList::new(WORDS, "other");

/// Why the rubric cannot judge a text, as the rest of a sentence; `None` if it can. `name` is the text's path.
pub(super) fn obstacle(name: &str, document: &Document<'_>) -> Option<String> {
    let extension = name.rsplit(['/', '\\']).next().and_then(|file| file.rsplit_once('.'));
    if extension.is_some_and(|(_, extension)| CODE_OR_DATA.contains(&&*extension.to_ascii_lowercase())) {
        return Some("it is a file of code or data".to_owned());
    }
    if hides_letters(document.text) {
        return Some("it has invisible characters or character references within words".to_owned());
    }
    let prose = || words(document).filter(|word| word.kind != WordKind::Code);
    let count = prose().count();
    if count == 0 {
        return Some("it has no prose of its own".to_owned());
    }
    if count < MIN_WORDS {
        let noun = if count == 1 { "word" } else { "words" };
        return Some(format!("it has only {count} {noun} of prose"));
    }
    let mut distinct: Vec<&str> = prose().map(|word| &*word.text).collect();
    distinct.sort_unstable();
    distinct.dedup();
    if distinct.len() < MIN_DISTINCT_WORDS {
        return Some(format!("it has only {} different words", distinct.len()));
    }
    let mut total = Counts::default();
    words(document).for_each(|word| total.add(document, word));
    if !total.is_english() {
        let is_language = total.is_other_language() || total.in_sentences * 2 >= total.all.max(1);
        let why = if is_language { "it is not in English" } else { "it has only data and no sentences" };
        return Some(why.to_owned());
    }
    let other: usize = other_passages(document).map(|(_, counts)| counts.all).sum();
    (other * 3 > total.all).then(|| "a third of it is not in English".to_owned())
}

/// Whether words are written in a way that a reader does not see: with invisible characters between letters, with tag
/// characters, or with character references beside letters. A rule would not find them.
fn hides_letters(text: &str) -> bool {
    let is_letter = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphabetic());
    let ends_with_letter =
        |before: &str| is_letter(before.trim_end_matches(is_invisible).chars().next_back());
    let begins_with_letter = |after: &str| is_letter(after.trim_start_matches(is_invisible).chars().next());
    let is_reference = |(at, _): (usize, &str)| {
        let mut reference = text.as_bytes()[at..].iter().take(MAX_REFERENCE_BYTES + 1);
        let end = reference.position(|byte| *byte == b';').map(|end| at + end + 1);
        let letter = end.and_then(|end| {
            let number = &text[at + 2..end - 1];
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)
        });
        is_letter(letter)
            && (ends_with_letter(&text[..at]) || end.is_some_and(|end| begins_with_letter(&text[end..])))
    };
    hides_between_letters(text) || text.match_indices("&#").any(is_reference)
}

/// Whether a text has a tag character, or an unexpected invisible character in a run between two letters. Reads each
/// character once, however long the runs are.
fn hides_between_letters(text: &str) -> bool {
    let mut unexpected = find_invisible(text).peekable();
    let (mut after_letter, mut hidden) = (false, false);
    for (at, c) in text.char_indices() {
        let found = unexpected.next_if(|(found, _)| *found == at).is_some();
        if is_invisible(c) {
            if found && ('\u{e0000}'..='\u{e007f}').contains(&c) {
                return true;
            }
            hidden |= found;
            continue;
        }
        let letter = c.is_ascii_alphabetic();
        if hidden && after_letter && letter {
            return true;
        }
        (after_letter, hidden) = (letter, false);
    }
    false
}

/// The places of an English text that are in another language.
pub(super) fn places_not_in_english(document: &Document<'_>) -> Vec<Range<usize>> {
    other_passages(document).map(|(span, _)| span).collect()
}

/// The words outside of tables and quotation marks.
fn words<'d, 't>(document: &'d Document<'t>) -> impl Iterator<Item = &'d Word<'t>> {
    let sentences =
        document.sentences.iter().filter(|sentence| document.kind_of(sentence) != BlockKind::Cell);
    sentences.flat_map(|sentence| document.words_of(sentence)).filter(|word| !word.quoted)
}

/// The passages in another language, each with its words: paragraphs, and lists as a whole.
fn other_passages<'d, 't>(
    document: &'d Document<'t>,
) -> impl Iterator<Item = (Range<usize>, Counts)> + use<'d, 't> {
    let in_list = |one: &Block, next: &Block| one.kind == BlockKind::Item && next.kind == BlockKind::Item;
    let passages = document.blocks.chunk_by(in_list).filter(|blocks| blocks[0].kind != BlockKind::Cell);
    let counted = passages.map(|blocks| {
        let mut counts = Counts::default();
        let (first, last) = (&blocks[0], &blocks[blocks.len() - 1]);
        let sentences = &document.sentences[first.sentences.start..last.sentences.end];
        let words = sentences.iter().flat_map(|sentence| document.words_of(sentence));
        words.filter(|word| !word.quoted).for_each(|word| counts.add(document, word));
        (first.span.start..last.span.end, counts)
    });
    counted.filter(|(_, counts)| {
        let is_prose = counts.all >= MIN_PASSAGE_WORDS && counts.in_sentences * 2 >= counts.all;
        counts.is_other_language() || is_prose && !counts.is_english()
    })
}

/// The number of words that say something about the language, and how many of them are function words.
#[derive(Default)]
struct Counts {
    all: usize,
    english: usize,
    /// Those that only English has.
    own: usize,
    /// Function words of other languages, and words in other scripts.
    other: usize,
    /// The words in sentences that end with a full stop or the like.
    in_sentences: usize,
}

impl Counts {
    fn add(&mut self, document: &Document<'_>, word: &Word<'_>) {
        let english = ENGLISH.contains(&word.text);
        let other = OTHER.contains(&word.text) || !word.text.chars().all(is_latin);
        if word.kind != WordKind::Letters || !english && !other && is_name(document, word) {
            return;
        }
        self.all += 1;
        self.english += usize::from(english);
        self.own += usize::from(english && !SHARED.contains(&word.text));
        self.other += usize::from(other);
        let ends = document.sentence_at(word.start).map(|index| document.sentences[index].span.end);
        let ended =
            |end: usize| document.text[..end].ends_with(['.', '!', '?', '…', '。', '！', '？', '؟', '।']);
        self.in_sentences += usize::from(ends.is_some_and(ended));
    }

    fn is_english(&self) -> bool {
        self.all > 0
            && self.english * FUNCTION_WORDS_ONE_IN >= self.all
            && self.own * OWN_WORDS_ONE_IN >= self.all
    }

    fn is_other_language(&self) -> bool {
        self.other >= 2 && self.other > self.own && self.other * OTHER_WORDS_ONE_IN >= self.all
    }
}

/// Whether a word has a capital and then small letters: a name, or a noun of German.
fn is_name(document: &Document<'_>, word: &Word<'_>) -> bool {
    let mut chars = document.text[word.start..word.end].chars();
    chars.next().is_some_and(char::is_uppercase) && chars.next().is_none_or(char::is_lowercase)
}

fn is_latin(c: char) -> bool {
    c.is_ascii()
        || matches!(c, '\u{aa}'..='\u{24f}' | '\u{300}'..='\u{36f}' | '\u{1e00}'..='\u{1eff}' | '’' | 'ﬀ'..='ﬆ')
}

/// More would fill the screen.
const MAX_PLACES: usize = 10;

const OTHER_LANGUAGE: &str = "not in English";

/// One entry for each kind of part, in the order of the text.
pub(super) fn unread_places(document: &Document<'_>) -> Vec<String> {
    let other = substance::places_not_in_english(document).into_iter().map(|span| (span, OTHER_LANGUAGE));
    let mut parts: Vec<(Range<usize>, &str)> = document.unread.iter().cloned().chain(other).collect();
    parts.sort_by_key(|(span, _)| span.start);
    let mut kinds: Vec<(&str, Vec<(usize, usize)>)> = Vec::new();
    for (span, kind) in parts {
        let end = span.start + document.text[span.clone()].trim_end().len();
        let lines = (document.line_of(span.start), document.line_of(end.max(span.start + 1) - 1));
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, all)) => add_place(all, lines),
            None => kinds.push((kind, vec![lines])),
        }
    }
    kinds.into_iter().map(|(kind, lines)| format!("{} ({kind})", describe_unread(&lines))).collect()
}

/// Lines that follow each other are one range.
fn add_place(all: &mut Vec<(usize, usize)>, (first, last): (usize, usize)) {
    match all.last_mut().filter(|(_, end)| first <= *end + 1) {
        Some((_, end)) => *end = last.max(*end),
        None => all.push((first, last)),
    }
}

fn describe_unread(lines: &[(usize, usize)]) -> String {
    let range = |(first, last): &(usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    let listed = lines.iter().take(MAX_PLACES).map(range).collect::<Vec<_>>().join(", ");
    let noun = if matches!(lines, [(first, last)] if first == last) { "line" } else { "lines" };
    match lines.len().saturating_sub(MAX_PLACES) {
        0 => format!("{noun} {listed}"),
        more => format!("{noun} {listed} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, text: &str) -> Option<String> {
        obstacle(name, &Document::parse(name, text))
    }

    const ENGLISH_TEXT: &str = "The council reads each draft before it leaves the house, and every verdict stands in the ledger \
                                with its reasons, so that anyone can see later why it fell as it did.";
    const GERMAN: &str = "Der Rat liest jeden Entwurf, bevor er das Haus verlässt, und jedes Urteil steht mit seinen Gründen im \
                          Buch, damit später alle sehen können, warum es so gefallen ist.";

    // C15: each character is looked at once. A quadratic search would take minutes here.
    #[test]
    fn long_runs_of_invisible_characters_take_linear_time() {
        let run = "\u{e0101}\u{e0199}\u{200b}".repeat(100_000);
        for (text, hides) in [
            (format!("coun{run}cil"), true),
            (format!("council{run} of"), false),
            (format!("council {run}of"), false),
            (run.clone(), false),
            (format!("council\u{1f600}{run}of"), false),
            (format!("{run}\u{e0049}"), true),
            (format!("council {} of", "&#".repeat(500_000)), false),
            (format!("council {} of", "&#8212;".repeat(100_000)), false),
            (format!("{run}&#99;{run}").repeat(2), false),
            (format!("{run}&#99;{run}l"), true),
        ] {
            assert_eq!(hides_letters(&text), hides, "{:?}", text.chars().take(12).collect::<String>());
        }
    }

    /// C15.
    #[test]
    fn letters_that_a_reader_does_not_see_are_not_judged() {
        let with = |letters: &str| found("x.md", &ENGLISH_TEXT.replacen("council", letters, 1));
        for letters in [
            "coun\u{200b}cil",
            "coun\u{ad}cil",
            "coun\u{2060}\u{200d}cil",
            "council\u{e0049}",
            "&#99;ouncil",
            "coun&#x63;il",
        ] {
            let why = with(letters).expect(letters);
            assert!(why.starts_with("it has invisible characters"), "{letters:?}: {why}");
        }
        for letters in [
            "council\u{200b} of",
            "council &#8212; all",
            "council &#99; of",
            "coun&amp;cil",
            "council \u{2764}\u{fe0f}",
        ] {
            assert_eq!(with(letters), None, "{letters:?}");
        }
    }

    /// C15.
    #[test]
    fn too_little_prose_is_not_judged() {
        for (text, why) in [
            ("", "it has no prose of its own"),
            (" \n\t\n", "it has no prose of its own"),
            ("\u{feff}", "it has no prose of its own"),
            ("---\ntitle: x\n---\n", "it has no prose of its own"),
            ("```\nlet x = 1;\n```\n", "it has no prose of its own"),
            ("<br>", "it has no prose of its own"),
            (
                "> Words of another person, all of them, from the first one to the last.",
                "it has no prose of its own",
            ),
            ("a", "it has only 1 word of prose"),
            ("Fix typo.", "it has only 2 words of prose"),
            ("# Use\n\n```sh\nlamp 4\n```\n", "it has only 1 word of prose"),
            ("| lamp | share |\n|---|---|\n| lamp 1 | 3% |\n", "it has no prose of its own"),
            (&"the a of to in and ".repeat(50), "it has only 6 different words"),
            (&"中".repeat(300), "it has only 1 different words"),
        ] {
            assert_eq!(found("x.md", text).as_deref(), Some(why), "{text:?}");
        }
    }

    /// C15.
    #[test]
    fn another_language_is_not_judged() {
        for text in [
            GERMAN,
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
            "Nuestras nuevas sillas son las mejores del país. Las probamos en invierno y todos quedaron contentos. Si usted \
             las pide ahora, la entrega es gratis, y siempre devolvemos el dinero si no le gustan.",
            "Наши новые стулья лучшие в стране. Мы проверили их зимой, и все были довольны. Если вы закажете сейчас, \
             доставка бесплатна, и мы всегда вернём вам деньги, если они вам не понравятся.",
            "كراسينا الجديدة هي الأفضل في البلاد. اختبرناها في الشتاء وكان الجميع راضين عنها. إذا طلبت الآن فالتوصيل مجاني \
             وسنعيد لك دائما مالك إذا لم تعجبك الكراسي الجديدة في بيتك.",
            "私たちの新しい椅子は国内で最高です。冬に試験をして、みんな満足しました。今ご注文になれば配送は無料で、お気に召さなければ代金をお返しします。",
            "Uudet tuolimme ovat maan parhaat. Testasimme niitä talvella, ja kaikki olivat tyytyväisiä. Jos tilaat nyt, \
             toimitus on ilmainen, ja saat aina rahasi takaisin, jos tuolit eivät miellytä sinua.",
            "Új székeink a legjobbak az országban. Télen kipróbáltuk őket, és mindenki elégedett volt velük. Ha most rendeli \
             meg őket, ingyen szállítjuk, és mindig visszakapja pénzét, ha nem tetszenek önnek.",
            "---\ntitle: The chairs of the house and what they are for\n---\n\nDer Rat liest jeden Entwurf, bevor er das Haus \
             verlässt, und jedes Urteil steht mit Gründen im Buch, damit alle es sehen können.",
            "- Neue Option für den Export der Berichte\n- Fehler beim Lesen der Liste behoben\n- Ausgabe ist nicht mehr \
             doppelt\n- Der Aufruf mit leerem Namen wird jetzt gemeldet\n- Text und Bild sind wieder getrennt\n",
        ] {
            assert_eq!(found("x.md", text).as_deref(), Some("it is not in English"), "{text}");
            let half =
                format!("The council reads each draft before it leaves the house, and says why.\n\n{text}");
            assert!(found("x.md", &half).is_some_and(|why| why.contains("not in English")), "{half}");
        }
    }

    #[test]
    fn english_is_judged_in_any_form() {
        let table: String = (0..100).map(|n| format!("| lamp {n} | {n}% | always on |\n")).collect();
        let names = "- Anna Müller\n- Juan de la Cruz\n- Ludwig van Beethoven\n- Nguyễn Văn An\n".repeat(20);
        for text in [
            ENGLISH_TEXT.to_owned(),
            format!(
                "The table has what we measured on 3 March in our own rooms; write to us with questions about any of the rows.\n\n\
                 | lamp | share | note |\n|---|---|---|\n{table}"
            ),
            format!("These people helped us, and we thank each of them for the time that they gave us in the last year:\n\n{names}"),
            // A changelog.
            "# Changes\n\n## 1.2.3\n\n- Fix panic in parser when input ends early (#123)\n- Add `--foo` flag\n- Bump serde to 1.0.3\n\
             - Improve error messages\n- Remove deprecated API\n- Rename config option\n- Drop Python 3.7\n"
                .to_owned(),
            // A recipe.
            "# Pancakes\n\n- 200 g flour\n- 2 eggs\n- 300 ml milk\n- 1 tsp salt\n- butter\n\nMix flour, eggs and salt. Stir in milk until \
             smooth. Fry in butter, two minutes per side."
                .to_owned(),
            // A poem.
            "Gulls come back to the wall,\nsalt in the gate,\nno boat on the water,\nand the lamp burns late\nover stones where we lay\n"
                .to_owned(),
            // Links, names of products and identifiers.
            "See https://a.example/x and https://b.example/y for the notes of PostgreSQL, SQLite, Redis, Kafka and `getUserName`; \
             parseHeader and writeBody stay as they were in the last release."
                .to_owned(),
            format!("{ENGLISH_TEXT}\n\nShe said “{GERMAN}” and left.\n\n> {GERMAN}\n"),
            format!("---\ntitle: Der Rat und das Haus\ndescription: {GERMAN}\n---\n\n{ENGLISH_TEXT}\n"),
            format!("{0}\n\n{0}\n\n{0}\n\n{GERMAN}\n", ENGLISH_TEXT),
        ] {
            assert_eq!(found("x.md", &text), None, "{text}");
        }
    }

    #[test]
    fn data_is_not_taken_for_another_language() {
        let names = "- Anna Müller\n- Juan de la Cruz\n- Ludwig van Beethoven\n- Nguyễn Văn An\n".repeat(20);
        let capitals =
            "- Ada Byron\n- Grace Hopper\n- Alan Turing\n- Edsger Dijkstra\n- Barbara Liskov\n- Tony Hoare\n"
                .repeat(2);
        let rows = "lamp 17, hall, oak, brass, dim\nseat 4, wall, pine, steel, bright\ndesk 9, door, elm, glass, warm\nstool 2, yard, ash, tin, cool\n";
        for text in [names.as_str(), capitals.as_str(), rows] {
            assert_eq!(found("x.md", text).as_deref(), Some("it has only data and no sentences"), "{text}");
        }
        assert_eq!(found("a/b.JSON", ENGLISH_TEXT).as_deref(), Some("it is a file of code or data"));
    }

    #[test]
    fn a_paragraph_in_another_language_is_named() {
        let text = format!("{ENGLISH_TEXT}\n\n{ENGLISH_TEXT}\n\n{ENGLISH_TEXT}\n\n{GERMAN}\n");
        let document = Document::parse("x.md", &text);
        let places = places_not_in_english(&document);
        assert_eq!(places.iter().map(|span| &text[span.clone()]).collect::<Vec<_>>(), [GERMAN]);
    }
}

#[cfg(test)]
mod unread_tests {
    use super::*;

    fn unread(name: &str, text: &str) -> Vec<String> {
        unread_places(&Document::parse(name, text))
    }

    #[test]
    fn what_does_not_end_is_named() {
        for (text, named) in [
            ("A.\n\n```sh\nlamp\n\nAlways free.\n", "lines 3-6 (a code block that does not end)"),
            ("~~~\nlamp\n```\n", "lines 1-3 (a code block that does not end)"),
            ("````\nlamp\n```\n\nAlways free.", "lines 1-5 (a code block that does not end)"),
            ("- a\n\n  ```\n  lamp\n\nText.\n", "lines 3-4 (a code block that does not end)"),
            ("A.\n\n<!-- note\n\nAlways free.\n", "lines 3-5 (a comment that does not end)"),
            ("<div>\nOne. <!-- two\n</div>\n", "lines 2-3 (a comment that does not end)"),
            ("<pre>\nlamp\n\nAlways free.\n", "lines 1-4 (HTML that does not end)"),
            ("<?php\nAlways free.\n", "lines 1-2 (HTML that does not end)"),
            ("A.\n\n<![CDATA[\nAlways free.\n", "lines 3-4 (HTML that does not end)"),
            ("<div title=\"\nAlways free.\n", "lines 1-2 (HTML that does not end)"),
        ] {
            assert_eq!(unread("x.md", text), [named], "{text:?}");
        }
        for text in [
            "A.\n\n```sh\nlamp\n```\n",
            "```\n",
            "<!-- note -->\n",
            "<pre>\nx\n</pre>\n",
            "> ```\n> x\n",
            "`a\n\nb",
        ] {
            assert_eq!(unread("x.md", text), [""; 0], "{text:?}");
        }
    }

    #[test]
    fn code_of_mdx_is_named_and_the_text_in_components_is_read() {
        let text = "import Box from './box'\nexport const x = 'always'\n\n{/* a */}One.\n\n<Box label=\"everyone\">\n    We two.\n</Box>\n\nTwo {b} end.\n";
        assert_eq!(unread("a/x.mdx", text), ["lines 1-2, 4, 6, 8, 10 (code of MDX)"]);
        let document = Document::parse("x.mdx", text);
        let words: Vec<&str> =
            document.words.iter().map(|word| &*word.text).filter(|word| *word != "`").collect();
        assert_eq!(words, ["one", "we", "two", "two", "end"]);
        assert_eq!(unread("x.md", text), [""; 0]);
    }

    #[test]
    fn long_lists_are_cut() {
        let text = "One {a} word.\n\n".repeat(12);
        assert_eq!(
            unread("x.mdx", &text),
            ["lines 1, 3, 5, 7, 9, 11, 13, 15, 17, 19 and 2 more (code of MDX)"]
        );
    }
}
