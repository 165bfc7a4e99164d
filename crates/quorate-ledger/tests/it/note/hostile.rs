//! Inputs that are not a note, not a checkpoint, or not the signed text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use quorate_ledger::merkle::{EMPTY, TreeHead};
use quorate_ledger::note::{Checkpoint, MAX_NOTE_BYTES, MAX_SIGNATURES, Note};
use quorate_ledger::prove::SignedCheckpoint;

use crate::note::{C2SP_KEY, C2SP_NOTE, PETER, PETERS_LINE, TEXT, log, peter, signer, verifier};

const UNSIGNED: &str = "the note has no signatures after an empty line";
const CONTROL: &str = "the note has a control character";
const LINES: &str = "a checkpoint must have three lines, each non-empty and with a line end";

#[test]
fn every_change_of_a_byte_is_found() {
    // D2
    let (log, checkpoint) = log();
    let signed = checkpoint.sign(&log).unwrap().to_string();
    let cases = [(C2SP_NOTE.to_owned(), verifier(C2SP_KEY)), (signed, log.verifier().clone())];
    for (note, verifier) in cases {
        let known = [verifier];
        assert!(Note::parse(note.as_bytes()).unwrap().verify(&known).is_ok());
        for at in 0..note.len() {
            let believed = |bytes: &[u8]| Note::parse(bytes).is_ok_and(|note| note.verify(&known).is_ok());
            let with = |byte| {
                let mut other = note.clone().into_bytes();
                other[at] = byte;
                other
            };
            let byte = note.as_bytes()[at];
            assert!(!believed(&with(byte ^ 1)) && !believed(&with(byte ^ 32)), "byte {at}");
            // Any other input is another text or another signature, or not a note: parsing ignores no byte of a note.
            for other in (0..=u8::MAX).map(with) {
                if let Ok(read) = Note::parse(&other) {
                    assert_eq!(read.to_string().into_bytes(), other);
                }
            }
            let mut shorter = note.clone().into_bytes();
            shorter.remove(at);
            assert!(!believed(&shorter), "without byte {at}");
            assert!(!believed(&note.as_bytes()[..at]), "cut at {at}");
            let mut longer = note.clone().into_bytes();
            longer.insert(at, b"\n A="[at % 4]);
            assert!(!believed(&longer), "longer at {at}");
        }
    }
}

#[test]
fn what_is_no_note_is_refused() {
    // D2
    let signed = |line: &str| format!("{TEXT}\n{line}").into_bytes();
    let (dash, rest) = PETERS_LINE.split_at("— ".len());
    let (name, encoded) = rest.trim_end().split_once(' ').unwrap();
    let line = "signature line 1 must be";
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (Vec::new(), UNSIGNED),
        (b"\n\n".to_vec(), UNSIGNED),
        (TEXT.into(), UNSIGNED),
        (format!("{TEXT}\n").into(), UNSIGNED),
        (format!("\n{PETERS_LINE}").into(), UNSIGNED),
        (signed(PETERS_LINE.trim_end()), line),
        (signed(&format!("{PETERS_LINE}Unexpected line.\n")), "signature line 2 must be"),
        (signed(&format!("{PETERS_LINE}\n")), UNSIGNED),
        ([b"\xff", signed(PETERS_LINE).as_slice()].concat(), "the note is not UTF-8"),
        ([b"\x01", signed(PETERS_LINE).as_slice()].concat(), CONTROL),
        (signed(PETERS_LINE).iter().flat_map(|byte| [*byte, 0]).collect(), "the note is not UTF-8"),
        (signed(&PETERS_LINE.replace('\n', "\r\n")), CONTROL),
        (signed(&PETERS_LINE.replace('\n', "\t\n")), CONTROL),
        (signed(&format!("- {rest}")), line),
        (signed(&format!("—{rest}")), line),
        (signed(&format!(" {PETERS_LINE}")), line),
        (signed(&format!("{dash} {encoded}\n")), line),
        (signed(&format!("{dash}{name}  {encoded}\n")), line),
        (signed(&format!("{dash}{name} {encoded} \n")), line),
        (signed(&format!("{dash}Bad Name {encoded}\n")), line),
        (signed(&format!("{dash}Bad+Name {encoded}\n")), line),
        (signed(&format!("{dash}Bad\u{a0}Name {encoded}\n")), line),
        (signed(&format!("{dash}{name} \n")), line),
        (signed(&format!("{dash}{name}\n")), line),
        (signed(&format!("{dash}{name} {}\n", encoded.trim_end_matches('='))), line),
        (signed(&format!("{dash}{name} {}\n", encoded.replace("AM=", "AN="))), line),
        (signed(&format!("{dash}{name} {}\n", encoded.replace('/', "_"))), line),
        (signed(&format!("{dash}{name} x08gow==\n")), line),
        (signed(&format!("{dash}{name} AAAA\n")), line),
    ];
    for (bytes, expected) in cases {
        let what = Note::parse(&bytes).unwrap_err();
        assert!(what.starts_with(expected), "{what}: {:?}", String::from_utf8_lossy(&bytes));
    }
    for (text, expected) in
        [("", "the note's text does not end"), ("abc", "the note's text does not end"), ("a\0\n", CONTROL)]
    {
        assert!(Note::new(text).unwrap_err().starts_with(expected));
    }
}

