//! Which texts are hits, in which layer, and which are not.

use super::*;

const SUBSTRING: MatchMode = MatchMode::Substring;
const REGEX: MatchMode = MatchMode::Regex;
const SEMANTIC: MatchMode = MatchMode::Semantic;

fn locks(traits: &[(&str, MatchMode)], strictest: MatchMode) -> Locks {
    let traits: Vec<LockedTrait> = traits
        .iter()
        .map(|(text, declared)| LockedTrait { text: (*text).to_owned(), declared: *declared })
        .collect();
    Locks::compile(&traits, strictest).unwrap()
}

/// The layer and the words of the best hit of a single trait.
fn hit(locked: &str, text: &str) -> Option<(Layer, String)> {
    let hits = locks(&[(locked, SUBSTRING)], SUBSTRING).check(text);
    hits.into_iter().next().map(|hit| (hit.layer, text[hit.span].to_owned()))
}

#[track_caller]
fn assert_hit(locked: &str, text: &str, layer: Layer, words: &str) {
    assert_eq!(hit(locked, text), Some((layer, words.to_owned())), "`{locked}` in {text:?}");
}

#[track_caller]
fn assert_no_hit(locked: &str, text: &str) {
    assert_eq!(hit(locked, text), None, "`{locked}` in {text:?}");
}

// L2
#[test]
fn the_layer_says_how_far_the_text_was_folded() {
    assert_hit("warmth", "Less WARMTH!", Layer::AsGiven, "WARMTH");
    assert_hit("ΟΔΟΣ", "η οδος μας", Layer::AsGiven, "οδος");
    assert_hit("straße", "DIE STRASSE", Layer::AsGiven, "STRASSE");
    assert_hit("warmth", "less ｗａｒｍｔｈ", Layer::Folded, "ｗａｒｍｔｈ");
    assert_hit("voice register", "the voice\n\n  register", Layer::Folded, "voice\n\n  register");
    assert_hit("warmth", "less w&#97;rmth", Layer::Folded, "w&#97;rmth");
    assert_hit("naïve", "a naive one", Layer::Folded, "naive");
    assert_hit("warmth", "less w*arm*th", Layer::Unmarked, "w*arm*th");
    assert_hit("warmth", "less <i>w</i>armth", Layer::Unmarked, "w</i>armth");
    assert_hit(
        "warmth",
        "less [warm](https://example.org)th",
        Layer::Unmarked,
        "warm](https://example.org)th",
    );
    assert_hit("warmth", "less ![warm](x.png)th", Layer::Unmarked, "warm](x.png)th");
    assert_hit("voice register", "the voice<br>register", Layer::Unmarked, "voice<br>register");
    assert_hit("voice register", "the voice_register", Layer::Unmarked, "voice_register");
    assert_hit("warmth", "less warm-\n  th", Layer::Unmarked, "warm-\n  th");
    assert_hit("warmth", "less wаrmth", Layer::Skeleton, "wаrmth");
    assert_hit("warmth", "less warrnth", Layer::Skeleton, "warrnth");
    assert_hit("warmth", "less W A R M T H", Layer::SetApart, "W A R M T H");
    assert_hit("kindness", "less kind-ness", Layer::SetApart, "kind-ness");
}

// L2: of overlapping hits the least folded is reported, then the first.
#[test]
fn the_best_place_is_reported() {
    assert_hit("warmth", "wаrmth, w*armth, warmth, Warmth", Layer::AsGiven, "warmth");
    assert_hit("warmth", "wаrmth, w*armth, w_armth", Layer::Unmarked, "w*armth");
    let all = locks(&[("warmth", SUBSTRING)], SUBSTRING).find_all("wаrmth, w*armth, warmth, Warmth");
    let layers: Vec<Layer> = all.iter().map(|hit| hit.layer).collect();
    assert_eq!(layers, [Layer::Skeleton, Layer::Unmarked, Layer::AsGiven, Layer::AsGiven]);
}

// L2: looks are compared with looks, and similar words are not hits.
#[test]
fn what_comes_near_is_no_hit() {
    assert_no_hit("honest", "an echo nest");
    assert_no_hit("warmth", "the war, a month");
    assert_no_hit("nice", "the mice");
    assert_no_hit("fail", "the fall");
    assert_no_hit("fall", "FAIL");
    assert_no_hit("voice register", "voice, register");
    assert_no_hit("가", "각");
    assert_no_hit("か", "が");
}

// L2
#[test]
fn capitals_and_figures_pass_for_letters_where_they_look_like_them() {
    assert_hit("kindness", "KlNDNESS", Layer::Skeleton, "KlNDNESS");
    assert_hit("kindness", "k1ndness", Layer::Skeleton, "k1ndness");
    assert_hit("faithful", "faithfuI", Layer::Skeleton, "faithfuI");
    assert_hit("honest", "h0nest", Layer::Skeleton, "h0nest");
    assert_hit("kindness", "ΚΙΝDΝΕSS", Layer::Skeleton, "ΚΙΝDΝΕSS");
    assert_hit("тепло", "тeплo", Layer::Skeleton, "тeплo");
}

