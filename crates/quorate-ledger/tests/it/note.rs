//! Signed notes and checkpoints (D2), compared with C2SP's specifications: their examples, those of Go's
//! implementation, and malformed ones (`hostile`).

mod hostile;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quorate_ledger::merkle::{EMPTY, TreeHead, leaf};
use quorate_ledger::note::{Checkpoint, Note, Signer, Verifier};
use quorate_ledger::prove::SignedCheckpoint;
use quorate_ledger::signing::SecretKey;

/// The example of c2sp.org/signed-note.
const C2SP_KEY: &str = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k";
const C2SP_NOTE: &str = "This is an example message.\n\n\
    — example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n";

/// The examples of golang.org/x/mod/sumdb/note. The secret key is published there.
const PETER: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
const PETERS_SECRET: &str = "AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz";
const ENOCH: &str = "EnochRoot+af0cfe78+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop";
const TEXT: &str =
    "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n";
const PETERS_LINE: &str = "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";
const ENOCHS_LINE: &str = "— EnochRoot rwz+eBzmZa0SO3NbfRGzPCpDckykFXSdeX+MNtCOXm2/5n2tiOHp+vAF1aGrQ5ovTG01oOTGwnWLox33WWd1RvMc+QQ=\n";

fn verifier(text: &str) -> Verifier {
    Verifier::from_text(text).expect("a verifier key")
}

fn signer(name: &str, seed: u8) -> Signer {
    Signer::new(name, SecretKey::from_seed(&[seed; 32])).expect("a name")
}

fn peter() -> Signer {
    let typed = STANDARD.decode(PETERS_SECRET).expect("base64");
    let seed = typed[1..].try_into().expect("32 bytes after the type");
    Signer::new("PeterNeumann", SecretKey::from_seed(&seed)).expect("a name")
}

fn parse(note: &str) -> Note {
    Note::parse(note.as_bytes()).expect("a note")
}

fn log() -> (Signer, Checkpoint) {
    let tree = TreeHead { size: 20_852_163, root: leaf(b"root") };
    (signer("example.com/ledger", 1), Checkpoint::new("example.com/ledger", tree).expect("an origin"))
}

#[test]
fn the_specifications_example_verifies() {
    // D2
    let known = [verifier(C2SP_KEY)];
    let note = parse(C2SP_NOTE);
    assert_eq!(note.text(), "This is an example message.\n");
    assert_eq!(note.verify(&known), Ok(vec![&known[0]]));
    assert_eq!(note.to_string(), C2SP_NOTE);
}

#[test]
fn gos_examples_are_reproduced_to_the_byte() {
    // D2
    let peter = peter();
    assert_eq!(peter.verifier().to_string(), PETER);
    assert_eq!(peter.verifier().id(), [0xc7, 0x4f, 0x20, 0xa3]);
    let mut note = Note::new(TEXT).unwrap();
    note.sign(&peter).unwrap();
    assert_eq!(note.to_string(), format!("{TEXT}\n{PETERS_LINE}"));
    note.sign(&peter).unwrap();
    assert_eq!(note.signatures().len(), 1, "a key's signature takes its older one's place");
}

fn unknown<T>() -> Result<T, String> {
    Err("no known key signed it".to_owned())
}

#[test]
fn several_keys_sign_and_unknown_ones_are_ignored() {
    // D2
    let (peter, enoch) = (verifier(PETER), verifier(ENOCH));
    let both = parse(&format!("{TEXT}\n{PETERS_LINE}{ENOCHS_LINE}"));
    assert_eq!(both.verify(std::slice::from_ref(&peter)), Ok(vec![&peter]));
    assert_eq!(both.verify(&[enoch.clone(), peter.clone()]), Ok(vec![&peter, &enoch]));
    assert_eq!(both.verify(&[]), unknown());
    let thrice = parse(&format!("{TEXT}\n{PETERS_LINE}{PETERS_LINE}{PETERS_LINE}"));
    assert_eq!(thrice.verify(std::slice::from_ref(&peter)), Ok(vec![&peter]), "each key once");
    // A known name with another id, or a known id with another name, is another key.
    let other = signer("PeterNeumann", 9);
    let mut note = Note::new(TEXT).unwrap();
    note.sign(&other).unwrap();
    assert_eq!(note.verify(std::slice::from_ref(&peter)), unknown());
    let renamed = parse(&format!("{TEXT}\n{}", PETERS_LINE.replace("PeterNeumann", "CarmenSandiego")));
    assert_eq!(renamed.verify(std::slice::from_ref(&peter)), unknown());
    // Lines of future types have other lengths.
    let long = STANDARD.encode([7; 2436]);
    let future = parse(&format!("{TEXT}\n— witness.example/w1 {long}\n— w2 AAAAAAA=\n{PETERS_LINE}"));
    assert_eq!(future.verify(std::slice::from_ref(&peter)), Ok(vec![&peter]));
    assert_eq!(parse(&future.to_string()), future, "and are kept");
}

