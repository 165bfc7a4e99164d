//! Locked traits: testing a text against those of an assembly, and listing those of an operator.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_diagnostics::text::LineIndex;
use quorate_diagnostics::{Body, Report, codes};
use quorate_manifest::assembly::ResolvedAssembly;
use quorate_manifest::assembly::load::DeclaredTrait;
use quorate_manifest::loader::Refs;
use quorate_manifest::tree::Node;
use quorate_protocol::locks::{LockedTrait, Locks, excerpt, excerpt_parts};
use serde::{Serialize, Serializer};

use super::builder::Quorate;
use super::error::Error;
use super::service::artifact::{self, Artifact, Draft};
use super::service::manifests::{self, Manifests};
use super::service::resolve::{Resolution, ResolveRequest, resolve};
use super::service::workspace;
use super::view::{Doc, Entry, Table, Text, Tone};
use crate::playbook::library::{self, KnownOperator};
use crate::playbook::traits::Exceptions;

mod meaning;

pub use meaning::{Decisions, MeaningTest, MeaningTestRequest, ScoredText, TextsToScore, TraitScore};
pub use quorate_manifest::assembly::MatchMode;
pub use quorate_playbook::lock::Trait;
pub use quorate_protocol::locks::Layer;

/// A text to test against the locked traits of an assembly.
///
/// ```
/// use quorate::Draft;
/// use quorate::locks::LockTestRequest;
///
/// let text = Draft::File("draft.md".into());
/// let request = LockTestRequest { assembly: "assemblies/board".into(), root: None, text };
/// # let _ = request;
/// ```
#[derive(Debug, Clone)]
pub struct LockTestRequest {
    /// The assembly, or the directory that holds it.
    pub assembly: PathBuf,
    /// The workspace's root; `None` searches for it.
    pub root: Option<PathBuf>,
    /// The text.
    pub text: Draft,
}

/// The hits of an assembly's locked traits in a text.
#[derive(Debug, Clone, Serialize)]
pub struct LockTest {
    /// The assembly's name.
    pub assembly: String,
    /// The merged match mode.
    #[serde(rename = "matchMode")]
    pub match_mode: MatchMode,
    /// `false` if runs also compare a trait by meaning, which this test does not; `None` if they compare none.
    pub meaning_compared: Option<bool>,
    /// The traits, in the order of the merged manifest.
    pub traits: Vec<TestedTrait>,
    /// Warnings about the assembly.
    pub warnings: Report,
    /// The text's name as shown to the user.
    #[serde(skip)]
    pub name: String,
}

/// A locked trait and its hits.
#[derive(Debug, Clone, Serialize)]
pub struct TestedTrait {
    /// The trait as written.
    #[serde(rename = "trait")]
    pub text: String,
    /// The match mode that it was declared under.
    pub declared: MatchMode,
    /// The path of the declaring manifest, as shown to the user.
    pub file: String,
    /// The line in that manifest, from 1.
    pub line: usize,
    /// `false` if runs also compare it by meaning, which this test does not; `None` if they do not.
    pub meaning_compared: Option<bool>,
    /// Its hits, by position.
    pub hits: Vec<LockHit>,
}

/// A place of a text that a locked trait hits.
#[derive(Debug, Clone, Serialize)]
pub struct LockHit {
    /// How far the text had to be normalized.
    #[serde(serialize_with = "as_layer")]
    pub layer: Layer,
    /// The same in words.
    #[serde(rename = "says")]
    pub description: &'static str,
    /// Its line, from 1.
    pub line: usize,
    /// Its column in characters, from 1.
    pub column: usize,
    /// The offset of its first byte.
    pub start: usize,
    /// The offset of the byte after it.
    pub end: usize,
    /// The text around it, in one line.
    pub excerpt: String,
    /// The excerpt before it, it, and after it.
    #[serde(skip)]
    pub parts: [String; 3],
}

/// The locked traits of an operator.
#[derive(Debug, Clone, Serialize)]
pub struct OperatorLocks {
    /// The operator as the caller named it.
    pub operator: String,
    /// The built-in traits, those of quorate.toml, and those of the operator and its persona.
    pub locks: Vec<Arc<Trait>>,
}

fn as_layer<S: Serializer>(layer: &Layer, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(layer.as_str())
}

