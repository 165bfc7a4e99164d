//! TLS to the server, whose certificate for 127.0.0.1 is by its own authority. Needs the server that `scripts/services
//! start postgres` starts.

#![cfg(feature = "postgres")]

use crate::postgres::support;
use quorate_ledger::Store;
use quorate_ledger::store::address::StoreAddress;
use support::Database;

/// Opens the ledger with these parameters. Returns whether its connection is encrypted, or why there is none.
async fn is_encrypted(database: &Database, host: &str, parameters: &str) -> Result<bool, String> {
    let StoreAddress::Postgres { url, dir } = database.address("here") else {
        unreachable!("it is a server")
    };
    let url = format!("{}?{parameters}", url.replace("127.0.0.1", host));
    let opened = Store::open_at(&StoreAddress::Postgres { url, dir }).await.map_err(|error| {
        let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        format!("{error}: {source}")
    })?;
    let encrypted = "pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                     WHERE ssl AND application_name = 'quorate' AND datname = current_database()";
    let count = database.count(encrypted).await;
    opened.store.close().await;
    Ok(count == 1)
}

#[tokio::test]
async fn the_servers_certificate_is_verified_as_the_address_says() {
    let Some(database) = Database::new().await else { return };
    let authority = database.setting("ssl_ca_file").await;
    let own = format!("sslrootcert={authority}");
    for (host, parameters, encrypted) in [
        ("127.0.0.1", format!("sslmode=verify-full&{own}"), true),
        ("127.0.0.1", own.clone(), true),
        ("localhost", format!("sslmode=verify-ca&{own}"), true),
        ("127.0.0.1", "sslmode=require".to_owned(), true),
        ("127.0.0.1", "sslmode=prefer".to_owned(), true),
        ("127.0.0.1", "sslmode=disable".to_owned(), false),
    ] {
        assert_eq!(is_encrypted(&database, host, &parameters).await, Ok(encrypted), "{host} {parameters}");
    }
    // The certificate is for another name, and by an authority that the system does not know.
    for (host, parameters) in
        [("localhost", format!("sslmode=verify-full&{own}")), ("127.0.0.1", "sslmode=verify-full".to_owned())]
    {
        let refused = is_encrypted(&database, host, &parameters).await.expect_err(&parameters);
        assert!(refused.contains("certificate"), "{host} {parameters}: {refused}");
    }
}
