//! `--metrics`: the numbers of a worker or a server, for Prometheus.

use std::net::SocketAddr;

use quorate::{Error, Quorate};

/// Serves the metrics of a workspace at an address, if one is configured; returns the workspace to use.
///
/// # Errors
/// If the address is unavailable, or this build has no metrics.
#[cfg(feature = "metrics")]
pub(crate) fn serve(address: Option<SocketAddr>, quorate: &Quorate) -> Result<Quorate, Error> {
    use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
    use quorate::cluster::describe_metrics;
    use quorate::cluster::metrics::APPEND_SECONDS;
    use quorate_diagnostics::{Body, codes};

    /// The bounds of buckets, in seconds: for database operations, and for model calls.
    const FAST: [f64; 12] = [0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0];
    const SLOW: [f64; 12] = [0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0];

    let Some(address) = address else { return Ok(quorate.clone()) };
    let unusable = |why: &dyn std::fmt::Display| {
        let body = Body::new(format!("cannot listen on {address}: {why}"));
        let body = body.help("choose another address with `--metrics`");
        Error::new(quorate::ErrorKind::Configuration, codes::ADDRESS_UNUSABLE, body)
    };
    if address.port() == 0 {
        return Err(unusable(&"Prometheus needs to know the port, and 0 is none"));
    }
    let builder = PrometheusBuilder::new().with_http_listener(address);
    let builder = builder.set_buckets_for_metric(Matcher::Full(APPEND_SECONDS.to_owned()), &FAST);
    let builder =
        builder.and_then(|b| b.set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SLOW));
    builder.and_then(PrometheusBuilder::install).map_err(|error| unusable(&error))?;
    describe_metrics();
    Ok(quorate.metered())
}

/// Runs `work`; counts the queue meanwhile if metrics are enabled.
#[cfg(feature = "serve")]
pub(crate) async fn count_queue_during<T>(work: impl Future<Output = T>, quorate: &Quorate) -> T {
    #[cfg(feature = "postgres")]
    let counting = quorate.count_queue();
    #[cfg(not(feature = "postgres"))]
    let counting = {
        let _ = quorate;
        std::future::pending::<std::convert::Infallible>()
    };
    tokio::select! {
        done = work => done,
        never = counting => match never {},
    }
}

#[cfg(not(feature = "metrics"))]
pub(crate) fn serve(address: Option<SocketAddr>, quorate: &Quorate) -> Result<Quorate, Error> {
    match address {
        None => Ok(quorate.clone()),
        Some(_) => Err(crate::exit::feature_missing("metrics")),
    }
}
