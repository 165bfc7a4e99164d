//! Several writers: no turn is lost, all readers see one order, and each key is accepted once.

use std::sync::Arc;

use quorate_kernel::conversation::Capability;
use quorate_kernel::ports::substrate::Substrate;
use tokio::task::JoinSet;

use super::{Open, answer, append, has, ids, keeps_stamps, new_turn, read_all};

const WRITERS: usize = 6;
const TURNS: usize = 25;

/// Asserts that a second turn with a key is not stored, and the first one comes back. Only for substrates that keep stamps.
///
/// # Panics
/// When it is stored, or anything else comes back.
pub async fn deduplicates_by_key(open: &Open) {
    let substrate = open();
    if !keeps_stamps(&*substrate) {
        return;
    }
    let trigger = append(&*substrate, new_turn("ann", "@bea?")).await.id;
    let other_trigger = append(&*substrate, new_turn("ann", "@bea!")).await.id;
    let first = append(&*substrate, answer("bea", "yes", &trigger)).await;
    append(&*substrate, new_turn("ann", "something in between")).await;
    for handle in [substrate.clone(), open()] {
        let repeated = handle.append(answer("bea", "no", &trigger)).await.expect("it can be appended");
        assert!(!repeated.fresh, "the key was there");
        assert_eq!(repeated.turn, first, "the first one comes back");
    }
    append(&*open(), answer("cleo", "yes", &trigger)).await;
    append(&*open(), answer("bea", "yes", &other_trigger)).await;
    // A process that reads only later turns must know it as well.
    for at in 0..40 {
        append(&*open(), new_turn("ann", &format!("turn {at}"))).await;
    }
    assert!(!open().append(answer("bea", "late", &trigger)).await.expect("it can be appended").fresh);
    assert_eq!(read_all(&*open(), 100).await.len(), 46);

    // Concurrently.
    let mut race = JoinSet::new();
    for at in 0..WRITERS {
        let (handle, trigger) = (if at % 2 == 0 { open() } else { substrate.clone() }, first.id.clone());
        race.spawn(async move { handle.append(answer("dora", &format!("{at}"), &trigger)).await });
    }
    let ended = race.join_all().await;
    let ended: Vec<_> = ended.into_iter().map(|append| append.expect("it can be appended")).collect();
    assert_eq!(ended.iter().filter(|appended| appended.fresh).count(), 1, "one of them is first");
    assert!(ended.iter().all(|appended| appended.turn == ended[0].turn), "and all get that one");
    assert_eq!(read_all(&*open(), 100).await.len(), 47);
}

/// Asserts that concurrent appends of several tasks are all stored, each task's turns in the order of its calls, and in one
/// order for all readers if that is declared; with separate handles if several writers are declared.
///
/// # Panics
/// When a turn is lost, or orders differ.
pub async fn supports_many_writers(open: &Open) {
    let shared = open();
    let several = has(&*shared, Capability::MultiWriter);
    let mut writing = JoinSet::new();
    for at in 0..WRITERS {
        let handle: Arc<dyn Substrate> = if several { open() } else { shared.clone() };
        writing.spawn(async move {
            let mut own_ids = Vec::new();
            for n in 0..TURNS {
                let content = format!("{at}/{n}\n{}", "x".repeat(n * 200));
                own_ids.push(append(&*handle, new_turn(&format!("w{at}"), &content)).await.id);
                if n % 5 == 0 {
                    let seen = ids(&read_all(&*handle, 1_000).await);
                    assert!(own_ids.iter().all(|id| seen.contains(id)), "a writer sees its own turns");
                }
            }
            own_ids
        });
    }
    let ids_by_writer = writing.join_all().await;
    let all = ids(&read_all(&*open(), 1_000).await);
    assert_eq!(all.len(), WRITERS * TURNS, "nothing is lost and nothing is there twice");
    for ids_by_writer in ids_by_writer {
        let seen: Vec<_> = all.iter().filter(|id| ids_by_writer.contains(id)).cloned().collect();
        assert_eq!(seen, ids_by_writer, "each writer's turns are in the order of its calls");
    }
    if has(&*shared, Capability::Ordered) {
        assert_eq!(ids(&read_all(&*shared, 13).await), all, "everybody reads one order");
    }
}
