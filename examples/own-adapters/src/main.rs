//! Registers a substrate, a dispatcher and an executor of its own, and a rule for a board. Runs a manifest that names the first
//! three, and reviews an announcement.

mod parrot;
mod questions;
mod wall;

use std::path::Path;
use std::sync::Arc;

use quorate::conversation::{RunRequest, SayRequest};
use quorate::ports::extension::{ExtensionError, Rule, RuleAnswer, RuleDecision, RuleRequest, Vote};
use quorate::{Event, Money, Quorate, Verdict};

/// Passes a proposal to which no member says no, however few say yes.
struct NoObjection;

#[async_trait::async_trait]
impl Rule for NoObjection {
    async fn apply(&self, request: RuleRequest) -> Result<RuleAnswer, ExtensionError> {
        let RuleRequest::Voting { votes, .. } = request else {
            return Err(ExtensionError::new("`no-objection` decides votes only"));
        };
        let objects = votes.iter().any(|ballot| ballot.vote == Some(Vote::No));
        Ok(RuleAnswer::Vote { decision: if objects { RuleDecision::Fail } else { RuleDecision::Pass } })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), quorate::Error> {
    let manifest = std::env::args().nth(1).expect("the manifest, as the only argument");
    // Nothing is read from the process, and nothing is written to the disk.
    let quorate = Quorate::builder()
        .workspace(Path::new(&manifest).parent().unwrap_or(Path::new(".")))
        .ledger_in_memory()
        .substrate("wall", |_| Ok(Arc::new(wall::Wall::default())))
        .dispatcher("questions", |_| Ok(Arc::new(questions::Questions)))
        .executor("parrot", parrot::Parrot)
        .rule("no-objection", NoObjection)
        .build()?;
    talk(&quorate, Path::new(&manifest)).await?;
    review(&quorate).await
}

/// Asks the parrots a question.
async fn talk(quorate: &Quorate, manifest: &Path) -> Result<(), quorate::Error> {
    let conversation = quorate.conversation(std::path::absolute(manifest).expect("a path"))?;
    let said = SayRequest { text: "Is anybody there?".to_owned(), ..SayRequest::default() };
    conversation.run(RunRequest { say: Some(said), ..RunRequest::default() }).finish().await?;
    for turn in conversation.reader().await?.last(None).await? {
        println!("{}: {}", turn.participant, turn.content);
    }
    Ok(())
}

/// Reviews an announcement for at most five dollars; the default executor costs nothing.
async fn review(quorate: &Quorate) -> Result<(), quorate::Error> {
    let draft = "The meeting moved to Tuesday at ten, because the room is taken on Monday. Please bring the figures of \
                 the last quarter, and tell Ada if you cannot come.\n";
    let budget = Money::from_nanos(5_000_000_000);
    let mut run = quorate.review_text("announcement.md", draft).max_money(budget).start();
    while let Some(event) = run.next().await {
        if let Event::Answered { member, step, took, .. } = event {
            eprintln!("{member} has answered ({step}) after {} ms", took.as_millis());
        }
    }
    let review = run.finish().await?;
    println!("announcement: {}", review.verdict.map_or("undecided", Verdict::as_str));
    Ok(())
}
