//! The result of a replay: identical, or the differences.

use quorate_kernel::replay::Difference;
use quorate_protocol::Json;
use serde_json::json;

use super::paint::one_line;
use super::wording::{amount, truncate};
use quorate::service::replay::Replay;

/// The longest shown value, in characters.
const VALUE: usize = 160;

pub(crate) fn human(replay: &Replay) -> String {
    let verdict = |word: &Option<String>| word.as_deref().map_or_else(|| "no verdict".to_owned(), one_line);
    let differences = &replay.result.differences;
    if differences.is_empty() {
        return format!(
            "identical: replaying run {} gives {} again; no member was asked\n",
            replay.run,
            verdict(&replay.replayed)
        );
    }
    let mut out = format!(
        "different: run {} recorded {}, and {} follows now ({})\n",
        replay.run,
        verdict(&replay.recorded),
        verdict(&replay.replayed),
        amount(differences.len() as u64, "difference")
    );
    for difference in differences {
        out.push_str(&described(difference));
    }
    out
}

/// `{run, identical, recorded, replayed, differences: [{kind, recorded, replayed}]}`.
pub(crate) fn json(replay: &Replay) -> String {
    let difference_json = |difference: &Difference| json!({"kind": difference.kind, "recorded": difference.recorded, "replayed": difference.replayed});
    let object = json!({
        "run": &*replay.run,
        "identical": replay.result.differences.is_empty(),
        "recorded": replay.recorded,
        "replayed": replay.replayed,
        "differences": replay.result.differences.iter().map(difference_json).collect::<Vec<_>>(),
    });
    format!("{object:#}\n")
}

/// The fields that differ; the whole record if one side has none.
fn described(difference: &Difference) -> String {
    let (Some(Json::Object(recorded)), Some(Json::Object(replayed))) =
        (&difference.recorded, &difference.replayed)
    else {
        let which = if difference.recorded.is_none() {
            "not recorded, but follows now"
        } else {
            "recorded, but does not follow"
        };
        return format!("  {}: {which}\n", one_line(&difference.kind));
    };
    let mut keys: Vec<&String> = recorded.keys().chain(replayed.keys()).collect();
    keys.sort();
    keys.dedup();
    let mut out = String::new();
    for key in keys.into_iter().filter(|key| recorded.get(*key) != replayed.get(*key)) {
        out.push_str(&format!("  {}.{}\n", one_line(&difference.kind), one_line(key)));
        out.push_str(&format!("    recorded: {}\n", value(recorded.get(key))));
        out.push_str(&format!("    replayed: {}\n", value(replayed.get(key))));
    }
    out
}

fn value(value: Option<&Json>) -> String {
    value.map_or_else(|| "nothing".to_owned(), |value| truncate(&one_line(&value.to_string()), VALUE))
}

#[cfg(test)]
mod tests {
    use quorate_kernel::replay::ReplayResult;

    use super::*;

    fn replayed(differences: Vec<Difference>) -> Replay {
        let word = Some("REVISE".to_owned());
        let result = ReplayResult { facts: Vec::new(), finished: true, differences };
        Replay { run: "r7k2m9q4xa1bc".into(), recorded: word.clone(), replayed: word, result }
    }

    #[test]
    fn identical_or_where_it_differs() {
        assert_eq!(
            human(&replayed(Vec::new())),
            "identical: replaying run r7k2m9q4xa1bc gives REVISE again; no member was asked\n"
        );
        let differences = vec![
            Difference {
                kind: "rule".to_owned(),
                recorded: Some(json!({"blocks": 1, "policy": "seed/2"})),
                replayed: Some(json!({"blocks": 2, "policy": "seed/2"})),
            },
            Difference { kind: "outcome".to_owned(), recorded: None, replayed: Some(json!({})) },
        ];
        insta::assert_snapshot!(human(&replayed(differences)), @"
        different: run r7k2m9q4xa1bc recorded REVISE, and REVISE follows now (2 differences)
          rule.blocks
            recorded: 1
            replayed: 2
          outcome: not recorded, but follows now
        ");
    }
}
