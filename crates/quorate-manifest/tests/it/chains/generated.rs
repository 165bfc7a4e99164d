//! Generated layers: each matches its schema, and some relax a setting that they must not relax.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Map, Value, json};

/// One to five documents, root first.
pub(crate) fn chains() -> impl Strategy<Value = Vec<Value>> {
    (base_mode(), 1..=5_usize).prop_flat_map(|(mode, count)| {
        let views = prop::collection::vec(layer(mode), count);
        views.prop_map(move |mut layers| {
            // A root needs a mode; views inherit it.
            layers[0]["mode"] = json!(mode);
            layers
        })
    })
}

/// The bytes of a document: JSON is YAML.
pub(crate) fn bytes(layer: &Value, at: usize, extends: Option<&str>) -> Vec<u8> {
    let mut keys = Map::new();
    let own = json!({
        "schema": "assembly.workspace/v1",
        "name": format!("layer-{at}"),
        "title": format!("Layer {at}"),
        "description": "A layer.",
        "version": "1.0.0",
    });
    keys.extend(own.as_object().cloned().unwrap_or_default());
    keys.extend(extends.map(|path| ("extends".to_owned(), json!(path))));
    keys.extend(layer.as_object().cloned().unwrap_or_default());
    format!("---\n{}\n---\n", Value::Object(keys)).into_bytes()
}

fn base_mode() -> impl Strategy<Value = &'static str> {
    select(&["advisory", "voting", "peer"][..])
}

fn layer(mode: &'static str) -> impl Strategy<Value = Value> {
    let floor = (
        seldom(prop_oneof![20 => Just(mode), 1 => base_mode()].prop_map(|mode| json!(mode))),
        seldom(traits()),
        seldom(select(&["substring", "regex", "semantic"][..]).prop_map(|mode| json!(mode))),
        seldom(audit()),
    );
    let rest = (
        sometimes(members()),
        sometimes(synthesis()),
        sometimes(fields(&["triggerInterval_ms"], (1000..9000).prop_map(|ms| json!(ms)))),
        sometimes(fields(&["defaultGrouping"], select(&["phase", "role"][..]).prop_map(|by| json!(by)))),
        sometimes(
            select(&["ws://operators/ada", "ws://operators/bea"][..]).prop_map(|operator| json!(operator)),
        ),
        sometimes(metadata()),
    );
    (floor, rest).prop_map(
        |((mode, traits, matching, audit), (members, synthesis, defaults, display, executor, metadata))| {
            let named = [
                ("mode", mode),
                ("lockedTraits", traits),
                ("matchMode", matching),
                ("audit", audit),
                ("members", members),
                ("synthesis", synthesis),
                ("defaults", defaults),
                ("display", display),
                ("executor", executor),
                ("metadata", metadata),
            ];
            map(named)
        },
    )
}

/// Absent, without a value, or a value.
fn sometimes(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Option<Value>> {
    prop_oneof![3 => Just(None), 1 => Just(Some(Value::Null)), 4 => value.prop_map(Some)]
}

/// Like [`sometimes`], but rarer: one document that relaxes a setting makes the whole chain refused.
fn seldom(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Option<Value>> {
    prop_oneof![4 => Just(None), 1 => Just(Some(Value::Null)), 3 => value.prop_map(Some)]
}

fn map<'k>(named: impl IntoIterator<Item = (&'k str, Option<Value>)>) -> Value {
    named.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect::<Map<_, _>>().into()
}

fn fields(
    keys: &'static [&'static str],
    value: impl Strategy<Value = Value> + Clone,
) -> impl Strategy<Value = Value> {
    prop::collection::vec(sometimes(value), keys.len())
        .prop_map(move |values| map(keys.iter().copied().zip(values)))
}

fn traits() -> impl Strategy<Value = Value> {
    let some = subsequence(vec!["warmth", "honesty", "kindness"], 0..=3);
    let all = Just(vec!["warmth", "honesty", "kindness"]);
    prop_oneof![some, all].prop_shuffle().prop_map(|traits| json!(traits))
}

