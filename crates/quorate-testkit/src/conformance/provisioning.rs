//! What every provisioning adapter must do (see the port's text).

use quorate_kernel::ports::provisioning::{
    Failure, MAX_FILE_BYTES, MAX_FILES, MAX_PACKAGE_BYTES, Package, PackageFile, Provisioning,
};

/// An adapter gives its package: the same each time, within the limits, and with nothing against it.
///
/// # Panics
/// When it does not.
pub async fn returns_package(provisioning: &dyn Provisioning) -> Package {
    let about = provisioning.about();
    assert!(!about.kind.is_empty() && !about.from.is_empty(), "it says what it is, and where from");
    let package = provisioning.package().await.expect("a package");
    let again = provisioning.package().await.expect("a package, again");
    assert_eq!(
        (&package.slug, &package.version, package.files()),
        (&again.slug, &again.version, again.files()),
        "what has not changed is given as it was"
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
            pieces[..at].iter().all(|other| other.dest.conflict(&piece.dest).is_none()),
            "{} has a place of its own",
            piece.dest
        );
    }
    package
}

/// An adapter whose package was changed gives the one that is there now.
///
/// # Panics
/// When it gives another.
pub async fn returns_current_package(provisioning: &dyn Provisioning, version: &str, pieces: &[PackageFile]) {
    let package = returns_package(provisioning).await;
    assert_eq!((package.version.as_str(), package.files()), (version, pieces));
}

/// An adapter with nothing behind it says so.
///
/// # Panics
/// When it does not.
pub async fn reports_missing(provisioning: &dyn Provisioning) {
    match provisioning.package().await {
        Err(Failure::Missing { message }) => assert!(!message.trim().is_empty(), "it says what is missing"),
        other => panic!("expected that nothing is there, got {other:?}"),
    }
}

/// An adapter whose package is not fit refuses it, with a code and what is wrong, and gives no part of it. What it says
/// is returned.
///
/// # Panics
/// When it does not.
pub async fn refuses_unfit_package(provisioning: &dyn Provisioning) -> String {
    match provisioning.package().await {
        Err(Failure::Refused(report)) => {
            assert!(report.has_refusals(), "a refusal refuses");
            let messages: Vec<&str> =
                report.refusals.iter().map(|refusal| refusal.body.message.as_str()).collect();
            assert!(messages.iter().all(|message| !message.trim().is_empty()), "it says what is wrong");
            messages.join("\n")
        }
        other => panic!("expected a refusal, got {other:?}"),
    }
}
