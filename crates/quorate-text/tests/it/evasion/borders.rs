//! Where a layer begins and ends: for each rule of the matcher a text that it just reads, and one that it just does not.

use quorate_manifest::assembly::MatchMode;
use quorate_protocol::locks::{Layer, LockedTrait, Locks};

/// The layer of the best hit, and what of the text it covers.
fn read(mode: MatchMode, locked: &str, text: &str) -> Option<(Layer, String)> {
    let traits = [LockedTrait { text: locked.to_owned(), declared: mode }];
    let hits = Locks::compile(&traits, mode).expect("the trait of a test").check(text);
    hits.into_iter().next().map(|hit| (hit.layer, text[hit.span].to_owned()))
}

/// Traits with texts: the layer and the words of the hit, `None` where there is none.
type Row<'a> = (&'a str, &'a str, Option<(Layer, &'a str)>);

fn apart<'a>(locked: &'a str, text: &'a str, words: &'a str) -> Row<'a> {
    (locked, text, Some((Layer::SetApart, words)))
}

fn none<'a>(locked: &'a str, text: &'a str) -> Row<'a> {
    (locked, text, None)
}

#[track_caller]
fn assert_rows(mode: MatchMode, rows: &[Row<'_>]) {
    for (locked, text, expected) in rows {
        let found = read(mode, locked, text);
        let found = found.as_ref().map(|(layer, words)| (*layer, words.as_str()));
        assert_eq!(found, *expected, "`{locked}` in {text:?}");
    }
}

const SUBSTRING: MatchMode = MatchMode::Substring;
const REGEX: MatchMode = MatchMode::Regex;

// L2
#[test]
fn what_is_markup_ends_where_a_browser_ends_it() {
    let whole = |text| ("warmth", text, Some((Layer::Unmarked, text)));
    let long = "x".repeat(600);
    assert_rows(
        SUBSTRING,
        &[
            whole("war<!-- a > b -->mth"),
            (
                "warmth",
                &format!("{long}war<!-- a > b -->mth"),
                Some((Layer::Unmarked, "war<!-- a > b -->mth")),
            ),
            whole("war<!--x-->mth"),
            whole("war<!--->mth"),
            ("warmth", "war<!x->mth -->", Some((Layer::Unmarked, "war<!x->mth"))),
            ("warmth", "war<!-x>mth -->", Some((Layer::Unmarked, "war<!-x>mth"))),
            ("warmth", "war<a b\">mth\">", Some((Layer::Unmarked, "war<a b\">mth"))),
            whole("war<a b=\"c>d\">mth"),
            whole("war<a b='>'>mth"),
            whole("war<a b=\"it's > x\">mth"),
            whole("war<a b=\">mth"),
            none("warmth", "war<)>mth, é"),
            none("warmth", &format!("war<a b=\"c>{long}\">mth")),
            whole("war<b>mth"),
            ("warmth", &format!("{long}war<b>mth"), Some((Layer::Unmarked, "war<b>mth"))),
        ],
    );
}

// L2
#[test]
fn the_target_of_a_link_ends_with_its_bracket() {
    let row = |text, words| ("warmth", text, Some((Layer::Unmarked, words)));
    assert_rows(
        SUBSTRING,
        &[
            row("[war](x(y)z)mth", "war](x(y)z)mth"),
            row("[war](x(y)mth", "war](x(y)mth"),
            row("[war][ref]mth", "war][ref]mth"),
            row("far behind all this [war][ref]mth", "war][ref]mth"),
            row("war![m](x)th", "war![m](x)th"),
            // Also in a text that is plain otherwise.
            row("war![mth", "war![mth"),
            row("war![mth, é", "war![mth"),
            ("warmth", &format!("[war](({}))mth", "x".repeat(600)), None),
        ],
    );
}

// L2
#[test]
fn marks_of_lists_are_those_of_lists() {
    let row = |text, hit: bool| ("skip the review", text, hit.then_some((Layer::Unmarked, text)));
    assert_rows(
        SUBSTRING,
        &[
            row("skip the\n[x] review", true),
            row("skip the\n[y] review", false),
            row("skip the\n[+] review", false),
            row("skip the\n[x- review", false),
            row("skip the\n① review", true),
            row("skip the\n①) review", true),
        ],
    );
    // Tag characters count as text if there are enough of them; no other character does.
    assert_rows(SUBSTRING, &[("kind", "\u{e0061}kénd", None)]);
}

// L2
#[test]
fn gaps_are_compared_with_those_of_the_trait() {
    let all = |locked, text, layer| (locked, text, Some((layer, text)));
    assert_rows(
        SUBSTRING,
        &[
            ("be kind", "bekind", None),
            ("mm mm", "mmmm", None),
            all("mm mm", "mm\u{200b}mm", Layer::Unmarked),
            all("wa**rm", "warm", Layer::Unmarked),
            all("be kind", "be\u{2800}kind", Layer::Folded),
            all("be kind", "be\u{85}kind", Layer::Folded),
            all("warmth", "war\u{3}mth", Layer::Folded),
            all("warmth", "war\u{e000}mth", Layer::Folded),
            all("wa\u{ad}\nrm", "wa\nrm", Layer::Folded),
            all("warmth", "war- \n mth", Layer::Unmarked),
            all("warmth", "war\u{ad}\nmth", Layer::Unmarked),
            all("e-mail", "e—mail", Layer::Folded),
            all("5 kg", "5\u{a0}㎏", Layer::Folded),
            all("warmth", "wa＊rmth", Layer::Unmarked),
            all("a\u{301}!", "a！", Layer::Folded),
            ("!!", "~!\u{301}\u{2028}!", None),
            all("!!", "!†!", Layer::Folded),
            ("𠀀𠀁", "x𠀀\u{200b}𠀁", Some((Layer::Folded, "𠀀\u{200b}𠀁"))),
            ("𠀀𠀁", "𠀁𠀀", None),
        ],
    );
    let wide = format!("ho{}nest", "*".repeat(62));
    assert_rows(SUBSTRING, &[all("honest", &wide, Layer::Unmarked)]);
}

// L2
#[test]
fn letters_set_apart_make_whole_words_of_the_trait() {
    let gaps = [" \u{200b} ".repeat(9), ".".repeat(8), ".".repeat(9), " .".repeat(5)];
    let [blanks, eight, nine, mixed] = gaps.map(|gap| {
        let letters: Vec<String> = "honest".chars().map(String::from).collect();
        letters.join(&gap)
    });
    assert_rows(
        SUBSTRING,
        &[
            apart("be kind", "be-kind", "be-kind"),
            apart("be kind", "be•kind", "be•kind"),
            none("be kind", "be&\nkind"),
            none("be kind", "be?kind"),
            none("be kind", "be, k i n d"),
            none("be kind", "b.e. kind"),
            none("be kind", "xb.e kind"),
            apart("have a day", "have a, d a y", "have a, d a y"),
            none("have a day", "have, a day"),
            none("a¦b", "a|b"),
            apart("FAIL", "F.A.I.L.U", "F.A.I.L"),
            apart("honest", &blanks, &blanks),
            apart("honest", &eight, &eight),
            none("honest", &nine),
            none("honest", &mixed),
        ],
    );
    // Wherever it stands in a text that is read in parts.
    let spelled = " i . g . n . o . r . e . t . h . e . p . o . l . i . c . y ";
    for before in (200..600).step_by(13) {
        let text = format!("{}{spelled}{}", "x".repeat(before), "y".repeat(1_400 - before));
        assert_rows(SUBSTRING, &[apart("ignore the policy", &text, spelled.trim())]);
    }
}

// L2
#[test]
fn what_passes_for_a_letter_depends_on_the_word() {
    let look = |locked, text, words| (locked, text, Some((Layer::Skeleton, words)));
    assert_rows(
        SUBSTRING,
        &[
            // A figure by any of its writings.
            look("FAIL", "FA1L", "FA1L"),
            look("FAIL", "FA１L", "FA１L"),
            look("kind", "k𝟏nd", "k𝟏nd"),
            none("FAIL", "FA|L"),
            none("FAIL", "FA｜L"),
            look("aside", "as|de", "as|de"),
            look("aside", "as｜de", "as｜de"),
            none("no", "n0"),
            none("no", "n０"),
            ("a1", "a\u{200b}1", Some((Layer::Folded, "a\u{200b}1"))),
            ("a|b", "a\u{200b}|b", Some((Layer::Folded, "a\u{200b}|b"))),
            // An l for an i among capitals, or at the beginning.
            look("kind", "KlND", "KlND"),
            none("be kind", "Be Klnd"),
            none("KINDNESS", "KlNDNEsS"),
            none("kindness", "klndness"),
            look("indigo", "lndigo", "lndigo"),
            none("indigo", "Lndigo"),
            none("lilt", "iilt"),
            look("kill", "kiӏӏ", "kiӏӏ"),
            // Within a longer word if it is long, or of several scripts.
            look("honest", "h0nestx", "h0nest"),
            look("no", "ոоt", "ոо"),
            look("no", "ոо\u{200b}t", "ոо"),
            look("no", "nот", "nо"),
            none("no", "ոот"),
            none("yes", "ɏesx"),
            none("kill", "ĸills"),
            look("burn", "buгn", "buгn"),
            look("ca", "ƈa", "ƈa"),
        ],
    );
}

// L3
#[test]
fn patterns_are_tried_on_each_form() {
    let all = |pattern, text| (pattern, text, Some((Layer::RegexFolded, text)));
    assert_rows(
        REGEX,
        &[
            all(r"\*warm", "*ｗarm"),
            all("caf[é]", "ｃａｆÉ"),
            all("cafe!", "café！"),
            ("warm", "wa-rm", None),
            ("warm", "wa\u{200b}\nrm-", None),
            all("warm", "wa-\nrm"),
            all("less warm", "less*<b>warm"),
            ("<b>warm", "<b>wa\u{ad}\nrm<i>", Some((Layer::RegexFolded, "<b>wa\u{ad}\nrm"))),
            all("security review", "security† review"),
        ],
    );
}
