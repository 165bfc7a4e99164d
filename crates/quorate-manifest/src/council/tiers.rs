//! Tiers: which artifacts a sweep reviews (C6). It reviews all of tier 1, none of tier 2, and one in five of tier 3.

use quorate_diagnostics::{Body, codes};
use sha2::{Digest, Sha256};

use super::files::{CouncilFiles, Glob};
use crate::tree::Field;

/// The type of artifacts that match no rule.
pub const UNCLASSIFIED: &str = "unclassified";

/// A sweep reviews one in this many artifacts of tier 3.
const SAMPLE_RATE: u64 = 5;

/// How important an artifact is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// Every artifact is reviewed.
    One,
    /// No artifact is reviewed.
    Two,
    /// One in five is reviewed.
    Three,
}

impl Tier {
    /// In the order in which rules are tried.
    pub const ALL: [Tier; 3] = [Tier::One, Tier::Two, Tier::Three];

    /// 1, 2 or 3.
    pub const fn number(self) -> u8 {
        match self {
            Tier::One => 1,
            Tier::Two => 2,
            Tier::Three => 3,
        }
    }

    /// The inverse of [`Tier::number`].
    pub fn from_number(number: u64) -> Option<Tier> {
        Tier::ALL.into_iter().find(|tier| u64::from(tier.number()) == number)
    }
}

/// What decides on tiers: `tier_classifier.type`. An override of `watch.tier_overrides` decides before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Classifier {
    /// The rules; the default tier where none matches.
    #[default]
    Rules,
    /// The council's executor, which reads the text.
    Model,
    /// The rules; the council's executor where none matches.
    Hybrid,
}

words!(Classifier { Rules = "rules", Model = "model", Hybrid = "hybrid" });

/// Tier and type of an artifact, by its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classification {
    /// Where a model is to say it: the strictest tier, which counts until it does.
    pub tier: Tier,
    /// Whether a model that reads the text is to say the tier.
    pub asks_model: bool,
    /// Later reviews look up earlier verdicts by this type.
    pub artifact_type: String,
}

/// The rules of `tier_rules`, `tier_classifier` and `watch.tier_overrides`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TierRules {
    rules: Vec<Rule>,
    overrides: Vec<(Glob, Tier)>,
    default: Tier,
    classifier: Classifier,
}

/// A glob, and the tier and type of the artifacts that match it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) tier: Tier,
    pub(super) artifact_type: String,
    pub(super) glob: Glob,
}

impl Default for TierRules {
    fn default() -> Self {
        TierRules {
            rules: Vec::new(),
            overrides: Vec::new(),
            default: Tier::Two,
            classifier: Classifier::Rules,
        }
    }
}

impl TierRules {
    /// `rules` are in file order; rules of lower tiers are tried first.
    pub(super) fn new(
        mut rules: Vec<Rule>,
        overrides: Vec<(Glob, Tier)>,
        default: Tier,
        classifier: Classifier,
    ) -> Self {
        rules.sort_by_key(|rule| rule.tier);
        TierRules { rules, overrides, default, classifier }
    }

    /// Whether there can be artifacts whose tier a model is to say.
    pub fn may_ask_model(&self) -> bool {
        self.classifier != Classifier::Rules
    }

    /// The tier and type of an artifact. The path is relative to the council's directory, with `/`.
    ///
    /// A glob matches the file's name or the whole path. The first matching rule gives the type, and the tier unless a
    /// model gives it; the first matching override replaces the tier.
    pub fn classify(&self, relative_path: &str) -> Classification {
        let path = relative_path.strip_prefix("./").unwrap_or(relative_path);
        let name = path.rsplit('/').next().unwrap_or(path);
        let matches = |glob: &Glob| glob.matches(name) || glob.matches(path);
        let rule = self.rules.iter().find(|rule| matches(&rule.glob));
        let overridden = self.overrides.iter().find(|(glob, _)| matches(glob)).map(|(_, tier)| *tier);
        let by_rule = rule.map(|rule| rule.tier).filter(|_| self.classifier != Classifier::Model);
        let decided = match self.classifier {
            Classifier::Rules => Some(overridden.or(by_rule).unwrap_or(self.default)),
            Classifier::Model | Classifier::Hybrid => overridden.or(by_rule),
        };
        Classification {
            tier: decided.unwrap_or(Tier::One),
            asks_model: decided.is_none(),
            artifact_type: rule.map_or(UNCLASSIFIED, |rule| &rule.artifact_type).to_owned(),
        }
    }
}

