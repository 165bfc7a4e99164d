//! Accepts the connections of Quorate's HTTP servers: a client that sends only part of a request holds its connection
//! for a bounded time, whether or not it knows a token. The front ends own routes and responses.

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use ::http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use quorate_diagnostics::codes;
use tokio::net::{TcpListener, TcpStream};

use crate::ErrorKind;

/// The pause after a connection that could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How long a request may take to arrive. Answers, and streams of them, have no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// For the headers of a request. A connection without a request ends after the same time.
    pub headers: Duration,
    /// For its body.
    pub body: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Deadlines { headers: Duration::from_secs(10), body: Duration::from_secs(30) }
    }
}

/// Binds an address; returns the listener with its own address, which has a port if `address` has port 0.
///
/// # Errors
/// If the address is unavailable; `help` says what to do.
pub async fn bind(address: SocketAddr, help: &str) -> Result<(TcpListener, SocketAddr), crate::Error> {
    let bound = async {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    };
    bound.await.map_err(|error: std::io::Error| {
        let body = quorate_diagnostics::Body::new(format!("cannot listen on {address}: {error}")).help(help);
        crate::Error::new(ErrorKind::Configuration, codes::ADDRESS_UNUSABLE, body)
    })
}

/// Accepts connections until the future is dropped. Each is a task of its own.
pub async fn accept<S, B>(listener: TcpListener, service: S, headers: Duration)
where
    S: Service<
            Request<Incoming>,
            Response = Response<B>,
            Future: Send,
            Error: Into<Box<dyn Error + Send + Sync>>,
        > + Clone
        + Send
        + 'static,
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(answer(stream, service.clone(), headers))),
            // The client has gone, or the process has too many open files.
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Answers the requests of a connection, and closes it if the headers of one do not arrive in time.
async fn answer<S, B>(stream: TcpStream, service: S, headers: Duration)
where
    S: Service<Request<Incoming>, Response = Response<B>, Error: Into<Box<dyn Error + Send + Sync>>>,
    B: Body<Error: Into<Box<dyn Error + Send + Sync>>> + 'static,
{
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(headers)
        .serve_connection(TokioIo::new(stream), service);
    // A client that disconnects reads no error.
    let _ = connection.await;
}
