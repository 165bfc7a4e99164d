//! The conformance suites: requirements on every adapter of a port.

pub mod dispatcher;
pub mod executor;
pub mod state;
pub mod substrate;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quorate_kernel::attempts::MemberConfig;
use quorate_kernel::conversation::Participant;
use quorate_kernel::ports::executor::{ConfigError, Servers};
use quorate_kernel::ports::provisioning::{
    Failure, MAX_FILE_BYTES, MAX_FILES, MAX_PACKAGE_BYTES, Package, PackageFile, Provisioning,
};
use quorate_kernel::ports::telemetry::{DEADLINE, HookError, Lifecycle};
use quorate_kernel::registry::{BuildContext, Builder};
use quorate_protocol::Json;

use dispatcher::turn;

/// Builds an adapter from its block, in a folder, without participants or executors.
///
/// # Errors
/// The adapter's refusal.
pub fn build_adapter<Port: ?Sized>(
    builder: &Builder<Port>,
    dir: &Path,
    block: &Json,
) -> Result<Arc<Port>, ConfigError> {
    build_with(builder, dir, block, &[], None)
}

/// Builds an adapter, with participants and one executor for every name, if any.
fn build_with<Port: ?Sized>(
    builder: &Builder<Port>,
    dir: &Path,
    block: &Json,
    participants: &[Participant],
    executor: Option<MemberConfig>,
) -> Result<Arc<Port>, ConfigError> {
    builder(&BuildContext {
        block: &block.as_object().cloned().unwrap_or_default(),
        dir,
        runtime: "conformance",
        conversation: "",
        participants,
        servers: &Servers::default(),
        executors: &dispatcher::FixedExecutor(executor),
    })
}

/// How long past its deadline a hook may take to end.
const GRACE: Duration = Duration::from_secs(4);

/// Calls every hook, one after the other, and asserts that each ends in time.
///
/// # Panics
/// When one does not.
pub async fn call_lifecycle_hooks(lifecycle: &dyn Lifecycle) -> [Result<(), HookError>; 3] {
    let turn = turn(1, "someone", "said\nin \"two\" lines");
    let limit = DEADLINE + GRACE;
    let late = "a hook ends by its deadline";
    [
        tokio::time::timeout(limit, lifecycle.on_turn_end(&turn)).await.expect(late),
        tokio::time::timeout(limit, lifecycle.on_mention("reviewer", &turn)).await.expect(late),
        tokio::time::timeout(limit, lifecycle.on_idle()).await.expect(late),
    ]
}

/// Asserts that a working lifecycle accepts every event, repeatedly.
///
/// # Panics
/// When it does not.
pub async fn lifecycle_accepts_every_event(lifecycle: &dyn Lifecycle) {
    assert!(!lifecycle.kind().is_empty());
    for _ in 0..2 {
        for (at, result) in call_lifecycle_hooks(lifecycle).await.into_iter().enumerate() {
            assert_eq!(result, Ok(()), "hook {at}");
        }
    }
}

/// Asserts that a lifecycle whose hooks all fail reports each failure with a message.
///
/// # Panics
/// When it does not.
pub async fn lifecycle_reports_failure(lifecycle: &dyn Lifecycle) {
    for _ in 0..2 {
        for (at, result) in call_lifecycle_hooks(lifecycle).await.into_iter().enumerate() {
            let message = result.expect_err("it fails");
            assert!(!message.trim().is_empty(), "hook {at} has words");
        }
    }
}

/// Asserts that an adapter returns its package: the same each time, within the limits, and without refusals.
///
/// # Panics
/// When it does not.
pub async fn provisioning_returns_package(provisioning: &dyn Provisioning) -> Package {
    let about = provisioning.about();
    assert!(!about.kind.is_empty() && !about.from.is_empty(), "it says what it is, and where from");
    let package = provisioning.package().await.expect("a package");
    let second = provisioning.package().await.expect("a package, again");
    assert_eq!(
        (&package.slug, &package.version, package.files()),
        (&second.slug, &second.version, second.files()),
        "an unchanged profile gives an equal package"
    );
    assert!(!package.report.has_refusals(), "a package that is refused is a failure");
    let pieces = package.files();
    assert!(pieces.len() <= MAX_FILES, "it keeps to the number of files");
    assert!(
        pieces.iter().all(|piece| piece.bytes.len() as u64 <= MAX_FILE_BYTES),
        "it keeps to the size of a file"
    );
    assert!(
        pieces.iter().map(|piece| piece.bytes.len() as u64).sum::<u64>() <= MAX_PACKAGE_BYTES,
        "and of all"
    );
    assert!(pieces.iter().all(|piece| !piece.source.is_empty()), "each file says where it is from");
    for (at, piece) in pieces.iter().enumerate() {
        assert!(
            pieces[..at].iter().all(|earlier| earlier.dest.conflict(&piece.dest).is_none()),
            "{} has a place of its own",
            piece.dest
        );
    }
    package
}

/// Asserts that an adapter whose package was changed returns the current one.
///
/// # Panics
/// When it returns another.
pub async fn provisioning_returns_current_package(
    provisioning: &dyn Provisioning,
    version: &str,
    pieces: &[PackageFile],
) {
    let package = provisioning_returns_package(provisioning).await;
    assert_eq!((package.version.as_str(), package.files()), (version, pieces));
}

/// Asserts that an adapter without a package reports it as missing.
///
/// # Panics
/// When it does not.
pub async fn provisioning_reports_missing(provisioning: &dyn Provisioning) {
    match provisioning.package().await {
        Err(Failure::Missing { message }) => assert!(!message.trim().is_empty(), "it says what is missing"),
        result => panic!("expected that nothing is there, got {result:?}"),
    }
}

/// Asserts that an adapter refuses an invalid package, with a code and a message, and returns no part of it. Returns the
/// messages.
///
/// # Panics
/// When it does not.
pub async fn provisioning_refuses_unfit_package(provisioning: &dyn Provisioning) -> String {
    match provisioning.package().await {
        Err(Failure::Refused(report)) => {
            assert!(report.has_refusals(), "a refusal refuses");
            let messages: Vec<&str> =
                report.refusals.iter().map(|refusal| refusal.body.message.as_str()).collect();
            assert!(messages.iter().all(|message| !message.trim().is_empty()), "it says what is wrong");
            messages.join("\n")
        }
        result => panic!("expected a refusal, got {result:?}"),
    }
}
