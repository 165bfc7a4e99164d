//! Waiting for turns of other writers.

use std::time::Duration;

use quorate_kernel::ports::substrate::Substrate;
use quorate_protocol::Name;

use super::{Open, append, ids, new_turn, read_all};

/// The longest time for a notification, on a machine that is busy with other tests.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How many turns a reader follows.
const TURNS: usize = 60;

/// Asserts that another handle's append wakes a waiter at any time; a reader that only waits and reads misses no turn.
///
/// # Panics
/// When it is not woken.
pub async fn notifies_of_changes(open: &Open) {
    let (writer, reader) = (open(), open());
    append(&*writer, new_turn("ann", "first")).await;
    let first = read_all(&*reader, 100).await;
    let last = first.last().map(|turn| turn.id.clone());

    // Between reading and waiting.
    append(&*writer, new_turn("ann", "second")).await;
    changed(&*reader, "a turn that came before the wait").await;

    // While it waits.
    let last = read_to_end(&*reader, last).await;
    let (_, ()) = tokio::join!(
        async { append(&*writer, new_turn("ann", "third")).await },
        changed(&*reader, "a turn that comes during the wait"),
    );

    // The rest after a short page.
    append(&*writer, new_turn("ann", "fourth")).await;
    let page = reader.read(last.as_ref(), 1).await.expect("it can be read");
    assert_eq!(page.turns.len(), 1);
    changed(&*reader, "what a short page has left over").await;
    read_to_end(&*reader, last).await;

    // A reader that follows.
    let writing = async {
        for at in 0..TURNS {
            append(&*writer, new_turn("ann", &format!("turn {at}"))).await;
        }
    };
    let following = async {
        let mut seen = read_all(&*reader, 100).await;
        while seen.len() < 4 + TURNS {
            changed(&*reader, "a turn that it follows").await;
            let since = seen.last().map(|turn| turn.id.clone());
            seen.extend(reader.read(since.as_ref(), 7).await.expect("it can be read").turns);
        }
        seen
    };
    let ((), seen) = tokio::join!(writing, following);
    assert_eq!(ids(&seen), ids(&read_all(&*open(), 1_000).await));
}

async fn changed(substrate: &dyn Substrate, what: &str) {
    let done = tokio::time::timeout(TIMEOUT, substrate.changed()).await;
    done.unwrap_or_else(|_| panic!("silent about {what}")).expect("it can wait");
}

async fn read_to_end(substrate: &dyn Substrate, mut since: Option<Name>) -> Option<Name> {
    loop {
        let page = substrate.read(since.as_ref(), 100).await.expect("it can be read");
        match page.turns.last() {
            Some(turn) => since = Some(turn.id.clone()),
            None => return since,
        }
    }
}
