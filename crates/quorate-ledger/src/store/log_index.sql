-- Logs that are indexed, how far, and what the first and last bytes of that part hash to.
CREATE TABLE log (
    id     INTEGER PRIMARY KEY,
    path   TEXT NOT NULL UNIQUE,
    bytes  BIGINT NOT NULL,
    corrupt BIGINT NOT NULL,
    ends_sha256 TEXT NOT NULL
);
-- One row per line that says something: a review, a resumed review, an override. -1 stands for what a line does not say.
-- `positions` is who blocked and who passed, as a JSON object in the order of names, and empty without positions;
-- `positioned` and `blocking` count them. `scored` deliberators gave `scores` in sum, each one's last score in hundredths.
CREATE TABLE log_line (
    id            INTEGER PRIMARY KEY,
    log           BIGINT NOT NULL,
    at_byte       BIGINT NOT NULL,
    bytes         BIGINT NOT NULL,
    event         TEXT NOT NULL,
    prior         BIGINT NOT NULL,
    span          TEXT NOT NULL,
    artifact_type TEXT NOT NULL,
    verdict       TEXT NOT NULL,
    at_ms         BIGINT NOT NULL,
    elapsed_ms    BIGINT NOT NULL,
    calls         BIGINT NOT NULL,
    tokens        BIGINT NOT NULL,
    producer      TEXT NOT NULL,
    positions     TEXT NOT NULL,
    positioned    BIGINT NOT NULL,
    blocking      BIGINT NOT NULL,
    scored        BIGINT NOT NULL,
    scores        BIGINT NOT NULL
);
CREATE INDEX log_line_prior ON log_line (log, artifact_type, prior, id);
-- How each deliberator behaved in each review; the key's order is the order of the audit's counting.
CREATE TABLE log_seat (
    log           BIGINT NOT NULL,
    member        TEXT NOT NULL,
    blocks        BIGINT NOT NULL,
    irreducible   BIGINT NOT NULL,
    flipped       BIGINT NOT NULL,
    schema_failed BIGINT NOT NULL,
    timed_out     BIGINT NOT NULL,
    first_score   BIGINT NOT NULL,
    last_score    BIGINT NOT NULL,
    reprompts     BIGINT NOT NULL,
    line          BIGINT NOT NULL,
    PRIMARY KEY (log, member, blocks, irreducible, flipped, schema_failed, timed_out, first_score, last_score, reprompts, line)
) WITHOUT ROWID;
