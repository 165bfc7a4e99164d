//! Registers a substrate, a dispatcher and an executor of its own, and runs a manifest that names them.

mod parrot;
mod questions;
mod wall;

use std::path::Path;
use std::sync::Arc;

use quorate::Quorate;
use quorate::conversation::{RunRequest, SayRequest};

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
    let conversation = quorate.conversation(std::path::absolute(&manifest).expect("a path"))?;
    let said = SayRequest { text: "Is anybody there?".to_owned(), ..SayRequest::default() };
    conversation.run(RunRequest { say: Some(said), ..RunRequest::default() }).finish().await?;
    for turn in conversation.reader().await?.last(None).await? {
        println!("{}: {}", turn.participant, turn.content);
    }
    Ok(())
}
