//! Stores of state: what participants remember.
