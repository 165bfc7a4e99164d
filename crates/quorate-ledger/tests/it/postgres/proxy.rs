//! A connection to the server that can fall silent: bytes go through until a test stops them, as from a machine that
//! was stopped, or behind a network that lost its way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

/// What goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Forwarding {
    /// Everything.
    All,
    /// Nothing, in neither direction.
    Nothing,
    /// Everything until a `COMMIT` comes, and that; no answer to it.
    ToCommit,
    /// Everything until a `COMMIT` comes, and nothing from then on.
    BeforeCommit,
}

/// A server behind a connection like that.
pub(crate) struct Proxy {
    /// Its address, with a database's name and without a scheme.
    pub(crate) url: String,
    lets: Arc<AtomicU8>,
}

impl Proxy {
    /// Before the server of a database.
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
                tokio::spawn(pass(from, to, shared.clone(), true));
                tokio::spawn(pass(answers, back, shared.clone(), false));
            }
        });
        Proxy { url: format!("postgres://quorate@127.0.0.1:{port}/{database}"), lets }
    }

    /// Whether nothing goes through any more.
    pub(crate) fn is_silent(&self) -> bool {
        self.lets.load(Ordering::SeqCst) == Forwarding::Nothing as u8
    }

    /// From now on this goes through.
    pub(crate) fn set_forwarding(&self, lets: Forwarding) {
        self.lets.store(lets as u8, Ordering::SeqCst);
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, lets: Arc<AtomicU8>, is_client: bool) {
    let mut part = [0; 8192];
    loop {
        let read = match from.read(&mut part).await {
            Ok(0) | Err(_) => return,
            Ok(read) => read,
        };
        let now = lets.load(Ordering::SeqCst);
        // As the last word of what is asked, not in the name of an isolation level.
        let commits = is_client && part[..read].windows(7).any(|word| word == b"COMMIT\0");
        let passes = match (commits, now) {
            (_, now) if now == Forwarding::Nothing as u8 => false,
            (true, now) if now == Forwarding::ToCommit as u8 || now == Forwarding::BeforeCommit as u8 => {
                lets.store(Forwarding::Nothing as u8, Ordering::SeqCst);
                now == Forwarding::ToCommit as u8
            }
            _ => true,
        };
        if passes && to.write_all(&part[..read]).await.is_err() {
            return;
        }
    }
}
