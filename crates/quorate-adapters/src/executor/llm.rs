//! Models over HTTP, without the I/O: what is sent and what is read, one module for each wire format. A client sends what
//! [`wire::encode`] returns and feeds what it receives to a [`wire::Stream`].

pub mod fault;
pub mod schema;
pub mod sse;
pub mod wire;
