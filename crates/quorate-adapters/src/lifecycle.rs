//! Lifecycles: who wants to know what happens.
