//! The side effects of workspace files, and the hashes by which a person trusts these files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::executor::SideEffect;

use crate::service::disk;

/// The side effects of a workspace file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustRequest {
    pub file: PathBuf,
    /// Its side effects.
    pub acts: Vec<SideEffect>,
}

/// The side effects of a workspace.
#[derive(Debug)]
pub struct Inventory {
    pub root: PathBuf,
    /// The side effects of each file; files without any are left out.
    pub requests: Vec<TrustRequest>,
    /// The files that this covers, by canonical path, each with the hash of its bytes.
    pub files: BTreeMap<PathBuf, String>,
}

impl Inventory {
    /// One hash over all files by their paths below the root; the same in every checkout.
    pub fn hash(&self) -> String {
        let root = disk::canonical(&self.root).unwrap_or_else(|| self.root.clone());
        let lines = self.files.iter().map(|(file, hash)| {
            let below = file.strip_prefix(&root).unwrap_or(file);
            format!("{hash}  {}\n", below.to_string_lossy())
        });
        sha256_hex(lines.collect::<String>().as_bytes())
    }

    pub(super) fn new(root: PathBuf, needs: Vec<TrustRequest>) -> Self {
        let needs = merge_by_file(needs);
        let files = file_hashes(&needs);
        Inventory { root, requests: needs, files }
    }
}

/// One request for each file, in the order of the files.
pub(super) fn merge_by_file(needs: Vec<TrustRequest>) -> Vec<TrustRequest> {
    let mut by_file: BTreeMap<PathBuf, Vec<SideEffect>> = BTreeMap::new();
    for need in needs.into_iter().filter(|need| !need.acts.is_empty()) {
        let acts = by_file.entry(canonical(&need.file)).or_default();
        for act in need.acts {
            if !acts.contains(&act) {
                acts.push(act);
            }
        }
    }
    by_file.into_iter().map(|(file, acts)| TrustRequest { file, acts }).collect()
}

/// The files of these requests, each with the hash of its bytes. An unreadable file gets no hash that a user could have
/// trusted.
pub(super) fn file_hashes(needs: &[TrustRequest]) -> BTreeMap<PathBuf, String> {
    let acts = needs.iter().flat_map(|need| &need.acts).flat_map(|act| &act.files);
    let files = needs.iter().map(|need| &need.file).chain(acts);
    files.map(|file| (canonical(file), hash(file))).collect()
}

fn hash(file: &Path) -> String {
    disk::read(file).map_or_else(|_| "unreadable".to_owned(), |bytes| sha256_hex(&bytes))
}

pub(super) fn canonical(file: &Path) -> PathBuf {
    disk::canonical(file).unwrap_or_else(|| file.to_owned())
}
