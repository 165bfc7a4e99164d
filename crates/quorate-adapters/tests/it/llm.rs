//! The wire formats of model services: what is sent, what is read, and what is told of forms.

mod adapts;
mod client;
mod decisions;
mod embeds;
mod envelopes;
mod faults;
mod goldens;
mod hostile;
mod schemas;
pub(crate) mod server;
mod streams;
