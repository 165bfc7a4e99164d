//! MCP over standard input and output: one client, and when it goes everything that it started ends.

mod lines;

use std::sync::Arc;

use quorate_diagnostics::{Body, codes};
use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use rmcp::transport::stdio_pipes;

use super::{Connection, ServerState};
use lines::LineTransport;
use quorate::service::error::{ServiceError, error_chain};

/// Serves until standard input ends. Answers that are on their way then get a few seconds.
///
/// # Errors
/// When what comes in is not MCP.
pub async fn serve(served: &Arc<ServerState>) -> Result<(), ServiceError> {
    let (reader, writer) = stdio_pipes();
    match Connection(served.clone()).serve(LineTransport::new(reader, writer)).await {
        Ok(running) => {
            // How it came to an end makes no difference: it is one.
            let _ = running.waiting().await;
            Ok(())
        }
        // Whoever says nothing has nothing to be told.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => {
            let body = Body::new(format!("whoever started this does not speak MCP: {}", error_chain(&error)));
            let help = "`quorate mcp` is started by an MCP client; `--http` serves several";
            Err(ServiceError::configuration(codes::MCP_UNUSABLE, body.help(help)))
        }
    }
}
