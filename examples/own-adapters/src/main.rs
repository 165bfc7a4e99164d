//! Registers a substrate, a dispatcher and an executor of its own, and runs a manifest that names them.

mod parrot;
mod questions;
mod wall;

use std::path::Path;
use std::sync::Arc;

use quorate::Quorate;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), quorate::Error> {
    let manifest = std::env::args().nth(1).expect("the manifest, as the only argument");
    let ledger = std::env::temp_dir().join(format!("own-adapters-{}", std::process::id())).join("ledger.db");
    let quorate = Quorate::builder()
        .workspace(Path::new(&manifest).parent().unwrap_or(Path::new(".")))
        .ledger(ledger)
        .substrate("wall", |_| Ok(Arc::new(wall::Wall::default())))
        .dispatcher("questions", |_| Ok(Arc::new(questions::Questions)))
        .executor("parrot", parrot::Parrot)
        .build()?;
    let conversation = quorate.conversation(std::path::absolute(&manifest).expect("a path")).await?;
    conversation.say("Is anybody there?", "user").await?;
    conversation.answer().await?;
    for turn in conversation.turns(None).await? {
        println!("{}: {}", turn.participant, turn.content);
    }
    conversation.close().await;
    Ok(())
}
