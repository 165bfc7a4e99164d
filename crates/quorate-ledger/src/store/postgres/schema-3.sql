-- What version 3 adds: writing as one statement. A writer has the lock of all writers, and each round trip between client
-- and server would keep the others waiting.

-- Begins to write: waits until no one else does and no table is being rewritten. `known` is the place up to which the
-- client has found no gap, or NULL; gives the place of the last record, and refuses to write behind a gap.
CREATE FUNCTION quorate_begin_write(synced BOOLEAN, known BIGINT) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE
    since BIGINT := known;
    behind BIGINT;
    last BIGINT;
BEGIN
    IF NOT synced THEN
        PERFORM set_config('synchronous_commit', 'off', TRUE);
    END IF;
    PERFORM pg_advisory_xact_lock(8173521 * 4294967296 + CAST(CAST(CAST('record' AS REGCLASS) AS OID) AS BIGINT));
    LOCK TABLE record, body IN ROW EXCLUSIVE MODE;
    IF since IS NULL THEN
        SELECT COALESCE(MAX(size), 0) INTO since FROM checkpoint WHERE size <= (SELECT MAX(seq) FROM record);
    END IF;
    SELECT COUNT(*), COALESCE(MAX(seq), since) INTO behind, last FROM record WHERE seq > since;
    IF last - since <> behind THEN
        RAISE EXCEPTION 'there are records behind a gap' USING ERRCODE = 'QU001';
    END IF;
    RETURN last;
END $$;

-- Refuses to have added fewer rows to a table than were to be added.
CREATE FUNCTION quorate_require_rows(name TEXT, added BIGINT, wanted BIGINT) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
    IF added <> wanted THEN
        RAISE EXCEPTION 'the table `%` took % of % rows: a rule or a trigger of the database keeps them from it',
            name, added, wanted USING ERRCODE = 'QU002';
    END IF;
END $$;

-- Appends to runs; says of each append whether its run was as it expected, and up to which place there are records now.
-- `ends` has the leaf of the run's last record, or NULL for a new run; `owners` the name in the client's lease of the run,
-- or NULL without one. The records of all appends follow each other, `counts` of each; `texts` are the bodies that they
-- name. `changes` says in JSON what the appends change in the index, and by which append.
CREATE FUNCTION quorate_append(
    synced BOOLEAN, known BIGINT,
    runs TEXT[], firsts BIGINT[], ends TEXT[], owners TEXT[], counts BIGINT[],
    kinds TEXT[], heads TEXT[], datas TEXT[],
    hashes TEXT[], texts TEXT[], body_of BIGINT[],
    changes TEXT
) RETURNS TABLE (fits BIGINT, place BIGINT) LANGUAGE plpgsql AS $$
DECLARE
    last BIGINT := quorate_begin_write(synced, known);
    done BIGINT := 0;
    added BIGINT;
    end_n BIGINT;
    end_leaf TEXT;
    run_place BIGINT;
    holder TEXT;
    is_live BOOLEAN;
    fit BOOLEAN[] := '{}';
    change RECORD;
