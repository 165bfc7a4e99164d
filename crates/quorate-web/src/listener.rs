//! The listener: on the loopback interface alone, since the traffic is not encrypted.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::middleware;
use quorate::service::error::ServiceError;
use quorate_diagnostics::{Body, codes};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::guard::{self, Guard, OPEN};
use crate::{Request, Server, routes};

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
    pub async fn open(request: &Request) -> Result<Listener, ServiceError> {
        let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, request.port));
        let cannot = |error: std::io::Error| {
            let body = Body::new(format!("cannot listen on {wanted}: {error}"));
            ServiceError::configuration(
                codes::ADDRESS_UNUSABLE,
                body.help("choose another port with `--port N`"),
            )
        };
        let listener = TcpListener::bind(wanted).await.map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        let token = request.token.clone().unwrap_or_else(guard::secret_text);
        Ok(Listener { listener, address, token, link: guard::secret_text() })
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
    ///
    /// # Errors
    /// When the listener fails.
    pub async fn serve(self, server: &Arc<Server>, mut used: impl FnMut(&str)) -> Result<(), ServiceError> {
        let url = self.url();
        let guard = Arc::new(Guard::new(self.address, &self.token, &self.link));
        let (sender, mut links) = mpsc::unbounded_channel();
        let router: Router = routes::router(server, &guard, sender)
            .layer(middleware::from_fn_with_state(guard, guard::check_request));
        let serve = axum::serve(self.listener, router).into_future();
        let announce = async {
            while let Some(secret) = links.recv().await {
                used(&link(&url, &secret));
            }
        };
        let ended = tokio::select! {
            ended = serve => ended,
            // The router holds the sender.
            () = announce => Ok(()),
        };
        ended.map_err(|error| {
            let body = Body::new(format!("cannot go on listening on {url}: {error}"));
            ServiceError::configuration(codes::ADDRESS_UNUSABLE, body)
        })
    }
}

fn link(url: &str, secret: &str) -> String {
    format!("{url}{OPEN}?t={secret}")
}
