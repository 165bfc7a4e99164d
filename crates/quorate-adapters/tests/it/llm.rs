//! The wire formats of model services: what is sent, what is read, and what is told of forms.

mod client;
mod faults;
mod goldens;
mod schemas;
pub(crate) mod server;
mod streams;