/// Whether a sweep reviews an artifact of tier 3: deterministic by path and content, on every machine. The path is
/// relative to the council's directory, with `/`.
pub fn is_sampled(relative_path: &str, content_sha256_hex: &str) -> bool {
    let mut hash = Sha256::new();
    hash.update(relative_path.as_bytes());
    hash.update([0]);
    hash.update(content_sha256_hex.as_bytes());
    let digest: [u8; 32] = hash.finalize().into();
    let [a, b, c, d, e, f, g, h, ..] = digest;
    u64::from_be_bytes([a, b, c, d, e, f, g, h]) % SAMPLE_RATE == 0
}

/// Reads the tiers of a council that its schema has validated, as far as it is valid.
pub(super) fn read(root: &Field<'_>, files: &mut CouncilFiles<'_>) -> TierRules {
    let text = |path: &str| root.at(path).iter().find_map(Field::text);
    let classifier = text("tier_classifier.type").and_then(Classifier::parse).unwrap_or_default();
    let default = root.at("tier_classifier.default_tier").pop();
    if let Some(field) = default.as_ref().filter(|_| classifier != Classifier::Rules) {
        let message = format!("`default_tier` has no effect with `type: {}`", classifier.as_str());
        let help = "remove it: where no rule decides, a model does, and without its answer tier 1 counts";
        field.warn(codes::FIELD_WITHOUT_EFFECT, Body::new(message).help(help));
    }
    let rules = match root.get("tier_rules") {
        Some(field) if field.text().is_some() => files.tier_rules(&field, rules),
        Some(field) => rules(&field),
        None => Vec::new(),
    };
    let overrides = root.at("watch.tier_overrides").iter().flat_map(Field::entries).collect::<Vec<_>>();
    let overrides = overrides.iter().filter_map(|(glob, field)| Some((Glob::new(glob), tier(field)?)));
    let default = default.as_ref().and_then(tier).unwrap_or(Tier::Two);
    TierRules::new(rules, overrides.collect(), default, classifier)
}

fn tier(field: &Field<'_>) -> Option<Tier> {
    Tier::from_number(u64::try_from(field.node().integer()?).ok()?)
}

/// Reads tier rules: for each tier a mapping from artifact types to globs, or a list of globs, whose texts give the types.
fn rules(tiers: &Field<'_>) -> Vec<Rule> {
    let mut rules = Vec::new();
    for (key, tier) in ["tier_1", "tier_2", "tier_3"].iter().zip(Tier::ALL) {
        let Some(field) = tiers.get(key) else { continue };
        let rule = |artifact_type, glob| Rule { tier, artifact_type, glob: Glob::new(glob) };
        rules.extend(globs(&field).into_iter().map(|glob| rule(derived_type(glob), glob)));
        for (artifact_type, list) in field.entries() {
            rules.extend(globs(&list).into_iter().map(|glob| rule(artifact_type.to_owned(), glob)));
        }
    }
    rules
}

fn globs<'d>(list: &Field<'d>) -> Vec<&'d str> {
    list.items().iter().filter_map(Field::text).collect()
}

