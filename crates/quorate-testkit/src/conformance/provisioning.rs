//! Requirements on every provisioning adapter (see the port's documentation).

use quorate_kernel::ports::provisioning::{
    Failure, MAX_FILE_BYTES, MAX_FILES, MAX_PACKAGE_BYTES, Package, PackageFile, Provisioning,
};

/// Asserts that an adapter returns its package: the same each time, within the limits, and without refusals.
///
/// # Panics
/// When it does not.
pub async fn returns_package(provisioning: &dyn Provisioning) -> Package {
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
pub async fn returns_current_package(provisioning: &dyn Provisioning, version: &str, pieces: &[PackageFile]) {
    let package = returns_package(provisioning).await;
    assert_eq!((package.version.as_str(), package.files()), (version, pieces));
}

/// Asserts that an adapter without a package reports it as missing.
///
/// # Panics
/// When it does not.
pub async fn reports_missing(provisioning: &dyn Provisioning) {
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
pub async fn refuses_unfit_package(provisioning: &dyn Provisioning) -> String {
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
