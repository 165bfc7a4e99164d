//! What one attempt cost.

use serde::{Deserialize, Serialize};

/// What one attempt cost, as far as it is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens of the prompt, those read from a cache and those written to one included.
    pub tokens_in: Option<u64>,
    /// Of `tokens_in`, those read from a cache.
    pub tokens_cached: Option<u64>,
    /// Of `tokens_in`, those written to a cache that keeps them for minutes.
    pub tokens_written: Option<u64>,
    /// Of `tokens_in`, those written to a cache that keeps them for an hour or longer. None of them counts in `tokens_written`.
    pub tokens_written_long: Option<u64>,
    /// Tokens that the model wrote, its reasoning included.
    pub tokens_out: Option<u64>,
    /// Of `tokens_out`, those of its reasoning.
    pub tokens_reasoning: Option<u64>,
    /// Money, in billionths of a US dollar.
    pub usd_nanos: Option<u64>,
}

impl Usage {
    /// The numbers of tokens that are known.
    pub fn counts(&self) -> impl Iterator<Item = u64> {
        let Usage {
            tokens_in,
            tokens_cached,
            tokens_written,
            tokens_written_long,
            tokens_out,
            tokens_reasoning,
            usd_nanos: _,
        } = *self;
        [tokens_in, tokens_cached, tokens_written, tokens_written_long, tokens_out, tokens_reasoning]
            .into_iter()
            .flatten()
    }

    /// Adds another attempt's usage. A sum is known as soon as one of its terms is.
    pub fn add(&mut self, other: Usage) {
        let add = |sum: &mut Option<u64>, term: Option<u64>| {
            *sum = match (*sum, term) {
                (None, None) => None,
                (sum, term) => Some(sum.unwrap_or(0).saturating_add(term.unwrap_or(0))),
            };
        };
        add(&mut self.tokens_in, other.tokens_in);
        add(&mut self.tokens_cached, other.tokens_cached);
        add(&mut self.tokens_written, other.tokens_written);
        add(&mut self.tokens_written_long, other.tokens_written_long);
        add(&mut self.tokens_out, other.tokens_out);
        add(&mut self.tokens_reasoning, other.tokens_reasoning);
        add(&mut self.usd_nanos, other.usd_nanos);
    }
}
