//! What is below `.quorate/`, as bytes: taken, and put back.

use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use crate::support::shim::Image;

use crate::support::TestDir;

/// All files below a directory.
pub(crate) fn taken(dir: &Path, above: &str) -> Image {
    let mut image = Image::new();
    for entry in std::fs::read_dir(dir).expect("a directory").flatten() {
        let name = format!("{above}{}", entry.file_name().to_str().expect("a name"));
        match entry.path().is_dir() {
            true => image.extend(taken(&entry.path(), &format!("{name}/"))),
            false => drop(image.insert(name, std::fs::read(entry.path()).expect("a file"))),
        }
    }
    image.retain(|name, _| !name.ends_with("-shm"));
    image
}

/// Replaces the files by an image. The state directory is newer than the image, so it is removed as well.
pub(crate) fn lay(place: &TestDir, image: &Image) {
    let dir = place.quorate();
    for dir in [&dir, &place.path(".local/state")] {
        if dir.exists() {
            std::fs::remove_dir_all(dir).expect("it is ours");
        }
    }
    for (name, bytes) in image {
        let path = dir.join(name);
        let above = path.parent().expect("it has one");
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(above).expect("directories");
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(&path).expect("a new file");
        std::io::Write::write_all(&mut file, bytes).expect("it is written");
    }
}
