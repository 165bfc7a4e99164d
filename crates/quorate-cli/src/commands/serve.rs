//! `quorate serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use crate::arguments::{EventsArguments, PathArguments};

/// Show runs as pages in a browser, live, and serve an HTTP API
///
/// Only processes of this machine can connect. The printed link works once and begins a session; programs send the bearer
/// token. With --read-only nothing can be changed, and the ledger is not written.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate serve --open\n  quorate serve --read-only --port 7878\n  TOKEN=… quorate serve --token-env TOKEN"
)]
pub(super) struct Arguments {
    /// Open the pages in the browser
    #[arg(long)]
    open: bool,
    /// Show, and change nothing
    #[arg(long)]
    read_only: bool,
    /// The port on 127.0.0.1; by default a free one
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    /// The environment variable that holds the bearer token; by default the token is random
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    token_env: Option<String>,
    /// The workspace; by default the one that contains this directory
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    #[command(flatten)]
    events: EventsArguments,
    /// Serve numbers for Prometheus at this address, as 127.0.0.1:9464
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    #[command(flatten)]
    places: PathArguments,
}

#[cfg(feature = "serve")]
pub(super) use served::run;

/// The command of a build with the feature.
#[cfg(feature = "serve")]
mod served {
    use std::io::{self, IsTerminal as _, Write as _};

    use quorate_diagnostics::codes;
    use quorate_web::{Deadlines, Listener, Server, WebServerOptions};
    use serde_json::json;
    use tempfile::NamedTempFile;

    use super::Arguments;
    use crate::events::{Events, Role};
    use crate::exit::{Ended, Exit};
    use crate::interrupt::{self, Interrupted, until_interrupted};
    use crate::metrics;
    use crate::terminal::Terminal;
    use quorate::Quorate;

    pub(crate) async fn run(arguments: Arguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
        let quorate = &arguments.places.apply(&metrics::serve(arguments.metrics, quorate)?);
        let options = WebServerOptions {
            port: arguments.port,
            token: crate::environment::token(arguments.token_env.as_deref(), codes::REQUEST_REFUSED)?,
            root: arguments.root,
            read_only: arguments.read_only,
            deadlines: Deadlines::default(),
        };
        let mut events = Events::connect(arguments.events, Role::Both, quorate).await?;
        let server = Server::open(quorate, &options)?;
        let listener = Listener::open(&options).await?;
        // Once the server has printed its link, a signal is its regular end.
        interrupt::exit_cleanly_on_signal();
        announce(&listener, arguments.token_env.as_deref(), terminal);
        let page = if arguments.open { Some(open_in_browser(&listener.link())) } else { None };
        if let Some(Err(error)) = &page {
            terminal.status(&format!("cannot start a browser: {error}; open the link yourself"));
        }
        let served = listener.serve(&server, |link| {
            terminal.hint(&format!("the link was used; for another browser: {link}"));
        });
        let served = metrics::count_queue_during(served, quorate);
        let (Ok(()) | Err(Interrupted)) = until_interrupted(events.during(served, terminal)).await;
        server.close();
        events.close().await;
        Ok(Exit::DONE)
    }

    /// Prints the link for people, or one line of JSON for programs.
    fn announce(listener: &Listener, token_env: Option<&str>, terminal: &Terminal) {
        let (url, link) = (listener.url(), listener.link());
        if !std::io::stdout().is_terminal() {
            let line = json!({"url": url, "link": link, "token": listener.token()});
            return terminal.verbatim(&format!("{line}\n"));
        }
        terminal.verbatim(&format!("{link}\n"));
        let token = token_env.map_or_else(|| listener.token().to_owned(), |name| format!("${name}"));
        terminal.hint("The link works once. Ctrl-C ends the server.");
        terminal.hint(&format!("Programs: curl -H \"Authorization: Bearer {token}\" {url}/api/v1/runs"));
    }

    /// Opens a link in the user's browser. A file that only this user can read passes the link, since other users see the
    /// arguments of processes. The file lasts as long as the returned value.
    fn open_in_browser(link: &str) -> io::Result<NamedTempFile> {
        let mut page = tempfile::Builder::new().prefix("quorate-").suffix(".html").tempfile()?;
        write!(
            page,
            "<!doctype html><meta http-equiv=\"refresh\" content=\"0; url={link}\"><a href=\"{link}\">Quorate</a>"
        )?;
        page.flush()?;
        open::that_detached(page.path())?;
        Ok(page)
    }
}
