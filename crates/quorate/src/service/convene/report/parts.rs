//! The parts of an assembly's report.

use std::collections::BTreeMap;

use quorate_kernel::history::History;
use quorate_kernel::record;
use quorate_protocol::{Json, assembly};
use serde_json::{Map, json};

/// How grave it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Risk {
    /// The highest severity, 0 to 10; `None` where nobody gave any.
    pub severity: Option<u64>,
    /// `ok`, `watch`, `intervene` or `escalate`.
    pub level: Option<String>,
}

/// A piece of guidance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fragment {
    /// Whose words it is.
    pub member: String,
    pub text: String,
    /// How grave its author found it.
    pub severity: u64,
    /// How weighty it is.
    pub priority: u64,
    /// The rule that emitted it.
    pub rule: String,
    /// When it stops to hold, RFC 3339.
    pub expires: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// `pass`, `fail`, `refused` or `incomplete`.
    pub result: String,
    /// Yes by total, rounded.
    pub ratio: f64,
    /// The weights that say yes.
    pub yes: f64,
    /// The weights that say no.
    pub no: f64,
    /// The weights that abstain.
    pub abstain: f64,
    /// The weights without a vote.
    pub missing: f64,
    /// The weights that say yes, and what the ratio is of, exactly.
    pub exact: (String, String),
    /// The rule that decided; `None` where nothing was decided.
    pub rule: Option<String>,
    /// How a tie was broken.
    pub tie: Option<String>,
    pub text: Option<String>,
    /// Who decided alone, by a `terminal` rule, and why.
    pub contribution: Vec<Contribution>,
    /// Every voter, in roster order.
    pub votes: Vec<Vote>,
}

/// What a member has said who decided alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contribution {
    pub member: String,
    pub vote: String,
    pub rationale: String,
    pub evidence: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vote {
    pub member: String,
    pub weight: String,
    /// `yes`, `no`, `abstain`, `missing` or `cancelled`.
    pub vote: String,
}

/// A message that was delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub round: u64,
    pub from: String,
    /// To whom; `None` is everybody in reach.
    pub to: Option<Vec<String>>,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rollup {
    /// How grave it is, 0 to 10.
    pub severity: u64,
    /// What it is about.
    pub concern: String,
    /// What it rests on.
    pub evidence: Vec<String>,
    pub suggestion: String,
}

/// A node of a hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub member: String,
    /// To whom it reports.
    pub parent: Option<String>,
    /// `passed`, `passed_up` (it gave nothing itself), `silent`, `refused` or `not_asked`.
    pub status: String,
    /// The rule that made what it passes up; `None` is its own answer.
    pub rule: Option<String>,
    /// The children that it is made of.
    pub from: Vec<String>,
    /// What it passes up.
    pub output: Option<Rollup>,
}

/// A member and everything that it was asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    pub id: String,
    /// What people call the role.
    pub role: String,
    /// Advisory: the phase that it is asked in.
    pub phase: Option<String>,
    /// Voting: the classes that it votes on; `None` is all.
    pub classes: Option<Vec<String>>,
    /// Hierarchy: to whom it reports.
    pub parent: Option<String>,
    /// How its last question ended; `not_asked` where there was none.
    pub status: String,
    /// All of them, in order.
    pub consultations: Vec<Consultation>,
}

/// A question to a member, and how it ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Consultation {
    pub invocation: String,
    /// `answered`, `timed_out`, `failed`, `schema_failed`, `over_budget`, `cancelled` or `late`.
    pub status: String,
    /// The answer, as given.
    pub answer: Option<Map<String, Json>>,
    /// Why there is none.
    pub message: Option<String>,
    pub executor: String,
    /// How long it took, in milliseconds.
    pub ms: u64,
}

/// A rule that was applied.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    pub id: String,
    pub kind: String,
    /// Whether it did anything.
    pub fired: bool,
    /// Whose words made it.
    pub members: Vec<String>,
    /// The node that it was applied at, in a hierarchy.
    pub node: Option<String>,
    /// Advisory: how many fragments it emitted.
    pub emitted: Option<u64>,
    /// Voting: `pass` or `fail`.
    pub decides: Option<String>,
    /// Voting: whether it was asked only when missing votes counted as no.
    pub missing_as_no: bool,
}