/// The artifact type of a glob in a plain list, as in the public tool: the stem without leading stars and underscores, or
/// `unknown`.
fn derived_type(glob: &str) -> String {
    let name = glob.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let stem = match name.rfind('.') {
        Some(dot) if dot > 0 && dot + 1 < name.len() => &name[..dot],
        _ => name,
    };
    match stem.trim_start_matches('*').trim_start_matches('_') {
        "" => "unknown".to_owned(),
        derived => derived.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(tier: Tier, artifact_type: &str, glob: &str) -> Rule {
        Rule { tier, artifact_type: artifact_type.to_owned(), glob: Glob::new(glob) }
    }

    fn rules() -> TierRules {
        by(Classifier::Rules)
    }

    fn by(classifier: Classifier) -> TierRules {
        TierRules::new(
            vec![
                rule(Tier::Three, "brief", "**/briefing*.md"),
                rule(Tier::Two, "infra", "infra/*"),
                rule(Tier::One, "linkedin_post", "*linkedin*"),
            ],
            vec![(Glob::new("keep/*"), Tier::One)],
            Tier::Three,
            classifier,
        )
    }

    #[track_caller]
    fn check(path: &str, tier: Tier, artifact_type: &str) {
        let expected = Classification { tier, asks_model: false, artifact_type: artifact_type.to_owned() };
        assert_eq!(rules().classify(path), expected, "{path}");
    }

    // C6
    #[test]
    fn tier_1_wins_over_2_and_that_over_3() {
        check("infra/linkedin.md", Tier::One, "linkedin_post");
        check("infra/briefing.md", Tier::Two, "infra");
        check("x/briefing-9.md", Tier::Three, "brief");
        check("./x/briefing-9.md", Tier::Three, "brief");
    }

    #[test]
    fn no_match_is_the_default_tier_and_no_type() {
        check("notes.md", Tier::Three, UNCLASSIFIED);
        assert_eq!(TierRules::default().classify("notes.md").tier, Tier::Two);
    }

    #[test]
    fn an_override_changes_the_tier_and_not_the_type() {
        check("keep/briefing.md", Tier::One, "brief");
        check("keep/notes.md", Tier::One, UNCLASSIFIED);
    }

    #[test]
    fn a_model_is_asked_where_nothing_that_a_person_wrote_decides() {
        for (classifier, path, tier, asks_model, artifact_type) in [
            (Classifier::Model, "infra/x.md", Tier::One, true, "infra"),
            (Classifier::Model, "notes.md", Tier::One, true, UNCLASSIFIED),
            (Classifier::Model, "keep/briefing.md", Tier::One, false, "brief"),
            (Classifier::Hybrid, "infra/x.md", Tier::Two, false, "infra"),
            (Classifier::Hybrid, "notes.md", Tier::One, true, UNCLASSIFIED),
            (Classifier::Hybrid, "keep/notes.md", Tier::One, false, UNCLASSIFIED),
        ] {
            let expected = Classification { tier, asks_model, artifact_type: artifact_type.to_owned() };
            assert_eq!(by(classifier).classify(path), expected, "{classifier:?} {path}");
        }
    }

    #[test]
    fn one_in_five_is_sampled_and_always_the_same() {
        let content = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
        let hits = (0..10_000).filter(|n| is_sampled(&format!("signals/{n}.json"), content)).count();
        assert!((1_850..=2_150).contains(&hits), "{hits}");
        // A change of these numbers changes which artifacts users' sweeps review.
        let first: Vec<u32> = (0..30).filter(|n| is_sampled(&format!("signals/{n}.json"), content)).collect();
        assert_eq!(first, [8, 9, 16, 20, 21, 23, 28, 29]);
    }
}

#[cfg(test)]
mod tier_rules_tests {
    use super::derived_type;

    #[test]
    fn a_flat_list_names_its_types() {
        for (glob, expected) in [
            ("*_substack_*.md", "substack_*"),
            ("*linkedin*", "linkedin*"),
            ("shared/learnings.md", "learnings"),
            ("drafts/**", "unknown"),
            ("*", "unknown"),
            ("*.md", "unknown"),
            (".hidden", ".hidden"),
            ("a/b/", "b"),
        ] {
            assert_eq!(derived_type(glob), expected, "{glob}");
        }
    }
}
