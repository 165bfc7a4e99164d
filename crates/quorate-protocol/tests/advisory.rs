//! Advice and what becomes of it: tables for what has a name, and any rules over any advice against an oracle.

#[path = "advisory/council.rs"]
mod council;
#[path = "advisory/oracle.rs"]
mod oracle;
#[path = "advisory/rules.rs"]
mod rules;
mod sitting;
#[path = "advisory/tables.rs"]
mod tables;
