//! The address of a ledger: a file, or a Postgres database. A password in an address is never shown.

use std::fmt::{self, Debug, Display, Formatter};
use std::path::{Path, PathBuf};

use super::KNOWN_PARAMETERS;
use crate::files;

/// The location of a ledger.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreAddress {
    /// A SQLite file. Keys, holds and quarantined files are in its directory.
    File(PathBuf),
    /// A database of a Postgres server.
    Postgres {
        /// The server's address with all parameters.
        url: String,
        /// This machine's directory for data outside of the database: keys, run locks and the index of the log.
        dir: PathBuf,
    },
}

/// Those that are not shown. The others identify the ledger and contain no secrets.
const SECRET_PARAMETERS: [&str; 2] = ["password", "sslkey"];

impl StoreAddress {
    /// Whether a text is the address of a Postgres server.
    pub fn is_postgres(text: &str) -> bool {
        text.starts_with("postgres://") || text.starts_with("postgresql://")
    }

    /// Whether a text looks like an invalid server address: `postgres:` without `//`, or a user and a password before a
    /// host. As a file name it would show its password, and a directory would be named after it.
    pub fn is_mistyped(text: &str) -> bool {
        let scheme = text.split(':').next().filter(|scheme| scheme.len() < text.len()).unwrap_or_default();
        let is_ours = ["postgres", "postgresql"].iter().any(|ours| scheme.eq_ignore_ascii_case(ours));
        let user_and_password = || text.split_once('@').is_some_and(|(before, _)| before.contains(':'));
        let is_path = text.starts_with(['.', '/', '~']);
        !text.contains("://") && !is_path && (is_ours || user_and_password())
    }

    /// The file; `None` for a database.
    pub fn file(&self) -> Option<&Path> {
        match self {
            StoreAddress::File(path) => Some(path),
            StoreAddress::Postgres { .. } => None,
        }
    }

    /// The value of `--ledger` for this address, with all parameters.
    pub fn as_argument(&self) -> PathBuf {
        match self {
            StoreAddress::File(path) => path.clone(),
            StoreAddress::Postgres { url, .. } => url.into(),
        }
    }

    /// This machine's directory for data outside of the ledger itself.
    pub fn dir(&self) -> &Path {
        match self {
            StoreAddress::File(path) => path.parent().unwrap_or(Path::new(".")),
            StoreAddress::Postgres { dir, .. } => dir,
        }
    }

    /// The identity of this ledger among those that share its directory: the file's name, or the address of the
    /// database without parameters.
    pub fn identity(&self) -> String {
        match self {
            StoreAddress::File(path) => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            StoreAddress::Postgres { url, .. } => database(url),
        }
    }

    /// Whether a ledger may exist: `false` for a missing file, `true` for a database, because only the server knows.
    pub fn may_exist(&self) -> bool {
        self.file().is_none_or(Path::is_file)
    }

    /// Checks the address of a database: no parameter is unknown or contradicts another.
    ///
    /// # Errors
    /// The reason why it is refused.
    #[cfg(feature = "postgres")]
    pub fn check(&self) -> Result<(), super::InvalidAddress> {
        match self {
            StoreAddress::File(_) => Ok(()),
            StoreAddress::Postgres { url, .. } => super::postgres::connect_options(url).map(drop),
        }
    }

    pub(super) fn create_dir(&self) -> std::io::Result<()> {
        files::ensure_ledger_dir(self.dir())
    }
}

impl From<&Path> for StoreAddress {
    fn from(path: &Path) -> Self {
        StoreAddress::File(path.to_owned())
    }
}

impl Display for StoreAddress {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            StoreAddress::File(path) => Display::fmt(&path.display(), f),
            StoreAddress::Postgres { url, .. } => f.write_str(&without_secrets(url)),
        }
    }
}

impl Debug for StoreAddress {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "StoreAddress({self})")
    }
}

