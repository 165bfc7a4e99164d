//! The listener: on the loopback interface alone, since the traffic is not encrypted.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::middleware;
use hyper_util::service::TowerToHyperService;
use quorate::Error;
use quorate::http::{accept, bind, new_secret};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::guard::{self, Guard, OPEN};
use crate::{Server, WebServerOptions, routes};

/// A bound listener that does not answer yet.
pub struct Listener {
    listener: TcpListener,
    address: SocketAddr,
    token: String,
    /// The secret of the first link.
    link: String,
}

impl Listener {
    /// Binds the port.
    ///
    /// # Errors
    /// When the port is unavailable.
    pub async fn open(options: &WebServerOptions) -> Result<Listener, Error> {
        let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, options.port));
        let (listener, address) = bind(wanted, "choose another port with `--port N`").await?;
        let token = options.token.clone().unwrap_or_else(new_secret);
        Ok(Listener { listener, address, token, link: new_secret() })
    }

    /// The address of the pages and the API.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The link that begins a session in a browser. It works once.
    pub fn link(&self) -> String {
        link(&self.url(), &self.link)
    }

    /// The bearer token of programs.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Answers requests until the future is dropped. Once a link was used, `used` is called with the next one.
    pub async fn serve(self, server: &Arc<Server>, mut used: impl FnMut(&str)) {
        let url = self.url();
        let guard = Arc::new(Guard::new(self.address, &self.token, &self.link));
        let (sender, mut links) = mpsc::unbounded_channel();
        let router: Router = routes::router(server, &guard, sender)
            .layer(middleware::from_fn_with_state(guard, guard::check_request));
        let service = TowerToHyperService::new(router);
        let serve = accept(self.listener, service, server.deadlines.headers);
        let announce = async {
            while let Some(secret) = links.recv().await {
                used(&link(&url, &secret));
            }
        };
        tokio::select! {
            () = serve => {}
            // The router holds the sender.
            () = announce => {}
        }
    }
}

fn link(url: &str, secret: &str) -> String {
    format!("{url}{OPEN}?t={secret}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use quorate::Quorate;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;
    use tokio::time::{Instant, timeout};

    use super::*;
    use crate::Deadlines;

    const LONG: Duration = Duration::from_secs(60);

    /// What a server answers to a part of a request, and whether it closed the connection.
    async fn answer_to(sent: &str, deadlines: Deadlines) -> String {
        let dir = tempfile::tempdir().unwrap();
        let options = WebServerOptions {
            token: Some("a token of a test".to_owned()),
            root: Some(dir.path().to_owned()),
            deadlines,
            ..WebServerOptions::default()
        };
        let quorate = Quorate::builder().workspace(dir.path()).build().unwrap();
        let server = Server::open(&quorate, &options).unwrap();
        let listener = Listener::open(&options).await.unwrap();
        let address = listener.address;
        let sent = sent
            .replace('\n', "\r\n")
            .replace("HOST", &format!("Host: {address}\r\nAuthorization: Bearer a token of a test"));
        let client = async {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(sent.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer).await;
            String::from_utf8(answer).unwrap()
        };
        tokio::select! {
            () = listener.serve(&server, |_| {}) => unreachable!("it serves"),
            answer = timeout(Duration::from_secs(20), client) => answer.expect("it is dropped"),
        }
    }

    #[tokio::test]
    async fn a_request_whose_headers_never_end_is_dropped() {
        let deadlines = Deadlines { headers: Duration::from_millis(200), body: LONG };
        for sent in ["", "GET /api/v1/runs HTT", "GET /api/v1/runs HTTP/1.1\nHOST\nX-More: 1\n"] {
            let began = Instant::now();
            let answer = answer_to(sent, deadlines).await;
            assert!(!answer.contains("200 OK"), "{sent}: {answer}");
            assert!(began.elapsed() >= deadlines.headers, "{sent}");
        }
    }

    #[tokio::test]
    async fn a_request_whose_body_never_ends_is_told_so_and_dropped() {
        let deadlines = Deadlines { headers: LONG, body: Duration::from_millis(200) };
        let sent = "POST /api/v1/reviews HTTP/1.1\nHOST\nContent-Length: 100\n\n{\"text\": ";
        let answer = answer_to(sent, deadlines).await;
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
        assert!(answer.contains("content-type: application/json"), "{answer}");
        assert!(answer.contains("quorate:request_incomplete"), "{answer}");
    }
}
