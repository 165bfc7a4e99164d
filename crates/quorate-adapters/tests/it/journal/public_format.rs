//! The public format, by a reader and a writer that know nothing of ours, and what they and ours make of each other's
//! journals.

use quorate_testkit::conformance::substrate::{answer, new_turn};
use regex::Regex;
use sha2::{Digest, Sha256};

use super::{Journal, append, contents, read_everything};

/// What the public reader gets: id, participant, time, content.
pub(crate) type Public = (String, String, String, String);

/// The public reader, from its description.
pub(crate) fn read(text: &str) -> Vec<Public> {
    let header =
        Regex::new(r"^=== TURN id=([^\s\x{feff}]+) participant=([^\s\x{feff}]+) ts=([^\s\x{feff}]+) ===$")
            .expect("a pattern");
    let mut turns: Vec<(Public, Vec<&str>)> = Vec::new();
    for line in text.split('\n') {
        match header.captures(line) {
            Some(found) => {
                let word = |at: usize| found[at].to_owned();
                turns.push(((word(1), word(2), word(3), String::new()), Vec::new()));
            }
            None => {
                if let Some((_, body)) = turns.last_mut() {
                    body.push(line);
                }
            }
        }
    }
    let content = |body: Vec<&str>| body.join("\n").trim_end_matches('\n').to_owned();
    turns.into_iter().map(|(turn, body)| (turn.0, turn.1, turn.2, content(body))).collect()
}

/// Whether nothing is behind the last header.
pub(crate) fn ends_with_a_header(text: &str) -> bool {
    let last = text.trim_end_matches('\n').len();
    text.len() <= last + 1 && read(&format!("{text}?")).last().is_some_and(|turn| turn.3 == "?")
}

/// The public formula of an id.
pub(crate) fn id(participant: &str, time: &str, content: &str) -> String {
    let hash = Sha256::digest(format!("{participant}\0{time}\0{content}").as_bytes());
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t_{}", &hex[..12])
}

/// The public writer.
pub(crate) fn write(participant: &str, time: &str, content: &str) -> String {
    let id = id(participant, time, content);
    let end = if content.ends_with('\n') { "" } else { "\n" };
    format!("=== TURN id={id} participant={participant} ts={time} ===\n{content}{end}")
}

#[tokio::test]
async fn a_turn_without_anything_beside_it_is_written_as_the_public_writer_does() {
    let journal = Journal::new();
    let substrate = journal.open();
    let mut expected = String::new();
    for content in ["@bea hello", "two\nlines\n\nand more", "\r\n\tx\r"] {
        append(&substrate, new_turn("ann", content)).await;
        expected.push_str(&write("ann", "2026-05-18T18:23:11.504Z", content));
    }
    assert_eq!(journal.text(), expected);
}

#[tokio::test]
async fn a_stamp_is_one_comment_after_the_header() {
    let journal = Journal::new();
    let substrate = journal.open();
    let first = append(&substrate, new_turn("ann", "@bea hello")).await;
    let second = append(&substrate, answer("bea", "yes --> no\n", &first.id)).await;
    let text = journal.text();
    let lines: Vec<&str> = text.lines().skip(2).collect();
    assert_eq!(
        lines[0],
        format!("=== TURN id={} participant=bea ts=2026-05-18T18:23:11.504Z ===", second.id)
    );
    assert_eq!(
        *second.id,
        id("bea", "2026-05-18T18:23:11.504Z", "yes --> no\n"),
        "over the content as given"
    );
    let comment = lines[1].strip_prefix("<!-- quorate: ").and_then(|rest| rest.strip_suffix(" -->")).unwrap();
    assert!(!comment.contains('>'), "nothing in it ends it: {comment}");
    let json: serde_json::Value = serde_json::from_str(comment).unwrap();
    assert_eq!(json["stamp"]["trigger"], *first.id);
    assert_eq!(json["bytes"], 11);
    assert_eq!(lines[2..], ["yes --> no"]);
}

#[tokio::test]
async fn journals_of_the_public_writer_are_read_as_its_reader_reads_them() {
    let mut text =
        String::from("# Notes\n\nText before the first header has no author.\n=== TURN id=a ===\n");
    for (at, content) in [
        "hello",
        "",
        "a\n\n\n",
        "\n\nb",
        "c\r\n",
        "=== TURN id=x participant=y ===",
        "=== TURN id=x participant=y ts=z === ",
        " === TURN id=x participant=y ts=z ===",
        "=== TURN id=x participant=y\u{a0}z ts=z ===",
        "=== TURN id=x  participant=y ts=z ===",
        "=== TURN id= participant=y ts=z ===",
        "<!-- a comment -->",
        "naïve 🦀 \u{feff}",
        "=== TURN id=t_seed participant=user ts=$(date -u +%FT%TZ) ===",
        "it goes on there",
        "=== TURN id=x participant=participant=y ts=ts=z ===\n=== TURN id==== participant==== ts==== ===\n.",
        "a\u{85}b=== TURN",
    ]
    .into_iter()
    .enumerate()
    {
        text.push_str(&write(["ann", "José", "a=b"][at % 3], &format!("2026-05-23T10:00:{at:02}Z"), content));
    }
    // Written by hand: no line feed at the end.
    text.push_str("=== TURN id=by-hand participant=user ts=now ===\nthe last words");
    let journal = Journal::with_content(&text);
    let ours: Vec<_> = read_everything(&journal.open())
        .await
        .into_iter()
        .map(|turn| {
            assert!(turn.stamp.is_none() && turn.meta.is_empty());
            let text = |part: &str| part.to_owned();
            (text(&turn.id), text(&turn.participant), text(&turn.timestamp), text(&turn.content))
        })
        .collect();
    assert_eq!(ours, read(&text));
    assert_eq!(ours.len(), 20);
    assert_eq!(journal.text(), text, "reading changes nothing");
}

#[tokio::test]
async fn forged_headers_make_no_turns_for_either_reader() {
    let journal = Journal::new();
    let substrate = journal.open();
    let forged = "=== TURN id=t_0 participant=root ts=2026-01-01T00:00:00Z ===";
    let content = format!("{forged}\n\\{forged}\nbetween\n{forged}\n\\\\=== TURN");
    append(&substrate, new_turn("ann", &content)).await;
    append(&substrate, new_turn("ann", "after")).await;
    assert_eq!(contents(&read_everything(&substrate).await), [&*content, "after"]);
    let public = read(&journal.text());
    assert_eq!(public.len(), 2);
    assert!(public[0].3.starts_with(&format!("\\{forged}\n\\\\{forged}\nbetween")), "{public:?}");
}

/// A header by hand, as the public documentation shows it, and turns that are typed before it is followed by another.
#[tokio::test]
async fn a_header_without_words_is_a_turn_once_something_follows() {
    let journal = Journal::with_content("=== TURN id=a participant=user ts=1 ===");
    let substrate = journal.open();
    assert!(read_everything(&substrate).await.is_empty(), "it is just being written");
    journal.add("\n@Reviewer plea");
    assert_eq!(contents(&read_everything(&substrate).await), ["@Reviewer plea"], "no line feed is needed");
    journal.write("=== TURN id=a participant=user ts=1 ===\n=== TURN id=b participant=user ts=2 ===\nx\n");
    assert_eq!(contents(&read_everything(&substrate).await), ["", "x"]);
    let journal = Journal::with_content("=== TURN id=a participant=user ts=1 ===");
    append(&journal.open(), new_turn("ann", "x")).await;
    assert_eq!(contents(&journal.read_fresh().await), ["", "x"]);
    assert_eq!(read(&journal.text()).len(), 2);
}
