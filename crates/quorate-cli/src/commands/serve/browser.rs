//! Starts the user's browser.

use std::io::{self, Write as _};

use tempfile::NamedTempFile;

/// Opens a link. It is passed in a file that only this user can read, since other users see the arguments of processes. The
/// file lasts as long as the returned value.
pub(super) fn open(link: &str) -> io::Result<NamedTempFile> {
    let mut page = tempfile::Builder::new().prefix("quorate-").suffix(".html").tempfile()?;
    write!(
        page,
        "<!doctype html><meta http-equiv=\"refresh\" content=\"0; url={link}\"><a href=\"{link}\">Quorate</a>"
    )?;
    page.flush()?;
    open::that_detached(page.path())?;
    Ok(page)
}
