//! A line to a server that can be cut.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// Passes everything on to `server`, and closes all connections when `cut` is notified. Returns its own address.
pub(crate) async fn in_front_of(server: SocketAddr, cut: Arc<Notify>) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut lines = JoinSet::new();
        loop {
            let notified = cut.notified();
            tokio::select! {
                () = notified => lines.abort_all(),
                accepted = listener.accept() => {
                    let (mut client, _) = accepted.unwrap();
                    lines.spawn(async move {
                        let mut server = TcpStream::connect(server).await.unwrap();
                        let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                    });
                }
            }
        }
    });
    address
}
