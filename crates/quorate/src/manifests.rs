//! Manifests: checking, formatting, resolving and validating them, which calls no member and runs no command.

use std::path::{Path, PathBuf};

use quorate_diagnostics::{Body, Report, codes};
use quorate_manifest::tree::{emit, yaml};

pub use quorate_manifest::loader::Refs;
pub use quorate_manifest::tree::MAX_BYTES;

pub use super::service::check::{CheckOutcome, CheckRequest, FormatOutcome, FormatRequest, ScanOutcome};
pub use super::service::resolve::{FieldOrigin, FieldValue, Resolution, ResolveRequest};
pub use super::view::resolution::origins;

use super::builder::Quorate;
use super::error::{Error, ErrorKind};
use super::service::artifact::repository_path;
use super::service::check;
use super::service::convene::plan::rehearse;
use super::service::resolve::resolve;

/// Formats the text of one manifest: canonical key order and spacing; comments stay.
///
/// # Errors
/// If it is not a manifest, or cannot be parsed.
///
/// ```
/// let text = quorate::manifests::format_text(b"name: ciso\nschema: persona/v1\n".to_vec())?;
/// assert_eq!(text, "schema: persona/v1\nname: ciso\n");
/// # Ok::<(), quorate::Error>(())
/// ```
pub fn format_text(text: Vec<u8>) -> Result<String, Error> {
    check::format_text(text)
}

