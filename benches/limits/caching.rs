//! How much of a review's prompts a service can read from its cache, and what the review costs with and without that, by
//! the table of prices that ships. Nothing is sent.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use quorate::Money;
use quorate_kernel::ports::executor::{Executor, Servers, Settings, Usage};
use quorate_kernel::prompt::{Layout, Prompt};
use quorate_manifest::council::{VerdictPolicy, built_in_council};
use quorate_protocol::answers::Schema;
use quorate_protocol::modes::council::{Council, Setup};
use quorate_protocol::{Command, ConsultationResult, Event, Json, Part, PartKind, Protocol as _, TimedEvent};
use serde_json::json;

use super::table::Measure;
use super::{Bench, Failure};

const BYTES_PER_TOKEN: usize = 4;
/// No service caches a shorter prefix.
const LEAST_CACHED_BYTES: usize = 4 << 10;
const ANSWER_TOKENS: u64 = 300;
const FINDING: &str = "The second paragraph promises what the first one does not bear out: a reader who acts on it would \
                       find that the number has no source, that the period it holds for is not named, and that the \
                       exception in the last sentence takes back most of it. Name the source and the period, and put the \
                       exception where the promise is made.";

/// A wire with a model of its vendor, and whether it charges for what it puts into its cache.
const WIRES: [(&str, &str, &str, bool); 4] = [
    ("messages", "anthropic", "claude-sonnet-4-5", true),
    ("chat", "openai", "gpt-5.5", false),
    ("responses", "openai", "gpt-5.5", false),
    ("gemini", "gemini", "gemini-3.1-pro-preview", false),
];

/// A prompt: how long it is, how much of it an earlier one has at its start, and how much later ones can read.
struct Sizes {
    all: usize,
    read: usize,
    shared: usize,
}

pub(super) fn measure(bench: &mut Bench) -> Result<(), Failure> {
    let prompts = prompts()?;
    let sizes: Vec<Sizes> = (0..prompts.len()).map(|at| sizes(&prompts, at)).collect();
    let sum = |of: fn(&Sizes) -> usize| sizes.iter().map(of).sum::<usize>();
    let share = sum(|prompt| prompt.read) as f64 / sum(|prompt| prompt.all) as f64;
    bench.table.unlimited("calls of a review of the launch post", Measure::Count(prompts.len() as u64));
    bench.table.unlimited("of their prompts' bytes, the cacheable share", Measure::Share(share));
    for (wire, preset, model, writes) in WIRES {
        let executor = executor(&json!({"preset": preset, "model": model}))?;
        let cost = |cached: bool| {
            let calls = sizes.iter().map(|prompt| {
                let read = if cached { prompt.read } else { 0 };
                let written = if cached && writes { prompt.shared.saturating_sub(read) } else { 0 };
                executor.price(&Usage {
                    tokens_in: Some(tokens(prompt.all)),
                    tokens_cached: Some(tokens(read)),
                    tokens_written: Some(tokens(written)),
                    tokens_out: Some(ANSWER_TOKENS),
                    ..Usage::default()
                })
            });
            calls.sum::<Option<Money>>().map(Money::nanos).ok_or_else(|| format!("{model} has no price"))
        };
        bench.table.unlimited(format!("cost by `{wire}`, {model}, cached"), Measure::Money(cost(true)?));
        bench.table.peer("the same without a cache", Measure::Money(cost(false)?));
    }
    Ok(())
}

fn tokens(bytes: usize) -> u64 {
    (bytes / BYTES_PER_TOKEN) as u64
}

/// The prompts of a review, in the order in which they are sent.
fn prompts() -> Result<Vec<Prompt>, Failure> {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/launch-post.md"))?;
    let council = built_in_council();
    let mut protocol = Council::new(Setup::from_manifest(&council, VerdictPolicy::Seed.into()));
    let layout = Layout { nonce: "0".repeat(16) };
    let part = Part::new(PartKind::Artifact, "launch-post.md", text);
    let opened =
        Event::Opened { run: "r".into(), inputs: vec![part], priors: Vec::new(), overlays: Vec::new() };
    let (mut events, mut prompts) = (VecDeque::from([opened]), Vec::new());
    while let Some(event) = events.pop_front() {
        for command in protocol.advance(&TimedEvent { at_ms: 0, event }) {
            let Command::Invoke(invoke) = command else { continue };
            let deliberator = council.deliberators.iter().find(|member| member.id == invoke.member);
            let role = deliberator.map_or(&council.adjudicator.text, |member| &member.prompt.text);
            prompts.push(layout.prompt(&invoke, &[], role));
            let result = ConsultationResult::Answered(answer(invoke.schema));
            events.push_back(Event::Consulted { id: invoke.id, result });
        }
    }
    Ok(prompts)
}

/// An answer of usual length.
fn answer(schema: Schema) -> Json {
    let finding = json!({"issue": FINDING, "quote": "the second paragraph"});
    match schema {
        Schema::Adjudication => json!({"verdict": "SHIP", "reasoning": FINDING, "revision_brief": null}),
        _ => json!({
            "would_block": false, "irreducible": false, "findings": [finding, finding], "reasoning": FINDING,
        }),
    }
}

fn sizes(prompts: &[Prompt], at: usize) -> Sizes {
    let prompt = &prompts[at];
    let longest = |others: &[Prompt]| {
        let is_shared = |cut: &&usize| {
            let prefix = &prompt.text[..**cut];
            **cut >= LEAST_CACHED_BYTES && others.iter().any(|other| other.text.starts_with(prefix))
        };
        prompt.cuts.iter().filter(is_shared).max().copied().unwrap_or(0)
    };
    Sizes { all: prompt.text.len(), read: longest(&prompts[..at]), shared: longest(&prompts[at + 1..]) }
}

/// The executor `llm` with these settings.
pub(super) fn executor(block: &Json) -> Result<Arc<dyn Executor>, Failure> {
    let registry = quorate_adapters::default_registry()?;
    let new = registry.executor_kind("llm").ok_or("there is no kind `llm`")?;
    let settings = Settings {
        name: "model".to_owned(),
        timeout: Duration::ZERO,
        retries: 0,
        dir: ".".into(),
        block: block.as_object().cloned().unwrap_or_default(),
        servers: Servers::default(),
        prices: None,
    };
    Ok(new(&settings).map_err(|refused| refused.message)?)
}
