-- What version 2 adds. Of each run: `council` or an assembly's mode, and the operator that made what it is about; empty
-- without one.
CREATE TABLE run_origin (
    run      TEXT COLLATE "C" PRIMARY KEY,
    mode     TEXT COLLATE "C" NOT NULL,
    producer TEXT COLLATE "C" NOT NULL
);
-- A JSON text of the server's cannot have the character 0; the names that are read have none.
INSERT INTO run_origin (run, mode, producer)
SELECT run, split_part(COALESCE(opened ->> 'protocol', ''), '/', 1), COALESCE(opened -> 'producer' ->> 'operator', '')
FROM (SELECT run, CAST(replace(data, '\u0000', '\ufffd') AS json) AS opened
      FROM record
      WHERE n = 0 AND kind = 'run.opened' AND data IS NOT NULL AND run IN (SELECT run.run FROM run)) AS first;