BEGIN
    FOR i IN 1 .. cardinality(runs) LOOP
        SELECT record.n, encode(sha256(decode('00', 'hex') || convert_to(record.head, 'UTF8')), 'hex')
            INTO end_n, end_leaf FROM record WHERE record.run = runs[i] ORDER BY record.n DESC LIMIT 1;
        SELECT owner, until_ms > EXTRACT(EPOCH FROM clock_timestamp()) * 1000 INTO holder, is_live
            FROM lease WHERE lease.run = runs[i];
        fit[i] := COALESCE(end_n, -1) + 1 = firsts[i] AND end_leaf IS NOT DISTINCT FROM ends[i] AND CASE
            -- Without a row another driver took the lease, and has released it again.
            WHEN owners[i] IS NOT NULL THEN COALESCE(holder = owners[i], FALSE)
            ELSE NOT COALESCE(is_live, FALSE) END;
        IF fit[i] THEN
            WITH rows AS (
                INSERT INTO record (seq, run, n, kind, head, data)
                SELECT last + k, runs[i], firsts[i] + k - 1, kinds[done + k], heads[done + k], datas[done + k]
                FROM generate_series(1, counts[i]) AS k
                RETURNING 1
            ) SELECT COUNT(*) INTO added FROM rows;
            PERFORM quorate_require_rows('record', added, counts[i]);
            last := last + added;
        END IF;
        done := done + counts[i];
    END LOOP;
    IF cardinality(hashes) > 0 THEN
        INSERT INTO body (sha256, text)
            SELECT hashes[k], texts[k] FROM generate_subscripts(hashes, 1) AS k WHERE fit[body_of[k]]
            ON CONFLICT (sha256) DO NOTHING;
        SELECT COUNT(*) INTO added FROM generate_subscripts(hashes, 1) AS k WHERE fit[body_of[k]]
            AND NOT EXISTS (SELECT FROM body WHERE sha256 = hashes[k]);
        PERFORM quorate_require_rows('body', 0, added);
    END IF;
    FOR change IN SELECT * FROM json_to_recordset(CAST(changes AS JSON)) AS entry (
        append INT, what TEXT, at_ms BIGINT, subject TEXT, artifact_type TEXT, artifact_sha256 TEXT, council TEXT,
        log_path TEXT, mode TEXT, producer TEXT, verdict TEXT, unlogged BOOLEAN
    ) LOOP
        CONTINUE WHEN NOT fit[change.append];
        CASE change.what
            WHEN 'opened' THEN
                SELECT COALESCE(MAX(seq), 0) INTO run_place FROM run;
                IF run_place = 9223372036854775807 THEN
                    RAISE EXCEPTION 'a table has a row at the last of all places; see `quorate ledger verify`'
                        USING ERRCODE = 'QU002';
                END IF;
                WITH rows AS (
                    INSERT INTO run
                        (seq, opened_ms, subject, artifact_type, artifact_sha256, council, log_path, ended, run)
                    VALUES (run_place + 1, change.at_ms, change.subject,
                        change.artifact_type, change.artifact_sha256, change.council, change.log_path, 0,
                        runs[change.append])
                    RETURNING 1
                ) SELECT COUNT(*) INTO added FROM rows;
                PERFORM quorate_require_rows('run', added, 1);
                WITH rows AS (
                    INSERT INTO run_origin (run, mode, producer)
                    VALUES (runs[change.append], change.mode, change.producer) RETURNING 1
                ) SELECT COUNT(*) INTO added FROM rows;
                PERFORM quorate_require_rows('run_origin', added, 1);
            WHEN 'decided' THEN
                UPDATE run SET verdict = change.verdict, decided_ms = change.at_ms WHERE run.run = runs[change.append];
            WHEN 'reopened' THEN
                UPDATE run SET verdict = NULL, decided_ms = NULL, ended = 0 WHERE run.run = runs[change.append];
            WHEN 'overridden' THEN
                UPDATE run SET override = change.verdict, ended = ended * CASE WHEN change.unlogged THEN 0 ELSE 1 END
                WHERE run.run = runs[change.append];
            WHEN 'ended' THEN
                UPDATE run SET ended = 1 WHERE run.run = runs[change.append];
        END CASE;
    END LOOP;
    RETURN QUERY SELECT CAST(CAST(fit[i] AS INT) AS BIGINT), last FROM generate_subscripts(runs, 1) AS i ORDER BY i;
END $$;

-- Takes the lease of a run for some milliseconds, if it is free, has expired, or is that of a former process of this
-- place; gives the row as it is then, and whether it was taken.
CREATE FUNCTION quorate_take_lease(known BIGINT, name TEXT, new_owner TEXT, new_place TEXT, ms BIGINT)
RETURNS TABLE (place BIGINT, taken BIGINT, holder TEXT, until BIGINT) LANGUAGE plpgsql AS $$
DECLARE
    last BIGINT := quorate_begin_write(FALSE, known);
    now_ms BIGINT;
    rows BIGINT;
BEGIN
    now_ms := CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT);
    INSERT INTO lease (run, owner, place, until_ms) VALUES (name, new_owner, new_place, now_ms + ms)
    ON CONFLICT (run) DO UPDATE
        SET owner = excluded.owner, place = excluded.place, until_ms = excluded.until_ms
        WHERE lease.place = excluded.place OR lease.until_ms <= now_ms;
    GET DIAGNOSTICS rows = ROW_COUNT;
    -- Without a row a trigger of the database keeps it away, or its time is over.
    RETURN QUERY SELECT last, rows, lease.owner, lease.until_ms FROM (VALUES (1)) AS always (one)
        LEFT JOIN lease ON lease.run = name AND lease.until_ms > now_ms;
END $$;
