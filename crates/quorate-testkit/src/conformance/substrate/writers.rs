//! Several writers: nothing is lost, everybody reads one order, each key is taken once.

use std::sync::Arc;

use quorate_kernel::conversation::Capability;
use quorate_kernel::ports::substrate::Substrate;
use tokio::task::JoinSet;

use super::{Open, answer, append, has, ids, keeps_stamps, new_turn, read_all};

const WRITERS: usize = 6;
const TURNS: usize = 25;

/// A second turn with a key is not taken; the first one comes back instead. Only where stamps are kept.
///
/// # Panics
/// When it is taken, or something else comes back.
pub async fn deduplicates_by_key(open: &Open) {
    let substrate = open();
    if !keeps_stamps(&*substrate) {
        return;
    }
    let trigger = append(&*substrate, new_turn("ann", "@bea?")).await.id;
    let other = append(&*substrate, new_turn("ann", "@bea!")).await.id;
    let first = append(&*substrate, answer("bea", "yes", &trigger)).await;
    append(&*substrate, new_turn("ann", "something in between")).await;
    for handle in [substrate.clone(), open()] {
        let again = handle.append(answer("bea", "no", &trigger)).await.expect("it can be appended");
        assert!(!again.fresh, "the key was there");
        assert_eq!(again.turn, first, "the first one comes back");
    }
    append(&*open(), answer("cleo", "yes", &trigger)).await;
    append(&*open(), answer("bea", "yes", &other)).await;
    // Who sees only what came later must know of it, too.
    for at in 0..40 {
        append(&*open(), new_turn("ann", &format!("turn {at}"))).await;
    }
    assert!(!open().append(answer("bea", "late", &trigger)).await.expect("it can be appended").fresh);
    assert_eq!(read_all(&*open(), 100).await.len(), 46);

    // At the same moment.
    let mut race = JoinSet::new();
    for at in 0..WRITERS {
        let (handle, trigger) = (if at % 2 == 0 { open() } else { substrate.clone() }, first.id.clone());
        race.spawn(async move { handle.append(answer("dora", &format!("{at}"), &trigger)).await });
    }
    let ended = race.join_all().await;
    let ended: Vec<_> = ended.into_iter().map(|one| one.expect("it can be appended")).collect();
    assert_eq!(ended.iter().filter(|one| one.fresh).count(), 1, "one of them is first");
    assert!(ended.iter().all(|one| one.turn == ended[0].turn), "and all get that one");
    assert_eq!(read_all(&*open(), 100).await.len(), 47);
}

/// What several tasks append at once is all there, each one's turns in the order of its calls, and in one order for
/// everybody where that is declared; by handles of their own where several writers are declared.
///
/// # Panics
/// When something is lost, or orders differ.
pub async fn supports_many_writers(open: &Open) {
    let shared = open();
    let several = has(&*shared, Capability::MultiWriter);
    let mut writing = JoinSet::new();
    for at in 0..WRITERS {
        let handle: Arc<dyn Substrate> = if several { open() } else { shared.clone() };
        writing.spawn(async move {
            let mut own = Vec::new();
            for n in 0..TURNS {
                let content = format!("{at}/{n}\n{}", "x".repeat(n * 200));
                own.push(append(&*handle, new_turn(&format!("w{at}"), &content)).await.id);
                if n % 5 == 0 {
                    let seen = ids(&read_all(&*handle, 1_000).await);
                    assert!(own.iter().all(|id| seen.contains(id)), "a writer sees its own turns");
                }
            }
            own
        });
    }
    let own = writing.join_all().await;
    let all = ids(&read_all(&*open(), 1_000).await);
    assert_eq!(all.len(), WRITERS * TURNS, "nothing is lost and nothing is there twice");
    for own in own {
        let seen: Vec<_> = all.iter().filter(|id| own.contains(id)).cloned().collect();
        assert_eq!(seen, own, "each writer's turns are in the order of its calls");
    }
    if has(&*shared, Capability::Ordered) {
        assert_eq!(ids(&read_all(&*shared, 13).await), all, "everybody reads one order");
    }
}
