//! `extends`: from a manifest up to its root, and the merged tree on the way back (M5, M6, M10).

use std::sync::Arc;

use quorate_diagnostics::codes::{RefusalCode, WarningCode};
use quorate_diagnostics::{Body, Place, Report, codes};

use super::{Read, Round};
use crate::doctype::Doctype;
use crate::layer::Layer;
use crate::merge::{Row, merge};
use crate::tree::Node;
use crate::workspace::Scope;

/// The most ancestors that a manifest may have.
const ANCESTORS: usize = 8;

/// A chain that was resolved: the layers, root first, and what they make together.
#[derive(Debug)]
pub struct Chain {
    /// The layers, root first; the last is the manifest itself.
    pub layers: Vec<Arc<Layer>>,
    /// What they make together; each value knows its layer.
    pub merged: Node,
}

/// How a chain came out.
#[derive(Debug, Clone)]
pub struct Chained {
    /// The chain; `None` where a layer of it is refused.
    pub chain: Option<Arc<Chain>>,
    /// Whether the manifest stands alone though it names a parent.
    pub broken: Option<Break>,
    /// What is to be said of the chain, besides what each layer says of itself.
    pub report: Report,
    /// The layers that were read, the manifest itself first.
    pub read: Vec<Arc<Layer>>,
}

/// Why a manifest stands alone though it names a parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Break {
    /// Its parents lead back to it, or in a circle.
    Cycle,
    /// A parent is not there.
    Missing,
    /// There are too many ancestors.
    TooDeep,
}

/// What a doctype's chains go by.
pub(crate) struct Rules {
    pub(crate) doctype: Doctype,
    pub(crate) table: &'static [Row],
    pub(crate) cycle: WarningCode,
    pub(crate) missing: WarningCode,
    pub(crate) depth: WarningCode,
}

impl Chain {
    /// The manifest itself.
    pub fn leaf(&self) -> &Arc<Layer> {
        self.layers.last().expect("a chain has a layer")
    }

    /// The layer that a value comes from.
    pub fn layer_of(&self, node: &Node) -> &Arc<Layer> {
        &self.layers[usize::from(node.layer)]
    }

    /// The place of a value, in the file that it comes from.
    pub fn place(&self, node: &Node, path: impl Into<String>) -> Place {
        self.layer_of(node).place(node.span.clone(), path)
    }
}