// L2: the trait is folded as the text is.
#[test]
fn a_trait_may_be_written_in_any_way() {
    assert_hit("ｗａｒｍｔｈ", "warmth", Layer::Folded, "warmth");
    assert_hit("**warmth**", "warmth", Layer::Unmarked, "warmth");
    assert_hit("<b>warmth</b>", "warmth", Layer::Unmarked, "warmth");
    assert_hit("w&#97;rmth", "warmth", Layer::Folded, "warmth");
    assert_hit("don't lie", "don’t lie", Layer::Folded, "don’t lie");
    assert_hit("C++", "no c++ here", Layer::AsGiven, "c++");
    assert_hit("(warm)", "so ( warm), no (wаrm).", Layer::Skeleton, "(wаrm)");
    assert_no_hit("C++", "no c here");
    assert_no_hit(".env", "the env");
}

// L2: a trait without letters is found as it stands, and is not everywhere.
#[test]
fn a_trait_of_signs_is_found_as_it_stands() {
    assert_hit("!!", "no!!", Layer::AsGiven, "!!");
    assert_hit("!!", "no！！", Layer::Folded, "！！");
    assert_hit("💔", "x💔", Layer::AsGiven, "💔");
    assert_hit("\u{301}", "e\u{301}", Layer::AsGiven, "\u{301}");
    assert_no_hit("\u{301}", "é or e");
    assert_no_hit("**", "nothing bold");
    assert_no_hit("", "anything");
}

// M9: a trait that was declared as text stays text below a view that has patterns.
#[test]
fn a_later_mode_is_added() {
    let both = locks(&[("a.c", SUBSTRING), ("a.c", REGEX)], REGEX);
    let found =
        |text: &str| both.check(text).iter().map(|hit| (hit.trait_index, hit.layer)).collect::<Vec<_>>();
    assert_eq!(found("xabcx"), [(1, Layer::Regex)]);
    assert_eq!(found("A.C"), [(0, Layer::AsGiven), (1, Layer::Regex)]);
    assert_eq!(both.semantic_traits(), [] as [usize; 0]);
    assert_eq!(locks(&[("a", SUBSTRING), ("b", REGEX)], SEMANTIC).semantic_traits(), [0, 1]);
    assert_eq!(locks(&[("a", SUBSTRING), ("b", SEMANTIC)], SEMANTIC).check("A b").len(), 2);
}

// L3
#[test]
fn patterns_are_tried_on_folded_text_but_not_on_looks() {
    let locks = locks(&[(r"less (warm|kind)\w*", REGEX)], REGEX);
    let check = |text: &str| locks.check(text).pop().map(|hit| (hit.layer, text[hit.span].to_owned()));
    assert_eq!(check("LESS WARMTH"), Some((Layer::Regex, "LESS WARMTH".to_owned())));
    for hidden in [
        "le\u{200b}ss w*ar*mth",
        "less\n<b>kind</b>ness",
        "ｌess &#107;ind",
        "lés\u{301}s kind",
        "less_kind-\nly",
    ] {
        assert_eq!(check(hidden).map(|(layer, _)| layer), Some(Layer::RegexFolded), "{hidden:?}");
    }
    assert_eq!(check("less wаrmth"), None);
}

// L3: accents that a pattern asks for are there to be found.
#[test]
fn a_pattern_may_ask_for_accents() {
    let locks = locks(&[("caf[é]", REGEX), ("x*", REGEX)], REGEX);
    let hits = locks.check("ca\u{200b}fe\u{301} now");
    assert_eq!(
        hits.iter().map(|hit| (hit.trait_index, hit.layer)).collect::<Vec<_>>(),
        [(0, Layer::RegexFolded)]
    );
}

// L3
#[test]
fn an_unusable_pattern_is_reported_by_its_index() {
    let traits = ["fine", "(open", r"\w{1000}{1000}"]
        .map(|text| LockedTrait { text: text.to_owned(), declared: REGEX });
    let invalid = Locks::compile(&traits[..2], REGEX).unwrap_err();
    assert_eq!((invalid.at, invalid.why.as_str()), (1, "unclosed group"));
    assert_eq!(Locks::compile(&traits[2..], REGEX).unwrap_err().why, "it is too large");
}

// L2: what is read side by side is one text.
#[test]
fn places_in_long_texts_are_found_wherever_they_are() {
    let locks = locks(&[("voice register", SUBSTRING), ("warmth", SUBSTRING)], SUBSTRING);
    for at in (0..5_900).step_by(11) {
        let mut text = "lorem ipsum. ".repeat(460);
        text.insert_str(at, " Voice \n Register ");
        let hits = locks.check(&text);
        assert_eq!(hits.len(), 1, "at {at}");
        assert_eq!(hits[0].span, at + 1..at + 17, "at {at}");
    }
}

// L2: what is made to take long does not.
#[test]
fn texts_made_to_be_slow_are_not() {
    let locks = locks(&[("warmth", SUBSTRING), ("a a a a a", SUBSTRING)], SUBSTRING);
    for piece in [
        "<a=\"",
        "](",
        "][",
        "<!--",
        "&amp;",
        "w ",
        "a",
        "a ",
        "warm",
        "-\n",
        "&#x77",
        "[!",
        "w\u{200b}",
        "Ν",
    ] {
        let text = piece.repeat(30_000);
        let _ = (locks.check(&text), fold(&text));
    }
}

#[test]
fn the_words_of_layers_differ_and_their_order_is_that_of_folding() {
    let words: std::collections::BTreeSet<&str> = Layer::ALL.iter().map(|layer| layer.as_str()).collect();
    assert_eq!(words.len(), Layer::ALL.len());
    assert!(Layer::ALL.is_sorted() && Layer::ALL.iter().all(|layer| layer.description().ends_with('.')));
}
