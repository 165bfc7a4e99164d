//! Everything that speaks MCP as a client, against a server with faults that these tests write themselves.

#![cfg(feature = "mcp")]
#![expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests write the servers that they ask")]

#[path = "mcp/fake.rs"]
mod fake;
#[path = "mcp/host.rs"]
mod host;
#[path = "mcp/proxy.rs"]
mod proxy;

#[path = "mcp/child.rs"]
mod child;
#[path = "mcp/conformance.rs"]
mod conformance;
#[path = "mcp/connection.rs"]
mod connection;
#[path = "mcp/kv.rs"]
mod kv;
#[path = "mcp/lies.rs"]
mod lies;
#[path = "mcp/operator.rs"]
mod operator;
#[path = "mcp/posting.rs"]
mod posting;
#[path = "mcp/reading.rs"]
mod reading;
