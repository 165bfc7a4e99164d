-- Conversations: one row for each turn.
CREATE TABLE turn (
    conversation TEXT NOT NULL,
    -- Counts up from 1 in each conversation.
    n BIGINT NOT NULL,
    id TEXT NOT NULL,
    participant TEXT NOT NULL,
    timestamp TEXT NOT NULL,
    content TEXT NOT NULL,
    -- A JSON object.
    meta TEXT NOT NULL,
    -- The stamp's key, and the stamp as JSON; null where there is none.
    stamp_key TEXT,
    stamp TEXT,
    PRIMARY KEY (conversation, n),
    UNIQUE (conversation, id),
    UNIQUE (conversation, stamp_key)
);

-- States: one row for each participant of a runtime.
CREATE TABLE state (
    runtime TEXT NOT NULL,
    participant TEXT NOT NULL,
    -- A JSON object.
    object TEXT NOT NULL,
    PRIMARY KEY (runtime, participant)
);
