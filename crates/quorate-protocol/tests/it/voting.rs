//! Votes, exhaustively, against an oracle in whole numbers that follows V1 to V8 word by word.

mod early;
mod exhaustive;
mod infected;
mod named;
mod oracle;
mod stacks;
mod table;
