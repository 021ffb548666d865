-- Everything one party keeps. Shares and the party's own secrets are sealed before they come here.

-- What the party is: its evidence identity, its account on the channel.
CREATE TABLE party_secret (
  name   TEXT PRIMARY KEY,
  sealed BLOB NOT NULL,
  -- The public half, if there is one.
  public BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- A request id of a requester belongs to one intent, for ever.
CREATE TABLE claimed_request (
  requester     TEXT NOT NULL,
  request_id    TEXT NOT NULL,
  intent_digest BLOB NOT NULL CHECK (length(intent_digest) = 32),
  claimed_at_ms INTEGER NOT NULL,
  PRIMARY KEY (requester, request_id)
) STRICT, WITHOUT ROWID;

-- A session id is used once, for ever.
CREATE TABLE claimed_session (
  session_id    BLOB PRIMARY KEY CHECK (length(session_id) = 32),
  requester     TEXT NOT NULL,
  request_id    TEXT NOT NULL,
  claimed_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE key_share (
  session_id    BLOB PRIMARY KEY CHECK (length(session_id) = 32),
  key           TEXT NOT NULL,
  epoch         INTEGER NOT NULL CHECK (epoch > 0),
  scheme        INTEGER NOT NULL,
  -- SUPERSEDED: given up for a newer provisional share of the same key.
  state         TEXT NOT NULL CHECK (state IN ('PROVISIONAL', 'ACTIVE', 'SUPERSEDED')),
  -- Ids of all parties of the key, ascending, separated by commas.
  parties       TEXT NOT NULL,
  -- coterie.core.v1.KeyPublic
  key_public    BLOB NOT NULL,
  sealed        BLOB NOT NULL,
  coordinator   TEXT NOT NULL,
  requester     TEXT NOT NULL,
  request_id    TEXT NOT NULL,
  intent_digest BLOB NOT NULL CHECK (length(intent_digest) = 32),
  stored_at_ms  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX key_share_one_active ON key_share (key, epoch) WHERE state = 'ACTIVE';
CREATE UNIQUE INDEX key_share_one_provisional ON key_share (key, epoch) WHERE state = 'PROVISIONAL';
CREATE INDEX key_share_by_key ON key_share (key);

-- Parties with which this one runs no session of the key any more; party 0 means every party.
CREATE TABLE exclusion (
  key            TEXT NOT NULL,
  party          INTEGER NOT NULL,
  session_id     BLOB NOT NULL,
  excluded_at_ms INTEGER NOT NULL,
  PRIMARY KEY (key, party)
) STRICT, WITHOUT ROWID;

CREATE TABLE audit_record (
  sequence      INTEGER PRIMARY KEY,
  time_ms       INTEGER NOT NULL,
  actor         TEXT NOT NULL,
  action        TEXT NOT NULL,
  outcome       TEXT NOT NULL,
  -- JSON object of texts.
  fields        TEXT NOT NULL,
  previous_hash BLOB NOT NULL,
  hash          BLOB NOT NULL
) STRICT;
