-- A table whose constraint changes is made anew.
CREATE TABLE key_share_4 (
  session_id    BLOB PRIMARY KEY CHECK (length(session_id) = 32),
  key           TEXT NOT NULL,
  epoch         INTEGER NOT NULL CHECK (epoch > 0),
  scheme        INTEGER NOT NULL,
  -- SUPERSEDED: a share of a new key, given up for a newer one. GIVEN_UP: of a later epoch, not waited for, but kept, because a
  -- certificate may still make it the active one.
  state         TEXT NOT NULL CHECK (state IN ('PROVISIONAL', 'ACTIVE', 'SUPERSEDED', 'GIVEN_UP')),
  -- Ids of all parties of the key, ascending, separated by commas.
  parties       TEXT NOT NULL,
  -- The same of the session that made it: those of the key, and those that have left it.
  members       TEXT NOT NULL,
  -- coterie.core.v1.KeyPublic
  key_public    BLOB NOT NULL,
  sealed        BLOB NOT NULL,
  coordinator   TEXT NOT NULL,
  requester     TEXT NOT NULL,
  request_id    TEXT NOT NULL,
  intent_digest BLOB NOT NULL CHECK (length(intent_digest) = 32),
  stored_at_ms  INTEGER NOT NULL,
  -- Grows with each share of the key: of two of one epoch that have a certificate the later one counts.
  stored_number INTEGER NOT NULL,
  -- GIVEN_UP: the party that said that it has no share of the session; 0 if none did.
  deserter      INTEGER NOT NULL DEFAULT 0,
  -- ACTIVE: evidence signatures of all members, in their order, 64 bytes each. Empty before there were any.
  certificate   BLOB NOT NULL DEFAULT x''
) STRICT, WITHOUT ROWID;

INSERT INTO key_share_4 (session_id, key, epoch, scheme, state, parties, members, key_public, sealed, coordinator, requester,
    request_id, intent_digest, stored_at_ms, stored_number)
  SELECT session_id, key, epoch, scheme, state, parties, members, key_public, sealed, coordinator, requester, request_id,
    intent_digest, stored_at_ms, epoch FROM key_share;

DROP TABLE key_share;
ALTER TABLE key_share_4 RENAME TO key_share;

CREATE UNIQUE INDEX key_share_one_active ON key_share (key) WHERE state = 'ACTIVE';
CREATE UNIQUE INDEX key_share_one_provisional ON key_share (key) WHERE state = 'PROVISIONAL';
CREATE INDEX key_share_by_key ON key_share (key);
