//! A Postgres server that a test has for itself.

use std::path::Path;
use std::process::Command;

use sqlx::{Connection as _, PgConnection, Row as _};

/// A Postgres of a test's own, since it crashes.
pub(crate) struct Server {
    dir: tempfile::TempDir,
    pub(crate) url: String,
}

impl Server {
    /// Starts it; `None`, which is said, where the tests are to have no server.
    pub(crate) fn start() -> Option<Server> {
        if std::env::var("QUORATE_TEST_POSTGRES").is_err() {
            eprintln!("SKIPPED: QUORATE_TEST_POSTGRES names no server, so none is started here either");
            return None;
        }
        let dir = tempfile::TempDir::with_prefix("quorate-").expect("a directory");
        let mut server = Server { url: String::new(), dir };
        server.url = server.script("start").trim().to_owned();
        Some(server)
    }

    /// Has `scripts/services` do something with it.
    pub(crate) fn script(&self, what: &str) -> String {
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().join("scripts/services");
        let ran = Command::new(script)
            .args([what, "postgres"])
            .env("QUORATE_SERVICES_DIR", self.dir.path().join("services"))
            .output()
            .expect("the script runs");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).expect("text")
    }

    /// The first column of rows, as text.
    pub(crate) fn column(&self, select: &'static str) -> Vec<String> {
        runtime().block_on(async {
            let mut connection = PgConnection::connect(&self.url).await.expect("the server answers");
            let rows = sqlx::query(select).fetch_all(&mut connection).await.expect("rows");
            rows.iter().map(|row| row.get::<String, _>(0)).collect()
        })
    }

    /// The first row of a selection of a number, as text.
    pub(crate) fn count(&self, select: &'static str) -> usize {
        self.column(select)[0].parse().expect("a number")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.script("stop");
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}
