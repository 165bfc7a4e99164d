//! Locks by meaning (L4): an embedder of the program's own is asked where text finds nothing; one that fails keeps the
//! outcome from being written; without one text alone counts, with a warning.

use std::sync::Arc;

use crate::support;
use async_trait::async_trait;
use quorate::service::convene::inputs::Inputs;
use quorate::service::convene::report::Report;
use quorate::service::convene::spec;
use quorate::service::convene::{self, Request};
use quorate::service::environment::Environment;
use quorate::service::host::Host;
use quorate::service::open_session;
use quorate::service::workspace::PathOverrides;
use quorate_kernel::observer::NoopObserver;
use quorate_kernel::ports::embedder::Embedder;
use serde_json::json;
use support::TestDir;
use support::assembly::{advice, answers, write};

/// Knows two meanings: cold things, and everything else.
struct Temperature {
    broken: bool,
}

#[async_trait]
impl Embedder for Temperature {
    fn model(&self) -> &str {
        "temperature"
    }

    fn threshold(&self) -> f32 {
        0.9
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, String> {
        if self.broken {
            return Err("the model is not there".to_owned());
        }
        let cold = |text: &&str| ["warmth", "icy", "frosty"].iter().any(|word| text.contains(word));
        Ok(texts.iter().map(|text| if cold(text) { vec![1.0, 0.0] } else { vec![0.0, 1.0] }).collect())
    }
}

fn place() -> TestDir {
    let place = TestDir::new();
    let more =
        "lockedTraits: [warmth]\nmatchMode: semantic\nsynthesis: {rules: [{id: all, kind: aggregate}]}\n";
    write(&place, "advisory", &[("ana", "phase: session"), ("bob", "phase: session")], more);
    answers(
        &place,
        &json!({"ana": advice(5, "Ask first. Be icy with them."), "bob": advice(4, "Ask twice.")}),
    );
    place.write("talk.md", "user: hello\n");
    place
}

fn held(place: &TestDir, host: &Host) -> Report {
    let environment = Environment {
        state_dir: Some(place.path("state")),
        host: Arc::new(host.clone()),
        trust: quorate::service::trust::Trust::default().trusting_all(),
        ..Environment::new(place.root())
    };
    let asked = Inputs { conversation: Some(place.path("talk.md")), ..Inputs::default() };
    let request = Request { path: place.path("ASSEMBLY.md"), inputs: asked, ..Request::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (called, workspace) =
            convene::prepare(&environment, &PathOverrides::default(), &request, host).unwrap();
        let spec = spec::build(&environment, &workspace, &called, &request.options).unwrap();
        let session = open_session::open(environment, workspace).await.unwrap();
        let report = convene::convene(&session, &called, &spec, Arc::new(NoopObserver)).await.unwrap();
        session.close().await;
        report
    })
}

#[test]
fn what_means_the_same_is_dropped() {
    // L4
    let place = place();
    let report = held(&place, &Host::new().with_embedder(Arc::new(Temperature { broken: false })));
    let kept: Vec<&str> = report.fragments.iter().map(|one| one.member.as_str()).collect();
    assert_eq!(kept, ["bob"]);
    let violation = &report.violations[0];
    assert_eq!((violation.layer.as_deref(), violation.locked.as_deref()), (Some("meaning"), Some("warmth")));
    assert!(violation.excerpt.as_ref().unwrap().contains("Be icy"), "{violation:?}");
    // X11: the comparison is recorded, so that a program without the embedder comes to the same.
    place.run(&["replay", &place.only_run()]).assert_code(0);
}

#[test]
fn what_cannot_be_compared_is_not_written() {
    // L4
    let place = place();
    let report = held(&place, &Host::new().with_embedder(Arc::new(Temperature { broken: true })));
    assert_eq!(report.fragments, []);
    assert!(report.violations.iter().all(|one| one.code == "lock_unchecked"), "{:?}", report.violations);
    assert_eq!(report.violations.len(), 2);
}

#[test]
fn without_an_embedder_text_alone_counts() {
    // L4
    let place = place();
    let convened = ["convene", ".", "--conversation", "talk.md", "--format", "json"];
    let ran = place.run(&convened).assert_code(0);
    ran.assert_stderr_contains("assembly_locked_trait_match_mode_unsupported");
    assert_eq!(ran.json()["fragments"].as_array().unwrap().len(), 2);
}
