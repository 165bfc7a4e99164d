//! MCP over standard input and output, for one client; when it disconnects, everything that it started ends.

mod lines;

use std::sync::Arc;

use quorate_diagnostics::{Body, codes};
use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use rmcp::transport::stdio_pipes;

use super::{Connection, ServerState};
use lines::LineTransport;
use quorate::service::error::{ServiceError, error_chain};

/// Serves until standard input ends. Pending answers then get a few seconds.
///
/// # Errors
/// When the input is not MCP.
pub async fn serve(state: &Arc<ServerState>) -> Result<(), ServiceError> {
    let (reader, writer) = stdio_pipes();
    match Connection(state.clone()).serve(LineTransport::new(reader, writer)).await {
        Ok(running) => {
            // The reason of the end does not matter.
            let _ = running.waiting().await;
            Ok(())
        }
        // A client that sent nothing gets no answer.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => {
            let body = Body::new(format!("the client does not speak MCP: {}", error_chain(&error)));
            let help = "`quorate mcp` is started by an MCP client; `--http` serves several";
            Err(ServiceError::configuration(codes::MCP_UNUSABLE, body.help(help)))
        }
    }
}
