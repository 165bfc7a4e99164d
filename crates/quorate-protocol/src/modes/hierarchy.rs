//! Hierarchy: a tree that reports upwards. A node is asked as soon as all its children have ended, a rule makes of its
//! answer and theirs what it passes up, and what touches a lock is not passed (SEMANTICS H1 to H3).

mod outcome;

use serde_json::json;

use super::assembly::{Ask, Book, Candidate, Case, Ending, Mode, Text, Want};
use crate::answers::advice::Advice;
use crate::assembly::{Rule, Setup};
use crate::rules::{self, escalate_on_severity};
use crate::{Apply, Json, Name, Part, PartKind};

/// The step of all questions, and what stands before a member in the id of its invocation.
const NODE: &str = "node";

const LEAF: &str = "You assess the request from where you stand, and report upwards. Say how grave it is, what concerns \
                    you, on what evidence, and what should be done.";
const PARENT: &str = "You assess the request from where you stand, with what those who report to you have passed up. Say \
                      how grave it is, what concerns you, on what evidence, and what should be done. You may raise what \
                      they report; you cannot make it go away.";

/// What a rule of a node looks at.
pub(crate) struct Branch {
    /// The node's own answer, where it has one.
    pub(crate) own: Option<Advice>,
    /// What its children have passed up, in roster order; those who passed up nothing are not among them.
    pub(crate) children: Vec<Child>,
}

/// What a child has passed up.
pub(crate) struct Child {
    pub(crate) member: Name,
    pub(crate) advice: Advice,
}

/// What a rule makes of a branch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rolled {
    pub(crate) advice: Advice,
    /// The children that it is made of.
    pub(crate) from: Vec<Name>,
}

/// All evidence in order, each piece once.
pub(crate) fn union<'a>(all: impl Iterator<Item = &'a Advice>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    let mut union = Vec::new();
    for piece in all.flat_map(|one| &one.evidence) {
        if seen.insert(piece.as_str()) {
            union.push(piece.clone());
        }
    }
    union
}

/// A node of the tree.
struct Node {
    children: Vec<usize>,
    /// How many children have not ended.
    pending: usize,
    own: Option<Advice>,
    rolled: Option<Rolled>,
    /// The place of the rule that made it; `None` is the node's own answer, or the escalation of H3.
    rule: Option<usize>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    /// It passes something up.
    Passed,
    /// It has nothing to pass up.
    Silent,
    /// A lock keeps it from passing anything up.
    Refused,
}

/// The mode's state.
pub(super) struct Hierarchy {
    nodes: Vec<Node>,
    parents: Vec<Option<usize>>,
}

impl Hierarchy {
    pub(super) fn new(setup: &Setup) -> Self {
        let seats: std::collections::BTreeMap<&str, usize> =
            setup.members.iter().enumerate().map(|(seat, member)| (&*member.id, seat)).collect();
        let parents: Vec<Option<usize>> = setup
            .members
            .iter()
            .map(|member| member.parent.as_deref().and_then(|parent| seats.get(parent).copied()))
            .collect();
        let node = || Node {
            children: Vec::new(),
            pending: 0,
            own: None,
            rolled: None,
            rule: None,
            state: State::Waiting,
        };
        let mut nodes: Vec<Node> = setup.members.iter().map(|_| node()).collect();
        for (seat, parent) in parents.iter().enumerate() {
            if let Some(parent) = parent {
                nodes[*parent].children.push(seat);
                nodes[*parent].pending += 1;
            }
        }
        Hierarchy { nodes, parents }
    }

    fn ask(&self, case: &Case, seat: usize) -> Want {
        let member = case.member(seat);
        let leaf = self.nodes[seat].children.is_empty();
        let text = || Json::from(outcome::children(self, case, seat)).to_string();
        let parts = (!leaf).then(|| Part::new(PartKind::ChildrenOutputs, "", text()));
        Want::Ask(Ask {
            id: id(&member.id),
            step: NODE.into(),
            seat,
            parts: parts.into_iter().collect(),
            task: if leaf { LEAF } else { PARENT }.into(),
            marks: vec![("parent", json!(member.parent))],
        })
    }

    fn branch(&self, case: &Case, seat: usize) -> Branch {
        let child = |seat: &usize| {
            let node = &self.nodes[*seat];
            let rolled = node.rolled.as_ref().filter(|_| node.state == State::Passed)?;
            Some(Child { member: case.member(*seat).id.clone(), advice: rolled.advice.clone() })
        };
        let node = &self.nodes[seat];
        Branch { own: node.own.clone(), children: node.children.iter().filter_map(child).collect() }
    }

    /// H2: the first matching rule makes of a branch what is passed up; none, and it is the node's own answer.
    fn roll(&mut self, case: &Case, book: &mut Book, seat: usize, from: usize) -> Vec<Want> {
        let branch = self.branch(case, seat);
        let member = &case.member(seat).id;
        for (at, rule) in case.setup.rules.iter().enumerate().skip(from) {
            if !rule.concerns(member) || branch.children.is_empty() {
                continue;
            }
            match rules::built_in(&rule.kind) {
                Some(logic) => {
                    if let Some(rolled) = logic.roll.and_then(|roll| roll(rule, &branch)) {
                        return self.rolled(case, book, seat, Some(at), Some(rolled));
                    }
                }
                None => {
                    let ticket = format!("{at}/{member}").into();
                    let input = outcome::input(rule, &branch, member);
                    return vec![Want::Apply(Apply { ticket, kind: rule.kind.clone(), input })];
                }
            }
        }
        let rolled = match branch.own.clone() {
            Some(advice) => Some(Rolled { advice, from: Vec::new() }),
            // H3: a node that failed must not hide what its children say.
            None => escalate_on_severity::roll(&outcome::unwritten(), &branch),
        };
        self.rolled(case, book, seat, None, rolled)
    }

