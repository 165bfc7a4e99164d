//! A witness that is asked over HTTP (c2sp.org/tlog-witness), and ones that lie, hang or say too much. The witness is this
//! test's own, written after the specification.

#![cfg(feature = "http-witness")]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signer as _, SigningKey};
use quorate_kernel::entropy::{hex, sha256_hex};
use quorate_ledger::merkle::{Consistency, Hash, TreeHead};
use quorate_ledger::note::{Checkpoint, Note, Verifier};
use support::TestDir;
use support::council::{COUNCIL, all_ship};

const NAME: &str = "witness.example/1";

/// How a witness behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// As the specification has it.
    Honest,
    /// Signs another text.
    Forges,
    /// Has seen more records than there are.
    Ahead,
    /// Says that it has seen another tree, whatever it is shown.
    Disagrees,
    /// Never answers.
    Hangs,
    /// Does not stop answering.
    Floods,
    /// Answers with an invalid signature.
    Babbles,
    /// Redirects every request.
    Redirects,
}

struct Witness {
    key: SigningKey,
    url: String,
    manner: Arc<Mutex<Manner>>,
    /// The trees that it signed.
    seen: Arc<Mutex<Vec<TreeHead>>>,
    asked: Arc<Mutex<u32>>,
}

/// The key's line: type 0x04.
fn line(key: &SigningKey) -> (String, Vec<u8>) {
    let mut typed = vec![4];
    typed.extend(key.verifying_key().as_bytes());
    let id = sha256_hex(&[NAME.as_bytes(), b"\n", &typed].concat())[..8].to_owned();
    let bytes =
        (0..4).map(|at| u8::from_str_radix(&id[2 * at..2 * at + 2], 16).expect("hexadecimal")).collect();
    (format!("{NAME}+{id}+{}", STANDARD.encode(&typed)), bytes)
}

fn cosignature(key: &SigningKey, text: &str, time: u64) -> String {
    let message = format!("cosignature/v1\ntime {time}\n{text}");
    let signature =
        [&line(key).1[..], &time.to_be_bytes(), &key.sign(message.as_bytes()).to_bytes()].concat();
    format!("\u{2014} {NAME} {}\n", STANDARD.encode(signature))
}

impl Witness {
    fn start() -> Witness {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/w", listener.local_addr().expect("an address"));
        let witness = Witness {
            key: SigningKey::from_bytes(&[5; 32]),
            url,
            manner: Arc::new(Mutex::new(Manner::Honest)),
            seen: Arc::default(),
            asked: Arc::default(),
        };
        let (manner, seen, asked) = (witness.manner.clone(), witness.seen.clone(), witness.asked.clone());
        std::thread::spawn(move || {
            let key = SigningKey::from_bytes(&[5; 32]);
            for stream in listener.incoming() {
                *asked.lock().expect("a count") += 1;
                let manner = *manner.lock().expect("a manner");
                serve(stream.expect("a connection"), manner, &key, &seen);
            }
        });
        witness
    }

    fn is(&self, manner: Manner) {
        *self.manner.lock().expect("a manner") = manner;
    }

    fn asked(&self) -> u32 {
        *self.asked.lock().expect("a count")
    }

    /// A place whose ledger is configured with this witness.
    fn place(&self) -> TestDir {
        let place = TestDir::scripted(&all_ship());
        let table =
            format!("[ledger]\nwitness = \"{}\"\nwitness_key = \"{}\"\n", self.url, line(&self.key).0);
        place.write("quorate.toml", format!("{}\n{table}", place.read("quorate.toml")));
        place
    }
}

fn serve(mut stream: TcpStream, manner: Manner, key: &SigningKey, seen: &Mutex<Vec<TreeHead>>) {
    let Some((head, body)) = request(&mut stream) else { return };
    assert!(head.starts_with("POST /w/add-checkpoint HTTP/1.1\r\n"), "{head}");
    let mut answer = |status: &str, more: &str, body: &str| {
        let length = body.len();
        let _ = write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n{more}\r\n{body}"
        );
    };
    let mut seen = seen.lock().expect("what it has seen");
    let (old, path, note) = parts(&body);
    let checkpoint = Checkpoint::parse(note.text()).expect("a checkpoint");
    let size_is = "Content-Type: text/x.tlog.size\r\n";
    let last = seen.last().copied();
    match manner {
        Manner::Hangs => {
            std::thread::sleep(Duration::from_secs(12));
            return;
        }
        Manner::Floods => {
            let _ = write!(stream, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
            while stream.write_all(&[b'x'; 65536]).is_ok() {}
            return;
        }
        Manner::Babbles => return answer("200 OK", "", "signed, honestly\n"),
        Manner::Redirects => {
            return answer("307 Temporary Redirect", "Location: http://127.0.0.1:1/\r\n", "");
        }
        Manner::Ahead => return answer("409 Conflict", size_is, "100000\n"),
        Manner::Disagrees => return answer("409 Conflict", size_is, &format!("{old}\n")),
        Manner::Forges => return answer("200 OK", "", &cosignature(key, "another\ntext\n", 1)),
        Manner::Honest => {}
    }
    if old != last.map_or(0, |last| last.size) {
        return answer("409 Conflict", size_is, &format!("{}\n", last.map_or(0, |last| last.size)));
    }
    let tree = *checkpoint.tree();
    let proof = Consistency { old, new: tree.size, path };
    if last.is_some_and(|last| proof.verify(&last, &tree).is_err()) {
        return answer("422 Unprocessable Entity", "", "");
    }
    seen.push(tree);
    // Lines of unknown keys may be beside its own.
    let stranger =
        cosignature(&SigningKey::from_bytes(&[6; 32]), note.text(), 5).replace(NAME, "stranger.example");
    answer("200 OK", "", &format!("{stranger}{}", cosignature(key, note.text(), 1_700_000_000)));
}

