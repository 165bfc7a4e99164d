//! Everything that speaks MCP as a client, against a server with faults that these tests write themselves.

#![cfg(feature = "mcp")]
mod fake;
mod host;
mod proxy;

mod child;
mod conformance;
mod connection;
mod kv;
mod lies;
mod operator;
mod posting;
mod reading;
