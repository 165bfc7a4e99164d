//! Writes a resolved assembly as one manifest that needs no parent and can replace its leaf. A remark states each difference
//! from the chain; a manifest that would be less strict is refused.

use quorate_diagnostics::{Body, codes};
use quorate_manifest::assembly::MatchMode;
use quorate_manifest::tree::{Kind, Node};
use quorate_manifest::workspace::WorkspacePath;

use super::Resolution;
use crate::service::error::{ExitClass, ServiceError};

/// One manifest, and its remarks.
#[derive(Debug, Clone)]
pub struct FlatManifest {
    pub root: Node,
    /// Its differences from its chain, one sentence each.
    pub remarks: Vec<String>,
}

impl Resolution {
    /// The merged manifest as a root, without the keys that bind it to a parent or a consumer.
    ///
    /// # Errors
    /// If one manifest cannot lock all locked traits of the chain.
    pub fn flatten(&self) -> Result<FlatManifest, ServiceError> {
        let mut root = self.resolved.chain.merged.clone();
        let mut remarks = Vec::new();
        if let Kind::Map(entries) = &mut root.kind {
            entries.retain(|entry| entry.key != "extends" && entry.key != "appliesTo");
            for entry in entries {
                match entry.key.as_str() {
                    "lockedTraits" => self.flatten_traits(&mut entry.value, &mut remarks)?,
                    "governance" => self.flatten_governance(&mut entry.value, &mut remarks),
                    _ => {}
                }
            }
        }
        self.remark_foreign_refs(&root, &mut remarks);
        Ok(FlatManifest { root, remarks })
    }

    /// Converts the traits to the single match mode that a manifest has (M9).
    fn flatten_traits(&self, traits: &mut Node, remarks: &mut Vec<String>) -> Result<(), ServiceError> {
        let Kind::Seq(items) = &mut traits.kind else { return Ok(()) };
        for (item, locked) in items.iter_mut().zip(&self.resolved.locked_traits) {
            match (self.resolved.match_mode, locked.declared_match_mode) {
                (MatchMode::Regex, MatchMode::Substring) => {
                    let escaped = regex::escape(&locked.text);
                    remarks.push(format!(
                        "`{}` is text in {}, and a pattern here: it no longer matches lookalike letters",
                        locked.text,
                        self.document_name(locked.document)
                    ));
                    item.kind = Kind::Str(escaped);
                }
                (MatchMode::Semantic, MatchMode::Regex) => {
                    let body = Body::new(format!(
                        "cannot flatten: `{}` is a pattern in {}, but other traits are matched by meaning, and a manifest has one match mode",
                        locked.text,
                        self.document_name(locked.document)
                    ));
                    let help = "use the chain; `--format json` shows the merged manifest";
                    return Err(ServiceError::new(
                        ExitClass::Refused,
                        codes::MATCH_MODE_LOOSENED,
                        body.help(help),
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Makes the path to a governance file relative to the leaf.
    fn flatten_governance(&self, governance: &mut Node, remarks: &mut Vec<String>) {
        let chain = &self.resolved.chain;
        let from = &chain.document_of(governance).path;
        let Some(text) = governance.as_str().filter(|text| !text.starts_with("ws://")) else { return };
        if let (Ok(file), Some(leaf)) = (from.resolve_relative(text), chain.documents.last()) {
            governance.kind = Kind::Str(relative_path(&leaf.path, &file));
        }
        for document in &chain.documents {
            if document.root.key("governance").is_some() && document.path != *from {
                remarks
                    .push(format!("the requirements of the `governance` of {} are not enforced here", document.shown));
            }
        }
    }

    /// Remarks on refs of documents in another scope than the leaf (M10).
    fn remark_foreign_refs(&self, root: &Node, remarks: &mut Vec<String>) {
        let chain = &self.resolved.chain;
        let Some(leaf) = chain.documents.last() else { return };
        let mut open = vec![root];
        while let Some(node) = open.pop() {
            match &node.kind {
                Kind::Map(entries) => open.extend(entries.iter().rev().map(|entry| &entry.value)),
                Kind::Seq(items) => open.extend(items.iter().rev()),
                Kind::Str(text) if text.starts_with("ws://") => {
                    let document = chain.document_of(node);
                    let remark = format!("`{text}` refers to {}, which is in another scope", document.shown);
                    if document.path.scope() != leaf.path.scope() && !remarks.contains(&remark) {
                        remarks.push(remark);
                    }
                }
                _ => {}
            }
        }
    }

    fn document_name(&self, document: usize) -> &str {
        self.resolved.chain.documents.get(document).map_or("an ancestor", |document| &*document.shown)
    }
}

/// The path of a file relative to another file.
fn relative_path(from: &WorkspacePath, file: &WorkspacePath) -> String {
    let (from, file) = (from.workspace_relative(), file.workspace_relative());
    let above: Vec<&str> = from.split('/').collect();
    let above = &above[..above.len() - 1];
    let parts: Vec<&str> = file.split('/').collect();
    let shared = above.iter().zip(&parts).take_while(|(one, other)| one == other).count();
    let up = vec![".."; above.len() - shared];
    let path: Vec<&str> = up.into_iter().chain(parts[shared..].iter().copied()).collect();
    if path.first() == Some(&"..") { path.join("/") } else { format!("./{}", path.join("/")) }
}
