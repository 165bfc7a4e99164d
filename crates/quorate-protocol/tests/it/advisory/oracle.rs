//! The oracle: what rules make of advice, said slowly (A3, A4, A6). It knows nothing of the protocol.

use std::collections::BTreeSet;

/// An adviser's answer.
#[derive(Debug, Clone)]
pub(crate) struct Advice {
    pub(crate) severity: u8,
    pub(crate) concern: String,
    pub(crate) evidence: usize,
    pub(crate) suggestion: String,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Terminal {
        trigger: Option<u8>,
        priority: Option<u8>,
    },
    Priority {
        words: Words,
        priority: Option<u8>,
        ends: bool,
    },
    Aggregate {
        least: Option<u8>,
        most: Option<u8>,
        top: Option<usize>,
        priority: Option<u8>,
        base: Option<u8>,
        ends: bool,
    },
}

/// What a `priority` rule looks for.
#[derive(Debug, Clone)]
pub(crate) enum Words {
    Sycophancy,
    /// A kind without words of its own: `over-promise`.
    Kind,
    /// The same kind with words.
    Listed,
}

impl Words {
    pub(crate) fn all(&self) -> &'static [&'static str] {
        match self {
            Words::Sycophancy => &["sycoph", "pleas", "agree", "validat"],
            Words::Kind => &["over promise"],
            Words::Listed => &["sure", "never fails"],
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) kind: Kind,
    pub(crate) of: Option<BTreeSet<usize>>,
}

/// A fragment: index, priority, the place of its rule.
pub(crate) type Fragment = (usize, u8, usize);

/// The fragments before any lock is checked, in order, and whether a rule ended it.
pub(crate) fn fragments(says: &[Option<Advice>], rules: &[Rule]) -> (Vec<Fragment>, bool) {
    let mut fragments: Vec<Fragment> = Vec::new();
    for (at, rule) in rules.iter().enumerate() {
        let mine = |index: &usize| rule.of.as_ref().is_none_or(|of| of.contains(index));
        let heard: Vec<(usize, &Advice)> =
            (0..says.len()).filter(mine).filter_map(|index| Some((index, says[index].as_ref()?))).collect();
        let speaks = |fragments: &Vec<Fragment>, index: usize, says: &Advice| {
            !says.suggestion.is_empty() && !fragments.iter().any(|fragment| fragment.0 == index)
        };
        let before = fragments.len();
        let ends = match &rule.kind {
            Kind::Terminal { trigger, priority } => {
                let firing: Vec<&(usize, &Advice)> =
                    heard.iter().filter(|(_, says)| says.severity >= trigger.unwrap_or(9)).collect();
                let Some(gravest) = firing.iter().map(|(_, says)| says.severity).max() else { continue };
                let (index, says) =
                    firing.iter().find(|(_, says)| says.severity == gravest).expect("the gravest");
                fragments.clear();
                if !says.suggestion.is_empty() {
                    fragments.push((*index, priority.unwrap_or(100), at));
                }
                return (fragments, true);
            }
            Kind::Priority { words, priority, ends } => {
                for (index, says) in heard {
                    let concern = says.concern.to_lowercase();
                    let fires = words.all().iter().any(|word| concern.contains(word));
                    if fires && speaks(&fragments, index, says) {
                        fragments.push((index, priority.unwrap_or(80), at));
                    }
                }
                *ends
            }
            Kind::Aggregate { least, most, top, priority, base, ends } => {
                let within = |says: &Advice| {
                    says.severity >= least.unwrap_or(0) && says.severity <= most.unwrap_or(10)
                };
                let mut within: Vec<(usize, &Advice)> = heard
                    .into_iter()
                    .filter(|(index, says)| within(says) && speaks(&fragments, *index, says))
                    .collect();
                within.sort_by_key(|(index, says)| (10 - says.severity, 100 - says.evidence, *index));
                for (k, (index, _)) in within.into_iter().take(top.unwrap_or(usize::MAX)).enumerate() {
                    let counted = i64::from(base.unwrap_or(50)) - i64::try_from(k).unwrap_or(0);
                    let counted = u8::try_from(counted.clamp(0, 100)).unwrap_or(0);
                    fragments.push((index, priority.unwrap_or(counted), at));
                }
                *ends
            }
        };
        if ends && fragments.len() > before {
            return (fragments, true);
        }
    }
    (fragments, false)
}
