//! The verdict policy of a council as written: a name or a table (C14). The built-in tables are in `policy/`.
//! `quorate_protocol::policy` decides which row holds.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;

use super::Deliberator;
use crate::decimal::Decimal;
use crate::tree::reader::meant_or;
use crate::tree::{Field, from_node, yaml};

/// A council's verdict: SHIP, the text may be published; REVISE, it may be published after changes; HOLD, it must not be
/// published; INCOMPLETE, too few answers to decide. The variants are in the order of their strictness: INCOMPLETE is the
/// strictest, since it lets no text pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Verdict {
    Ship,
    Revise,
    Hold,
    Incomplete,
}

words!(Verdict { Ship = "SHIP", Revise = "REVISE", Hold = "HOLD", Incomplete = "INCOMPLETE" });

impl Verdict {
    /// The verdict that an adjudicator asks for, in any case; it cannot ask for INCOMPLETE.
    pub fn read(word: &str) -> Option<Verdict> {
        Verdict::parse(&word.trim().to_ascii_uppercase()).filter(|verdict| *verdict != Verdict::Incomplete)
    }
}

/// A built-in policy: `seed` is the policy of the published architecture, shown as `lenient`; `strict` is the policy of the
/// public tool, which is never milder.
// Comments on the words would make a `oneOf` of their `enum` in the schemas of MCP tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VerdictPolicy {
    #[serde(alias = "lenient")]
    Seed,
    Strict,
}

words!(VerdictPolicy { Seed = "seed", Strict = "strict" });

impl VerdictPolicy {
    /// The name for people.
    pub fn shown(self) -> &'static str {
        match self {
            VerdictPolicy::Seed => "lenient",
            VerdictPolicy::Strict => "strict",
        }
    }

    /// The policy that a user names.
    pub(super) fn named(word: &str) -> Option<VerdictPolicy> {
        Self::ALL.into_iter().find(|policy| [policy.as_str(), policy.shown()].contains(&word))
    }

    /// The rows of its table.
    pub fn rows(self) -> &'static [Row] {
        static SEED: LazyLock<Vec<Row>> = LazyLock::new(|| built_in(include_str!("policy/seed.yaml")));
        static STRICT: LazyLock<Vec<Row>> = LazyLock::new(|| built_in(include_str!("policy/strict.yaml")));
        match self {
            VerdictPolicy::Seed => &SEED,
            VerdictPolicy::Strict => &STRICT,
        }
    }
}

fn built_in(table: &str) -> Vec<Row> {
    let tree = yaml::parse(table).0.expect("an embedded table is YAML");
    from_node(&tree).expect("an embedded table is a list of rows")
}

/// What turns the deliberators' positions into a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Policy {
    Named(VerdictPolicy),
    Own(OwnPolicy),
}

/// A council's own table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnPolicy {
    /// From the top; the last one has no condition.
    pub rows: Vec<Row>,
    /// The deliberators' weights, if a row counts them; a member without an entry weighs 1.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub weights: BTreeMap<Arc<str>, Number>,
}

impl From<VerdictPolicy> for Policy {
    fn from(named: VerdictPolicy) -> Self {
        Policy::Named(named)
    }
}

impl Policy {
    pub fn rows(&self) -> &[Row] {
        match self {
            Policy::Named(named) => named.rows(),
            Policy::Own(own) => &own.rows,
        }
    }

    /// The name for people.
    pub fn shown(&self) -> &'static str {
        match self {
            Policy::Named(named) => named.shown(),
            Policy::Own(_) => "own",
        }
    }

    /// Whether the weights of deliberators change verdicts.
    pub(super) fn counts_weights(&self) -> bool {
        self.rows().iter().any(|row| row.condition.block_weight.is_some())
    }

    /// Adds the deliberators' weights to a table that counts them.
    pub(super) fn with_weights(mut self, deliberators: &[Deliberator]) -> Self {
        let is_weighted = self.counts_weights();
        if let Policy::Own(own) = &mut self
            && is_weighted
        {
            let weights = deliberators.iter().map(|member| (member.id.clone(), number(member.weight)));
            own.weights = weights.filter_map(|(id, weight)| Some((id, weight?))).collect();
        }
        self
    }
}

