-- A key has one share that is used, whatever its epoch, and beside it at most one that is to take its place.
DROP INDEX key_share_one_active;
DROP INDEX key_share_one_provisional;
CREATE UNIQUE INDEX key_share_one_active ON key_share (key) WHERE state = 'ACTIVE';
CREATE UNIQUE INDEX key_share_one_provisional ON key_share (key) WHERE state = 'PROVISIONAL';

-- Refreshes of which this party has told others that it has no share and never will: none is stored after that. Forgotten
-- when the key has its next epoch.
CREATE TABLE forsaken_session (
  session_id     BLOB PRIMARY KEY CHECK (length(session_id) = 32),
  key            TEXT NOT NULL,
  forsaken_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX forsaken_session_by_key ON forsaken_session (key);
