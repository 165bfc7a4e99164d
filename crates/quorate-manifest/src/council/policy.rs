//! The verdict policy of a council as written: a name or a table (C14). The built-in tables are in `policy/`.
//! `quorate_protocol::policy` decides which row holds.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

use quorate_diagnostics::Place;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;

use super::Deliberator;
use crate::decimal::Decimal;
use crate::tree::reader::meant_or;
use crate::tree::{Field, Fields, Kind, from_node, yaml};

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
    fn named(word: &str) -> Option<VerdictPolicy> {
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

/// A policy in a file.
pub(super) struct WrittenPolicy {
    pub(super) policy: Policy,
    pub(super) key: Place,
    /// The place of each row of a table.
    pub(super) rows: Vec<Place>,
}

/// Reads `policy`. `ids` has the deliberators' ids.
pub(super) fn read(field: &Field<'_>, ids: &[&str]) -> Option<WrittenPolicy> {
    match field.kind() {
        Kind::Str(word) => {
            let policy = name(field, word)?.into();
            Some(WrittenPolicy { policy, key: field.key_place(), rows: Vec::new() })
        }
        Kind::Seq(_) => table(field, ids),
        other => {
            let message = format!("`{}` is {}", field.path(), other.name());
            field.reject(message, "write lenient, strict, or rows such as `- {if: {block: 1}, then: REVISE}`")
        }
    }
}

/// Reads the name of a policy.
pub(super) fn name(field: &Field<'_>, word: &str) -> Option<VerdictPolicy> {
    VerdictPolicy::named(word).or_else(|| {
        let known = ["lenient", "seed", "strict"];
        let help =
            meant_or(word, &known, || "the policies are `lenient` (or `seed`) and `strict`".to_owned());
        field.reject(format!("unknown verdict policy `{word}`"), help)
    })
}

fn table(field: &Field<'_>, ids: &[&str]) -> Option<WrittenPolicy> {
    let items = field.list()?;
    let read: Vec<Option<Row>> = items.iter().map(|item| row(item, ids)).collect();
    let rows = read.into_iter().collect::<Option<Vec<Row>>>()?;
    if !rows.last().is_some_and(|last| last.condition.is_empty()) {
        let message = "the last row of a policy has no `if`, so that every case has a verdict";
        return items.last().unwrap_or(field).reject(message, "add a last row, such as `- {then: SHIP}`");
    }
    let policy = Policy::Own(OwnPolicy { rows, weights: BTreeMap::new() });
    Some(WrittenPolicy { policy, key: field.key_place(), rows: items.iter().map(Field::place).collect() })
}

fn row(item: &Field<'_>, ids: &[&str]) -> Option<Row> {
    let mut fields = item.fields()?;
    let condition = fields.read("if", |field| condition(field, ids)).unwrap_or_default();
    let then = verdict(&mut fields, "then");
    let or = fields.read("or", |field| {
        let mut fields = field.fields()?;
        let (adjudicator, then) = (verdict(&mut fields, "adjudicator"), verdict(&mut fields, "then"));
        fields.finish();
        Some(Exception { adjudicator: adjudicator?, then: then? })
    });
    fields.finish();
    Some(Row { condition, then: then?, or })
}

fn condition(field: &Field<'_>, ids: &[&str]) -> Option<Condition> {
    let mut fields = field.fields()?;
    let count = |field: &Field<'_>| field.integer(1, 1000).and_then(|count| usize::try_from(count).ok());
    let by = |field: &Field<'_>| members(field, ids);
    let condition = Condition {
        block: fields.read("block", count),
        irreducible: fields.read("irreducible", count),
        reducible: fields.read("reducible", count),
        says_irreducible: fields.read("says_irreducible", count),
        block_weight: fields.read("block_weight", |field| weight(field, field.number()?)),
        block_by: fields.read("block_by", by).unwrap_or_default(),
        irreducible_by: fields.read("irreducible_by", by).unwrap_or_default(),
        adjudicator: fields.read("adjudicator", read_verdict),
    };
    fields.finish();
    Some(condition)
}

/// Reads a list of deliberators' ids.
fn members(field: &Field<'_>, ids: &[&str]) -> Option<Vec<Arc<str>>> {
    let items = field.list()?;
    if items.is_empty() {
        return field
            .reject(format!("`{}` names no deliberator", field.path()), "name one, or remove the key");
    }
    let member = |item: &Field<'_>| {
        let id = item.text()?;
        let help = || meant_or(id, ids, || format!("the deliberators are: {}", ids.join(", ")));
        let known = ids.contains(&id).then(|| id.into());
        known.or_else(|| item.reject(format!("`{id}` is not a deliberator of this council"), help()))
    };
    Some(items.iter().filter_map(member).collect())
}

fn verdict(fields: &mut Fields<'_>, key: &'static str) -> Option<Verdict> {
    fields.required(key, "SHIP, REVISE or HOLD").and_then(|field| read_verdict(&field))
}

fn read_verdict(field: &Field<'_>) -> Option<Verdict> {
    let word = field.text()?;
    let known = Verdict::parse(word).filter(|verdict| *verdict != Verdict::Incomplete);
    known.or_else(|| field.reject(format!("`{word}` is not a verdict"), "write SHIP, REVISE or HOLD"))
}

/// The largest weight that a policy counts.
const MAX_WEIGHT: f64 = 1_000_000.0;

/// Reads a weight that a policy counts. `field` has it.
pub(super) fn weight(field: &Field<'_>, value: f64) -> Option<Number> {
    let usable = |number: &Number| number.to_string().parse::<Decimal>().is_ok();
    number(value).filter(|number| (0.0..=MAX_WEIGHT).contains(&value) && usable(number)).or_else(|| {
        let message = format!("a policy cannot count the weight {value:?}");
        field.reject(message, "write a number from 0 to 1000000")
    })
}

/// The number in the form of records, where 2.0 is 2.
fn number(value: f64) -> Option<Number> {
    value.to_string().parse().ok()
}
