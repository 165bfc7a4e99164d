-- What version 5 adds. Conversations of runtimes: one row for each turn. A text may have any character, NUL included,
-- so it is bytes in UTF-8.
CREATE TABLE conversation_turn (
    conversation TEXT COLLATE "C" NOT NULL,
    -- Counts up from 1 in each conversation. Who adds a turn has seen the one before it, so a reader that has seen
    -- a turn has seen all before it.
    n            BIGINT NOT NULL,
    id           TEXT COLLATE "C" NOT NULL,
    participant  TEXT COLLATE "C" NOT NULL,
    said_at      TEXT COLLATE "C" NOT NULL,
    content      BYTEA NOT NULL,
    -- A JSON object.
    meta         TEXT COLLATE "C" NOT NULL,
    -- The stamp's key, and the stamp as JSON; NULL where there is none.
    stamp_key    TEXT COLLATE "C",
    stamp        TEXT COLLATE "C",
    -- What the one that added it called this: it recognizes the turn where the answer to its statement was lost.
    added_as     TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (conversation, n),
    UNIQUE (conversation, id),
    UNIQUE (conversation, stamp_key)
);

-- What participants of runtimes remember. An id may have any character, NUL included.
CREATE TABLE participant_state (
    runtime     TEXT COLLATE "C" NOT NULL,
    participant BYTEA NOT NULL,
    -- A JSON object.
    object      TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (runtime, participant)
);
