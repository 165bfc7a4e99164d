//! Which runs name a text: a text that an unexpired run names stays, whichever other runs name it.

use std::collections::{BTreeMap, BTreeSet};

use quorate_protocol::Name;

use super::hashes_in;
use crate::checkpoint::STREAM;
use crate::store::engine::{Column, Engine, sql};

/// How many records are read at once.
const PAGE: u64 = 1000;

/// What was found of some texts in the records.
#[derive(Debug, Default)]
pub(crate) struct TextReferences {
    /// The texts that each stream names.
    pub(crate) by_stream: BTreeMap<Name, BTreeSet<String>>,
    /// How many records were looked at, from the first on.
    pub(crate) scanned: u64,
}

impl TextReferences {
    /// Looks at the records that follow for the names of texts.
    pub(crate) async fn scan_on(
        &mut self,
        engine: &mut Engine,
        texts: &BTreeSet<String>,
    ) -> Result<(), sqlx::Error> {
        // The ledger's own records describe operations: naming an erased text is no reason to keep it.
        let page = "SELECT seq, run, data FROM record WHERE seq > $1 AND data IS NOT NULL AND run <> $2 \
                    ORDER BY seq LIMIT $3";
        while !texts.is_empty() {
            let statement = sql(page).bind(self.scanned).bind(STREAM).bind(PAGE);
            let rows = statement.rows(engine, &[Column::Int, Column::Text, Column::Text]).await?;
            let Some(last) = rows.last() else { break };
            self.scanned = last.count(0);
            for row in &rows {
                let named = hashes_in(row.text(2)).filter(|hash| texts.contains(*hash));
                for hash in named {
                    self.by_stream.entry(row.text(1).into()).or_default().insert(hash.to_owned());
                }
            }
        }
        Ok(())
    }
}
