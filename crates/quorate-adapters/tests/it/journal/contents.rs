//! Contents come back byte for byte, whatever they are made of.

use proptest::prelude::*;
use quorate_testkit::conformance::substrate::{answer, new_turn};

use super::{Journal, append, public_format, read_everything};

/// Texts made of what the format is made of.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("=== TURN".to_owned()),
        Just("=== TURN id=t_0 participant=x ts=2026-01-01T00:00:00Z ===".to_owned()),
        Just("<!-- quorate:".to_owned()),
        Just("<!-- quorate: {\"torn\":true} -->".to_owned()),
        Just("<!-- quorate: {\"cut\":1} -->".to_owned()),
        Just("<!-- quorate: {\"newlines\":2} -->".to_owned()),
        Just(" -->".to_owned()),
        Just("\n".to_owned()),
        Just("\n".to_owned()),
        Just("\r\n".to_owned()),
        Just("\r".to_owned()),
        Just("\\".to_owned()),
        Just("\\\\\\".to_owned()),
        Just("\0".to_owned()),
        Just("\u{85}\u{2028}\u{feff}\u{a0}".to_owned()),
        "[a-z ]{0,8}",
        "\\PC{0,8}",
    ];
    prop::collection::vec(piece, 1..12)
        .prop_map(|pieces| pieces.concat())
        .prop_filter("not empty", |text| !text.is_empty())
}

fn on_this_thread<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(work)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_was_said_comes_back(given in prop::collection::vec((hostile(), any::<bool>()), 1..6)) {
        on_this_thread(async {
            let journal = Journal::new();
            let substrate = journal.open();
            let mut kept = Vec::new();
            for (at, (content, stamped)) in given.iter().enumerate() {
                let trigger = format!("t_{at}").into();
                let turn = if *stamped { answer("bea", content, &trigger) } else { new_turn("ann", content) };
                let appended = append(&substrate, turn.clone()).await;
                prop_assert_eq!(&*appended.content, content.as_str());
                let id = public_format::id(&turn.participant, &appended.timestamp, content);
                prop_assert_eq!(&*appended.id, id.as_str());
                kept.push(appended);
            }
            prop_assert_eq!(&read_everything(&substrate).await, &kept);
            prop_assert_eq!(&read_everything(&journal.open()).await, &kept);
            prop_assert_eq!(&journal.read_fresh().await, &kept);
            // Another handle reads the same turns, whatever is in them.
            let public: Vec<String> = public_format::read(&journal.text()).into_iter().map(|turn| turn.0).collect();
            let ids: Vec<String> = kept.iter().map(|turn| turn.id.to_string()).collect();
            prop_assert_eq!(public, ids);
            Ok(())
        })?;
    }

    /// The public reader and Quorate read the turns of other programs alike, apart from the forms that only Quorate writes and
    /// headers that end with a carriage return.
    #[test]
    fn what_others_wrote_is_read_as_they_read_it(given in prop::collection::vec(hostile(), 1..6)) {
        on_this_thread(async {
            let text: String = given
                .iter()
                .enumerate()
                .map(|(at, content)| public_format::write("ann", &format!("2026-05-23T10:00:{at:02}Z"), content))
                .collect();
            prop_assume!(!text.contains("===\r\n"));
            // What has the form of a note of ours and cannot be read is an error.
            let broken = |content: &str| {
                let line = content.split('\n').next().unwrap_or_default();
                let note = line.strip_prefix("<!-- quorate: ").and_then(|rest| rest.strip_suffix(" -->"));
                note.is_some_and(|note| serde_json::from_str::<serde_json::Value>(note).is_err())
            };
            prop_assume!(!public_format::read(&text).iter().any(|turn| broken(&turn.3)));
            let turns = Journal::with_content(&text).read_fresh().await;
            let mut public = public_format::read(&text);
            // A header in a content makes a turn for them. One with nothing behind it may be just being written.
            if public_format::ends_with_a_header(&text) {
                public.pop();
            }
            prop_assert_eq!(turns.len(), public.len());
            for (turn, public) in turns.iter().zip(&public) {
                prop_assert_eq!((&*turn.id, &*turn.participant, &*turn.timestamp), (&*public.0, &*public.1, &*public.2));
                if !public.3.contains("quorate:") && !public.3.contains("\\=== TURN") {
                    prop_assert_eq!(&*turn.content, public.3.as_str());
                }
                prop_assert!(turn.stamp.is_none());
            }
            Ok(())
        })?;
    }
}