#[test]
fn one_false_signature_of_a_known_key_refuses_the_note() {
    // D2
    let known = [verifier(PETER), verifier(ENOCH)];
    let elsewhere = C2SP_NOTE.split_once("\n\n").unwrap().0;
    let moved = parse(&format!("{elsewhere}\n\n{PETERS_LINE}"));
    let forged = |name: &str| Err(format!("the signature of {name} does not verify"));
    assert_eq!(moved.verify(&known), forged("PeterNeumann"));
    let spoilt = ENOCHS_LINE.replace("5n2tiOHp", "5n2tiOHq");
    for lines in [format!("{PETERS_LINE}{spoilt}"), format!("{spoilt}{ENOCHS_LINE}{PETERS_LINE}")] {
        assert_eq!(parse(&format!("{TEXT}\n{lines}")).verify(&known), forged("EnochRoot"));
    }
    let longer = ENOCHS_LINE.replace("5n2tiOHp", "5n2tABCDiOHp");
    assert_eq!(parse(&format!("{TEXT}\n{longer}")).verify(&known), forged("EnochRoot"), "of another length");
}

#[test]
fn a_text_may_have_empty_lines_and_something_like_signatures() {
    // D2: the last empty line ends the text.
    let signer = signer("example.com/a", 3);
    for text in ["\n", "\n\n", "a\n\nb\n", "a\n\n\n", "a\n\n— example.com/a AAAAAAA=\n", "ed è subito sera\n"]
    {
        let mut note = Note::new(text).unwrap();
        note.sign(&signer).unwrap();
        let read = parse(&note.to_string());
        assert_eq!((read.text(), read.verify(std::slice::from_ref(signer.verifier())).is_ok()), (text, true));
        assert_eq!(read, note);
    }
}

#[test]
fn verifier_keys_read_back_and_have_one_form() {
    // D2
    let sum = "sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8";
    for text in [C2SP_KEY, PETER, ENOCH, sum] {
        assert_eq!(verifier(text).to_string(), text);
        for start in 0..text.len() {
            for end in start..text.len() {
                assert!(Verifier::from_text(&text[start..end]).is_err());
                assert!(start == 0 || Verifier::from_text(&text[start..]).is_err());
            }
        }
        for at in 0..text.len() {
            let mut other = text.as_bytes().to_vec();
            other[at] += 1;
            assert!(Verifier::from_text(std::str::from_utf8(&other).expect("ASCII")).is_err(), "byte {at}");
        }
    }
    let adjusted = [
        "PeterNeumann+cc469956+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TWBADKEY==",
        "PeterNeumann+173116ae+ZRpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "PeterNeumann+C74F20A3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "PeterNeumann+c74f20a3+",
        "++",
    ];
    for text in adjusted {
        assert!(Verifier::from_text(text).is_err(), "{text}");
    }
    for name in ["", "a b", "a+b", "a\tb", "a\nb", "a\u{a0}b", "a\u{2003}b", "a\u{1}b", "a\u{85}b"] {
        assert!(Signer::new(name, SecretKey::generate()).is_err(), "{name:?}");
    }
    assert!(Signer::new("é—x", SecretKey::generate()).is_ok());
}

#[test]
fn checkpoints_read_back() {
    // D2
    let (signer, checkpoint) = log();
    let note = checkpoint.sign(&signer).unwrap();
    let root = STANDARD.encode(leaf(b"root"));
    assert_eq!(note.text(), format!("example.com/ledger\n20852163\n{root}\n"));
    let opened = SignedCheckpoint::open(&note.to_string(), &[signer.verifier().to_string()]).unwrap();
    let (origin, tree) = (checkpoint.origin().to_owned(), *checkpoint.tree());
    assert_eq!(opened, SignedCheckpoint { origin, tree, keys: vec![signer.verifier().clone()] });
    assert_eq!(opened.tree, TreeHead { size: 20_852_163, root: leaf(b"root") });
    for size in [0, 1, u64::MAX] {
        let plain = Checkpoint::new("an origin + spaces", TreeHead { size, root: EMPTY }).unwrap();
        assert_eq!(Checkpoint::parse(&plain.to_string()), Ok(plain));
    }
}

#[test]
fn the_specifications_checkpoint_is_read() {
    // D2: its keys are not published, so it can be parsed but not trusted.
    let text = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n";
    let lines = "— example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n\
        — witness.example.com/w1 jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2oyin1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA==\n";
    let note = parse(&format!("{text}\n{lines}"));
    let checkpoint = Checkpoint::parse(note.text()).unwrap();
    assert_eq!((checkpoint.origin(), checkpoint.tree().size), ("example.com/behind-the-sofa", 20_852_163));
    assert_eq!(checkpoint.to_string(), text);
    assert_eq!(note.signatures()[1].signature.len(), 72, "a witness adds a time");
    let refused = SignedCheckpoint::open(&note.to_string(), &[C2SP_KEY.to_owned()]);
    assert_eq!(refused, unknown());
}

#[test]
fn a_witness_may_sign_beside_the_log() {
    // D2
    let (signer, checkpoint) = log();
    let witness = self::signer("witness.example", 2);
    let mut note = checkpoint.sign(&signer).unwrap();
    note.sign(&witness).unwrap();
    let known = [witness.verifier().clone(), signer.verifier().clone()];
    let names = |known: &[Verifier]| -> Vec<String> {
        let signers = note.verify(known).expect("signed");
        signers.iter().map(|signer| signer.name().to_owned()).collect()
    };
    assert_eq!(names(&known), ["example.com/ledger", "witness.example"]);
    assert_eq!(names(&known[..1]), ["witness.example"]);
}
