//! HTTP clients for models, MCP servers and the servers that a command asks: TLS with ring, the system's certificate
//! authorities and the environment's proxies. The callers own requests, deadlines and the meaning of a response.

use std::error::Error;
#[cfg(feature = "llm")]
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Once;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, ClientBuilder, StatusCode};
#[cfg(feature = "llm")]
use url::Host;
use url::Url;

use quorate_kernel::files;

/// The longest time for a TCP or TLS connection to be established.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The largest file of certificate authorities, in bytes.
const MAX_CA_BYTES: u64 = 4 << 20;

const MAX_REDIRECTS: usize = 5;

/// Which redirects a client follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirects {
    /// Follows none and returns the response unchanged.
    Refused,
    /// Those that keep the method and stay on the host, which the key is for.
    SameHost,
}

/// A client for requests to `url`. `ca` is a PEM file of authorities that are trusted beside the system's. Each request is
/// sent once: the caller decides what is repeated.
///
/// # Errors
/// When the file cannot be read as certificates, or the system's cannot be loaded. The text is meant for a person.
pub fn client(url: &Url, ca: Option<&Path>, redirects: Redirects) -> Result<Client, String> {
    let mut builder = builder(redirects);
    if let Some(path) = ca {
        builder = builder.tls_certs_merge(authorities(path)?);
    }
    if is_loopback(url) {
        builder = builder.no_proxy();
        if url.scheme() == "http" {
            // Nothing is encrypted: reading the system's authorities would take longer than a local call.
            builder = builder.tls_certs_only([]);
        }
    }
    builder.build().map_err(|error| error_chain(&error))
}

/// Has TLS use ring, unless the embedding program has installed another provider, which serves as well.
pub fn install_tls_provider() {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

fn builder(redirects: Redirects) -> ClientBuilder {
    install_tls_provider();
    let builder = Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .http1_only()
        .retry(reqwest::retry::never())
        .user_agent(concat!("quorate/", env!("CARGO_PKG_VERSION")));
    match redirects {
        Redirects::Refused => builder.redirect(Policy::none()),
        Redirects::SameHost => builder
            // A connection whose last response was not read to its end would stall its next user.
            .pool_max_idle_per_host(0)
            .redirect(Policy::custom(|attempt| {
                let keeps = matches!(
                    attempt.status(),
                    StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
                );
                let same_host =
                    attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
                match keeps && same_host && attempt.previous().len() <= MAX_REDIRECTS {
                    true => attempt.follow(),
                    false => attempt.stop(),
                }
            })),
    }
}

fn authorities(path: &Path) -> Result<Vec<Certificate>, String> {
    let unusable = |why: String| format!("cannot read certificates from {}: {why}", path.display());
    let pem = files::read(path, MAX_CA_BYTES).map_err(|error| unusable(error.to_string()))?;
    let found = Certificate::from_pem_bundle(&pem).map_err(|error| unusable(error_chain(&error)))?;
    match found.is_empty() {
        true => Err(unusable("it has none in PEM form".to_owned())),
        false => Ok(found),
    }
}

/// Whether an address is this machine's own; requests to it bypass the proxy.
pub fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Whether an address is this machine's own or in a private network, where a server has few resources.
#[cfg(feature = "llm")]
pub(crate) fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => is_local_v4(address),
        Some(Host::Ipv6(address)) => {
            let first = address.segments()[0];
            address.is_loopback()
                || address.is_unspecified()
                || first & 0xfe00 == 0xfc00
                || first & 0xffc0 == 0xfe80
                || address.to_ipv4_mapped().is_some_and(is_local_v4)
        }
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            let ends = [".localhost", ".local", ".docker.internal"];
            !name.contains('.')
                || ends.iter().any(|end| name.ends_with(end))
                || name == "host.containers.internal"
        }
        None => false,
    }
}

#[cfg(feature = "llm")]
fn is_local_v4(address: Ipv4Addr) -> bool {
    address.is_loopback() || address.is_private() || address.is_link_local() || address.is_unspecified()
}

/// The host of an address, with its port where that is not the scheme's own.
pub(crate) fn host_and_port(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// An error with its causes, each once.
pub fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        // Many errors repeat their cause in their own text.
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = error.source();
    }
    text
}

/// An environment variable that is not empty.
#[expect(clippy::disallowed_methods, reason = "keys are handed over in the environment, and read here alone")]
pub(crate) fn read_variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

#[cfg(all(test, feature = "llm"))]
mod tests {
    use super::*;

    #[test]
    fn servers_of_private_networks_are_local() {
        let is_local = |host: &str| is_local(&Url::parse(&format!("http://{host}:8080/v1")).unwrap());
        let local = "localhost LOCALHOST llama.localhost 127.0.0.1 127.9.9.9 0.0.0.0 10.0.0.7 10.255.1.1 172.16.0.1 \
                     172.31.255.9 192.168.1.20 169.254.3.4 [::1] [fd12:3456::1] [fc00::1] [fe80::1] [febf::1] \
                     [::ffff:192.168.1.2] studio.local studio.local. host.docker.internal \
                     host.containers.internal ollama gpu-box";
        let far = "api.openai.com 9.9.9.9 11.0.0.1 172.15.0.1 172.32.0.1 192.169.0.1 169.253.0.1 128.0.0.1 \
                   [2001:db8::1] [fe00::1] [fec0::1] [::ffff:8.8.8.8] local.example.com localhost.example.com \
                   notlocal.com model.invalid";
        local.split(' ').for_each(|host| assert!(is_local(host), "{host}"));
        far.split(' ').for_each(|host| assert!(!is_local(host), "{host}"));
    }
}