/// The server, database, user and session settings of an address, completed from the environment.
#[cfg(feature = "postgres")]
fn database(url: &str) -> String {
    use std::str::FromStr as _;
    let Ok(options) = sqlx::postgres::PgConnectOptions::from_str(url) else { return without_secrets(url) };
    let name = options.get_database().unwrap_or_else(|| options.get_username());
    format!(
        "postgres {} {} {name} {} {}",
        options.get_host(),
        options.get_port(),
        options.get_username(),
        options.get_options().unwrap_or_default()
    )
}

#[cfg(not(feature = "postgres"))]
fn database(url: &str) -> String {
    without_secrets(url)
}

/// The address without its password, and without parameters that may contain one.
fn without_secrets(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("postgres", ""));
    let (rest, query) = match rest.split_once('?') {
        Some((rest, query)) => (rest, Some(query)),
        None => (rest, None),
    };
    let end = rest.find(['/', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    // A password with an unescaped reserved character has an ambiguous end.
    if path.contains('@') || path.contains('#') || query.is_some_and(|query| query.contains(['@', '#'])) {
        return format!("{scheme}://…");
    }
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (user.split(':').next(), host),
        None => (None, authority),
    };
    // The text in the place of the port is not a number.
    if host.rsplit_once(':').is_some_and(|(_, port)| port.contains(|c: char| !c.is_ascii_digit() && c != ']'))
    {
        return format!("{scheme}://…");
    }
    let authority = user.map_or_else(|| host.to_owned(), |user| format!("{user}@{host}"));
    let shown = |pair: &&str| {
        let key = pair.split('=').next().unwrap_or_default();
        let is_secret = !KNOWN_PARAMETERS.contains(&key) || SECRET_PARAMETERS.contains(&key);
        !is_secret || key.starts_with("options[")
    };
    let query: Vec<&str> = query.unwrap_or_default().split('&').filter(shown).collect();
    match query.is_empty() {
        true => format!("{scheme}://{authority}{path}"),
        false => format!("{scheme}://{authority}{path}?{}", query.join("&")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_its_slashes_is_no_file() {
        for text in [
            "postgres:ada:s3cret@db/q",
            "postgresql:ada:s3cret@db/q",
            "postgres:/ada:s3cret@db/q",
            "Postgres:ada@db/q",
            "postgres:q",
            "ada:s3cret@db/q",
            "psql:ada:s3cret@db:5432/q",
        ] {
            assert!(StoreAddress::is_mistyped(text), "{text}");
        }
        for text in [
            "postgres://ada:s3cret@db/q",
            "mysql://ada:s3cret@db/q",
            "ledger.db",
            "postgres",
            "postgres.db",
            "./postgres:q",
            "/var/lib/postgres:q@a",
            "data/a@b.db",
            "a@b:c.db",
            "C:\\ledger.db",
        ] {
            assert!(!StoreAddress::is_mistyped(text), "{text}");
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        // X10
        for (url, shown) in [
            ("postgres://ada:s3cret@db:5433/quorate", "postgres://ada@db:5433/quorate"),
            ("postgres://ada@db/quorate", "postgres://ada@db/quorate"),
            (
                "postgresql://db/quorate?password=s3cret&sslmode=require",
                "postgresql://db/quorate?sslmode=require",
            ),
            ("postgres:///q?host=/run/pg&user=ada&password=s3cret", "postgres:///q?host=/run/pg&user=ada"),
            ("postgres://ada:a@s3cret@db/q", "postgres://ada@db/q"),
            ("postgres://ada@[::1]:5433/q", "postgres://ada@[::1]:5433/q"),
            ("postgres://ada:a/s3cret@db/q", "postgres://…"),
            ("postgres://ada:a?s3cret@db/q", "postgres://…"),
            ("postgres://ada:a#s3cret@db/q", "postgres://…"),
            ("postgres://ada:s3cret", "postgres://…"),
        ] {
            let address = StoreAddress::Postgres { url: url.to_owned(), dir: PathBuf::new() };
            assert_eq!(address.to_string(), shown);
            assert_eq!(format!("{address:?}"), format!("StoreAddress({shown})"));
        }
    }
}
