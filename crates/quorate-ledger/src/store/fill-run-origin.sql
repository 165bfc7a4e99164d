-- Fills `run_origin` from the records of a ledger that had no such table.
INSERT INTO run_origin (run, mode, producer)
SELECT run,
       CASE WHEN json_type(data, '$.protocol') = 'text'
            THEN substr(json_extract(data, '$.protocol'), 1, instr(json_extract(data, '$.protocol') || '/', '/') - 1)
            ELSE '' END,
       CASE WHEN json_type(data, '$.producer.operator') = 'text' THEN json_extract(data, '$.producer.operator')
            ELSE '' END
FROM record
WHERE n = 0 AND kind = 'run.opened' AND CASE WHEN data IS NULL THEN 0 ELSE json_valid(data) END
  AND run IN (SELECT run FROM run)
