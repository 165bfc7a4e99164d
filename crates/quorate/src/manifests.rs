//! Checking and resolving manifests. Calls no member and runs no command.

use std::path::Path;

use quorate_diagnostics::{Body, Report, codes};
use quorate_manifest::assembly::Resolved;
use quorate_manifest::loader::Refs;
use quorate_manifest::tree::{emit, yaml};

use crate::builder::Quorate;
use crate::error::Error;
use crate::service::check;
use crate::service::convene::rehearse::rehearse;
use crate::service::error::{ExitClass, ServiceError};
use crate::service::resolve::{Request, Resolution, resolve};

impl Quorate {
    /// Checks manifests and configuration files: files, or directories with everything below them. Refusals are in the
    /// report, not an error.
    ///
    /// # Errors
    /// If a path does not exist or cannot be read.
    ///
    /// ```
    /// use quorate::Quorate;
    ///
    /// let dir = tempfile::tempdir()?;
    /// std::fs::write(dir.path().join("ASSEMBLY.md"), "---\nschema: assembly.workspace/v1\nmode: votng\n---\n")?;
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let report = quorate.check(["ASSEMBLY.md"])?;
    /// assert!(report.refusals.iter().any(|refusal| refusal.body.message.contains("votng")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check<P: AsRef<Path>>(&self, paths: impl IntoIterator<Item = P>) -> Result<Report, Error> {
        let paths = paths.into_iter().map(|path| path.as_ref().to_owned()).collect();
        let request = check::Request { paths, root: None, refs: Refs::Followed };
        Ok(check::check(&self.environment, &request, None)?.report)
    }

    /// Loads an assembly as `convene` would: resolves and merges its chain, enforces inherited limits, and follows its
    /// refs. AIP-24 calls this `defineAssemblyWorkspace`. The path is an `ASSEMBLY.md`, or the directory that holds it.
    ///
    /// # Errors
    /// Every problem of the assembly, at once.
    ///
    /// ```
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
    /// let refused = quorate.resolve(".").unwrap_err();
    /// assert_eq!(refused.kind(), ErrorKind::Refused);
    /// assert_eq!(refused.code(), "assembly_member_persona_unresolvable");
    ///
    /// std::fs::create_dir_all(dir.path().join("personas/ciso"))?;
    /// std::fs::write(
    ///     dir.path().join("personas/ciso/PERSONA.md"),
    ///     "---\nschema: persona/v1\nname: ciso\ntitle: CISO\ndescription: Looks for holes.\nversion: 1.0.0\n---\n",
    /// )?;
    /// let board = quorate.resolve(".")?;
    /// assert_eq!((board.name.as_str(), board.members.len()), ("release-board", 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn resolve(&self, path: impl AsRef<Path>) -> Result<Resolved, Error> {
        Ok(self.resolution(path.as_ref())?.resolved)
    }

    /// Checks that an assembly conforms to the public guide's handshake: the manifest fits its schema, its chain resolves,
    /// the one-way switches hold, its consumers, personas and refs exist, its rules are known and name members, loading it
    /// twice gives the same, and a rehearsal of its synthesis on made-up answers terminates. Returns the warnings.
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
        let first = self.resolution(path.as_ref())?;
        let again = self.resolution(path.as_ref())?;
        let text = emit(&first.resolved.chain.merged);
        let rehearsed = rehearse(&first.resolved);
        let is_stable = text == emit(&again.resolved.chain.merged)
            && yaml::parse(&text).0.is_some_and(|read| emit(&read) == text);
        let refused = |code, body| Err(ServiceError::new(ExitClass::Refused, code, body).into());
        match rehearsed {
            Err(why) => refused(codes::ASSEMBLY_SYNTHESIS_RULE_INVALID, Body::new(why)),
            Ok(_) if !is_stable => {
                let why = "the manifest changed while it was being read; try again";
                refused(codes::ASSEMBLY_WORKSPACE_INVALID, Body::new(why))
            }
            Ok(_) => Ok(first.report),
        }
    }

    fn resolution(&self, path: &Path) -> Result<Resolution, ServiceError> {
        let request = Request { path: path.to_owned(), ..Request::default() };
        resolve(&self.environment, &request, &*self.environment.host)
    }
}
