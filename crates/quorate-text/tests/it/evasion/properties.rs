//! Properties of folding and of places, on texts made to be difficult.

use proptest::prelude::*;
use quorate_text::locks::{Layer, Matcher, excerpt, fold};

use crate::evasion::matcher;

/// Pieces that mean something to the matcher, to be put together in any way.
fn piece() -> impl Strategy<Value = String> {
    let telling = prop::sample::select(vec![
        "warm",
        "th",
        "WARM",
        "ho",
        "nest",
        "a",
        "i",
        "l",
        "I",
        "1",
        "|",
        "0",
        "o",
        "rn",
        "m",
        " ",
        "  ",
        "\n",
        "\r\n",
        "-",
        "-\n",
        "\u{ad}",
        "*",
        "**",
        "_",
        "`",
        "[",
        "](x)",
        "][",
        "<b>",
        "</b>",
        "<",
        ">",
        "<!--",
        "-->",
        "&",
        "&amp;",
        "&lt;",
        "&#119;",
        "&#x26;",
        ";",
        "#",
        "\\",
        "\u{200b}",
        "\u{202e}",
        "\u{301}",
        "é",
        "e\u{301}",
        "ß",
        "ẞ",
        "İ",
        "ı",
        "ſ",
        "ﬁ",
        "ﬃ",
        "㎏",
        "Ｗ",
        "а",
        "ѕ",
        "Ν",
        "ν",
        "Σ",
        "ς",
        "각",
        "가",
        "ㄱ",
        "\u{1100}",
        "\u{1161}",
        "\u{11a8}",
        "が",
        "\u{3099}",
        "か",
        "´",
        "…",
        "⒜",
        "￼",
        "\u{10ffff}",
        "\u{0}",
        "\u{85}",
        "漢",
        "𝔴",
        "🅦",
        "💖",
        "'",
        "’",
        "\"",
        ".",
    ])
    .prop_map(str::to_owned);
    prop_oneof![8 => telling, 1 => any::<char>().prop_map(String::from), 1 => "[a-zA-Z ]{1,6}"]
}

fn text(most: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..most).prop_map(|pieces| pieces.concat())
}

fn one(locked: &str) -> Matcher {
    matcher(&[locked])
}

/// What [`Matcher::check`] is compared with: case-insensitively, and no more.
fn contains(text: &str, locked: &str) -> bool {
    !locked.is_empty() && text.to_lowercase().contains(&locked.to_lowercase())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, rng_seed: prop::test_runner::RngSeed::Fixed(20_261), ..ProptestConfig::default() })]

    // L2: folding is idempotent.
    #[test]
    fn folding_is_idempotent(text in text(24)) {
        let once = fold(&text);
        prop_assert_eq!(fold(&once), once);
    }

    // L2: folding only ever adds hits: whatever is there as given is a hit, by that layer.
    #[test]
    fn what_stands_as_given_is_a_hit(before in text(8), locked in text(5), after in text(8), other in text(5)) {
        for locked in [locked.as_str(), other.as_str()] {
            let hidden = format!("{before}{}{after}", &locked);
            for text in [hidden.clone(), hidden.to_uppercase(), before.clone()] {
                let hits = one(locked).check(&text);
                if contains(&text, locked) {
                    prop_assert_eq!(hits.first().map(|hit| hit.layer), Some(Layer::AsGiven), "{:?} in {:?}", locked, text);
                }
            }
        }
    }

    // L2: a place lies on character boundaries; the best place is one of all; and nothing overlaps.
    #[test]
    fn places_are_places(text in text(30), locked in text(4)) {
        let matcher = one(&locked);
        let (best, all) = (matcher.check(&text), matcher.find_all(&text));
        prop_assert_eq!(best.is_empty(), all.is_empty());
        for hit in best.iter().chain(&all) {
            prop_assert!(text.is_char_boundary(hit.span.start) && text.is_char_boundary(hit.span.end));
            prop_assert!(hit.span.start < hit.span.end, "{:?} in {:?}: {:?}", locked, text, hit);
            let shown = excerpt(&text, &hit.span);
            prop_assert!(!shown.chars().any(char::is_control), "{:?}", shown);
        }
        prop_assert!(all.windows(2).all(|pair| pair[0].span.end <= pair[1].span.start));
        if let Some(best) = best.first() {
            prop_assert!(all.iter().all(|hit| best.layer <= hit.layer), "{:?} {:?}", best, all);
        }
    }

    // L2: an empty trait, or a trait of invisible characters, does not match every text.
    #[test]
    fn nothing_is_not_everywhere(text in "[a-zA-Z0-9 .,]{0,40}") {
        for locked in ["", "\u{301}", "\u{200b}", "**", "<b>", "&nbsp;", " \u{ad} "] {
            let hits = one(locked).check(&text);
            prop_assert!(hits.is_empty() || contains(&text, locked), "{:?}: {:?}", locked, hits);
        }
    }
}
