//! `quorate mcp`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

/// The default address: only this machine, on a free port.
const DEFAULT_ADDRESS: &str = "127.0.0.1:0";

/// Serve conversations, the Council and assemblies to MCP clients
///
/// Over standard input and output, for a client that starts it; with --http for several. Tools read and write only below
/// the root. Over HTTP the Host must be this server's, and an Origin must be allowed; an address that other machines can
/// reach requires a token.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate mcp\n  quorate mcp --manifest multi-agent.yaml\n  TOKEN=… quorate mcp --http 0.0.0.0:8700 --token-env TOKEN"
)]
pub(super) struct Arguments {
    /// A runtime manifest whose conversation to offer, and optionally an id for the conversation; repeatable
    #[arg(long = "manifest", value_name = "[ID=]PATH")]
    manifests: Vec<OsString>,
    /// The workspace; paths outside it are refused. By default the one that contains this directory
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Serve over HTTP, at /mcp; by default on 127.0.0.1 and a free port. The address is printed as one line of JSON
    #[arg(long, value_name = "ADDR:PORT", num_args = 0..=1, default_missing_value = DEFAULT_ADDRESS)]
    http: Option<SocketAddr>,
    /// The environment variable that holds the bearer token
    #[arg(long, value_name = "NAME", requires = "http", value_parser = NonEmptyStringValueParser::new())]
    token_env: Option<String>,
    /// The origin of a web page that may send requests, for example https://app.example.com; repeatable
    #[arg(long = "allow-origin", value_name = "ORIGIN", requires = "http")]
    origins: Vec<String>,
    /// Offer only the tools that change nothing
    #[arg(long)]
    read_only: bool,
}

#[cfg(feature = "mcp")]
pub(super) use served::run;

/// The command of a build with the feature.
#[cfg(feature = "mcp")]
mod served {
    use std::ffi::OsString;

    use quorate_diagnostics::{Body, codes};
    use serde_json::json;

    use super::Arguments;
    use crate::exit::{Ended, Exit, warn};
    use crate::interrupt::{self, until_interrupted};
    use crate::terminal::Terminal;
    use quorate::{Error, ErrorKind, Quorate};
    use quorate_mcp::http::{self, Deadlines, McpListener, Origin};
    use quorate_mcp::{McpServerOptions, OfferedManifest, ServerState, stdio};

    pub(crate) async fn run(arguments: Arguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
        let listening = match &arguments.http {
            Some(address) => Some(http::McpHttpOptions {
                address: *address,
                token: crate::environment::token(arguments.token_env.as_deref(), codes::MCP_EXPOSED)?,
                origins: origins(&arguments.origins)?,
                deadlines: Deadlines::default(),
            }),
            None => None,
        };
        let manifests = arguments.manifests.into_iter().map(manifest).collect();
        let options = McpServerOptions { manifests, root: arguments.root, read_only: arguments.read_only };
        let (state, report) = ServerState::open(quorate, &options)?;
        warn(&report, terminal);
        let served_to_the_end = async {
            match listening {
                None => stdio::serve(&state).await,
                Some(options) => {
                    let listening = McpListener::open(options).await?;
                    let url = format!("http://{}{}", listening.address(), http::PATH);
                    terminal.data(&format!("{}\n", json!({"url": url})));
                    terminal.hint(&format!("listening on {url}"));
                    listening.serve(&state).await;
                    Ok(())
                }
            }
        };
        // A signal is the regular end of a server: clients hang up and send one at once.
        interrupt::exit_cleanly_on_signal();
        let ended = until_interrupted(served_to_the_end).await.unwrap_or(Ok(()));
        state.close();
        ended.map(|()| Exit::DONE)
    }

    /// Parses `[ID=]PATH`. A `/` before the first `=` means that the whole text is a path, as in `./a=b/swarm.yaml`.
    fn manifest(written: OsString) -> OfferedManifest {
        let split = written.to_str().and_then(|text| text.split_once('='));
        match split.filter(|(id, path)| !id.is_empty() && !id.contains('/') && !path.is_empty()) {
            Some((id, path)) => OfferedManifest { id: Some(id.to_owned()), path: path.into() },
            None => OfferedManifest { id: None, path: written.into() },
        }
    }

    fn origins(written: &[String]) -> Result<Vec<Origin>, Error> {
        let read = |text: &String| {
            text.parse().map_err(|problem: String| {
                Error::new(ErrorKind::InvalidRequest, codes::USAGE, Body::new(problem))
            })
        };
        written.iter().map(read).collect()
    }
}