/// A request's head and body.
fn request(stream: &mut TcpStream) -> Option<(String, String)> {
    let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let lower = head.to_lowercase();
            let length = lower
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))?
                .parse::<usize>()
                .ok()?;
            if body.len() >= length {
                return Some((format!("{head}\r\n"), body.to_owned()));
            }
        }
        match stream.read(&mut part).ok()? {
            0 => return None,
            read => bytes.extend_from_slice(&part[..read]),
        }
    }
}

/// Old size, proof and note of a request's body.
fn parts(body: &str) -> (u64, Vec<Hash>, Note) {
    let (lines, note) = body.split_once("\n\n").expect("an empty line");
    let mut lines = lines.lines();
    let old = lines.next().and_then(|line| line.strip_prefix("old ")).expect("an old size");
    let hash = |line: &str| STANDARD.decode(line).expect("base64").try_into().expect("a hash");
    (old.parse().expect("a number"), lines.map(hash).collect(), Note::parse(note.as_bytes()).expect("a note"))
}

fn review(place: &TestDir, name: &str) -> support::CommandOutput {
    place.write(name, format!("{name} says that the meeting moved.\n"));
    place.run(&["review", name])
}

fn verified(place: &TestDir, exit: i32) -> serde_json::Value {
    place.run(&["ledger", "verify", "--format", "json"]).assert_code(exit).json()
}

#[test]
fn a_witness_signs_what_goes_on() {
    // D12
    let witness = Witness::start();
    let place = witness.place();
    for name in ["one.md", "two.md", "three.md"] {
        let ran = review(&place, name).assert_code(0);
        assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    }
    let seen = witness.seen.lock().unwrap().clone();
    assert_eq!(seen.len(), 3, "each checkpoint is signed once");
    let report = verified(&place, 0);
    assert_eq!(report["cosigned"]["size"], seen[2].size);
    assert_eq!(
        (&report["cosigned"]["witness"], &report["cosigned"]["at"]),
        (&NAME.into(), &1_700_000_000.into())
    );
    let human = place.run(&["ledger", "verify"]).assert_code(0).stdout;
    assert!(
        human.contains(&format!("the witness {NAME} signed {} records at 2023-11-14T", seen[2].size)),
        "{human}"
    );
    // Nothing came since: it is not asked again.
    let asked = witness.asked();
    place.run(&["ledger", "checkpoint"]).assert_code(0);
    assert_eq!(witness.asked(), asked);
    // One that lost what it had kept learns from the witness where to begin.
    let kept = kept(&place);
    std::fs::remove_file(&kept).unwrap();
    review(&place, "four.md").assert_code(0);
    assert_eq!(witness.asked(), asked + 2);
    assert_eq!(verified(&place, 0)["cosigned"]["size"], witness.seen.lock().unwrap()[3].size);
    // The kept note has the ledger's and the witness's lines only.
    let note = Note::parse(&std::fs::read(&kept).unwrap()).unwrap();
    let key = place.run(&["keys", "export", "ledger", "--format", "note"]).assert_code(0).stdout;
    let ledger = Verifier::from_text(key.trim()).unwrap();
    assert!(note.verify(&[ledger]).is_ok());
    assert_eq!(note.signatures().len(), 2, "{note}");
    // Garbage in it is found, and so is another's line.
    let whole = std::fs::read_to_string(&kept).unwrap();
    for garbage in ["nonsense\n".to_owned(), whole.replacen(NAME, "witness.example/2", 1)] {
        std::fs::write(&kept, garbage).unwrap();
        assert_eq!(verified(&place, 1)["divergences"][0]["part"], "witness");
    }
}

fn kept(place: &TestDir) -> std::path::PathBuf {
    let dir = std::fs::read_dir(place.path(".quorate/keys/checkpoints")).expect("a directory");
    let mut files = dir.map(|entry| entry.expect("an entry").path());
    files.find(|path| path.extension().is_some_and(|extension| extension == "cosigned")).expect("it is kept")
}