fn audit() -> impl Strategy<Value = Value> {
    let kept = |other: &'static str, value: Value| {
        (sometimes(prop_oneof![5 => Just(json!(true)), 1 => Just(json!(false))]), sometimes(Just(value)))
            .prop_map(move |(enabled, value)| map([("enabled", enabled), (other, value)]))
    };
    let signing =
        prop_oneof![2 => Just(json!("required")), 1 => Just(json!("optional")), 1 => Just(json!("none"))];
    (
        sometimes(kept("retention", json!("days:3"))),
        sometimes(kept("maxActive", json!(7))),
        sometimes(signing),
    )
        .prop_map(|(consultations, overlays, signing)| {
            map([("consultations", consultations), ("overlays", overlays), ("signing", signing)])
        })
}

/// A subset of four members in any order.
fn members() -> impl Strategy<Value = Value> {
    let ids = subsequence(vec!["ada", "bea", "cea", "dea"], 0..=4).prop_shuffle();
    ids.prop_flat_map(|ids| {
        let member = (
            select(&["Chief", "Chair"][..]),
            sometimes(
                select(&["0.5", "1.50", "2"][..])
                    .prop_map(|text| serde_json::from_str(text).expect("a number")),
            ),
            sometimes((100..200).prop_map(|ms| json!(ms))),
            sometimes(subsequence(vec!["sample", "manual"], 0..=2).prop_map(|some| json!(some))),
            sometimes(
                select(
                    &[r#"{"strategy":"digest","params":{"window_days":3}}"#, r#"{"strategy":"digest"}"#][..],
                )
                .prop_map(|text| serde_json::from_str(text).expect("a mapping")),
            ),
        );
        prop::collection::vec(member, ids.len()).prop_map(move |members| {
            let one = |(id, (role, weight, timeout, triggers, gather)): (&&str, (&str, _, _, _, _))| {
                map([
                    ("id", Some(json!(id))),
                    ("persona", Some(json!("ws://personas/ada"))),
                    ("role", Some(json!(role))),
                    ("weight", weight),
                    ("timeout_ms", timeout),
                    ("triggers", triggers),
                    ("gatherInput", gather),
                ])
            };
            ids.iter().zip(members).map(one).collect()
        })
    })
}

fn synthesis() -> impl Strategy<Value = Value> {
    let ids = subsequence(vec!["r1", "r2", "r3"], 0..=3).prop_shuffle();
    let rules = ids.prop_flat_map(|ids| {
        let rule = (select(&["quorum", "majority"][..]), sometimes(metadata()));
        prop::collection::vec(rule, ids.len()).prop_map(move |rules| {
            let one = |(id, (kind, params)): (&&str, (&str, _))| {
                map([("id", Some(json!(id))), ("kind", Some(json!(kind))), ("params", params)])
            };
            ids.iter().zip(rules).map(one).collect::<Value>()
        })
    });
    let levels = (0..9).prop_map(|from| json!([{"range": [from, from + 1], "label": "watch"}]));
    (sometimes(rules), sometimes(levels))
        .prop_map(|(rules, levels)| map([("rules", rules), ("riskLevels", levels)]))
}

/// A random mapping of depth three.
pub(crate) fn metadata() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(|value| json!(value)),
        (-9..9_i64).prop_map(|value| json!(value)),
        "[ -~]{0,6}".prop_map(|text| json!(text)),
        select(&["0.5", "1e3", "-2.50"][..]).prop_map(|text| serde_json::from_str(text).expect("a number")),
    ];
    let mapping = |inner: BoxedStrategy<Value>| {
        prop::collection::btree_map("[abc]", inner, 0..3)
            .prop_map(|map| Value::Object(map.into_iter().collect()))
            .boxed()
    };
    let tree = leaf.prop_recursive(3, 12, 3, move |inner| {
        prop_oneof![prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array), mapping(inner)]
    });
    mapping(tree.boxed())
}
