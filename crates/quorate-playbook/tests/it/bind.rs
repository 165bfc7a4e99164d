//! Many bindings at once are each binding by itself.

use proptest::collection::vec;
use proptest::prelude::*;
use quorate_manifest::operator::Operator;
use quorate_manifest::playbook::Playbook;
use quorate_playbook::bind::{Binding, BindingIndex, MatchKind, RUNTIME, SKILL, Subject};
use serde_json::{Value, json};

/// Similar values, verbatim and as patterns.
const VALUES: [&str; 18] = [
    "ada",
    "adam",
    "bob",
    "operator/ada",
    "role/bob",
    "ws://operators/ada",
    "ws://roles/bob",
    "x/ada",
    "*",
    "a*",
    "*a",
    "operator/a*",
    "role/*",
    "a?a*",
    "x/*",
    "**/ada",
    "{ada,b*}",
    "[ada",
];
const AXES: [&str; 6] = ["identity", "role", "capability", "skill", "runtime", "region"];

fn value() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(&VALUES[..])
}

fn term() -> impl Strategy<Value = Value> {
    let axis = proptest::sample::select(&AXES[..]);
    (axis, vec(value(), 1..3)).prop_map(|(axis, any_of)| json!({"axis": axis, "anyOf": any_of}))
}

fn selector() -> impl Strategy<Value = Value> {
    let axis = proptest::sample::select(&AXES[..]);
    let axes = vec((axis, vec(value(), 1..3)), 0..3);
    (axes, vec(term(), 0..2), proptest::option::of(vec(term(), 0..3))).prop_map(|(axes, all_of, any_of)| {
        let mut selector = json!({"allOf": all_of});
        axes.into_iter().for_each(|(axis, values)| selector[axis] = json!(values));
        if let Some(any_of) = any_of {
            selector["anyOf"] = json!(any_of);
        }
        json!({"selector": selector})
    })
}

fn targets() -> impl Strategy<Value = Value> {
    let kind = proptest::sample::select(&["operator", "role", "skill", "runtime"][..]);
    let target = (kind, value()).prop_map(|(kind, value)| json!({"kind": kind, "ref": value}));
    let targets = vec(target, 0..3).prop_map(|targets| json!({"targets": targets}));
    prop_oneof![targets, Just(json!({"binds_operator": "ada"}))]
}

fn playbook() -> impl Strategy<Value = Playbook> {
    prop_oneof![selector(), targets()].prop_map(|whom| {
        let mut playbook = json!({
            "schema": "playbooks/v1", "slug": "a-book", "title": "A book.", "kind": "overlay",
            "lock_check": [], "evidence": [{"kind": "run", "ref": "r1"}], "status": "active",
        });
        playbook.as_object_mut().expect("it is one").extend(whom.as_object().expect("it is one").clone());
        serde_json::from_value(playbook).expect("it is a playbook")
    })
}

fn subject() -> impl Strategy<Value = Subject> {
    let plain = || proptest::sample::select(&["ada", "adam", "bob", "x/ada", "ada/x"][..]);
    let whole = (plain(), plain(), vec(plain(), 0..3), proptest::option::of(plain()), plain());
    whole.prop_map(|(id, role, skills, runtime, used)| {
        let operator = json!({"id": id, "name": "A", "role": role, "skills": skills, "capabilities": [id]});
        let operator: Operator = serde_json::from_value(operator).expect("it is an operator");
        let subject = Subject::from_operator(&operator);
        match runtime {
            Some(runtime) => subject.with(RUNTIME, runtime).replace(SKILL, used),
            None => subject,
        }
    })
}

proptest! {
    #[test]
    fn many_at_once_are_each_by_itself(playbooks in vec(playbook(), 0..30), subjects in vec(subject(), 1..6)) {
        // B2
        let bindings = BindingIndex::new(&playbooks);
        for subject in &subjects {
            let naive: Vec<(usize, MatchKind)> = (playbooks.iter().enumerate())
                .filter_map(|(at, one)| Some((at, Binding::new(one).matches(subject)?)))
                .collect();
            prop_assert_eq!(bindings.matching(subject), naive);
        }
    }
}
