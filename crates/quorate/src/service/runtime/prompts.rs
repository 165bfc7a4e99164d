//! The prompt of a participant for each turn: its persona or operator, with playbooks and overlays woven in (K10, B3).

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use quorate_kernel::clock::Clock;
use quorate_kernel::turn::{Prompt, PromptSource};
use quorate_ledger::Store;
use serde_json::Map;

use crate::service::compose::{Sources, shadows};
use crate::service::overlays::OverlayCache;

/// A prompt that is composed again for each turn.
pub(super) struct ComposedPrompts {
    sources: Arc<Sources>,
    store: Arc<Store>,
    clock: Arc<dyn Clock>,
    /// The overlays of all assemblies, which the participants share.
    overlays: Arc<OverlayCache>,
    /// The last recorded prompt.
    last_recorded: Mutex<Option<String>>,
}

impl ComposedPrompts {
    /// `store` is the ledger of the overlays and of the recorded compositions.
    pub(super) fn new(
        sources: Arc<Sources>,
        store: Arc<Store>,
        clock: Arc<dyn Clock>,
        overlays: Arc<OverlayCache>,
    ) -> Self {
        ComposedPrompts { sources, store, clock, overlays, last_recorded: Mutex::default() }
    }

    fn is_recorded(&self, prompt: &str) -> bool {
        self.last_recorded.lock().unwrap_or_else(PoisonError::into_inner).as_deref() == Some(prompt)
    }
}

#[async_trait]
impl PromptSource for ComposedPrompts {
    async fn prompt(&self) -> Result<Prompt, String> {
        let overlays =
            self.overlays.holding(&self.store, None).await.map_err(|error| error.first_message())?;
        let (advice, now_ms) = (self.sources.overlays_for_operators(overlays), self.clock.now_ms());
        let composed = self.sources.compose(&advice, now_ms);
        let hashes = self.sources.hashes(&composed, &advice);
        let mut extra_fields = Map::new();
        if !composed.shadows.is_empty() {
            extra_fields.insert("shadows".to_owned(), shadows(&composed.shadows));
        }
        if !self.is_recorded(&composed.woven.prompt) {
            self.sources
                .record(&self.store, &composed, now_ms)
                .await
                .map_err(|error| error.first_message())?;
            *self.last_recorded.lock().unwrap_or_else(PoisonError::into_inner) =
                Some(composed.woven.prompt.clone());
        }
        Ok(Prompt { text: composed.woven.prompt.into(), woven_sha256: hashes, extra_fields })
    }
}