impl Round<'_> {
    /// Resolves the chain of a manifest that was read, once.
    pub(crate) fn chain(&self, leaf: &Arc<Layer>, rules: &Rules) -> Chained {
        if let Some(chained) = self.chains.borrow().get(&leaf.spot)
            && chained.read.first().is_some_and(|read| Arc::ptr_eq(read, leaf))
        {
            return chained.clone();
        }
        let chained = self.resolve(leaf, rules);
        self.chains.borrow_mut().insert(leaf.spot.clone(), chained.clone());
        chained
    }

    fn resolve(&self, leaf: &Arc<Layer>, rules: &Rules) -> Chained {
        let mut report = Report::new();
        let mut read = vec![Arc::clone(leaf)];
        let broken = match self.walk(leaf, rules, &mut read, &mut report) {
            Ok(()) => None,
            Err(Stop::Broken(broken)) => Some(broken),
            Err(Stop::Refused) => return Chained { chain: None, broken: None, report, read },
        };
        if report.refused() || leaf.refused() {
            return Chained { chain: None, broken, report, read };
        }
        let chain = match (broken, read.get(1)) {
            (None, Some(parent)) => {
                self.chain(parent, rules).chain.map(|above| over(&above, leaf, rules.table))
            }
            _ => Some(alone(leaf)),
        };
        Chained { chain: chain.map(Arc::new), broken, report, read }
    }

    /// Reads every ancestor of a manifest into `read`.
    fn walk(
        &self,
        leaf: &Arc<Layer>,
        rules: &Rules,
        read: &mut Vec<Arc<Layer>>,
        report: &mut Report,
    ) -> Result<(), Stop> {
        let mut at = Arc::clone(leaf);
        while let Some(extends) = at.root.key("extends").and_then(Node::as_str) {
            if at.refused() {
                return Err(Stop::Refused);
            }
            let Ok(spot) = at.spot.above(extends) else {
                return Err(self.escape(leaf, &at, report));
            };
            if read.iter().any(|layer| layer.spot == spot) {
                let way: Vec<String> =
                    read.iter().map(|layer| layer.shown.to_string()).chain([self.shown(&spot)]).collect();
                let message = format!("the parents lead in a circle: {}", way.join(" -> "));
                return Err(self.broken(leaf, &at, Break::Cycle, rules.cycle, message, report));
            }
            if read.len() > ANCESTORS {
                let message = format!("there are more than {ANCESTORS} ancestors");
                return Err(self.broken(leaf, &at, Break::TooDeep, rules.depth, message, report));
            }
            match self.read(&spot, rules.doctype) {
                Read::Layer(layer) => {
                    read.push(Arc::clone(&layer));
                    at = layer;
                }
                Read::Missing => {
                    let message = format!("the parent `{}` is not there", self.shown(&spot));
                    return Err(self.broken(leaf, &at, Break::Missing, rules.missing, message, report));
                }
                Read::Outside => return Err(self.escape(leaf, &at, report)),
                Read::Unreadable(why) => {
                    let message = format!("the parent `{}` cannot be read: {why}", self.shown(&spot));
                    self.refuse(codes::FILE_UNREADABLE, leaf, &at, Body::new(message), report);
                    return Err(Stop::Refused);
                }
            }
        }
        if read.iter().any(|layer| layer.refused()) { Err(Stop::Refused) } else { Ok(()) }
    }

    fn escape(&self, leaf: &Layer, at: &Layer, report: &mut Report) -> Stop {
        let extends = at.root.key("extends").and_then(Node::as_str).unwrap_or_default();
        let help = match at.spot.scope() {
            Scope::Workspace => {
                "a parent lies in the workspace: below the outermost quorate.toml, or --root where there is none"
            }
            Scope::Tenant(_) => {
                "a tenant extends what is in it or in the workspace above it, never another tenant"
            }
        };
        let body =
            Body::new(format!("the parent `{extends}` lies outside the tenant or the workspace")).help(help);
        self.refuse(codes::EXTENDS_ESCAPE, leaf, at, body, report);
        Stop::Refused
    }

    /// A chain that is broken: a warning, or with `strict_chain` a refusal, since the parent's floor is lost.
    fn broken(
        &self,
        leaf: &Layer,
        at: &Layer,
        broken: Break,
        code: WarningCode,
        message: String,
        report: &mut Report,
    ) -> Stop {
        if self.options.strict_chain {
            let body =
                Body::new(message).help("strict_chain is on: without the parent, its floor would not hold");
            self.refuse(codes::CHAIN_BROKEN, leaf, at, body, report);
            return Stop::Refused;
        }
        let body = Body::new(format!("{message}; `{}` is loaded by itself", leaf.shown)).help(
            "what the parents say does not hold here; `strict_chain = true` in quorate.toml refuses this",
        );
        sources(at, leaf, report);
        report.warn(code, placed(body, leaf, at));
        Stop::Broken(broken)
    }

    fn refuse(&self, code: RefusalCode, leaf: &Layer, at: &Layer, body: Body, report: &mut Report) {
        sources(at, leaf, report);
        report.refuse(code, placed(body, leaf, at));
    }
}

/// At the `extends` of the manifest that was asked for, and at the one that fails, where that is another.
fn placed(body: Body, leaf: &Layer, at: &Layer) -> Body {
    let body = body.at(leaf.value_place("extends"));
    if leaf.spot == at.spot {
        body
    } else {
        body.related(at.value_place("extends"), "this parent cannot be had")
    }
}

fn sources(at: &Layer, leaf: &Layer, report: &mut Report) {
    for layer in [at, leaf] {
        report.source(Arc::clone(&layer.shown), Arc::clone(&layer.text));
    }
}

enum Stop {
    Broken(Break),
    Refused,
}

fn alone(leaf: &Arc<Layer>) -> Chain {
    Chain { layers: vec![Arc::clone(leaf)], merged: leaf.root.clone() }
}

fn over(above: &Chain, leaf: &Arc<Layer>, table: &[Row]) -> Chain {
    let mut own = leaf.root.clone();
    own.stamp(u8::try_from(above.layers.len()).expect("a chain has at most nine layers"));
    let mut layers = above.layers.clone();
    layers.push(Arc::clone(leaf));
    Chain { merged: merge(&above.merged, &own, table), layers }
}