/// A row of a policy. The first row whose conditions hold decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The conditions, all of which must hold. The last row has none.
    #[serde(rename = "if", default, skip_serializing_if = "Condition::is_empty")]
    #[schemars(with = "Option<Condition>")]
    pub condition: Condition,
    /// The verdict.
    #[schemars(with = "String", extend("enum" = ["SHIP", "REVISE", "HOLD"]))]
    pub then: Verdict,
    /// Another verdict for one answer of the adjudicator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub or: Option<Exception>,
}

/// The row in one line of YAML.
impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let json = serde_json::to_string(self).map_err(|_| fmt::Error)?;
        f.write_str(&json.replace('"', "").replace(':', ": ").replace(',', ", "))
    }
}

/// The verdict of a row if the adjudicator asks for a given one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Exception {
    /// What the adjudicator asks for.
    #[schemars(with = "String", extend("enum" = ["SHIP", "REVISE", "HOLD"]))]
    pub adjudicator: Verdict,
    /// The verdict.
    #[schemars(with = "String", extend("enum" = ["SHIP", "REVISE", "HOLD"]))]
    pub then: Verdict,
}

/// The conditions of a row. Only `reducible` can stop holding when a deliberator objects more.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct Condition {
    /// At least this many deliberators block.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub block: Option<usize>,
    /// At least this many block and call the problem irreducible.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub irreducible: Option<usize>,
    /// At least this many block and do not call the problem irreducible.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub reducible: Option<usize>,
    /// At least this many call the problem irreducible, whether they block or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub says_irreducible: Option<usize>,
    /// The weights of those who block add up to at least this number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub block_weight: Option<Number>,
    /// One of these deliberators blocks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<String>>", extend("minItems" = 1))]
    pub block_by: Vec<Arc<str>>,
    /// One of these deliberators blocks and calls the problem irreducible.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<String>>", extend("minItems" = 1))]
    pub irreducible_by: Vec<Arc<str>>,
    /// The adjudicator asks for exactly this verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("enum" = ["SHIP", "REVISE", "HOLD", null]))]
    pub adjudicator: Option<Verdict>,
}

impl Condition {
    /// Whether it holds in every case.
    pub fn is_empty(&self) -> bool {
        *self == Condition::default()
    }
}

/// Refuses an unknown name of a policy.
pub(super) fn check_name(field: &Field<'_>) {
    let Some(word) = field.text().filter(|word| VerdictPolicy::named(word).is_none()) else { return };
    let known = ["lenient", "seed", "strict"];
    let help = meant_or(word, &known, || "the policies are `lenient` (or `seed`) and `strict`".to_owned());
    field.invalid_with(format!("unknown verdict policy `{word}`"), help);
}

/// Checks the rows of a table. `ids` has the deliberators' ids.
pub(super) fn check_rows(rows: &[Field<'_>], ids: &[&str]) {
    if let Some(last) =
        rows.last().filter(|last| last.at("if").iter().any(|field| !field.entries().is_empty()))
    {
        let message = "the last row of a policy has no `if`, so that every case has a verdict";
        last.invalid_with(message, "add a last row, such as `- {then: SHIP}`");
    }
    for row in rows {
        row.at("if.block_weight").iter().for_each(check_weight);
        for item in ["if.block_by.*", "if.irreducible_by.*"].iter().flat_map(|path| row.at(path)) {
            if let Some(id) = item.text().filter(|id| !ids.contains(id)) {
                let help = meant_or(id, ids, || format!("the deliberators are: {}", ids.join(", ")));
                item.invalid_with(format!("`{id}` is not a deliberator of this council"), help);
            }
        }
    }
}

/// The largest weight that a policy counts.
const MAX_WEIGHT: f64 = 1_000_000.0;

/// Refuses a weight that a policy cannot count.
pub(super) fn check_weight(field: &Field<'_>) {
    let Some(value) = field.node().number() else { return };
    let is_usable = |number: Number| number.to_string().parse::<Decimal>().is_ok();
    if !(0.0..=MAX_WEIGHT).contains(&value) || !number(value).is_some_and(is_usable) {
        let message = format!("a policy cannot count the weight {value:?}");
        field.invalid_with(message, "write a number from 0 to 1000000");
    }
}

/// The number in the form of records, where 2.0 is 2.
fn number(value: f64) -> Option<Number> {
    value.to_string().parse().ok()
}
