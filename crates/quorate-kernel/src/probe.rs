//! A harmless question that any executor can be asked: by `doctor`, and by the port's conformance suite.

use std::sync::Arc;
use std::time::Duration;

use quorate_protocol::answers::Schema;
use quorate_protocol::{Invoke, Part, PartKind};

use crate::entropy;
use crate::ports::executor::{Invocation, Notes, Progress};
use crate::ports::ledger::Fence;
use crate::prompt::Layout;
use crate::redact::Redactor;

/// The form that the answer has to have.
pub const SCHEMA: Schema = Schema::FirstAnswer;

const SPECIMEN: &str = "The meeting of the desk moved to Tuesday at ten, since the hall is closed on Monday. Please tell the \
                        others, and bring the list that we sent you.";
const ROLE: &str = "# Skeptic\n\nSay whether anything in the text should stop it from going out.";

/// The question, to be answered within `timeout`.
pub fn question(timeout: Duration) -> Invocation {
    let invoke = Invoke {
        id: "r1/skeptic".into(),
        member: "skeptic".into(),
        step: "r1".into(),
        parts: vec![Part::new(PartKind::Artifact, "specimen.md", SPECIMEN)],
        schema: SCHEMA,
        task: "Say what you think of the text.".into(),
        extra_fields: serde_json::Map::new(),
    };
    let layout = Layout { nonce: entropy::nonce(&entropy::bytes()) };
    let prompt = layout.prompt(&invoke, &[], ROLE);
    Invocation {
        nonce: layout.nonce.into(),
        redactor: Redactor::default(),
        fence: Fence::default(),
        run: "probe".into(),
        prompt: prompt.text.into(),
        cuts: prompt.cuts.into(),
        id: invoke.id,
        member: invoke.member,
        step: invoke.step,
        attempt: 1,
        parts: invoke.parts.into(),
        role: ROLE.into(),
        persona: None,
        answer_schema: invoke.schema,
        json_schema: Arc::new(invoke.schema.json_schema()),
        conversation: None,
        deadline: tokio::time::Instant::now() + timeout,
        notes: Notes::default(),
        progress: Progress::default(),
    }
}