    /// A node has what it would pass up: it is held against the locks.
    fn rolled(
        &mut self,
        case: &Case,
        book: &mut Book,
        seat: usize,
        rule: Option<usize>,
        rolled: Option<Rolled>,
    ) -> Vec<Want> {
        let member = case.member(seat).id.clone();
        let mut wants = Vec::new();
        if let Some((rule, rolled)) = rule.map(|at| &case.setup.rules[at]).zip(rolled.as_ref()) {
            let also = json!({"node": &*member, "severity": rolled.advice.severity});
            wants.push(Want::Record(book.rule(rule, true, &rolled.from, also)));
        }
        let node = &mut self.nodes[seat];
        node.rule = rule;
        node.rolled = rolled;
        let Some(rolled) = &node.rolled else {
            node.state = State::Silent;
            wants.extend(self.ended(case, book, seat));
            return wants;
        };
        if node.own.is_none() {
            book.note(format!(
                "`{member}` gave no answer; what its children report is passed up all the same"
            ));
        }
        wants.push(Want::Check(candidate(&member, &rolled.advice)));
        wants
    }

    /// A node has ended: its parent may be next, or the run is over.
    fn ended(&mut self, case: &Case, book: &mut Book, seat: usize) -> Vec<Want> {
        match self.parents[seat] {
            None => vec![Want::End(outcome::ending(self, case, book, seat))],
            Some(parent) => {
                self.nodes[parent].pending -= 1;
                let ready = self.nodes[parent].pending == 0;
                ready.then(|| self.ask(case, parent)).into_iter().collect()
            }
        }
    }
}

/// What a node would pass up, text by text.
fn candidate(member: &Name, advice: &Advice) -> Candidate {
    let text = |what, text: &str| Text {
        member: Some(member.clone()),
        invocation: Some(id(member)),
        what,
        text: text.into(),
    };
    let mut texts = vec![text("concern", &advice.concern), text("suggestion", &advice.suggestion)];
    texts.extend(advice.evidence.iter().map(|piece| text("evidence", piece)));
    Candidate { name: id(member), texts }
}

/// The invocation of a node, and what it is called as a candidate.
fn id(member: &str) -> Name {
    format!("{NODE}/{member}").into()
}

impl Mode for Hierarchy {
    fn open(&mut self, case: &Case, _: &mut Book) -> Vec<Want> {
        let leaves = (0..self.nodes.len()).filter(|seat| self.nodes[*seat].children.is_empty());
        leaves.map(|seat| self.ask(case, seat)).collect()
    }

    fn store(&mut self, seat: usize, answer: Option<&Json>) {
        self.nodes[seat].own = answer.and_then(Advice::read);
    }

    fn heard(&mut self, case: &Case, book: &mut Book, seat: usize, answer: Option<&Json>) -> Vec<Want> {
        self.store(seat, answer);
        self.roll(case, book, seat, 0)
    }

    fn ruled(
        &mut self,
        case: &Case,
        book: &mut Book,
        ticket: &str,
        result: Result<&Json, &str>,
    ) -> Vec<Want> {
        let found = ticket
            .split_once('/')
            .and_then(|(at, member)| Some((at.parse::<usize>().ok()?, *case.seats.get(member)?)));
        let Some((at, seat)) = found else { return Vec::new() };
        let rule: &Rule = &case.setup.rules[at];
        let failed = match result {
            Ok(Json::Null) => return self.roll(case, book, seat, at + 1),
            Ok(output) => match Advice::read(output) {
                Some(advice) => {
                    let from =
                        self.branch(case, seat).children.iter().map(|one| one.member.clone()).collect();
                    return self.rolled(case, book, seat, Some(at), Some(Rolled { advice, from }));
                }
                None => "what it gives is no assessment",
            },
            Err(why) => why,
        };
        // The children's gravest must get through, whatever is wrong with the rule.
        book.note(format!("rule `{}` could not be applied: {failed}", rule.id));
        let escalated = escalate_on_severity::roll(&outcome::unwritten(), &self.branch(case, seat));
        self.rolled(case, book, seat, None, escalated)
    }

    fn checked(&mut self, case: &Case, book: &mut Book, candidate: &Name, clean: bool) -> Vec<Want> {
        let member = candidate.strip_prefix(NODE).and_then(|rest| rest.strip_prefix('/'));
        let Some(seat) = member.and_then(|member| case.seats.get(member).copied()) else { return Vec::new() };
        self.nodes[seat].state = if clean { State::Passed } else { State::Refused };
        self.ended(case, book, seat)
    }

    /// Every node would have been asked, so each without an answer is missing.
    fn cut_short(&mut self, case: &Case, book: &mut Book, ending: Ending) -> Ending {
        let unheard = (0..self.nodes.len()).filter(|seat| self.nodes[*seat].own.is_none());
        unheard.for_each(|seat| book.missing(seat));
        outcome::unfinished(self, case, book, ending)
    }
}
