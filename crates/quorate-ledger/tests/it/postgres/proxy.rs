//! A connection to the server that can stop responding: it forwards bytes until a test stops it, like a stopped machine
//! or a network failure.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

/// Which bytes are forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Forwarding {
    /// All of them.
    All,
    /// None, in neither direction.
    Nothing,
    /// All until and including a `COMMIT`, but not its answer.
    ToCommit,
    /// All until a `COMMIT`, and nothing from then on.
    BeforeCommit,
    /// All until and including a record, but not its answer.
    ToRecord,
    /// All until a record, and nothing from then on.
    BeforeRecord,
    /// All until and including a record. Then the connection ends, and later ones are forwarded.
    CutAfterRecord,
    /// All until a record. Then the connection ends, and later ones are forwarded.
    CutBeforeRecord,
}

impl Forwarding {
    const ALL: [Forwarding; 8] = [
        Forwarding::All,
        Forwarding::Nothing,
        Forwarding::ToCommit,
        Forwarding::BeforeCommit,
        Forwarding::ToRecord,
        Forwarding::BeforeRecord,
        Forwarding::CutAfterRecord,
        Forwarding::CutBeforeRecord,
    ];

    /// A client's message that changes the proxy's mode.
    fn trigger(self) -> Option<&'static [u8]> {
        match self {
            Forwarding::All | Forwarding::Nothing => None,
            // As the last word of a query, not in the name of an isolation level.
            Forwarding::ToCommit | Forwarding::BeforeCommit => Some(b"COMMIT\0"),
            // Every record's head contains it.
            _ => Some(b"\"data_sha256\""),
        }
    }

    /// Whether that message is forwarded, and the mode after it.
    fn after(self) -> (bool, Forwarding) {
        let passes = matches!(self, Forwarding::ToCommit | Forwarding::ToRecord | Forwarding::CutAfterRecord);
        (passes, if self.cuts() { Forwarding::All } else { Forwarding::Nothing })
    }

    fn cuts(self) -> bool {
        matches!(self, Forwarding::CutAfterRecord | Forwarding::CutBeforeRecord)
    }
}

/// A server behind such a connection.
pub(crate) struct Proxy {
    /// Its address, with a database's name and without a scheme.
    pub(crate) url: String,
    lets: Arc<AtomicU8>,
}

impl Proxy {
    /// Starts before the server of a database.
    pub(crate) async fn of(url: &str) -> Proxy {
        let (before, database) = url.rsplit_once('/').expect("it ends with a database");
        let server = before.rsplit_once('@').expect("it names a user").1.to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let lets = Arc::new(AtomicU8::new(Forwarding::All as u8));
        let shared = lets.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&server).await.expect("the server answers");
                let ((from, back), (answers, to)) = (client.into_split(), server.into_split());
                let shared = shared.clone();
                tokio::spawn(async move {
                    // When one direction ends, so does the other.
                    tokio::select! {
                        () = pass(from, to, &shared, true) => {}
                        () = pass(answers, back, &shared, false) => {}
                    }
                });
            }
        });
        // The proxied bytes are read.
        let url = format!("postgres://quorate@127.0.0.1:{port}/{database}?sslmode=disable");
        Proxy { url, lets }
    }

    /// Whether forwarding has stopped.
    pub(crate) fn is_silent(&self) -> bool {
        self.lets.load(Ordering::SeqCst) == Forwarding::Nothing as u8
    }

    /// Sets the mode.
    pub(crate) fn set_forwarding(&self, lets: Forwarding) {
        self.lets.store(lets as u8, Ordering::SeqCst);
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, lets: &AtomicU8, is_client: bool) {
    let mut part = [0; 65_536];
    loop {
        let read = match from.read(&mut part).await {
            Ok(0) | Err(_) => return,
            Ok(read) => read,
        };
        let now = Forwarding::ALL[usize::from(lets.load(Ordering::SeqCst))];
        let is_triggered = now.trigger().is_some_and(|trigger| {
            is_client && part[..read].windows(trigger.len()).any(|window| window == trigger)
        });
        let (passes, next) = if is_triggered { now.after() } else { (now != Forwarding::Nothing, now) };
        if is_triggered {
            lets.store(next as u8, Ordering::SeqCst);
        }
        if passes && to.write_all(&part[..read]).await.is_err() || is_triggered && now.cuts() {
            return;
        }
    }
}
