//! Several processes append at once.

use std::process::{Command, Stdio};

use quorate_testkit::conformance::substrate::{answer, new_turn};

use super::{Journal, append, open, public_format, read_everything};

/// Says to the process below which folder it works in, and who it is.
const FOLDER: &str = "QUORATE_TEST_JOURNAL";
const WRITER: &str = "QUORATE_TEST_WRITER";
const PROCESSES: usize = 4;
const TURNS: usize = 60;

/// Not a test of its own: what the processes do that the test below starts.
#[tokio::test]
async fn one_process() {
    let (Some(folder), Ok(writer)) = (std::env::var_os(FOLDER), std::env::var(WRITER)) else { return };
    let substrate = open(folder.as_ref());
    let trigger = substrate.read(None, 1).await.unwrap().turns[0].id.clone();
    for at in 0..TURNS {
        append(&substrate, new_turn(&writer, &format!("{at}\n=== TURN\n{}", "x".repeat(at * 50)))).await;
        // All of them answer the same turn for the same participant.
        let common = answer(&format!("p{at}"), &writer, &trigger);
        substrate.append(common).await.unwrap();
    }
}

#[tokio::test]
async fn processes_lose_nothing_and_take_each_key_once() {
    let journal = Journal::new();
    let substrate = journal.open();
    append(&substrate, new_turn("ann", "go")).await;
    let start = |writer: usize| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "journal::processes::one_process", "--nocapture"])
            .env(FOLDER, journal.dir.path())
            .env(WRITER, format!("w{writer}"))
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut started: Vec<_> = (0..PROCESSES).map(start).collect();
    let mut seen = Vec::new();
    let expected = 1 + PROCESSES * TURNS + TURNS;
    // A reader follows meanwhile, and sees whole turns only.
    while seen.len() < expected {
        let waiting = tokio::time::timeout(std::time::Duration::from_secs(60), substrate.changed()).await;
        waiting.expect("a write").unwrap();
        let since = seen.last().map(|turn: &quorate_kernel::conversation::Turn| turn.id.clone());
        let page = substrate.read(since.as_ref(), 10).await.unwrap();
        assert!(page.known);
        seen.extend(page.turns);
    }
    for process in &mut started {
        assert!(process.wait().unwrap().success());
    }
    assert_eq!(seen, journal.read_fresh().await, "the order that the journal has");
    assert_eq!(seen, read_everything(&journal.open()).await);
    for writer in 0..PROCESSES {
        let own: Vec<usize> = seen
            .iter()
            .filter(|turn| *turn.participant == *format!("w{writer}"))
            .map(|turn| turn.content.lines().next().unwrap().parse().unwrap())
            .collect();
        assert_eq!(own, (0..TURNS).collect::<Vec<_>>(), "each one's turns are in its order");
    }
    assert_eq!(public_format::read(&journal.text()).len(), expected);
}
