-- What version 1 of the PostgreSQL schema was, with a run in it.
CREATE TABLE holdfast_schema (version integer NOT NULL, checksum text NOT NULL);
CREATE TABLE runs (
    no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text COLLATE "C" NOT NULL UNIQUE, name text NOT NULL,
    status text COLLATE "C" NOT NULL, epoch bigint NOT NULL, last_seq bigint NOT NULL,
    entry text NOT NULL, graph text NOT NULL, graph_hash text NOT NULL, config text NOT NULL, packages text NOT NULL,
    owner jsonb, lease_until_ms bigint NOT NULL, requests jsonb NOT NULL, error text,
    created_ms bigint NOT NULL, updated_ms bigint NOT NULL,
    queue text, priority double precision NOT NULL, needs jsonb NOT NULL, parent jsonb,
    made_by text NOT NULL, claimed_by text
  ) WITH (fillfactor = 40, toast_tuple_target = 256);
CREATE INDEX runs_unfinished ON runs (no) WHERE status IN ('created', 'running');
CREATE TABLE journal (
    run_no bigint NOT NULL, seq bigint NOT NULL, epoch bigint NOT NULL, at_ms bigint NOT NULL,
    kind text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL, input_hash text, value text NOT NULL
  );
CREATE UNIQUE INDEX journal_seq ON journal (run_no, seq);
CREATE INDEX journal_kind ON journal (run_no, kind, seq);
CREATE INDEX journal_key ON journal (run_no, key, seq);
CREATE TABLE dequeues (turn bigint NOT NULL);
INSERT INTO dequeues VALUES (0);
INSERT INTO holdfast_schema VALUES (1, '47e8ba3fd238f90a10af9cf3b885381b');
INSERT INTO runs (id, name, status, epoch, last_seq, entry, graph, graph_hash, config, packages, owner, lease_until_ms,
  requests, error, created_ms, updated_ms, queue, priority, needs, parent, made_by, claimed_by)
VALUES ('a', 'run a', 'done', 3, 2, 'flows/mod.ts', 'g', 'h', '{"seed":1}', '{}', NULL, 0, '[]', NULL, 10, 20, NULL, 0, '{}', NULL, 't', NULL);