impl Quorate {
    /// Tests a text against the locked traits of an assembly. Nothing is recorded.
    ///
    /// # Errors
    /// If the assembly or the text does not exist or cannot be used.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// use quorate::locks::LockTestRequest;
    /// use quorate::{Draft, Quorate};
    ///
    /// let board = "---\nschema: assembly.workspace/v1\nname: board\ntitle: Board\ndescription: Decides.\nversion: 1.0.0\n\
    ///              mode: voting\nmembers:\n  - {id: ada, persona: ws://personas/ada, role: Security}\n\
    ///              lockedTraits: [warmth]\n---\n";
    /// std::fs::write(dir.path().join("ASSEMBLY.md"), board)?;
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let text = Draft::Text { name: "draft".to_owned(), text: "Drop the warmth.".to_owned() };
    /// let test = quorate.test_locks(LockTestRequest { assembly: dir.path().to_owned(), root: None, text })?;
    /// assert_eq!((test.traits[0].text.as_str(), test.traits[0].hits[0].column), ("warmth", 10));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn test_locks(&self, request: LockTestRequest) -> Result<LockTest, Error> {
        let LockTestRequest { assembly, root, text } = request;
        let (view, locks) = self.load_traits(assembly, root)?;
        let resolved = &view.resolved;
        let Artifact { display_name: name, text, .. } = self.read_text(&text)?;
        let mut traits = declared_traits(resolved);
        locks.semantic_traits().into_iter().for_each(|at| traits[at].meaning_compared = Some(false));
        let lines = LineIndex::new(&text);
        for hit in locks.find_all(&text) {
            let place = lines.position(hit.span.start);
            traits[hit.trait_index].hits.push(LockHit {
                layer: hit.layer,
                description: hit.layer.description(),
                line: place.line,
                column: place.column,
                start: hit.span.start,
                end: hit.span.end,
                excerpt: excerpt(&text, &hit.span),
                parts: excerpt_parts(&text, &hit.span),
            });
        }
        Ok(LockTest {
            assembly: resolved.name.clone(),
            match_mode: resolved.match_mode,
            meaning_compared: traits.iter().find_map(|checked| checked.meaning_compared),
            traits,
            warnings: view.report,
            name,
        })
    }

    fn read_text(&self, text: &Draft) -> Result<Artifact, Error> {
        if let Draft::File(file) = text {
            self.named_path(file.clone())?;
        }
        artifact::read(text, &self.environment.directory)
    }

    /// Resolves an assembly and compiles its locked traits.
    fn load_traits(&self, assembly: PathBuf, root: Option<PathBuf>) -> Result<(Resolution, Locks), Error> {
        let root = root.map(|root| self.named_path(root)).transpose()?;
        let asked = ResolveRequest { path: self.named_path(assembly)?, root, refs: Refs::ShapeOnly };
        let environment = &self.environment;
        let view = resolve(environment, &asked, &*environment.registries)
            .map_err(Error::refused_as_configuration)?;
        let resolved = &view.resolved;
        let recorded: Vec<LockedTrait> =
            resolved.locked_traits.iter().map(|declared| declared.locked.clone()).collect();
        let locks = Locks::compile(&recorded, resolved.match_mode).map_err(|invalid| {
            let body =
                Body::new(format!("cannot search for `{}`: {}", recorded[invalid.at].text, invalid.why));
            Error::configuration(codes::PATTERN_INVALID, body)
        })?;
        Ok((view, locks))
    }

    /// The locked traits of an operator: its folder's name in `operators/`, or a `ws://` ref. `root` is the workspace, or
    /// the tenant's folder in it.
    ///
    /// # Errors
    /// If the operator does not exist or is refused.
    ///
    /// ```
    #[doc = include_str!("playbook/example.txt")]
    /// let locks = quorate.operator_locks("alice", None)?.locks;
    /// assert!(locks.iter().any(|locked| locked.id == "honesty"), "a built-in trait");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn operator_locks(&self, operator: &str, root: Option<&Path>) -> Result<OperatorLocks, Error> {
        let root = root.map(|root| self.named_path(root.to_owned())).transpose()?;
        let (root, scope) = manifests::root_and_scope(&self.environment, root.as_deref());
        let workspace = workspace::load(&self.environment, &self.places, &root)?;
        let manifests = Manifests::open(&self.environment, &root, Refs::Followed)?;
        let loader = manifests.loader(&*self.environment.registries);
        let loaded = library::load_operator(&loader, &scope, &library::full_ref(operator, "operators"))?;
        let locks = KnownOperator::new(loaded, &workspace.config, &Exceptions::default()).traits;
        Ok(OperatorLocks { operator: operator.to_owned(), locks })
    }
}