#[test]
fn a_witness_that_lies_is_not_believed() {
    // D12
    let witness = Witness::start();
    let place = witness.place();
    review(&place, "one.md").assert_code(0);
    let before = std::fs::read(kept(&place)).unwrap();
    for (number, (manner, why)) in [
        (Manner::Forges, "does not verify"),
        (Manner::Ahead, "it has seen 100000 records"),
        (Manner::Disagrees, "it has seen another tree"),
        (Manner::Babbles, "is not signature lines"),
        (Manner::Floods, "is longer than"),
        (Manner::Redirects, "the status 307"),
    ]
    .into_iter()
    .enumerate()
    {
        witness.is(manner);
        let ran = review(&place, &format!("more-{number}.md")).assert_code(0);
        ran.assert_stderr_contains("quorate:witness_behind").assert_stderr_contains(why);
        assert_eq!(std::fs::read(kept(&place)).unwrap(), before, "{manner:?}");
        verified(&place, 0);
    }
    witness.is(Manner::Honest);
    let ran = review(&place, "last.md").assert_code(0);
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    assert_ne!(std::fs::read(kept(&place)).unwrap(), before);
}

#[test]
fn a_witness_that_does_not_answer_is_waited_for_once() {
    // D12
    let witness = Witness::start();
    let place = witness.place();
    witness.is(Manner::Hangs);
    let watch = "tier_classifier: {default_tier: 1}\nwatch: {paths: [./drafts/]}\n";
    place.write("council.yaml", format!("{COUNCIL}{watch}"));
    ["a", "b", "c"]
        .iter()
        .for_each(|name| place.write(&format!("drafts/{name}.md"), format!("{name} moved.\n")));
    let began = Instant::now();
    let ran = place.run(&["sweep", "--jobs", "1"]).assert_code(0);
    assert_eq!(place.runs().len(), 3);
    assert!(began.elapsed() < Duration::from_secs(45), "{:?}", began.elapsed());
    ran.assert_stderr_contains("does not answer within 10 s");
    assert_eq!(witness.asked(), 1, "{}", ran.stderr);
    // A closed port.
    let nowhere = TestDir::scripted(&all_ship());
    let table =
        format!("[ledger]\nwitness = \"http://127.0.0.1:1\"\nwitness_key = \"{}\"\n", line(&witness.key).0);
    nowhere.write("quorate.toml", format!("{}\n{table}", nowhere.read("quorate.toml")));
    review(&nowhere, "one.md").assert_code(0).assert_stderr_contains("quorate:witness_behind");
}

#[test]
fn a_rolled_back_ledger_is_seen_by_the_witness() {
    // D12
    let witness = Witness::start();
    let place = witness.place();
    review(&place, "one.md").assert_code(0);
    let before = std::fs::read(place.path(".quorate/ledger.db")).unwrap();
    review(&place, "two.md").assert_code(0);
    let seen = witness.seen.lock().unwrap()[1].size;
    // An attacker who can write both copies, and not the witness.
    std::fs::write(place.path(".quorate/ledger.db"), before).unwrap();
    std::fs::remove_dir_all(place.path(".local")).unwrap();
    std::fs::remove_dir_all(place.path(".quorate/keys/checkpoints")).unwrap();
    let ran = place.run(&["ledger", "hold", place.runs()[0]["run"].as_str().unwrap()]);
    ran.assert_stderr_contains("quorate:witness_behind")
        .assert_stderr_contains(&format!("it has seen {seen} records"));
}

#[test]
fn a_witness_is_named_with_its_key() {
    let witness = Witness::start();
    let place = TestDir::scripted(&all_ship());
    let toml = place.read("quorate.toml");
    let url = &witness.url;
    let ledgers_own = format!("x+{}+{}", hex(&[0; 4]), STANDARD.encode([1; 33]));
    for (table, why) in [
        (format!("witness = \"{url}\""), "`ledger.witness_key` is missing"),
        (format!("witness = \"{url}\"\nwitness_key = \"{ledgers_own}\""), "signature type is 0x01"),
        (format!("witness = \"{url}\"\nwitness_key = \"nonsense\""), "cannot read `ledger.witness_key`"),
        (format!("witness = \"w.txt\"\nwitness_key = \"{}\"", line(&witness.key).0), "is a file"),
        (format!("witness_key = \"{}\"", line(&witness.key).0), "`ledger.witness` is not set"),
    ] {
        place.write("quorate.toml", format!("{toml}\n[ledger]\n{table}\n"));
        place.write("one.md", "The meeting moved.\n");
        place
            .run(&["review", "one.md"])
            .assert_code(5)
            .assert_stderr_contains("quorate:witness_unreadable")
            .assert_stderr_contains(why);
    }
}
