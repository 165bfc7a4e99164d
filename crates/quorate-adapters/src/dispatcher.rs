//! Dispatchers: who speaks next.
