//! Inclusion paths for many records at once. 256 neighbours share their upper path, which is made once for all.

use crate::merkle::{self, Hash, HashSource as _, STRIDE};
use crate::store::engine::Engine;
use crate::store::tiles::{self, TreeError};

/// Paths in the tree of one checkpoint, from the stored hashes.
pub(crate) struct InclusionPaths {
    size: u64,
    block: Option<Block>,
}

/// 256 complete leaves, and the common part of their paths.
struct Block {
    index: u64,
    /// Level by level, leaves first.
    levels: Vec<Vec<Hash>>,
    above: Vec<Hash>,
}

impl InclusionPaths {
    /// In a tree of this size.
    pub(crate) fn new(size: u64) -> Self {
        InclusionPaths { size, block: None }
    }

    /// The stored leaf of a record, by its index from 0, and the path from there to the root.
    pub(crate) async fn path(
        &mut self,
        engine: &mut Engine,
        index: u64,
    ) -> Result<(Hash, Vec<Hash>), TreeError> {
        let block = index >> STRIDE;
        if (block + 1) << STRIDE > self.size {
            return single_path(engine, index, self.size).await;
        }
        let block = match self.block.take() {
            Some(same) if same.index == block => same,
            _ => Block::load(engine, block, self.size).await?,
        };
        let found = block.path(index);
        self.block = Some(block);
        found.ok_or_else(|| TreeError::Incomplete(format!("leaf {index} is missing")))
    }
}

impl Block {
    async fn load(engine: &mut Engine, index: u64, size: u64) -> Result<Block, TreeError> {
        let first = index << STRIDE;
        let mut ranges = merkle::inclusion_ranges(first, size);
        ranges.extend((first..first + tiles::HASHES_PER_ROW).map(|leaf| leaf..leaf + 1));
        let fetched = tiles::fetch(engine, ranges, size).await?;
        let absent = |error: &dyn std::fmt::Display| TreeError::Incomplete(error.to_string());
        let leaves =
            fetched.hashes(0, first..first + tiles::HASHES_PER_ROW).map_err(|error| absent(&error))?;
        let mut levels = vec![leaves];
        for _ in 0..STRIDE {
            let below = levels.last().map(Vec::as_slice).unwrap_or_default();
            let level = below.chunks_exact(2).map(|two| merkle::node(&two[0], &two[1])).collect();
            levels.push(level);
        }
        let proof = merkle::inclusion(&fetched, first, size).map_err(|error| absent(&error))?;
        Ok(Block { index, levels, above: proof.path.into_iter().skip(STRIDE as usize).collect() })
    }

    fn path(&self, index: u64) -> Option<(Hash, Vec<Hash>)> {
        let within = usize::try_from(index & (tiles::HASHES_PER_ROW - 1)).ok()?;
        let leaf = *self.levels.first()?.get(within)?;
        let siblings = self.levels.iter().take(STRIDE as usize).enumerate();
        let siblings = siblings.map(|(level, hashes)| hashes.get((within >> level) ^ 1).copied());
        let path = siblings.chain(self.above.iter().copied().map(Some)).collect::<Option<_>>()?;
        Some((leaf, path))
    }
}

/// One path by itself: at the tree's right edge.
async fn single_path(engine: &mut Engine, index: u64, size: u64) -> Result<(Hash, Vec<Hash>), TreeError> {
    let mut ranges = merkle::inclusion_ranges(index, size);
    ranges.push(index..index + 1);
    let fetched = tiles::fetch(engine, ranges, size).await?;
    let absent = |error: &dyn std::fmt::Display| TreeError::Incomplete(error.to_string());
    let leaf = fetched.hashes(0, index..index + 1).map_err(|error| absent(&error))?;
    let proof = merkle::inclusion(&fetched, index, size).map_err(|error| absent(&error))?;
    let leaf =
        leaf.first().copied().ok_or_else(|| TreeError::Incomplete(format!("leaf {index} is missing")))?;
    Ok((leaf, proof.path))
}
