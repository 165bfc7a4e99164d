//! Errors of the server. The client adds a line number, which is one of the server's own source.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt::{self, Display, Formatter};

use sqlx::error::{DatabaseError, ErrorKind};

/// An error of the server, in its words alone.
#[derive(Debug)]
struct ServerError(Box<dyn DatabaseError>);

/// An error of the client with what the server said, where it did.
pub(super) fn without_line_number(error: sqlx::Error) -> sqlx::Error {
    match error {
        sqlx::Error::Database(error) => sqlx::Error::Database(Box::new(ServerError(error))),
        other => other,
    }
}

impl Display for ServerError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.message())
    }
}

impl StdError for ServerError {}

impl DatabaseError for ServerError {
    fn message(&self) -> &str {
        self.0.message()
    }

    fn code(&self) -> Option<Cow<'_, str>> {
        self.0.code()
    }

    fn as_error(&self) -> &(dyn StdError + Send + Sync + 'static) {
        self
    }

    fn as_error_mut(&mut self) -> &mut (dyn StdError + Send + Sync + 'static) {
        self
    }

    fn into_error(self: Box<Self>) -> Box<dyn StdError + Send + Sync + 'static> {
        self
    }

    fn constraint(&self) -> Option<&str> {
        self.0.constraint()
    }

    fn table(&self) -> Option<&str> {
        self.0.table()
    }

    fn kind(&self) -> ErrorKind {
        self.0.kind()
    }
}
