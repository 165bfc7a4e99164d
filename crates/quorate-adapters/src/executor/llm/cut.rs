//! Servers that cut a prompt without a word: found by the tokens that they say they read. Only servers of one's own do it, and
//! they cut at a length that does not change, while a low number may also be of a server that does not count what it had in
//! its cache.

use std::sync::atomic::{AtomicU64, Ordering};

use quorate_kernel::budget::tokens::{fewest_tokens, has_more_tokens, most_tokens};

use super::wire::Wire;

/// Prompts with no more words are not judged: they fit in every context.
const SHORT: u64 = 500;

/// What one server reads of a prompt.
#[derive(Debug)]
pub(super) struct Reader {
    wire: Wire,
    /// The size of its context, where the settings say it.
    context: Option<u32>,
    /// The cap on output tokens, which share the context with the prompt.
    max_tokens: u32,
    /// The longest prompt that it read, in tokens.
    longest: AtomicU64,
}

impl Reader {
    pub(super) fn new(wire: Wire, context: Option<u32>, max_tokens: u32) -> Reader {
        Reader { wire, context, max_tokens, longest: AtomicU64::new(0) }
    }

    /// Refuses a prompt that does not fit in any tokenizer.
    ///
    /// # Errors
    /// The reason, for a person.
    pub(super) fn check_fits(&self, prompt: &str) -> Result<(), String> {
        let Some(context) = self.context else { return Ok(()) };
        if has_more_tokens(prompt, context.into()) {
            let fewest = fewest_tokens(prompt);
            return Err(format!("the prompt has {fewest} tokens or more, and `context` is {context}"));
        }
        Ok(())
    }

    /// Refuses the answer to a prompt that was cut. `tokens_in` is what the server says that it read.
    ///
    /// # Errors
    /// The reason, for a person.
    pub(super) fn check_read(&self, prompt: &str, tokens_in: Option<u64>) -> Result<(), String> {
        let judged = matches!(self.wire, Wire::Ollama | Wire::Chat);
        let Some(read) = tokens_in.filter(|read| judged && *read > 0) else { return Ok(()) };
        let longest = self.longest.fetch_max(read, Ordering::Relaxed).max(read);
        // A server that read a longer prompt does not cut this one.
        if !has_more_tokens(prompt, longest.max(SHORT)) || self.surely_fits(prompt) {
            return Ok(());
        }
        let fewest = fewest_tokens(prompt);
        let help = match self.wire {
            Wire::Ollama => "set a larger `context`, or choose a model with one",
            _ => {
                "raise its context. If it counts only what is not in its cache, set `context` to the size of its context"
            }
        };
        Err(format!(
            "the server read {read} tokens of a prompt that has {fewest} or more: it cut the prompt; {help}"
        ))
    }

    /// Whether the prompt and its answer fit in a context that the settings vouch for. Ollama's is what the program asks for, and
    /// not what the model has.
    fn surely_fits(&self, prompt: &str) -> bool {
        let needed = || most_tokens(prompt) + u64::from(self.max_tokens);
        self.wire == Wire::Chat && self.context.is_some_and(|context| needed() <= context.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAP: u32 = 1_000;

    #[test]
    fn a_number_below_that_of_words_is_of_a_cut_prompt() {
        let prompt = "word ".repeat(4_000);
        for wire in [Wire::Chat, Wire::Ollama] {
            let reader = Reader::new(wire, None, CAP);
            assert!(reader.check_read(&prompt, Some(2_048)).unwrap_err().contains("it cut the prompt"));
            // The same server gives another number for a prompt that it reads whole.
            assert_eq!(reader.check_read(&prompt[..5_000], Some(1_010)), Ok(()));
            assert!(reader.check_read(&prompt, Some(2_048)).is_err());
        }
        for (wire, read) in [(Wire::Chat, None), (Wire::Chat, Some(0)), (Wire::Messages, Some(12))] {
            assert_eq!(Reader::new(wire, None, CAP).check_read(&prompt, read), Ok(()));
        }
        assert_eq!(Reader::new(Wire::Chat, None, CAP).check_read("word ", Some(1)), Ok(()));
    }

    #[test]
    fn a_text_with_few_words_or_a_server_that_counts_without_its_cache_is_not_cut() {
        let reader = Reader::new(Wire::Chat, None, CAP);
        for text in ["=".repeat(60_000), "w".repeat(60_000), format!("{}\n", "- ".repeat(40)).repeat(500)] {
            assert_eq!(reader.check_read(&text, Some(900)), Ok(()));
        }
        let prompt = "word ".repeat(4_000);
        // The first call fills the cache, the second is read from it.
        assert_eq!(reader.check_read(&prompt, Some(4_100)), Ok(()));
        assert_eq!(reader.check_read(&prompt, Some(30)), Ok(()));
        // A cache that was full before, and a person who knows the context.
        let told = |context| Reader::new(Wire::Chat, Some(context), CAP).check_read(&prompt, Some(30));
        assert_eq!(told(16_384), Ok(()));
        assert!(told(8_192).is_err(), "it may not fit");
        assert!(Reader::new(Wire::Ollama, Some(16_384), CAP).check_read(&prompt, Some(30)).is_err());
    }

    #[test]
    fn what_cannot_fit_is_not_sent() {
        let reader = Reader::new(Wire::Chat, Some(2_048), CAP);
        assert!(reader.check_fits(&"word ".repeat(2_049)).unwrap_err().contains("`context` is 2048"));
        assert_eq!(reader.check_fits(&"word ".repeat(2_000)), Ok(()));
        assert_eq!(Reader::new(Wire::Chat, None, CAP).check_fits(&"word ".repeat(99_999)), Ok(()));
    }
}