impl Quorate {
    /// Checks manifests and configuration files: files, or directories with everything below them. Refusals are in the
    /// outcome's report, not an error.
    ///
    /// # Errors
    /// If a path does not exist or cannot be read.
    ///
    /// ```
    /// use quorate::Quorate;
    /// use quorate::manifests::CheckRequest;
    ///
    /// let dir = tempfile::tempdir()?;
    /// std::fs::write(dir.path().join("ASSEMBLY.md"), "---\nschema: assembly.workspace/v1\nmode: votng\n---\n")?;
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let checked = quorate.check(CheckRequest::new(["ASSEMBLY.md"]))?;
    /// assert!(checked.report.refusals.iter().any(|refusal| refusal.body.message.contains("votng")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check(&self, request: CheckRequest) -> Result<CheckOutcome, Error> {
        let paths = request.paths.into_iter().map(|path| self.named_path(path)).collect::<Result<_, _>>()?;
        check::check(&self.environment, &CheckRequest { paths, ..request })
    }

    /// Formats manifests: canonical key order and spacing; comments stay. The meaning of a file never changes.
    ///
    /// # Errors
    /// If a path does not exist, or a file cannot be written.
    ///
    /// ```
    /// use quorate::Quorate;
    /// use quorate::manifests::FormatRequest;
    ///
    /// let dir = tempfile::tempdir()?;
    /// std::fs::write(dir.path().join("PERSONA.md"), "---\nname: ciso\nschema: persona/v1\n---\n")?;
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let formatted = quorate.format(FormatRequest { paths: vec![".".into()], dry_run: true })?;
    /// assert_eq!(formatted.changed, ["PERSONA.md"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn format(&self, request: FormatRequest) -> Result<FormatOutcome, Error> {
        let paths = request.paths.into_iter().map(|path| self.named_path(path)).collect::<Result<_, _>>()?;
        check::format(&self.environment, FormatRequest { paths, ..request })
    }

    /// Scans the prompts, operators, personas and playbooks below a directory for words that name the council, except
    /// those in a folder with the name of an exempt agent: producers of artifacts should not know their reviewers.
    ///
    /// # Errors
    /// If the directory or a file cannot be read, an exempt agent has no file, or no file instructs an agent.
    ///
    /// ```
    /// use quorate::Quorate;
    ///
    /// let dir = tempfile::tempdir()?;
    /// let agent = dir.path().join("agents/writer");
    /// std::fs::create_dir_all(&agent)?;
    /// std::fs::write(agent.join("prompt.md"), "Write plainly, or the agent-council holds it.\n")?;
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let scanned = quorate.scan_modularity(".".into(), &[])?;
    /// assert_eq!(scanned.summary(), "1 file scanned, 1 reference");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn scan_modularity(&self, directory: PathBuf, exempt: &[String]) -> Result<ScanOutcome, Error> {
        let directory = self.named_path(directory)?;
        check::scan_modularity(&self.environment.directory.join(&directory), &directory, exempt)
    }

    /// Names the files of diagnostics from the root of their repository, as the formats of code hosts demand.
    ///
    /// ```
    /// use quorate::Quorate;
    /// use quorate::manifests::CheckRequest;
    ///
    /// let dir = tempfile::tempdir()?;
    /// std::fs::create_dir_all(dir.path().join("team/.git"))?;
    /// std::fs::write(dir.path().join("team/ASSEMBLY.md"), "---\nschema: assembly.workspace/v1\n---\n")?;
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let mut report = quorate.check(CheckRequest::new(["team"]))?.report;
    /// quorate.name_for_code_hosts(&mut report);
    /// let place = report.refusals[0].body.place.as_ref().expect("a file is refused");
    /// assert_eq!(&*place.file, "ASSEMBLY.md");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn name_for_code_hosts(&self, report: &mut Report) {
        report.rename_files(|file| repository_path(&self.environment.directory, Path::new(file)));
    }

    /// Loads an assembly as `convene` would: resolves and merges its chain, enforces inherited limits, and follows its
    /// refs. AIP-24 calls this `defineAssemblyWorkspace`. The path is an `ASSEMBLY.md`, or the directory that holds it.
    ///
    /// # Errors
    /// Every problem of the assembly, at once.
    ///
    /// ```
    /// use quorate::manifests::ResolveRequest;
    /// use quorate::{ErrorKind, Quorate};
    ///
    /// let dir = tempfile::tempdir()?;
    /// std::fs::write(dir.path().join("quorate.toml"), "strict_chain = true\n")?;
    /// std::fs::write(
    ///     dir.path().join("ASSEMBLY.md"),
    ///     "---\n\
    ///      schema: assembly.workspace/v1\n\
    ///      name: release-board\n\
    ///      title: Release Board\n\
    ///      description: Decides what ships.\n\
    ///      version: 1.0.0\n\
    ///      mode: voting\n\
    ///      members: [{id: ciso, persona: ws://personas/ciso, role: Security}]\n\
    ///      ---\n",
    /// )?;
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// // The persona of the one member does not exist, so the assembly is refused.
    /// let refused = quorate.resolve(ResolveRequest::new(".")).unwrap_err();
    /// assert_eq!(refused.kind(), ErrorKind::Refused);
    /// assert_eq!(refused.code(), "assembly_member_persona_unresolvable");
    ///
    /// std::fs::create_dir_all(dir.path().join("personas/ciso"))?;
    /// std::fs::write(
    ///     dir.path().join("personas/ciso/PERSONA.md"),
    ///     "---\nschema: persona/v1\nname: ciso\ntitle: CISO\ndescription: Looks for holes.\nversion: 1.0.0\n---\n",
    /// )?;
    /// let board = quorate.resolve(ResolveRequest::new("."))?.resolved;
    /// assert_eq!((board.name.as_str(), board.members.len()), ("release-board", 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn resolve(&self, request: ResolveRequest) -> Result<Resolution, Error> {
        let request = match &self.root {
            Some(confining) => {
                let (path, root) = confining.manifest(&self.environment, &request.path)?;
                ResolveRequest { path, root: Some(root), ..request }
            }
            None => request,
        };
        resolve(&self.environment, &request, &*self.environment.registries)
    }

    /// Checks that an assembly conforms to the public guide's handshake: the manifest fits its schema, its chain
    /// resolves, the one-way switches hold, its consumers, personas and refs exist, its rules are known and name
    /// members, loading it twice gives the same, and a rehearsal of its synthesis on made-up answers terminates.
    /// Returns the warnings.
    ///
    /// # Errors
    /// The refusals.
    ///
    /// ```
    /// use quorate::Quorate;
    ///
    /// let dir = tempfile::tempdir()?;
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let refused = quorate.validate("no/such/assembly").unwrap_err();
    /// assert!(refused.to_string().contains("does not exist"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn validate(&self, path: impl AsRef<Path>) -> Result<Report, Error> {
        let read = || self.resolve(ResolveRequest::new(path.as_ref()));
        let (first, again) = (read()?, read()?);
        let text = emit(&first.resolved.chain.merged);
        let rehearsed = rehearse(&first.resolved);
        let is_stable = text == emit(&again.resolved.chain.merged)
            && yaml::parse(&text).0.is_some_and(|read| emit(&read) == text);
        let refused = |code, body| Err(Error::new(ErrorKind::Refused, code, body));
        match rehearsed {
            Err(why) => refused(codes::ASSEMBLY_SYNTHESIS_RULE_INVALID, Body::new(why)),
            Ok(_) if !is_stable => {
                let why = "the manifest changed while it was being read; try again";
                refused(codes::ASSEMBLY_WORKSPACE_INVALID, Body::new(why))
            }
            Ok(_) => Ok(first.report),
        }
    }
}
