-- What schema 4 changes: the index of the log has producers, positions and scores. It is made anew from the log.
DROP TABLE log;
DROP TABLE log_line;
DROP TABLE log_seat;
-- Of each run: `council` or an assembly's mode, and the operator that made what it is about; empty without one.
CREATE TABLE run_origin (
    run      TEXT PRIMARY KEY,
    mode     TEXT NOT NULL,
    producer TEXT NOT NULL
) WITHOUT ROWID;
