//! A database for one test, on the server that `QUORATE_TEST_POSTGRES` names.

#![allow(dead_code, reason = "each test binary uses some of it")]

use quorate_ledger::Store;
use quorate_ledger::store::address::StoreAddress;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _};
use tempfile::TempDir;

/// A database, and the directories of the machines that write to it.
pub(crate) struct Database {
    pub(crate) url: String,
    server: String,
    name: String,
    machines: TempDir,
}

impl Database {
    /// Creates one; `None`, with a message, if no server is named.
    pub(crate) async fn new() -> Option<Database> {
        let Ok(server) = std::env::var("QUORATE_TEST_POSTGRES") else {
            eprintln!("SKIPPED: QUORATE_TEST_POSTGRES names no server (scripts/services start postgres)");
            return None;
        };
        let machines = TempDir::with_prefix("quorate-").expect("a directory");
        let unique = machines.path().file_name().and_then(|name| name.to_str()).expect("a name");
        let name = format!("t{}_{}", std::process::id(), unique.replace('-', "_"));
        run(&server, &format!("CREATE DATABASE \"{name}\"")).await;
        let base = server.rsplit_once('/').expect("it ends with a database").0;
        Some(Database { url: format!("{base}/{name}"), server, name, machines })
    }

    /// Its address, for a machine.
    pub(crate) fn address(&self, machine: &str) -> StoreAddress {
        StoreAddress::Postgres { url: self.url.clone(), dir: self.machines.path().join(machine) }
    }

    /// The ledger in it, as a machine opens it.
    pub(crate) async fn open(&self, machine: &str) -> Store {
        Store::open_at(&self.address(machine)).await.expect("it opens").store
    }

    /// Executes statements in it.
    pub(crate) async fn run(&self, statement: &str) {
        run(&self.url, statement).await;
    }

    /// How many rows a table has.
    pub(crate) async fn count(&self, table: &str) -> i64 {
        let mut connection = PgConnection::connect(&self.url).await.expect("the server answers");
        let count = sqlx::query(AssertSqlSafe(format!("SELECT COUNT(*) FROM {table}")));
        count.fetch_one(&mut connection).await.expect("a number").get(0)
    }

    /// The texts of the first column of a selection.
    pub(crate) async fn column(&self, select: &str) -> Vec<String> {
        let mut connection = PgConnection::connect(&self.url).await.expect("the server answers");
        let rows =
            sqlx::query(AssertSqlSafe(select.to_owned())).fetch_all(&mut connection).await.expect(select);
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// A setting of the server.
    pub(crate) async fn setting(&self, name: &str) -> String {
        let mut connection = PgConnection::connect(&self.url).await.expect("the server answers");
        let setting = sqlx::query("SELECT current_setting($1)").bind(name);
        setting.fetch_one(&mut connection).await.expect("a setting").get(0)
    }

    /// The processes that serve other connections to it.
    pub(crate) async fn others(&self) -> Vec<i32> {
        let mut connection = PgConnection::connect(&self.url).await.expect("the server answers");
        let others =
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
        let rows = sqlx::query(others).fetch_all(&mut connection).await.expect("rows");
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// Ends every other connection to it.
    pub(crate) async fn terminate_others(&self) {
        let statement = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity \
                         WHERE datname = current_database() AND pid <> pg_backend_pid()";
        self.run(statement).await;
    }
}

async fn run(url: &str, statement: &str) {
    let mut connection = PgConnection::connect(url).await.expect("the server answers");
    sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut connection).await.expect(statement);
}

impl Drop for Database {
    fn drop(&mut self) {
        let (server, statement) =
            (self.server.clone(), format!("DROP DATABASE IF EXISTS \"{}\" WITH (FORCE)", self.name));
        // A test's own runtime cannot be blocked on in here.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(run(&server, &statement));
        });
        let _ = dropping.join();
    }
}
