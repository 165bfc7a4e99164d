//! The embedder of a workspace (L4): the table `[embedder]` of quorate.toml. It is built for runs of assemblies that compare
//! meanings, and called once the file is trusted.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quorate_diagnostics::{Body, RefusalCode, Report, codes};
use quorate_kernel::budget::Caps;
use quorate_kernel::ports::embedder::Embedder;
use quorate_kernel::ports::executor::{ConfigError, Servers, Settings, SideEffect};
use quorate_kernel::registry::Registry;
use quorate_manifest::config::{Configuration, EmbedderTable};
use quorate_protocol::Json;
use serde_json::json;

use super::budget;
use super::error::{ExitClass, ServiceError};
use super::executor::with_help;
use super::trust::{Permit, TrustRequest};

/// The deadline of one comparison, if the table has none.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// A configured embedder. It can be called once it is admitted.
#[derive(Clone)]
pub struct SelectedEmbedder {
    embedder: Arc<dyn Embedder>,
    needs: TrustRequest,
    /// The settings that the fingerprint of a run covers.
    pub settings: Json,
}

impl fmt::Debug for SelectedEmbedder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SelectedEmbedder").field(&self.settings).finish()
    }
}

impl SelectedEmbedder {
    /// The side effects that must be trusted before it is called.
    pub fn needs(&self) -> TrustRequest {
        self.needs.clone()
    }

    pub fn embedder(&self, _: Permit) -> Arc<dyn Embedder> {
        Arc::clone(&self.embedder)
    }

    /// The model, its address and its executor, in one line.
    pub fn describe(&self) -> String {
        self.embedder.describe()
    }

    /// Checks that its price is known if money is capped.
    ///
    /// # Errors
    /// [`codes::COST_UNKNOWN`].
    pub fn ensure_enforceable(&self, caps: &Caps) -> Result<(), ServiceError> {
        budget::ensure_embedder_holdable(caps, &*self.embedder)
    }

    /// Checks that the key that it sends is available.
    ///
    /// # Errors
    /// [`codes::MODEL_KEY_MISSING`].
    pub fn ensure_installed(&self) -> Result<(), ServiceError> {
        self.embedder.check_installed().map_err(|refused| {
            let body = Body::new(format!("the embedder: {}", refused.message));
            ServiceError::configuration(codes::MODEL_KEY_MISSING, with_help(body, refused.help))
        })
    }
}

/// The embedder of a configuration; `None` without a table.
///
/// # Errors
/// [`codes::EMBEDDER_INVALID`] if the table cannot be used.
pub fn configured(
    registry: &Registry,
    host: &Configuration,
) -> Result<Option<SelectedEmbedder>, ServiceError> {
    let Some(table) = &host.embedder else { return Ok(None) };
    let built = build(registry, host, table);
    let embedder = built.map_err(|refused| refusal(codes::EMBEDDER_INVALID, table, refused))?;
    let named = |act: SideEffect| SideEffect { what: format!("{} (embedder)", act.what), ..act };
    let acts = embedder.side_effects().into_iter().map(named).collect();
    let needs = TrustRequest { file: host.path(), acts };
    Ok(Some(SelectedEmbedder { embedder, needs, settings: json!(table.block.json) }))
}

/// A misspelled key of the table. It is refused even if no run needs the embedder.
pub fn typo(registry: &Registry, host: &Configuration) -> Option<ServiceError> {
    let table = host.embedder.as_ref()?;
    let refused = build(registry, host, table).err().filter(|refused| refused.is_unknown_key)?;
    Some(refusal(codes::EMBEDDER_INVALID, table, refused))
}

fn build(
    registry: &Registry,
    host: &Configuration,
    table: &EmbedderTable,
) -> Result<Arc<dyn Embedder>, ConfigError> {
    let Some(new) = registry.embedder() else {
        return Err(ConfigError::for_block("this program has no configurable embedder"));
    };
    new(&Settings {
        name: "embedder".to_owned(),
        timeout: table.timeout.unwrap_or(DEFAULT_TIMEOUT),
        retries: 0,
        dir: host.dir.clone(),
        block: table.block.json.clone(),
        servers: Servers::default(),
        prices: budget::prices(host),
    })
}

fn refusal(code: RefusalCode, table: &EmbedderTable, refused: ConfigError) -> ServiceError {
    let mut report = Report::new();
    report.add_source(table.block.place.file.clone(), table.block.source.clone());
    let body = table.block.body(refused.key.as_deref(), format!("[embedder]: {}", refused.message));
    report.refuse(code, with_help(body, refused.help));
    ServiceError::from_report(ExitClass::Configuration, report)
}
