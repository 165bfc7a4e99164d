//! A server on loopback that answers each request with bytes as a test says, and keeps what it was sent.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// The next step of the server on a connection.
#[derive(Clone)]
pub(crate) enum Step {
    Send(Vec<u8>),
    /// Sends the same so often, at intervals.
    Repeat(Vec<u8>, usize, Duration),
    /// Sends a comment so often, at intervals.
    Comments(usize, Duration),
    /// Keeps the connection open until the client closes it.
    Hold,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    /// The request line and the headers, as text.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) url: String,
    received: Arc<Mutex<Vec<Received>>>,
    closed_by_client: Arc<Mutex<usize>>,
}

impl Server {
    /// Starts a server whose answer to request number n (from 0) is `answer(n)`.
    pub(crate) async fn start(answer: impl Fn(usize) -> Vec<Step> + Send + Sync + 'static) -> Server {
        Server::listen(None, answer).await
    }

    /// As [`Server::start`], over TLS with the certificate for 127.0.0.1 of the tests' own authority.
    pub(crate) async fn start_tls(answer: impl Fn(usize) -> Vec<Step> + Send + Sync + 'static) -> Server {
        Server::start_tls_as("server.pem", answer).await
    }

    /// As [`Server::start_tls`], with another certificate of that authority.
    pub(crate) async fn start_tls_as(
        certificate: &str,
        answer: impl Fn(usize) -> Vec<Step> + Send + Sync + 'static,
    ) -> Server {
        let chain = CertificateDer::pem_file_iter(tls_file(certificate)).unwrap();
        let chain = chain.collect::<Result<Vec<_>, _>>().unwrap();
        let key = PrivateKeyDer::from_pem_file(tls_file("server.key")).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider);
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let config = config.with_single_cert(chain, key).unwrap();
        Server::listen(Some(TlsAcceptor::from(Arc::new(config))), answer).await
    }

    async fn listen(
        tls: Option<TlsAcceptor>,
        answer: impl Fn(usize) -> Vec<Step> + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let server = Server {
            url: format!("{scheme}://{}", listener.local_addr().unwrap()),
            received: Arc::default(),
            closed_by_client: Arc::default(),
        };
        let (answer, shared) = (Arc::new(answer), server.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answer, shared, tls) = (answer.clone(), shared.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => shared.serve(stream, &*answer).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                shared.serve(stream, &*answer).await;
                            }
                        }
                    }
                });
            }
        });
        server
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// How many held connections the client has closed.
    pub(crate) fn closed_by_client(&self) -> usize {
        *self.closed_by_client.lock().unwrap()
    }

    async fn serve(
        &self,
        mut stream: impl AsyncRead + AsyncWrite + Unpin,
        answer: &(impl Fn(usize) -> Vec<Step> + Sync),
    ) {
        let Some(request) = read_request(&mut stream).await else { return };
        let number = {
            let mut received = self.received.lock().unwrap();
            received.push(request);
            received.len() - 1
        };
        for step in answer(number) {
            match step {
                Step::Send(bytes) => {
                    if stream.write_all(&bytes).await.is_err() {
                        return;
                    }
                }
                Step::Comments(times, every) => {
                    if !self.repeat(&mut stream, b": still here\n\n", times, every).await {
                        return;
                    }
                }
                Step::Repeat(bytes, times, every) => {
                    if !self.repeat(&mut stream, &bytes, times, every).await {
                        return;
                    }
                }
                Step::Hold => {
                    let mut rest = [0; 64];
                    while matches!(stream.read(&mut rest).await, Ok(read) if read > 0) {}
                    *self.closed_by_client.lock().unwrap() += 1;
                    return;
                }
            }
        }
    }

    /// Whether the client took it all.
    async fn repeat(
        &self,
        stream: &mut (impl AsyncWrite + Unpin),
        bytes: &[u8],
        times: usize,
        every: Duration,
    ) -> bool {
        for _ in 0..times {
            if stream.write_all(bytes).await.is_err() {
                *self.closed_by_client.lock().unwrap() += 1;
                return false;
            }
            if !every.is_zero() {
                tokio::time::sleep(every).await;
            }
        }
        true
    }
}

/// A file of `tests/goldens/tls`, which `make.sh` there makes.
pub(crate) fn tls_file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/tls").join(name)
}

async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Option<Received> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        let mut more = [0; 4096];
        let read = stream.read(&mut more).await.ok().filter(|read| *read > 0)?;
        bytes.extend(&more[..read]);
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = bytes.split_off(end);
    while body.len() < length.unwrap_or(0) {
        let mut more = [0; 4096];
        let read = stream.read(&mut more).await.ok().filter(|read| *read > 0)?;
        body.extend(&more[..read]);
    }
    Some(Received { head, body })
}

/// The head of a successful response whose body ends with the connection.
pub(crate) fn ok() -> Step {
    Step::Send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n".to_vec())
}

/// A response with a status, headers and a body.
pub(crate) fn status(status: &str, headers: &str, body: &str) -> Vec<Step> {
    let text = format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}", body.len());
    vec![Step::Send(text.into_bytes())]
}

/// A stream of the chat wire that says a text, with its end.
pub(crate) fn chat(text: &str) -> Vec<Step> {
    vec![ok(), Step::Send(chat_delta(text)), Step::Send(chat_end())]
}

pub(crate) fn chat_delta(text: &str) -> Vec<u8> {
    let chunk = serde_json::json!({"model": "served", "choices": [{"index": 0, "delta": {"content": text}}]});
    format!("data: {chunk}\n\n").into_bytes()
}

pub(crate) fn chat_end() -> Vec<u8> {
    let stop = serde_json::json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let usage = serde_json::json!({"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 600}}});
    format!("data: {stop}\n\ndata: {usage}\n\ndata: [DONE]\n\n").into_bytes()
}
