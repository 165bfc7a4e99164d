//! The servers that a host has configured, and the connections that it shares, for adapters.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use quorate_protocol::Json;

/// MCP servers by id, each with its table of `quorate.toml` verbatim. It remembers which of them adapters have looked up.
/// Beside them are the connections that the host shares with its adapters.
#[derive(Debug, Clone, Default)]
pub struct Servers {
    tables: Arc<BTreeMap<String, Table>>,
    used: Arc<Mutex<BTreeSet<String>>>,
    connections: BTreeMap<TypeId, Connection>,
    used_connections: Arc<Mutex<BTreeSet<&'static str>>>,
}

/// A connection, and what it is to: `the ledger's database`.
type Connection = (&'static str, Arc<dyn Any + Send + Sync>);

/// The table of a server.
pub type Table = serde_json::Map<String, Json>;

impl Servers {
    /// These servers, none of them looked up yet.
    pub fn new(tables: BTreeMap<String, Table>) -> Self {
        Servers { tables: Arc::new(tables), ..Servers::default() }
    }

    /// The same servers, with a memory of its own for what is looked up.
    #[must_use]
    pub fn with_own_usage(&self) -> Self {
        Servers { used: Arc::default(), used_connections: Arc::default(), ..self.clone() }
    }

    /// The id and table of a server, which counts as used from now on.
    pub fn get(&self, id: &str) -> Option<(&str, &Table)> {
        let (id, table) = self.tables.get_key_value(id)?;
        self.used.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone());
        Some((id, table))
    }

    /// Adds a connection that adapters share, which find it by its type; `to` says what it is to, as in "the ledger's
    /// database".
    #[must_use]
    pub fn with_connection<T: Any + Send + Sync>(mut self, to: &'static str, connection: Arc<T>) -> Self {
        self.connections.insert(TypeId::of::<T>(), (to, connection));
        self
    }

    /// The shared connection of a type, which counts as used from now on.
    pub fn connection<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let (to, connection) = self.connections.get(&TypeId::of::<T>())?.clone();
        self.used_connections.lock().unwrap_or_else(PoisonError::into_inner).insert(to);
        connection.downcast().ok()
    }

    /// What the connections that were looked up are to.
    pub fn used_connections(&self) -> Vec<&'static str> {
        self.used_connections.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }

    /// The ids and tables of all servers.
    pub fn all(&self) -> Vec<(String, Table)> {
        self.tables.iter().map(|(id, table)| (id.clone(), table.clone())).collect()
    }

    /// The ids of all servers.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.tables.keys().map(String::as_str)
    }

    /// The ids and tables of the servers that were looked up.
    pub fn used(&self) -> Vec<(String, Table)> {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.iter().filter_map(|id| Some((id.clone(), self.tables.get(id)?.clone()))).collect()
    }
}

impl PartialEq for Servers {
    fn eq(&self, other: &Self) -> bool {
        self.tables == other.tables
    }
}
