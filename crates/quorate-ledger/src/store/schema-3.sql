-- What schema 3 changes: the index of the log has scores, re-prompts and tokens. It is made anew from the log.
DROP TABLE log;
DROP TABLE log_line;
DROP TABLE log_seat;
