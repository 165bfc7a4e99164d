//! The ledger that a call reads and writes: opened, sealed and closed in one place. A caller that makes several calls can
//! hold it open with [`Quorate::session`].

use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;

use quorate_diagnostics::Report;

use super::builder::Quorate;
use super::error::Error;
use super::events::Interruption;
use super::service::runs::{self, Recorded};
use super::service::session::LedgerSession;

/// The result of a call, and the warnings of the workspace and of the call: problems that did not stop it. It dereferences
/// to the result.
///
/// ```
/// use quorate::Outcome;
///
/// let outcome = Outcome::from(vec!["a.md", "b.md"]).map(|names| names.len());
/// assert_eq!((*outcome, outcome.warnings.is_empty()), (2, true));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Outcome<T> {
    /// The result.
    pub value: T,
    /// The warnings.
    pub warnings: Report,
}

impl<T> Outcome<T> {
    /// Attaches warnings to a result or an error.
    pub(crate) fn of(result: Result<T, Error>, warnings: Report) -> Result<Outcome<T>, Error> {
        match result {
            Ok(value) => Ok(Outcome { value, warnings }),
            Err(error) => Err(Error::with_warnings(error, warnings)),
        }
    }

    /// The same warnings with another result.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Outcome<U> {
        Outcome { value: change(self.value), warnings: self.warnings }
    }
}

impl<T> From<T> for Outcome<T> {
    fn from(value: T) -> Outcome<T> {
        Outcome { value, warnings: Report::new() }
    }
}

impl<T> Deref for Outcome<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// A workspace whose ledger stays open for several calls; [`Quorate::session`] opens it. It has all methods of [`Quorate`].
/// [`Session::close`] seals the records that the calls appended and closes the ledger.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// # let dir = tempfile::tempdir()?;
/// use quorate::Quorate;
///
/// let session = Quorate::builder().workspace(dir.path()).build()?.session().await?;
/// let review = session.review_text("a.md", "The meeting moved to Tuesday at ten.\n").await?;
/// assert_eq!(&*session.find_run("latest").await?, review.run);
/// session.close().await;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Session {
    quorate: Quorate,
    held: Arc<LedgerSession>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Session").field(&self.quorate).finish()
    }
}

impl Deref for Session {
    type Target = Quorate;

    fn deref(&self) -> &Quorate {
        &self.quorate
    }
}

impl Session {
    /// Seals the records that were appended, and closes the ledger. Returns the warnings of that.
    #[crate::boxed]
    pub async fn close(self) -> Report {
        let Session { quorate, held } = self;
        drop(quorate);
        match Arc::into_inner(held) {
            Some(session) => session.close().await,
            // A clone of the workspace still makes calls; the last of them closes the ledger.
            None => Report::new(),
        }
    }
}

impl Quorate {
    /// Opens the ledger for several calls. Otherwise each call opens and closes it.
    ///
    /// # Errors
    /// If the configuration is invalid, or the ledger cannot be opened for writing.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use quorate::Quorate;
    ///
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let session = quorate.session().await?;
    /// session.review_text("a.md", "The meeting moved to Tuesday at ten.\n").await?;
    /// session.review_text("b.md", "The room is taken on Monday.\n").await?;
    /// assert!(session.close().await.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn session(&self) -> Result<Session, Error> {
        let held = Arc::new(runs::open_for_writing(&self.environment, &self.places).await?);
        Ok(Session { quorate: Quorate { held: Some(held.clone()), ..self.clone() }, held })
    }

    /// The ledger, which must exist.
    pub(crate) async fn open_existing(&self) -> Result<OpenSession, Error> {
        self.open(runs::open_read_only(&self.environment, &self.places)).await
    }

    /// The session that the caller holds, else the one that `opening` opens.
    pub(crate) async fn open(
        &self,
        opening: impl Future<Output = Result<LedgerSession, Error>> + Send,
    ) -> Result<OpenSession, Error> {
        Ok(OpenSession(match &self.held {
            Some(held) => held.clone(),
            None => Arc::new(opening.await?),
        }))
    }
}

/// The ledger of one call. A call ends it with [`OpenSession::finish`].
pub(crate) struct OpenSession(Arc<LedgerSession>);

impl Deref for OpenSession {
    type Target = Arc<LedgerSession>;

    fn deref(&self) -> &Arc<LedgerSession> {
        &self.0
    }
}

impl OpenSession {
    /// Does `work`. An interruption stops it: the result is then what `decided` makes of the run's report, if its outcome
    /// is recorded already.
    pub(crate) async fn until_interrupted<T>(
        &self,
        interruption: &Interruption,
        work: impl Future<Output = Result<T, Error>> + Send,
        decided: impl FnOnce(Recorded) -> Option<T> + Send,
    ) -> Result<T, Error> {
        tokio::select! {
            biased;
            done = work => return done,
            () = interruption.requested() => self.interrupt(),
        }
        let run = interruption.run();
        match &run {
            Some(run) => runs::decided_before_interruption(self, run).await?.and_then(decided),
            None => None,
        }
        .ok_or_else(|| runs::interrupted(self, run.as_ref()))
    }

    /// Seals what the call appended, closes the ledger unless the caller holds it, and attaches the warnings.
    #[crate::boxed]
    pub(crate) async fn finish<T: Send>(self, result: Result<T, Error>) -> Result<Outcome<T>, Error> {
        let warnings = match Arc::try_unwrap(self.0) {
            Ok(session) => {
                // Closing must not wait for this ledger. Other calls of a session that the caller holds have their own waits.
                if result.as_ref().is_err_and(Error::is_ledger_unavailable) {
                    session.interrupt();
                }
                session.close().await
            }
            Err(held) => {
                if held.store.has_appended() {
                    held.seal_run().await;
                }
                held.take_warnings()
            }
        };
        Outcome::of(result, warnings)
    }
}