/// Something that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// `assembly_overlay_lock_violation`, `lock_unchecked` or `out_of_reach`.
    pub code: String,
    pub candidate: String,
    /// Whose words; `None` where they are the program's.
    pub member: Option<String>,
    /// What was checked: `fragment`, `decision`, `rationale`, `message`, `concern`, `evidence`, `suggestion`.
    pub what: Option<String>,
    pub locked: Option<String>,
    /// Which document of the matcher hit it.
    pub document: Option<String>,
    pub excerpt: Option<String>,
    /// Whom a message did not reach.
    pub to: Vec<String>,
    /// Why it could not be checked.
    pub why: Option<String>,
}

fn text(value: &Json, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(str::to_owned)
}

fn texts(value: &Json, key: &str) -> Vec<String> {
    let items = value.get(key).and_then(Json::as_array).into_iter().flatten();
    items.filter_map(Json::as_str).map(str::to_owned).collect()
}

impl Risk {
    pub(super) fn read(value: &Json) -> Option<Risk> {
        let risk = Risk { severity: value.get("severity")?.as_u64(), level: text(value, "level") };
        risk.severity.is_some().then_some(risk)
    }

    pub(super) fn json(&self) -> Json {
        json!({"severity": self.severity, "level": self.level})
    }
}

impl Fragment {
    pub(super) fn read(value: &Json) -> Option<Fragment> {
        Some(Fragment {
            member: text(value, "member")?,
            text: text(value, "text")?,
            severity: value.get("severity")?.as_u64()?,
            priority: value.get("priority")?.as_u64()?,
            rule: text(value, "rule")?,
            expires: text(value, "expires")?,
        })
    }

    pub(super) fn json(&self) -> Json {
        json!({
            "member": self.member, "text": self.text, "severity": self.severity, "priority": self.priority,
            "rule": self.rule, "expires": self.expires,
        })
    }
}

impl Decision {
    pub(super) fn read(value: &Json) -> Option<Decision> {
        let number = |key: &str| value.get(key)?.as_f64();
        let votes = value.get("votes").and_then(Json::as_array).into_iter().flatten();
        let vote = |one: &Json| {
            Some(Vote {
                member: text(one, "member")?,
                weight: text(one, "weight")?,
                vote: text(one, "vote")?,
            })
        };
        let said = value.get("contribution").and_then(Json::as_array).into_iter().flatten();
        let spoke = |one: &Json| {
            Some(Contribution {
                member: text(one, "member")?,
                vote: text(one, "vote")?,
                rationale: text(one, "rationale")?,
                evidence: texts(one, "evidence"),
            })
        };
        Some(Decision {
            result: text(value, "result")?,
            ratio: number("ratio")?,
            yes: number("yes")?,
            no: number("no")?,
            abstain: number("abstain")?,
            missing: number("missing")?,
            exact: (text(&value["exact"], "yes")?, text(&value["exact"], "total")?),
            rule: text(value, "rule"),
            tie: text(value, "tie"),
            text: text(value, "text"),
            contribution: said.filter_map(spoke).collect(),
            votes: votes.filter_map(vote).collect(),
        })
    }

    pub(super) fn json(&self) -> Json {
        let vote = |one: &Vote| json!({"member": one.member, "weight": one.weight, "vote": one.vote});
        let mut json = json!({
            "result": self.result, "ratio": self.ratio, "yes": self.yes, "no": self.no,
            "abstain": self.abstain, "missing": self.missing, "rule": self.rule,
            "exact": {"yes": self.exact.0, "total": self.exact.1},
            "votes": self.votes.iter().map(vote).collect::<Vec<_>>(),
        });
        if let Some(tie) = &self.tie {
            json["tie"] = json!(tie);
        }
        if let Some(text) = &self.text {
            json["text"] = json!(text);
        }
        if !self.contribution.is_empty() {
            let said = |one: &Contribution| json!({"member": one.member, "vote": one.vote, "rationale": one.rationale, "evidence": one.evidence});
            json["contribution"] = self.contribution.iter().map(said).collect();
        }
        json
    }
}

impl Message {
    pub(super) fn read(value: &Json) -> Option<Message> {
        let to = value.get("to")?;
        Some(Message {
            round: value.get("round")?.as_u64()?,
            from: text(value, "from")?,
            to: to.is_array().then(|| texts(value, "to")),
            text: text(value, "text")?,
        })
    }

    pub(super) fn json(&self) -> Json {
        let to = self.to.as_ref().map_or_else(|| json!("*"), |ids| json!(ids));
        json!({"round": self.round, "from": self.from, "to": to, "text": self.text})
    }
}

impl Rollup {
    pub(super) fn read(value: &Json) -> Option<Rollup> {
        Some(Rollup {
            severity: value.get("severity")?.as_u64()?,
            concern: text(value, "concern")?,
            evidence: texts(value, "evidence"),
            suggestion: text(value, "suggestion")?,
        })
    }

