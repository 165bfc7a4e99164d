//! Tiers: which artifacts a sweep reviews (C6). It reviews all of tier 1, none of tier 2, and one in five of tier 3.

use quorate_diagnostics::{Body, codes};
use sha2::{Digest, Sha256};

use super::Watch;
use super::files::{CouncilFiles, Glob};
use crate::tree::{Field, Fields, Kind};

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

/// Reads `tier_classifier`: what decides on tiers, and the tier of artifacts that match no rule.
pub(super) fn classifier(field: Option<Field<'_>>) -> (Classifier, Tier) {
    let default = (Classifier::Rules, Tier::Two);
    let Some(mut fields) = field.and_then(|field| field.fields()) else { return default };
    let classifier = fields.read("type", |field| {
        let word = field.text()?;
        let message = || format!("unknown tier classifier `{word}`");
        Classifier::parse(word).or_else(|| field.reject(message(), "it is `rules`, `model` or `hybrid`"))
    });
    let classifier = classifier.unwrap_or(Classifier::Rules);
    let written = fields.optional("default_tier");
    if let Some(field) = written.as_ref().filter(|_| classifier != Classifier::Rules) {
        let message = format!("`default_tier` has no effect with `type: {}`", classifier.as_str());
        let help = "remove it: where no rule decides, a model does, and without its answer tier 1 counts";
        field.warn(codes::FIELD_WITHOUT_EFFECT, Body::new(message).help(help));
    }
    let tier = written.and_then(|field| tier(&field)).unwrap_or(Tier::Two);
    fields.finish();
    (classifier, tier)
}

fn tier(field: &Field<'_>) -> Option<Tier> {
    field.integer(1, 3).and_then(|number| u64::try_from(number).ok()).and_then(Tier::from_number)
}

/// Reads `tier_rules`: the rules, or the path of a file that has them at its top level or below `tier_rules`.
pub(super) fn rules(field: Option<Field<'_>>, files: &mut CouncilFiles<'_>) -> Vec<Rule> {
    let Some(field) = field else { return Vec::new() };
    if !matches!(field.kind(), Kind::Str(_)) {
        return field.fields().map(rules_by_tier).unwrap_or_default();
    }
    let read_file = |mut fields: Fields<'_>| match fields.optional("tier_rules") {
        None => rules_by_tier(fields),
        Some(field) => {
            fields.finish();
            field.fields().map(rules_by_tier).unwrap_or_default()
        }
    };
    files.tier_rules(&field, read_file).unwrap_or_default()
}

fn rules_by_tier(mut fields: Fields<'_>) -> Vec<Rule> {
    let keys = ["tier_1", "tier_2", "tier_3"];
    let mut rules = Vec::new();
    for (key, tier) in keys.into_iter().zip(Tier::ALL) {
        if let Some(field) = fields.optional(key) {
            rules.extend(rules_of(&field, tier));
        }
    }
    fields.finish();
    rules
}

/// Reads one tier's rules: a mapping from artifact types to globs, or a list of globs, whose texts give the types.
fn rules_of(field: &Field<'_>, tier: Tier) -> Vec<Rule> {
    match field.kind() {
        Kind::Seq(_) => {
            let rule = |glob: Glob| Rule { tier, artifact_type: derived_type(glob.as_str()), glob };
            globs(field).into_iter().map(rule).collect()
        }
        Kind::Map(_) => {
            let rules = |(artifact_type, field): (&str, Field<'_>)| {
                let rule = |glob| Rule { tier, artifact_type: artifact_type.to_owned(), glob };
                globs(&field).into_iter().map(rule).collect::<Vec<_>>()
            };
            field.entries().unwrap_or_default().into_iter().flat_map(rules).collect()
        }
        other => {
            let message = format!("`{}` is {}", field.path(), other.name());
            let help = "write a list of globs, or a mapping from artifact types to such lists";
            field.reject(message, help).unwrap_or_default()
        }
    }
}

fn globs(field: &Field<'_>) -> Vec<Glob> {
    let items = field.list().unwrap_or_default();
    items.iter().filter_map(|item| item.non_blank_text()).map(Glob::new).collect()
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

/// Reads `watch`: the paths of a sweep, and the tiers that override the rules.
pub(super) fn watch(field: Option<Field<'_>>) -> (Watch, Vec<(Glob, Tier)>) {
    let Some(mut fields) = field.and_then(|field| field.fields()) else {
        return (Watch::default(), Vec::new());
    };
    let paths = fields.read("paths", Field::list).unwrap_or_default();
    let paths = paths.iter().filter_map(|item| item.non_blank_text()).map(str::to_owned).collect();
    let overrides = fields.read("tier_overrides", Field::entries).unwrap_or_default();
    let read = |(glob, field): (&str, Field<'_>)| Some((Glob::new(glob), tier(&field)?));
    let overrides = overrides.into_iter().filter_map(read).collect();
    fields.finish();
    (Watch { paths }, overrides)
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
