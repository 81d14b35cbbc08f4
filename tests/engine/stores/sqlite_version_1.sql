CREATE TABLE holdfast_schema (version INTEGER NOT NULL, checksum TEXT NOT NULL);
CREATE TABLE runs (
    no INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL, status TEXT NOT NULL,
    epoch INTEGER NOT NULL, last_seq INTEGER NOT NULL,
    entry TEXT NOT NULL, graph TEXT NOT NULL, graph_hash TEXT NOT NULL, config TEXT NOT NULL, packages TEXT NOT NULL,
    owner TEXT, lease_until_ms INTEGER NOT NULL, requests TEXT NOT NULL, error TEXT,
    created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL
  );
CREATE TABLE journal (
    run_no INTEGER NOT NULL REFERENCES runs (no), seq INTEGER NOT NULL, epoch INTEGER NOT NULL, at_ms INTEGER NOT NULL,
    kind TEXT NOT NULL, key TEXT NOT NULL, input_hash TEXT, value TEXT NOT NULL
  );
CREATE UNIQUE INDEX journal_seq ON journal (run_no, seq);
CREATE INDEX journal_kind ON journal (run_no, kind, seq);
CREATE INDEX journal_key ON journal (run_no, key, seq);
INSERT INTO holdfast_schema VALUES (1, 'of version 1');
INSERT INTO runs VALUES (1, 'a', 'run a', 'running', 3, 2, 'flows/mod.ts', 'g', 'h', '{"seed":1}', '{}',
  '{"boot_id":"one","host":"host","pid":7,"process_start":"1"}', 99, '["drain"]', NULL, 10, 20);
INSERT INTO runs VALUES (2, 'b', 'run b', 'failed', 1, 0, 'flows/mod.ts', 'g', 'h', '{}', '{}', NULL, 0, '[]',
  '{"code":"x"}', 11, 21);
INSERT INTO journal VALUES (1, 1, 2, 12, 'intent', 'round/1/x', 'f00', '{"n":1}');
INSERT INTO journal VALUES (1, 2, 3, 13, 'result', 'round/1/x', NULL, '2');
