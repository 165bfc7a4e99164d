//! Registers a custom synthesis rule and a gather strategy, and convenes an assembly that names both.
//!
//! `cargo run -p quorate --example own_rule`

#![expect(clippy::disallowed_methods, reason = "it writes its own workspace")]

use async_trait::async_trait;
use quorate::ports::extension::{ExtensionError, RuleAnswer, RuleDecision, RuleRequest, Vote};
use quorate::ports::{Mode, RuleKind, extension};
use quorate::{AssemblyVerdict, Quorate};
use serde_json::json;

/// Passes when no member votes no, however few vote yes.
struct NobodyObjects;

#[async_trait]
impl extension::Rule for NobodyObjects {
    fn describe(&self) -> RuleKind {
        RuleKind { modes: vec![Mode::Voting], params: json!({"type": "object"}), ..RuleKind::default() }
    }

    async fn apply(&self, request: RuleRequest) -> Result<RuleAnswer, ExtensionError> {
        let RuleRequest::Voting { votes, .. } = request else { return Ok(RuleAnswer::Nothing) };
        let objects = votes.iter().any(|ballot| ballot.vote == Some(Vote::No));
        Ok(RuleAnswer::Vote { decision: if objects { RuleDecision::Fail } else { RuleDecision::Pass } })
    }
}

/// Shows a voter the proposal with last year's cost.
struct WithLastYear;

#[async_trait]
impl extension::Gather for WithLastYear {
    async fn gather(&self, request: extension::GatherRequest) -> Result<String, ExtensionError> {
        Ok(format!("{}\n\nLast year this cost 31 000.\n", request.subject.text))
    }
}

const BOARD: &str = "---
schema: assembly.workspace/v1
name: board
title: Board
description: Decides what is bought.
version: 1.0.0
mode: voting
members:
  - {id: cfo, persona: ws://personas/cfo, role: CFO, gatherInput: {strategy: custom:last-year}}
synthesis: {rules: [{id: consent, kind: nobody-objects}]}
---
";
const CFO: &str =
    "---\nschema: persona/v1\nname: cfo\ntitle: CFO\ndescription: Counts.\nversion: 1.0.0\n---\n";

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    std::fs::create_dir_all(dir.path().join("personas/cfo"))?;
    std::fs::write(dir.path().join("quorate.toml"), "strict_chain = true\n")?;
    std::fs::write(dir.path().join("ASSEMBLY.md"), BOARD)?;
    std::fs::write(dir.path().join("personas/cfo/PERSONA.md"), CFO)?;
    std::fs::write(dir.path().join("proposal.md"), "# A second region\n\nResolution: open it.\n")?;

    let quorate = Quorate::builder()
        .workspace(dir.path())
        .rule("nobody-objects", NobodyObjects)
        .gather("custom:last-year", WithLastYear)
        .build()?;
    let decision = quorate.convene("ASSEMBLY.md").proposal("proposal.md").await?;
    println!("board: {}", decision.verdict().map_or("undecided", AssemblyVerdict::as_str));
    Ok(())
}
