//! Everything that speaks MCP as a client, against a server with faults that these tests write themselves.

#![cfg(feature = "mcp")]
mod fake_server;
mod host;
mod proxy;

mod child;
mod conformance;
mod connection;
mod kv;
mod misbehaving_server;
mod operator;
mod posting;
mod reading;
mod runner;
