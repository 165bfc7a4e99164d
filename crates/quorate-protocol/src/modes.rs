//! Modes: one state machine for each way of deciding together. The four of an assembly share [`assembly`], which gathers,
//! asks, checks locks and ends the run; each mode says which member to ask next and what follows.

pub mod advisory;
pub mod assembly;
pub mod council;
pub mod hierarchy;
pub mod peer;
pub mod voting;

use std::sync::Arc;

use quorate_manifest::assembly::Mode as AssemblyMode;

use crate::assembly::Setup;
use crate::locks::InvalidTrait;
use assembly::{Assembly, Mode};

impl Assembly {
    /// An assembly that waits to be opened, with the state machine of its mode.
    ///
    /// # Errors
    /// If a locked trait is not a valid pattern.
    pub fn new(setup: Setup) -> Result<Self, InvalidTrait> {
        let setup = Arc::new(setup);
        let mode: Box<dyn Mode> = match setup.mode {
            AssemblyMode::Advisory => Box::new(advisory::Advisory::new(&setup)),
            AssemblyMode::Voting => Box::new(voting::Voting::new(&setup)),
            AssemblyMode::Peer => Box::new(peer::Peer::new(&setup)),
            AssemblyMode::Hierarchy => Box::new(hierarchy::Hierarchy::new(&setup)),
        };
        Assembly::in_mode(mode, setup)
    }
}
