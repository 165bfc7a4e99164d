//! The rules for the next signature of a signed run. They are checked before signing, and verification applies the same
//! ones later (D10).

use quorate_kernel::clock::parse_rfc3339;
use quorate_kernel::ports::ledger::{Entry, Kind};
use quorate_protocol::Json;
use serde_json::Map;

use super::STREAM;
use super::engine::{Column, Engine, sql};
use crate::record::Head;
use crate::signing::run::{RunKeyring, check_signer};
use crate::signing::{ExternalKeys, PublicKey};

/// The keys that may sign for a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunSigners {
    /// The run's own keys; `None` for a stream that is bound to the workspace's keyring only.
    pub(crate) keyring: Option<RunKeyring>,
}

/// A record's effect on the keys of its run.
#[derive(Debug, Clone)]
pub(super) enum KeyEvent {
    /// The record opens the run.
    Opened(Option<RunKeyring>),
    Keyring(Map<String, Json>),
}

impl KeyEvent {
    /// The effect of an entry, if any.
    pub(super) fn from_entry(entry: &Entry) -> Option<KeyEvent> {
        match entry.kind {
            Kind::RunOpened => Some(KeyEvent::Opened(RunKeyring::from_opened(&entry.data))),
            Kind::Keyring => Some(KeyEvent::Keyring(entry.data.clone())),
            _ => None,
        }
    }

    /// Whether the run's records must be signed from this one on.
    pub(super) fn requires_signatures(&self) -> bool {
        match self {
            KeyEvent::Opened(audit) => {
                audit.as_ref().is_some_and(|audit| audit.required || audit.signer.is_some())
            }
            KeyEvent::Keyring(_) => true,
        }
    }
}

impl RunSigners {
    /// Reads the signers of an existing run.
    pub(crate) async fn read(
        engine: &mut Engine,
        run: &str,
        outside: &ExternalKeys,
    ) -> Result<Result<RunSigners, String>, sqlx::Error> {
        let rows = sql("SELECT n, kind, data FROM record WHERE run = $1 AND (n = 0 OR kind = $2) ORDER BY n")
            .bind(run)
            .bind(Kind::Keyring.as_str())
            .rows(engine, &[Column::Int, Column::Text, Column::Text])
            .await?;
        let mut signers = RunSigners::default();
        for row in &rows {
            let data = row.opt_text(2).and_then(|data| serde_json::from_str::<Map<String, Json>>(data).ok());
            let kind = row.text(1);
            let read = match data {
                Some(data) if kind == Kind::RunOpened.as_str() => {
                    signers.keyring = RunKeyring::from_opened(&data);
                    Ok(())
                }
                Some(data) if kind == Kind::Keyring.as_str() => signers.extend(&data, outside),
                None if kind == Kind::Keyring.as_str() => Err("a keyring record has no data".to_owned()),
                _ => Ok(()),
            };
            if let Err(what) = read {
                return Ok(Err(what));
            }
        }
        Ok(Ok(signers))
    }

    /// Checks the next record, which a key is about to sign.
    ///
    /// # Errors
    /// The verification rule that it would violate.
    pub(super) fn check_next(
        &mut self,
        says: Option<&KeyEvent>,
        key: &PublicKey,
        at_ms: i64,
        sealed_ms: Option<i64>,
        outside: &ExternalKeys,
    ) -> Result<(), String> {
        let id = key.id().to_string();
        match says {
            Some(KeyEvent::Opened(audit)) => {
                self.keyring.clone_from(audit);
                let signer = self.keyring.as_ref().and_then(|audit| audit.signer.as_deref());
                if signer.is_some_and(|signer| signer != id) {
                    return Err(format!("it names another signer than {id}"));
                }
            }
            Some(KeyEvent::Keyring(data)) => self.extend(data, outside)?,
            None => {}
        }
        let judged = check_signer(self.keyring.as_ref(), &id, at_ms, sealed_ms, outside)?;
        let governed = self.keyring.as_ref().is_some_and(|audit| audit.governed);
        if judged.is_unlisted && outside.keyring.is_some() && !governed {
            return Err(format!("the key {id} is not in the workspace's keyring"));
        }
        judged.backdated.map_or(Ok(()), Err)
    }

    fn extend(&mut self, data: &Map<String, Json>, authority: &ExternalKeys) -> Result<(), String> {
        match &mut self.keyring {
            Some(audit) => audit.extend(data, authority),
            None => Err("its first record has no keyring to extend".to_owned()),
        }
    }
}

/// The time of the last checkpoint, in milliseconds since the Unix epoch.
pub(super) async fn last_checkpoint_ms(engine: &mut Engine) -> Result<Option<i64>, sqlx::Error> {
    let last = sql("SELECT head FROM record WHERE run = $1 AND kind = $2 ORDER BY n DESC LIMIT 1")
        .bind(STREAM)
        .bind(Kind::Checkpoint.as_str())
        .row(engine, &[Column::Text])
        .await?;
    Ok(last.and_then(|row| parse_rfc3339(&serde_json::from_str::<Head>(row.text(0)).ok()?.at)))
}
