//! Votes, exhaustively, against an oracle in whole numbers that follows V1 to V8 word by word.

#[path = "voting/early.rs"]
mod early;
#[path = "voting/exhaustive.rs"]
mod exhaustive;
#[path = "voting/infected.rs"]
mod infected;
#[path = "voting/named.rs"]
mod named;
#[path = "voting/oracle.rs"]
mod oracle;
mod sitting;
#[path = "voting/stacks.rs"]
mod stacks;
#[path = "voting/table.rs"]
mod table;
