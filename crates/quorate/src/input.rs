//! Values as people write them, and as requests contain them.

pub use crate::service::artifact::MAX_BYTES as MAX_DRAFT_BYTES;
pub use crate::service::time_text::{SinceError, Whole, parse_since};
pub use quorate_manifest::duration::{DurationError, parse as parse_duration};
