//! Advice and what becomes of it: tables for what has a name, and any rules over any advice against an oracle.

mod council;
mod oracle;
mod rules;
mod tables;
