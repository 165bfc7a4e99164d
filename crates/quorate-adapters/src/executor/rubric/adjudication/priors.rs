//! Reads earlier verdicts on the same type of text.

use serde_json::Value;

use crate::executor::rubric::peer_answers::join_names;
use crate::executor::rubric::topics;

/// Earlier verdicts, newest first.
pub(super) struct PriorVerdicts(Vec<PriorVerdict>);

struct PriorVerdict {
    artifact: String,
    verdict: String,
    topics: Vec<&'static str>,
}

impl PriorVerdicts {
    /// Reads the part. Text in another format yields no verdicts.
    pub(super) fn read(text: &str) -> PriorVerdicts {
        let Ok(Value::Array(all)) = serde_json::from_str(text) else { return PriorVerdicts(Vec::new()) };
        let prior = |value: &Value| {
            let string = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            let verdict =
                [string("verdict"), string("final_verdict")].into_iter().find(|word| !word.is_empty())?;
            let text = format!("{}\n{}", string("reasoning"), string("revision_brief"));
            Some(PriorVerdict {
                artifact: string("artifact"),
                verdict: verdict.to_uppercase(),
                topics: topics::found_in(&text).iter().map(|topic| topic.name).collect(),
            })
        };
        PriorVerdicts(all.iter().filter_map(prior).collect())
    }

    /// How many of the newest verdicts in a row were HOLD on this artifact and on a current topic; `None` if the newest was
    /// not. Verdicts on other artifacts do not show whether a repetition helps.
    pub(super) fn repeated_holds(&self, artifact: &str, current: &[&'static str]) -> Option<usize> {
        let same_artifact = self.0.iter().take_while(|prior| prior.artifact == artifact).count();
        self.repeated_topics(current).map(|(times, _)| times.min(same_artifact)).filter(|times| *times > 0)
    }

    /// A sentence about the verdicts and recurring topics; `None` without verdicts.
    pub(super) fn summary(&self, current: &[&'static str]) -> Option<String> {
        let newest = self.0.first()?;
        if let Some((times, common)) = self.repeated_topics(current).filter(|(_, common)| !common.is_empty())
        {
            let which = if times == 1 {
                "The last verdict on this type was".to_owned()
            } else {
                format!("The last {times} verdicts on this type were")
            };
            return Some(format!("{which} HOLD for {}; the same again.", join_names(&common)));
        }
        let again: Vec<&str> =
            newest.topics.iter().copied().filter(|topic| current.contains(topic)).collect();
        let about = if again.is_empty() {
            String::new()
        } else {
            format!(", and {} came up again", join_names(&again))
        };
        let several = if self.0.len() == 1 {
            "One earlier verdict on this type was read".to_owned()
        } else {
            format!("{} earlier verdicts on this type were read", self.0.len())
        };
        Some(format!("{several}; the last was {}{about}.", newest.verdict))
    }

    fn repeated_topics(&self, current: &[&'static str]) -> Option<(usize, Vec<&'static str>)> {
        let mut common: Option<(usize, Vec<&'static str>)> = None;
        for prior in self.0.iter().take_while(|prior| prior.verdict == "HOLD") {
            let before = common.as_ref().map_or(current, |(_, topics)| topics.as_slice());
            let both: Vec<&'static str> =
                before.iter().copied().filter(|topic| prior.topics.contains(topic)).collect();
            if both.is_empty() {
                break;
            }
            common = Some((common.map_or(1, |(times, _)| times + 1), both));
        }
        common
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_them() {
        let say = |text: &str| PriorVerdicts::read(text).summary(&["unsourced claims"]);
        assert_eq!(say("[]"), None);
        assert_eq!(say("nonsense"), None);
        let hold = r#"{"verdict": "hold", "reasoning": "no source"}"#;
        assert_eq!(
            say(&format!("[{hold}, {hold}]")).as_deref(),
            Some("The last 2 verdicts on this type were HOLD for unsourced claims; the same again.")
        );
        assert_eq!(
            say(r#"[{"final_verdict": "REVISE", "revision_brief": "unsourced"}]"#).as_deref(),
            Some(
                "One earlier verdict on this type was read; the last was REVISE, and unsourced claims came up again."
            )
        );
    }
}
