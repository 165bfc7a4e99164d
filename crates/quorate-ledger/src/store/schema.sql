-- The ledger. `record` is the truth, with the signatures over it; everything else is typed indices that can be rebuilt.
CREATE TABLE record (
    seq  INTEGER PRIMARY KEY,
    run  TEXT NOT NULL,
    n    BIGINT NOT NULL,
    kind TEXT NOT NULL,
    head TEXT NOT NULL,
    data TEXT,
    UNIQUE (run, n)
);
-- Texts that records name by hash, kept once.
CREATE TABLE body (
    sha256 TEXT PRIMARY KEY,
    text   TEXT NOT NULL
);
CREATE TABLE run (
    seq             INTEGER PRIMARY KEY,
    run             TEXT NOT NULL UNIQUE,
    opened_ms       BIGINT NOT NULL,
    subject         TEXT NOT NULL,
    artifact_type   TEXT NOT NULL,
    artifact_sha256 TEXT NOT NULL,
    council         TEXT NOT NULL,
    log_path        TEXT NOT NULL,
    verdict         TEXT,
    decided_ms      BIGINT,
    override        TEXT,
    ended           BIGINT NOT NULL
);
CREATE INDEX run_by_content ON run (council, artifact_sha256);
CREATE INDEX run_unended ON run (ended, seq);
