//! The weave on random overlays, compared with an oracle of B3.

use proptest::prelude::*;
use proptest::sample::select;
use quorate_playbook::lock::Locks;
use quorate_playbook::persona::BasePrompt;
use quorate_playbook::weave::{ADVISORY_CAP, SkipReason, WovenPrompt, compose};
use quorate_protocol::overlay::Overlay;

fn weave(base: &str, overlays: &[Overlay], now_ms: i64) -> WovenPrompt {
    compose(&BasePrompt::from_body(base), &[], overlays, &Locks::new(Vec::new()), now_ms).woven
}

/// Few different values, so that every tie happens.
fn overlays() -> impl Strategy<Value = Vec<Overlay>> {
    let texts =
        select(vec!["Ask first.", "Slow down.\n\nOne thing at a time.", " Ask first.\n", "", "# Ünïcode"]);
    let one = (select(vec!["a", "b", "c", "d"]), texts, 70_u8..80, 0_i64..4, 0_i64..6);
    let one = one.prop_map(|(id, text, priority, added_ms, expires_ms)| Overlay {
        overlay: id.to_owned(),
        assembly: "mentors".to_owned(),
        operator: "ada".to_owned(),
        run: "r1".to_owned(),
        member: "critic".to_owned(),
        rule: "gravest".to_owned(),
        text: text.to_owned(),
        severity: 5,
        priority,
        added_ms,
        expires_ms,
    });
    prop::collection::vec(one, 0..9)
}

fn bases() -> impl Strategy<Value = &'static str> {
    select(vec!["", "You are Ada.", "You are Ada.\n", "You are Ada.\r\n\r\n", "\n"])
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_order_given_makes_no_difference(
        base in bases(),
        (given, shuffled) in overlays().prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle())),
        now in 0_i64..6,
    ) {
        prop_assert_eq!(weave(base, &given, now), weave(base, &shuffled, now));
    }

    #[test]
    fn each_overlay_is_woven_once_or_skipped_with_a_reason(base in bases(), all in overlays(), now in 0_i64..6) {
        let woven = weave(base, &all, now);
        prop_assert_eq!(woven.woven.len() + woven.skipped.len(), all.len());
        prop_assert!(woven.prompt.starts_with(base));
        let mut texts: Vec<&str> =
            all.iter().filter(|overlay| overlay.is_active(now)).map(|overlay| overlay.text.trim()).collect();
        texts.sort_unstable();
        texts.dedup();
        texts.retain(|text| !text.is_empty());
        prop_assert_eq!(woven.woven.len(), texts.len());
        // Nothing is in the prompt but the base, the texts and blank lines.
        let rest = texts.iter().fold(woven.prompt[base.len()..].to_owned(), |rest, text| rest.replacen(text, "", 1));
        prop_assert!(rest.chars().all(|c| c == '\n'), "{:?}", rest);
        for skipped in &woven.skipped {
            if let SkipReason::Duplicate(id) = &skipped.reason {
                prop_assert!(woven.woven.iter().any(|used| used.id == *id));
            }
        }
    }

    #[test]
    fn priorities_fall_and_none_is_over_the_cap(all in overlays(), now in 0_i64..6) {
        let woven = weave("base", &all, now).woven;
        prop_assert!(woven.iter().all(|used| used.priority <= ADVISORY_CAP));
        prop_assert!(woven.windows(2).all(|pair| pair[0].priority >= pair[1].priority));
    }
}
