//! The in-memory provisioning, checked against the port's contract. The one that reads the disk has its tests beside it.
use quorate_adapters::provisioning::memory::Memory;
use quorate_kernel::ports::provisioning::{Destination, FileMode, Package, PackageFile, Strategy};
use quorate_testkit::conformance::{provisioning_returns_current_package, provisioning_returns_package};

fn piece(dest: &str, bytes: &str) -> PackageFile {
    PackageFile {
        dest: Destination::parse(dest).unwrap(),
        strategy: Strategy::Append,
        mode: FileMode::Plain,
        bytes: bytes.as_bytes().into(),
        source: dest.to_owned(),
    }
}

#[tokio::test]
async fn memory_gives_what_it_holds() {
    let memory = Memory(Package::new("s", "2", vec![piece("a", "2")]).unwrap());
    assert_eq!(provisioning_returns_package(&memory).await.slug, "s");
    provisioning_returns_current_package(&memory, "2", &[piece("a", "2")]).await;
}