#[test]
fn notes_are_bounded() {
    // D2
    let known = [verifier(PETER)];
    let crowded = |count| format!("{TEXT}\n{}", PETERS_LINE.repeat(count));
    let most = Note::parse(crowded(MAX_SIGNATURES).as_bytes()).unwrap();
    assert_eq!(most.verify(&known).map(|by| by.len()), Ok(1));
    let refused = |text: &str| Note::parse(text.as_bytes()).unwrap_err();
    assert_eq!(refused(&crowded(MAX_SIGNATURES + 1)), "the note has more than 100 signatures");
    let fitting = "a".repeat(MAX_NOTE_BYTES - PETERS_LINE.len() - 2) + "\n";
    let long = format!("{fitting}\n{PETERS_LINE}");
    assert_eq!(Note::parse(long.as_bytes()).map(|note| note.text().len()), Ok(fitting.len()));
    let longer = format!("a{long}");
    assert!(refused(&longer).ends_with("more than the maximum of 1048576"));
    let mut full = Note::new(&fitting).unwrap();
    assert_eq!(full.sign(&peter()), Ok(()));
    let before = full.clone();
    assert!(full.sign(&signer("another", 1)).is_err(), "what could not be read is not written");
    assert_eq!(full, before);
}

#[test]
fn what_is_no_checkpoint_is_refused() {
    // D2
    let root = STANDARD.encode(EMPTY);
    let cases = [
        (String::new(), LINES),
        ("\n".into(), LINES),
        ("\n\n\n".into(), LINES),
        (format!("log\n1\n{root}"), LINES),
        ("log\n1\n".into(), LINES),
        (format!("\n1\n{root}\n"), LINES),
        (format!("log\n\n{root}\n"), LINES),
        ("log\n1\n\n".into(), LINES),
        (format!("log\n1\n{root}\n\n"), LINES),
        (format!("log\n1\n{root}\n\nextension\n"), LINES),
        (format!("log\n1\n{root}\nextension"), LINES),
        (format!("log\r\n1\n{root}\n"), "the checkpoint has a control character"),
        (format!("log\n1\n{root}\na\tb\n"), "the checkpoint has a control character"),
        (format!("log\n1\n{root}\none\n"), "the checkpoint has more lines than origin, size and root"),
        (format!("log\n1\n{root} \n"), "the root is not the base64 of 32 bytes"),
        (format!("log\n1\n{}\n", &root[4..]), "the root is not the base64 of 32 bytes"),
        (format!("log\n1\n{root}AAAA\n"), "the root is not the base64 of 32 bytes"),
        (format!("log\n1\n{}\n", root.trim_end_matches('=')), "the root is not the base64 of 32 bytes"),
        (format!("log\n1\n{}\n", root.replace("FU=", "FV=")), "the root is not the base64 of 32 bytes"),
    ];
    assert!(root.ends_with("FU="));
    for (text, expected) in cases {
        assert_eq!(Checkpoint::parse(&text).unwrap_err(), expected, "{text:?}");
    }
    for size in ["00", "01", "+1", "-1", "1.0", " 1", "1 ", "1e3", "0x1", "x", "١", "18446744073709551616"] {
        assert_eq!(
            Checkpoint::parse(&format!("log\n{size}\n{root}\n")).unwrap_err(),
            "the size is not a decimal number of 64 bits without leading zeros",
            "{size}"
        );
    }
    let tree = TreeHead { size: 0, root: EMPTY };
    for (origin, expected) in
        [("", LINES), ("a\nb", LINES), ("a\0b", "the checkpoint has a control character")]
    {
        assert_eq!(Checkpoint::new(origin, tree).unwrap_err(), expected);
    }
}

#[test]
fn a_signed_note_that_is_no_checkpoint_is_not_opened() {
    // D2
    let note = format!("{TEXT}\n{PETERS_LINE}");
    let known = [PETER.to_owned()];
    assert_eq!(
        SignedCheckpoint::open(&note, &known),
        Err(LINES.to_owned()),
        "the text is looked at after its signature"
    );
    assert_eq!(SignedCheckpoint::open(&note, &[]), Err("no known key signed it".to_owned()));
    assert_eq!(SignedCheckpoint::open("", &known), Err(UNSIGNED.to_owned()));
}

proptest! {
    // D2: a parsed note formats to the same text, and no input stops the program.
    #[test]
    fn any_bytes_are_a_note_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(note) = Note::parse(&bytes) {
            prop_assert_eq!(note.to_string().into_bytes(), bytes);
        }
    }

    // D2
    #[test]
    fn any_lines_are_a_note_or_none(text in "[a\n— ]{0,9}(\n)?\n(— [a+ é]{0,3} [A-D=]{0,8}\n){0,3}") {
        if let Ok(note) = Note::parse(text.as_bytes()) {
            prop_assert_eq!(note.to_string(), text);
        }
    }

    // D2
    #[test]
    fn any_text_is_a_checkpoint_or_none(text in "[a\n]{0,4}\n[0-9]{0,3}\n([A-D]{42}A=)?\n?[a\n]{0,4}") {
        if let Ok(checkpoint) = Checkpoint::parse(&text) {
            prop_assert_eq!(checkpoint.to_string(), text);
        }
    }
}
