-- What schema 2 adds: signatures, and the Merkle tree of the records in their order.
-- A detached signature over a record's leaf.
CREATE TABLE signature (
    run       TEXT NOT NULL,
    n         BIGINT NOT NULL,
    key       TEXT NOT NULL,
    signature TEXT NOT NULL,
    PRIMARY KEY (run, n, key)
) WITHOUT ROWID;
-- The hashes of complete subtrees, 256 in a row: of level 0, the leaves themselves, of level 8 and 16 and so on. As far
-- as the last checkpoint reaches.
CREATE TABLE tile (
    level  BIGINT NOT NULL,
    idx    BIGINT NOT NULL,
    hashes BLOB NOT NULL,
    PRIMARY KEY (level, idx)
);
-- The checkpoints, which are records: how many records each is over, its root, and the record's place.
CREATE TABLE checkpoint (
    size BIGINT PRIMARY KEY,
    root TEXT NOT NULL,
    n    BIGINT NOT NULL
);
-- Runs that nothing is erased of, whatever their age.
CREATE TABLE held (
    run TEXT PRIMARY KEY
);
-- Runs that were recorded in another ledger.
CREATE TABLE imported (
    run TEXT PRIMARY KEY
);
