//! What a participant is told, from turn to turn: its persona or operator with the overlays that hold (K10, B3).

use std::sync::Arc;

use async_trait::async_trait;
use quorate_kernel::clock::Clock;
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::turn::{Prompt, Prompts};
use quorate_ledger::Store;
use quorate_playbook::base::Base;

use crate::service::{overlays, weave};

/// A prompt that overlays are woven into.
#[derive(Debug, Clone)]
pub(super) struct Weaving {
    /// The prompt without them.
    pub(super) base: Arc<Base>,
    /// Whose overlays.
    pub(super) operators: Arc<[String]>,
}

impl Weaving {
    /// With the ledger that the overlays stand in.
    pub(super) fn with(&self, store: Arc<Store>, clock: Arc<dyn Clock>) -> Woven {
        Woven { weaving: self.clone(), store, clock }
    }
}

/// A prompt with the overlays of a ledger.
pub(super) struct Woven {
    weaving: Weaving,
    store: Arc<Store>,
    clock: Arc<dyn Clock>,
}

#[async_trait]
impl Prompts for Woven {
    async fn prompt(&self) -> Result<Prompt, String> {
        let Weaving { base, operators } = &self.weaving;
        let mut holding = overlays::holding(&self.store, None).await.map_err(|stop| stop.first())?;
        holding.retain(|one| operators.contains(&one.operator));
        let woven = weave::woven(base, &holding, self.clock.now_ms());
        let hash = |id: &str| {
            let text = holding.iter().find(|one| one.overlay == id).map(|one| one.text.as_bytes());
            sha256_hex(text.unwrap_or_default())
        };
        let hashes = woven.woven.iter().map(|one| hash(&one.id)).collect();
        Ok(Prompt { text: woven.prompt.into(), woven: hashes })
    }
}
