-- The ledger in Postgres: the tables of the file, but for the index of the log, which each machine keeps for itself.
-- Texts are compared byte by byte, as everywhere else.
CREATE TABLE record (
    seq  BIGINT PRIMARY KEY,
    run  TEXT COLLATE "C" NOT NULL,
    n    BIGINT NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    head TEXT COLLATE "C" NOT NULL,
    data TEXT COLLATE "C",
    UNIQUE (run, n)
);
-- Texts that records name by hash, kept once.
CREATE TABLE body (
    sha256 TEXT COLLATE "C" PRIMARY KEY,
    text   TEXT COLLATE "C" NOT NULL
);
CREATE TABLE run (
    seq             BIGINT PRIMARY KEY,
    run             TEXT COLLATE "C" NOT NULL UNIQUE,
    opened_ms       BIGINT NOT NULL,
    subject         TEXT COLLATE "C" NOT NULL,
    artifact_type   TEXT COLLATE "C" NOT NULL,
    artifact_sha256 TEXT COLLATE "C" NOT NULL,
    council         TEXT COLLATE "C" NOT NULL,
    log_path        TEXT COLLATE "C" NOT NULL,
    verdict         TEXT COLLATE "C",
    decided_ms      BIGINT,
    override        TEXT COLLATE "C",
    ended           BIGINT NOT NULL
);
CREATE INDEX run_by_content ON run (council, artifact_sha256);
CREATE INDEX run_unended ON run (ended, seq);
-- A detached signature over a record's leaf.
CREATE TABLE signature (
    run       TEXT COLLATE "C" NOT NULL,
    n         BIGINT NOT NULL,
    key       TEXT COLLATE "C" NOT NULL,
    signature TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (run, n, key)
);
-- The hashes of complete subtrees, 256 in a row: of level 0, the leaves themselves, of level 8 and 16 and so on. As far
-- as the last checkpoint reaches.
CREATE TABLE tile (
    level  BIGINT NOT NULL,
    idx    BIGINT NOT NULL,
    hashes BYTEA NOT NULL,
    PRIMARY KEY (level, idx)
);
-- The checkpoints, which are records: how many records each is over, its root, and the record's place.
CREATE TABLE checkpoint (
    size BIGINT PRIMARY KEY,
    root TEXT COLLATE "C" NOT NULL,
    n    BIGINT NOT NULL
);
-- Runs that nothing is erased of, whatever their age.
CREATE TABLE held (
    run TEXT COLLATE "C" PRIMARY KEY
);
-- Runs that were recorded in another ledger.
CREATE TABLE imported (
    run TEXT COLLATE "C" PRIMARY KEY
);
-- Who drives a run, from which place, and until when by this server's clock.
CREATE TABLE lease (
    run      TEXT COLLATE "C" PRIMARY KEY,
    owner    TEXT COLLATE "C" NOT NULL,
    place    TEXT COLLATE "C" NOT NULL,
    until_ms BIGINT NOT NULL
);
-- Which version of these tables this is.
CREATE TABLE quorate_schema (
    version BIGINT NOT NULL
);
INSERT INTO quorate_schema (version) VALUES (0);
