//! The `memory` provisioning: a package in memory, for tests, for demonstrations, and for programs that bring their files
//! with them.

use std::sync::Arc;

use async_trait::async_trait;
use quorate_kernel::ports::executor::ConfigError;
use quorate_kernel::ports::provisioning::{
    About, Destination, Failure, FileMode, Package, PackageFile, Provisioning, Strategy,
};
use quorate_kernel::registry::BuildContext;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The kind that manifests name.
pub const KIND: &str = "memory";

/// Builds it from its block: `slug`, `version`, and `files` with `dest`, `content`, `strategy` and `executable`.
///
/// # Errors
/// When the block has another form, or is not a valid package.
pub fn new(build: &BuildContext<'_>) -> Result<Arc<dyn Provisioning>, ConfigError> {
    Ok(Arc::new(Memory(package(build.block.clone())?)))
}

fn package(mut block: Map<String, Value>) -> Result<Package, ConfigError> {
    block.remove("kind");
    let block: Block = serde_json::from_value(Value::Object(block))
        .map_err(|error| ConfigError::for_block(error.to_string()))?;
    let pieces = block.files.into_iter().map(File::into_package_file).collect::<Result<Vec<_>, _>>()?;
    Package::new(block.slug, block.version, pieces)
        .map_err(|unfit| ConfigError::for_key("files", unfit.to_string()))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Block {
    slug: String,
    version: String,
    files: Vec<File>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    dest: String,
    content: String,
    strategy: Strategy,
    #[serde(default)]
    executable: bool,
}

impl File {
    fn into_package_file(self) -> Result<PackageFile, ConfigError> {
        let dest =
            Destination::parse(&self.dest).map_err(|problem| ConfigError::for_key("files", problem))?;
        Ok(PackageFile {
            source: format!("{dest} of the block"),
            dest,
            strategy: self.strategy,
            mode: if self.executable { FileMode::Executable } else { FileMode::Plain },
            bytes: self.content.into_bytes().into(),
        })
    }
}

/// A package in memory.
#[derive(Debug)]
pub struct Memory(pub Package);

#[async_trait]
impl Provisioning for Memory {
    fn about(&self) -> About {
        About { kind: KIND, from: KIND.to_owned() }
    }

    async fn package(&self) -> Result<Package, Failure> {
        Ok(self.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn its_block_is_a_package_or_refused() {
        let read = |block: Value| package(block.as_object().cloned().unwrap());
        let file = |dest: &str| json!({"dest": dest, "content": "x", "strategy": "merge-json-deep"});
        let block = |dest: &str| json!({"kind": KIND, "slug": "s", "version": "1", "files": [file(dest)]});
        assert_eq!(read(block("a")).unwrap().files()[0].strategy, Strategy::MergeJsonDeep);
        assert!(read(block("../a")).unwrap_err().message.contains("leads out"));
        assert!(read(json!({"slug": "s"})).unwrap_err().message.contains("version"));
        let twice = json!({"slug": "s", "version": "1", "files": [file("a"), file("A")]});
        assert!(read(twice).unwrap_err().message.contains("differs only in case"));
    }
}
