//! Checks of HTTP requests that all servers of Quorate share: `Host` must name the server, which prevents DNS
//! rebinding; origins of web pages are compared; and secrets are compared in constant time.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use ::http::header::{AUTHORIZATION, HOST};
use ::http::uri::Authority;
use ::http::{HeaderMap, HeaderName, Uri};
use quorate_kernel::entropy;

#[cfg(feature = "http-server")]
mod server;

#[cfg(feature = "http-server")]
pub use server::{Deadlines, accept, bind};

pub use quorate_kernel::entropy::sha256_hex;

/// The origin of a web page that may send requests: `scheme://host:port`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    scheme: String,
    host: String,
    port: u16,
}

impl FromStr for Origin {
    type Err = String;

    fn from_str(text: &str) -> Result<Origin, String> {
        let bad =
            || format!("`{text}` is not an origin: write https://app.example.com or http://localhost:5173");
        let uri: Uri = text.trim().parse().map_err(|_| bad())?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else { return Err(bad()) };
        let scheme = scheme.to_ascii_lowercase();
        let usual = match scheme.as_str() {
            "http" => 80,
            "https" => 443,
            _ => return Err(bad()),
        };
        let bare =
            matches!(uri.path(), "" | "/") && uri.query().is_none() && !authority.as_str().contains('@');
        match bare {
            true => {
                Ok(Origin { scheme, host: host_of(authority), port: authority.port_u16().unwrap_or(usual) })
            }
            false => Err(bad()),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Origin { scheme, host, port } = self;
        match host.contains(':') {
            true => write!(f, "{scheme}://[{host}]:{port}"),
            false => write!(f, "{scheme}://{host}:{port}"),
        }
    }
}

/// Whether a request is for the server at this address. If the server listens on all addresses, any IP address passes:
/// it cannot be rebound like a name.
pub fn is_for(address: SocketAddr, headers: &HeaderMap, uri: &Uri) -> bool {
    let requested = single_header(headers, HOST).and_then(|host| Authority::try_from(host).ok());
    let Some(requested) = requested.or_else(|| uri.authority().cloned()) else { return false };
    if requested.as_str().contains('@') || requested.port_u16().unwrap_or(80) != address.port() {
        return false;
    }
    let bound = address.ip();
    match host_of(&requested).parse::<IpAddr>() {
        Ok(requested) => {
            requested == bound || bound.is_unspecified() || (requested.is_loopback() && bound.is_loopback())
        }
        Err(_) => host_of(&requested) == "localhost" && (bound.is_loopback() || bound.is_unspecified()),
    }
}

/// The SHA-256 of a secret, so that comparisons have a fixed length.
#[derive(Clone)]
pub struct TokenHash(String);

impl TokenHash {
    /// Hashes a secret.
    pub fn of(token: &str) -> TokenHash {
        TokenHash(sha256_hex(token.as_bytes()))
    }

    /// Whether this is the secret, in constant time.
    pub fn matches(&self, token: &str) -> bool {
        let given = sha256_hex(token.as_bytes());
        let differ =
            given.bytes().zip(self.0.bytes()).fold(0, |differ, (left, right)| differ | (left ^ right));
        std::hint::black_box(differ) == 0 && given.len() == self.0.len()
    }
}

/// A new secret of 256 bits, as text.
pub fn new_secret() -> String {
    entropy::hex(&entropy::bytes::<32>())
}

/// The bearer token of a request; empty without one.
pub fn bearer_token(headers: &HeaderMap) -> &str {
    let value = single_header(headers, AUTHORIZATION).and_then(|value| value.split_once(' '));
    value.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map_or("", |(_, token)| token.trim())
}

/// A header's value, if there is exactly one and it is text.
pub fn single_header(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())?.to_str().ok()
}

/// A normalized host: without brackets, in lower case.
fn host_of(authority: &Authority) -> String {
    authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_origin_is_refused() {
        for bad in ["", "app.example.com", "ftp://x", "https://x/path", "https://u@x", "*", "null"] {
            assert!(bad.parse::<Origin>().is_err(), "{bad}");
        }
        let origin: Origin = "http://[::1]:80".parse().unwrap();
        assert_eq!(origin.to_string(), "http://[::1]:80");
    }
}
