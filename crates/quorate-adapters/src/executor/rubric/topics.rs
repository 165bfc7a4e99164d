//! The topics of findings, recognized by their words, so that this run's findings can be compared with an earlier
//! verdict's text.

/// A topic: its name, and the words that indicate it.
pub(super) struct Topic {
    /// The name indicates the topic, too.
    pub(super) name: &'static str,
    cues: &'static [&'static str],
}

static TOPICS: &[Topic] = &[
    Topic { name: "boasting", cues: &["boast"] },
    Topic {
        name: "unsourced claims",
        cues: &[
            "without a source",
            "unsourced",
            "no source",
            "citation",
            "names nobody",
            "no comparison",
            "rests on nothing",
        ],
    },
    Topic {
        name: "figures without a base",
        cues: &["does not say compared", "does not say of how many", "baseline"],
    },
    Topic { name: "absolutes", cues: &["absolute", "allows no exception", "overclaim", "overstate"] },
    Topic { name: "survivorship", cues: &["survivor", "those who stayed"] },
    Topic { name: "causal leaps", cues: &["causal", "makes a cause", "post hoc"] },
    Topic {
        name: "a missing other side",
        cues: &["counter-position", "what speaks against", "one-sided", "could turn out wrong"],
    },
    Topic { name: "tired phrases", cues: &["says little", "banned phrase", "hype", "cliché", "buzzword"] },
    Topic { name: "pivots", cues: &["knocks down"] },
    Topic { name: "long sentences", cues: &["a sentence of", "sentence length"] },
    Topic { name: "shouting", cues: &["shouts", "exclamation"] },
    Topic {
        name: "lasting promises",
        cues: &["promise", "binds for ever", "takes on a risk", "hold you to", "irreversible"],
    },
    Topic { name: "a missing call to action", cues: &["call to action", "asks nothing of them"] },
    Topic { name: "the stated goals", cues: &["stated goal", "non-goal", "reason to stop"] },
];

/// The topics that a text touches, in a fixed order.
pub(super) fn found_in(text: &str) -> Vec<&'static Topic> {
    let text = text.to_lowercase();
    let touches =
        |topic: &&Topic| text.contains(topic.name) || topic.cues.iter().any(|word| text.contains(word));
    TOPICS.iter().filter(touches).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<&'static str> {
        found_in(text).iter().map(|topic| topic.name).collect()
    }

    #[test]
    fn topics_are_read_from_anybodys_words() {
        assert_eq!(
            names("Unsourced numbers again, and too much hype."),
            ["unsourced claims", "tired phrases"]
        );
        assert_eq!(names("“forever” binds for ever."), ["lasting promises"]);
        assert!(names("evidence-calibration and strategy-stakes").is_empty());
    }
}