/// The traits, with the places that declare them.
fn declared_traits(resolved: &ResolvedAssembly) -> Vec<TestedTrait> {
    let chain = &resolved.chain;
    let nodes = chain.merged.key("lockedTraits").map_or(&[][..], Node::items);
    let line = |text: &str, document: usize| {
        let text_of = &chain.documents[document].text;
        let node =
            nodes.iter().find(|node| usize::from(node.document) == document && node.as_str() == Some(text));
        node.map_or(1, |node| LineIndex::new(text_of).position(node.span.start).line)
    };
    let declared = resolved.locked_traits.iter().map(|DeclaredTrait { locked, document }| TestedTrait {
        text: locked.text.clone(),
        declared: locked.declared,
        file: chain.documents[*document].shown.to_string(),
        line: line(&locked.text, *document),
        meaning_compared: None,
        hits: Vec::new(),
    });
    declared.collect()
}

/// The most places shown of one trait.
const SHOWN: usize = 20;

impl LockTest {
    /// The hits by trait, then the traits without hits.
    pub fn doc(&self) -> Doc {
        let (hit, silent): (Vec<&TestedTrait>, Vec<&TestedTrait>) =
            self.traits.iter().partition(|checked| !checked.hits.is_empty());
        let mut doc = Doc::new();
        doc.line(match (self.traits.len(), hit.len()) {
            (0, _) => format!("{} has no locked traits.", self.assembly),
            (1, 0) => "The one locked trait does not hit.".to_owned(),
            (1, _) => "1 of 1 locked trait hits.".to_owned(),
            (all, 0) => format!("None of {all} locked traits hits."),
            (all, 1) => format!("1 of {all} locked traits hits."),
            (all, some) => format!("{some} of {all} locked traits hit."),
        });
        for checked in &hit {
            doc.heading(checked.named());
            doc.items(checked.hits.iter().take(SHOWN).map(|found| {
                let place = format!("{}:{}:{}", self.name, found.line, found.column);
                let [before, within, after] = &found.parts;
                let mut body = Doc::new();
                body.line(
                    Text::from(before.trim_start())
                        .and(Text::toned(Tone::Bad, format!("«{within}»")))
                        .and(after.trim_end()),
                );
                Entry { line: Text::from(place).and("  ").and(found.layer.as_str()), body }
            }));
            if checked.hits.len() > SHOWN {
                doc.line(format!("and at {} more places", checked.hits.len() - SHOWN));
            }
        }
        if !hit.is_empty() && !silent.is_empty() {
            doc.heading("Not hit");
        }
        doc.items(silent.iter().map(|checked| checked.named()));
        let mut layers: Vec<Layer> =
            hit.iter().flat_map(|checked| &checked.hits).map(|found| found.layer).collect();
        layers.sort_unstable();
        layers.dedup();
        if !layers.is_empty() {
            doc.heading("How they matched");
        }
        doc.items(layers.iter().map(|layer| format!("{}: {}", layer.as_str(), layer.description())));
        if self.meaning_compared.is_some() {
            doc.line(
                "Meaning was not compared: the match mode is semantic; add `--meaning` to ask what compares meanings.",
            );
        }
        doc
    }
}

impl TestedTrait {
    /// It, and where it is declared.
    fn named(&self) -> Text {
        let place = format!("({}, {}:{})", self.declared.as_str(), self.file, self.line);
        Text::from(&self.text).and("  ").and(Text::faint(place))
    }
}

impl OperatorLocks {
    /// The traits as a table.
    pub fn doc(&self) -> Doc {
        let row = |locked: &Arc<Trait>| {
            let counts = match (locked.words.len(), locked.phrases.len()) {
                (0, 0) => "its own name".to_owned(),
                (words, phrases) => format!("{words} words, {phrases} phrases"),
            };
            [Text::strong(&locked.id), counts.into(), (&locked.description).into()]
        };
        let mut doc = Doc::new();
        doc.table(Table::new(["trait", "held by", "what it is"]).with_rows(self.locks.iter().map(row)));
        doc
    }
}
