//! The library door: load an assembly, ask whether it conforms, convene it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use quorate_diagnostics::render::concise;
use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::observer::NoopObserver;
use quorate_manifest::Capabilities;
use quorate_manifest::assembly::Resolved;
use quorate_manifest::tree::{emit, yaml};

use crate::service::convene::rehearse::rehearse;
use crate::service::convene::{self, run_spec::RunSpec};
use crate::service::environment::Environment;
use crate::service::error::ServiceError;
use crate::service::host;
use crate::service::resolve::{Request, Resolution, resolve};
use crate::service::session::LedgerSession;
use crate::service::workspace::PathOverrides;

/// A manifest that was refused: everything that is wrong, each with a code and a place.
#[derive(Debug, Clone)]
pub struct Refused {
    /// What is wrong, and what else there is to say.
    pub report: Report,
}

/// Loads an assembly as it is to be convened: its chain resolved and merged, its floor held, its refs followed.
/// `path` is an ASSEMBLY.md or the directory that holds it; refs resolve below the outermost directory with a
/// `quorate.toml`. `host` says which kinds of rules and gather strategies there are;
/// [`crate::service::host::Host::new`] has the built-in ones.
///
/// # Errors
/// Everything that is wrong, at once.
///
/// ```
/// use quorate::service::host::Host;
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
/// // The persona of the one member is not there: the assembly is refused, and says why.
/// let refused = quorate::define_assembly_workspace(dir.path(), &Host::new()).unwrap_err();
/// assert_eq!(refused.report.refusals[0].code.as_str(), "assembly_member_persona_unresolvable");
///
/// std::fs::create_dir_all(dir.path().join("personas/ciso"))?;
/// std::fs::write(
///     dir.path().join("personas/ciso/PERSONA.md"),
///     "---\nschema: persona/v1\nname: ciso\ntitle: CISO\ndescription: Looks for holes.\nversion: 1.0.0\n---\n",
/// )?;
/// let board = quorate::define_assembly_workspace(dir.path(), &Host::new())?;
/// assert_eq!((board.name.as_str(), board.members.len()), ("release-board", 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn define_assembly_workspace(path: &Path, host: &dyn Capabilities) -> Result<Resolved, Refused> {
    Ok(resolve_assembly(path, host)?.resolved)
}

/// Asks whether an assembly conforms, as the public guide's handshake has it: the manifest fits its schema, its chain
/// resolves, the one-way switches hold, its consumers, personas and refs exist, its rules are known and name members,
/// loading it is deterministic, and a rehearsal of its synthesis on made-up answers comes to an end. Gives the warnings.
///
/// # Errors
/// The refusals.
///
/// ```
/// let refused = quorate::validate(std::path::Path::new("no/such/assembly")).unwrap_err();
/// assert!(refused.to_string().contains("there is no file"));
/// ```
pub fn validate(path: &Path) -> Result<Report, Refused> {
    let host = host::Host::new();
    let first = resolve_assembly(path, &host)?;
    let again = resolve_assembly(path, &host)?;
    let text = emit(&first.resolved.chain.merged);
    let rehearsed = rehearse(&first.resolved);
    let stable = text == emit(&again.resolved.chain.merged)
        && yaml::parse(&text).0.is_some_and(|read| emit(&read) == text);
    let mut report = first.report;
    if let Err(why) = rehearsed {
        report.refuse(codes::ASSEMBLY_SYNTHESIS_RULE_INVALID, Body::new(why));
        return Err(Refused { report });
    }
    if stable {
        return Ok(report);
    }
    let body =
        Body::new("the manifest reads differently the second time; somebody changes it at this moment");
    report.refuse(codes::ASSEMBLY_WORKSPACE_INVALID, body);
    Err(Refused { report })
}

/// Convenes an assembly and records the run in the workspace's ledger. `host` has the rules, gather strategies and the
/// embedder of the program's own; `examples/own_rule.rs` registers some.
///
/// # Errors
/// When manifest, subject, configuration or ledger are unusable. A run that was opened can be resumed.
pub async fn convene(
    request: &convene::Request,
    host: &host::Host,
) -> Result<convene::report::Report, Refused> {
    let environment = Environment::from_process();
    let (called, workspace) = convene::prepare(&environment, &PathOverrides::default(), request, host)?;
    let sitting = RunSpec::new(&environment, &workspace, &called, &request.options, host)?;
    let desk = LedgerSession::open(environment, workspace).await?;
    let report = convene::convene(&desk, &called, &sitting, Arc::new(NoopObserver)).await;
    desk.close().await;
    Ok(report?)
}

fn resolve_assembly(path: &Path, host: &dyn Capabilities) -> Result<Resolution, Refused> {
    let request = Request { path: path.to_owned(), ..Request::default() };
    resolve(&Environment::from_process(), &request, host).map_err(Refused::from)
}

impl From<ServiceError> for Refused {
    fn from(stop: ServiceError) -> Self {
        Refused { report: *stop.report }
    }
}

/// One line for each diagnostic.
impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(concise(&self.report).trim_end())
    }
}

impl std::error::Error for Refused {}
