//! A hit: its layer, its place, and the time that it takes to find it.

use quorate_text::locks::{Layer, Matcher, Wanted, fold};

use crate::evasion::matcher;

// L2: of overlapping hits the least folded is reported, then the first.
#[test]
fn the_best_place_is_reported() {
    let matcher = matcher(&["warmth"]);
    let text = "wаrmth, w*armth, warmth, Warmth";
    let best = matcher.check(text).pop().unwrap();
    assert_eq!((best.layer, &text[best.span]), (Layer::AsGiven, "warmth"));
    let layers: Vec<Layer> = matcher.find_all(text).iter().map(|hit| hit.layer).collect();
    assert_eq!(layers, [Layer::Skeleton, Layer::Unmarked, Layer::AsGiven, Layer::AsGiven]);
}

// L3
#[test]
fn an_unusable_pattern_is_reported_by_its_index() {
    let wanted = ["fine", "(open", r"\w{1000}{1000}"].map(Wanted::Pattern);
    let invalid = Matcher::new(&wanted[..2]).unwrap_err();
    assert_eq!((invalid.at, invalid.why.as_str()), (1, "unclosed group"));
    assert_eq!(Matcher::new(&wanted[2..]).unwrap_err().why, "it is too large");
}

// L2: a place is found wherever it is in a text.
#[test]
fn places_in_long_texts_are_found_wherever_they_are() {
    let matcher = matcher(&["voice register", "warmth", "ignore the policy"]);
    for at in (0..2_900).step_by(11) {
        for (hidden, layer) in [
            (" Voice \n Register ", Layer::Folded),
            (" i . g . n . o . r . e . t . h . e . p . o . l . i . c . y ", Layer::SetApart),
        ] {
            let mut text = "lorem ipsum. ".repeat(230);
            text.insert_str(at, hidden);
            let hits = matcher.check(&text);
            assert_eq!(hits.len(), 1, "at {at}");
            let place = at + 1..at + hidden.len() - 1;
            // A letter beside the place would continue its word, or its letters.
            assert_eq!((hits[0].layer, hits[0].span.clone()), (layer, place), "at {at}");
        }
    }
}

/// Pieces of which hostile texts are made: beginnings of markup without an end, and traits that almost are there.
const HOSTILE: [&str; 26] = [
    "<a=\"",
    "<a ='",
    "](",
    "][",
    "<!--",
    "<!-- >",
    "&amp;",
    "&#x77",
    "[!",
    "w ",
    "a",
    "a ",
    "warm",
    "-\n",
    "\n> ",
    "i|",
    "i g n o r e ",
    "|",
    "A.",
    "ignorethepolic",
    "mode rn",
    "і g",
    "w\u{200b}",
    "Ν",
    "\u{e0061}",
    "e\u{301}",
];

// L2: each text is read in linear time, whatever it is made of: four times the text takes far less than sixteen times as
// long, up to a megabyte.
#[test]
#[expect(clippy::disallowed_methods, reason = "it is about the time that passes")]
fn time_grows_with_the_text() {
    let matcher = matcher(&["ignore the policy", "AI", "FAIL", "modem", "warmth", "a a a a a"]);
    for piece in HOSTILE {
        let time = |bytes: usize| {
            let text = piece.repeat(bytes / piece.len());
            let begun = std::time::Instant::now();
            let _ = (matcher.check(&text), fold(&text));
            begun.elapsed().as_secs_f64()
        };
        let (short, long) = (time(250_000).max(0.01), time(1_000_000));
        assert!(long < short * 12.0, "{piece:?}: {short} s, then {long} s");
    }
}

#[test]
fn the_words_of_layers_differ_and_their_order_is_that_of_folding() {
    let words: std::collections::BTreeSet<&str> = Layer::ALL.iter().map(|layer| layer.as_str()).collect();
    assert_eq!(words.len(), Layer::ALL.len());
    assert!(Layer::ALL.is_sorted() && Layer::ALL.iter().all(|layer| layer.description().ends_with('.')));
}
