//! The `agent-cli` executor: any command that reads a prompt on stdin and prints its answer. This file owns the
//! executor and what the program calls; the parts are in `agent_cli/`: how the block is read (`recipe`), the CLIs
//! that are known by name (`presets`), what their output means (`output`, `limits`), which variables they get
//! (`environment`), how a vendor's CLI is called as a judge (`judge`, `room`), and how one is started, watched and ended (`spawn`, `call`, `family`, `mark`, `guard`).

mod call;
mod clock;
mod command;
#[cfg(feature = "mcp")]
pub(crate) mod companion;
mod ending;
mod environment;
mod family;
mod files;
mod granted;
pub mod guard;
mod judge;
mod limits;
mod mark;
pub(crate) mod once;
mod output;
mod pipes;
mod presets;
#[cfg(target_os = "linux")]
mod proc;
mod recipe;
mod room;
mod spawn;

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use quorate_kernel::ports::executor::{
    About, Executor, Failure, Inspected, Invocation, Refused, Reply, Settings,
};
use quorate_protocol::Json;
use quorate_protocol::answers::Schema;

use call::Ending;
pub use call::settle;
use judge::Judge;
pub use presets::{BARE, PRESETS, Preset};
use recipe::Recipe;
use tokio::sync::OnceCell;

/// The kind that `quorate.toml` names.
pub const KIND: &str = "agent-cli";

/// Builds the executor from its table.
///
/// # Errors
/// When the block has an unknown key, a value of the wrong type, or neither `command` nor `preset`.
pub fn new(settings: &Settings) -> Result<Arc<dyn Executor>, Refused> {
    Ok(Arc::new(AgentCli { recipe: Recipe::read(settings)?, before: OnceCell::new() }))
}

/// Makes this process adopt the orphans of what it starts, so that a process that left its parent is still found as
/// a descendant and is reaped. The program calls it once, first thing; without it such processes are found by their
/// mark alone.
///
/// # Errors
/// Where the system has no such thing, which is everywhere but on Linux.
pub fn adopt_orphans() -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        Ok(())
    }
    #[cfg(not(target_os = "linux"))]
    Err(std::io::Error::from(std::io::ErrorKind::Unsupported))
}

struct AgentCli {
    recipe: Recipe,
    /// What the call before a judge's first one has printed.
    before: OnceCell<String>,
}

impl AgentCli {
    /// What the CLI prints when it is asked for something about itself.
    async fn printed(&self, judge: &Judge, arguments: &[&str], deadline: Instant) -> Result<String, Failure> {
        let launch = self.recipe.asks_itself(arguments)?;
        let ended = call::run(launch, "".into(), deadline).await?;
        let why = match ended.ending {
            Ending::Exited(status) if status.success() => {
                return Ok(String::from_utf8_lossy(&ended.stdout).into_owned());
            }
            Ending::Exited(status) => {
                output::unsuccessful(output::Output::Text, status, &ended.stdout, &ended.stderr)
            }
            Ending::DeadlinePassed => return Err(Failure::TimedOut),
            Ending::Flooded => "printed more than is read".to_owned(),
        };
        Err(judge.too_different(&self.recipe.name(), &format!("`{}` {why}", arguments.join(" "))))
    }

    /// What a judge's arguments are made of, asked for once.
    async fn before(&self, judge: &Judge, deadline: Instant) -> Result<Option<&str>, Failure> {
        let Some(arguments) = judge.before else { return Ok(None) };
        self.before
            .get_or_try_init(|| self.printed(judge, arguments, deadline))
            .await
            .map(|printed| Some(&**printed))
    }

    async fn inspected(&self, judge: &Judge, deadline: Instant) -> Result<Inspected, Failure> {
        let version = self.printed(judge, &["--version"], deadline).await?;
        let mut lists = String::new();
        for arguments in judge.lists {
            lists.push_str(&self.printed(judge, arguments, deadline).await?);
            lists.push('\n');
        }
        judge.inspect(&self.recipe.name(), &version, &lists, self.recipe.tools().unwrap_or_default())
    }
}

#[async_trait]
impl Executor for AgentCli {
    fn about(&self) -> About {
        About { kind: KIND, asks_a_model: true, model: self.recipe.model.clone() }
    }

    fn fingerprint(&self) -> Json {
        self.recipe.fingerprint()
    }

    fn turns(&self) -> Schema {
        self.recipe.turns
    }

    fn passes_servers(&self) -> bool {
        self.recipe.passes_servers()
    }

    fn tools(&self) -> Option<Vec<String>> {
        self.recipe.tools().map(<[String]>::to_vec)
    }

    async fn inspect(&self, deadline: tokio::time::Instant) -> Option<Result<Inspected, Failure>> {
        let judge = self.recipe.judge()?;
        Some(self.inspected(judge, deadline.into_std()).await)
    }

    async fn invoke(&self, invocation: Invocation) -> Result<Reply, Failure> {
        let deadline = invocation.deadline.into_std();
        let judge = self.recipe.judge().filter(|_| invocation.speaking.is_none());
        let before = match judge {
            Some(judge) => self.before(judge, deadline).await?,
            None => None,
        };
        let prepared = self.recipe.prepare(&invocation, before)?;
        let form = invocation.form;
        let ended = call::run(prepared.launch, invocation.prompt, deadline).await?;
        if let (Some(judge), Ending::Exited(status)) = (judge, &ended.ending)
            && !status.success()
            && let Some(said) = Judge::unknown_flag(&ended.stderr)
        {
            return Err(
                judge.too_different(&self.recipe.name(), &format!("it does not know an argument ({said})"))
            );
        }
        output::judge(self.recipe.output, form, &self.recipe.name(), ended, prepared.files.as_ref())
    }
}
