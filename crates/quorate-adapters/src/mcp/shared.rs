//! One connection for all adapters of a process that name the same server.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::connection::Connection;
use super::server::Server;

/// The connections in use. A connection closes with its last user, and its entry is then removed.
static CONNECTIONS: Mutex<Vec<Weak<Connection>>> = Mutex::new(Vec::new());

/// The existing connection to a server, or a new one.
pub(super) fn connection(server: Server) -> Arc<Connection> {
    let mut used = CONNECTIONS.lock().unwrap_or_else(PoisonError::into_inner);
    used.retain(|connection| connection.strong_count() > 0);
    let same = |connection: &Weak<Connection>| connection.upgrade().filter(|found| *found.server() == server);
    if let Some(found) = used.iter().find_map(same) {
        return found;
    }
    let new = Arc::new(Connection::new(server));
    used.push(Arc::downgrade(&new));
    new
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::{Server, connection};

    fn server(table: Value) -> Server {
        Server::parse("guilde", table.as_object().unwrap(), Path::new("/")).unwrap()
    }

    #[test]
    fn the_same_table_is_the_same_connection_for_as_long_as_it_is_used() {
        let first = connection(server(json!({"url": "http://127.0.0.1:1/shared"})));
        let same = connection(server(json!({"url": "http://127.0.0.1:1/shared"})));
        let other = connection(server(json!({"url": "http://127.0.0.1:1/shared", "token": "OTHER"})));
        assert!(Arc::ptr_eq(&first, &same) && !Arc::ptr_eq(&first, &other));
        let weak = Arc::downgrade(&first);
        drop((first, same));
        assert!(weak.upgrade().is_none());
    }
}