    pub(super) fn json(&self) -> Json {
        json!({
            "severity": self.severity, "concern": self.concern, "evidence": self.evidence,
            "suggestion": self.suggestion,
        })
    }
}

impl Node {
    pub(super) fn read(value: &Json) -> Option<Node> {
        Some(Node {
            member: text(value, "member")?,
            parent: text(value, "parent"),
            status: text(value, "status")?,
            rule: text(value, "rule"),
            from: texts(value, "from"),
            output: value.get("output").and_then(Rollup::read),
        })
    }

    pub(super) fn json(&self) -> Json {
        json!({
            "member": self.member, "parent": self.parent, "status": self.status, "rule": self.rule,
            "from": self.from, "output": self.output.as_ref().map(Rollup::json),
        })
    }
}

impl Member {
    /// All members of a roster, with what their consultations say.
    pub(super) fn all(roster: &[assembly::Member], history: &History) -> Vec<Member> {
        let mut by_member: BTreeMap<&str, Vec<Consultation>> = BTreeMap::new();
        for data in history.consultations() {
            by_member.entry(&data.member).or_default().push(Consultation::of(data));
        }
        let of = |one: &assembly::Member| Member::of(one, by_member.remove(&*one.id).unwrap_or_default());
        roster.iter().map(of).collect()
    }

    fn of(member: &assembly::Member, consulted: Vec<Consultation>) -> Member {
        let status = consulted.last().map_or_else(|| "not_asked".to_owned(), |last| last.status.clone());
        Member {
            id: member.id.to_string(),
            role: member.role.clone(),
            phase: member.phase.clone(),
            classes: member.vote_class.clone(),
            parent: member.parent.as_ref().map(ToString::to_string),
            status,
            consultations: consulted,
        }
    }

    pub fn answer(&self) -> Option<&Map<String, Json>> {
        self.consultations.iter().rev().find_map(|one| one.answer.as_ref())
    }

    pub(super) fn json(&self) -> Json {
        let mut json =
            json!({"id": self.id, "role": self.role, "status": self.status, "answer": self.answer()});
        if let Some(message) = self.consultations.last().and_then(|one| one.message.as_ref()) {
            json["message"] = json!(message);
        }
        if self.consultations.len() > 1 {
            json["consultations"] = self.consultations.iter().map(Consultation::json).collect();
        }
        json
    }
}

impl Consultation {
    fn of(ended: &record::Consultation) -> Consultation {
        Consultation {
            invocation: ended.invocation.to_string(),
            status: ended.status.as_str().to_owned(),
            answer: ended.answer.as_ref().and_then(Json::as_object).cloned(),
            message: ended.text.clone(),
            executor: ended.executor.clone(),
            ms: ended.spent.ms.unwrap_or_default(),
        }
    }

    fn json(&self) -> Json {
        json!({
            "invocation": self.invocation, "status": self.status, "answer": self.answer,
            "executor": self.executor, "ms": self.ms,
        })
    }
}

impl Rule {
    pub(super) fn read(value: &Json) -> Option<Rule> {
        Some(Rule {
            id: text(value, "id")?,
            kind: text(value, "kind")?,
            fired: value.get("fired")?.as_bool()?,
            members: texts(value, "members"),
            node: text(value, "node"),
            emitted: value.get("emitted").and_then(Json::as_u64),
            decides: text(value, "decides"),
            missing_as_no: value.get("missingAsNo") == Some(&json!(true)),
        })
    }

    pub(super) fn json(&self) -> Json {
        let mut json =
            json!({"id": self.id, "kind": self.kind, "fired": self.fired, "members": self.members});
        if let Some(node) = &self.node {
            json["node"] = json!(node);
        }
        json
    }
}

impl Violation {
    pub(super) fn read(data: &Map<String, Json>) -> Violation {
        let value = Json::Object(data.clone());
        Violation {
            code: text(&value, "code").unwrap_or_default(),
            candidate: text(&value, "candidate").unwrap_or_default(),
            member: text(&value, "member"),
            what: text(&value, "what"),
            locked: text(&value, "trait"),
            document: text(&value, "layer"),
            excerpt: text(&value, "excerpt"),
            to: texts(&value, "to"),
            why: text(&value, "why"),
        }
    }

    pub(super) fn json(&self) -> Json {
        json!({
            "code": self.code, "candidate": self.candidate, "member": self.member, "what": self.what,
            "trait": self.locked, "layer": self.document, "excerpt": self.excerpt, "to": self.to,
        })
    }
}
