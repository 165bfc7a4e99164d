//! The embedder port: texts as vectors, so that they can be compared by meaning (L4).
//!
//! # For adapter authors
//!
//! - One vector for each text, all of one length, in the order of the texts; the same text gives the same vector.
//! - A failure is reported, never replaced with zeros: a text that could not be compared is not persisted.
//! - [`Embedder::threshold`] is the cosine from which on two texts of this model count as similar.

use async_trait::async_trait;

/// Turns texts into vectors.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// The model, as records name it.
    fn model(&self) -> &str;

    /// The cosine similarity, between -1 and 1, from which on two texts count as near.
    fn threshold(&self) -> f32;

    /// One vector for each text.
    ///
    /// # Errors
    /// The reason, as a message for users.
    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, String>;
}
