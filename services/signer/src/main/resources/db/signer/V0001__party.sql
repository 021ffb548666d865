-- Everything one party keeps. Shares and the party's own secrets are sealed before they come here.

-- The identity of the party: its evidence key, its account on the channel.
CREATE TABLE party_secret (
  name   TEXT PRIMARY KEY,
  sealed BLOB NOT NULL,
  -- The public half, if there is one.
  public BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- The highest version of the trust file that this party has accepted; never replaced by an older one.
CREATE TABLE accepted_trust (
  id   INTEGER PRIMARY KEY CHECK (id = 1),
  -- With its signatures.
  file BLOB NOT NULL
) STRICT;

-- The version that the operator lets take its place although it does not follow it.
CREATE TABLE permitted_trust (
  id     INTEGER PRIMARY KEY CHECK (id = 1),
  digest BLOB NOT NULL CHECK (length(digest) = 32)
) STRICT;

-- Orders that this party refuses until that is lifted: its operator has asked for it, or it has frozen a key itself.
CREATE TABLE hold (
  -- installation, keys/KEY or requesters/REQUESTER
  scope    TEXT NOT NULL,
  -- Says who lifts it, and how.
  cause    TEXT NOT NULL CHECK (cause = 'OPERATOR' OR cause = 'FREEZE' AND scope LIKE 'keys/%'),
  reason   TEXT NOT NULL,
  since_ms INTEGER NOT NULL,
  PRIMARY KEY (scope, cause)
) STRICT, WITHOUT ROWID;

-- Intents of the requests that this party has claimed, and those that cancelled one, as their requesters have signed
-- them: two may sign the same bytes. Kept longer than the claims, as the audit records are.
CREATE TABLE kept_intent (
  intent_digest BLOB NOT NULL CHECK (length(intent_digest) = 32),
  -- The same as ledger_time.
  ran_ms        INTEGER NOT NULL,
  -- The requester's.
  account       TEXT NOT NULL,
  -- coterie.custody.v1.SignedIntent
  signed_intent BLOB NOT NULL,
  PRIMARY KEY (intent_digest, account)
) STRICT;

CREATE INDEX kept_intent_by_time ON kept_intent (ran_ms);

-- A request id of a requester belongs to one intent, or to none: this party has said that it never signs for it. Kept
-- until no intent can have that id any more, because it says itself when it was drawn.
CREATE TABLE claimed_request (
  requester     TEXT NOT NULL,
  request_id    TEXT NOT NULL,
  -- Of the intent; of the one that cancels it if that came first.
  intent_digest BLOB NOT NULL CHECK (length(intent_digest) = 32),
  -- The party has contributed to no signature of the request, and never will.
  never         INTEGER NOT NULL DEFAULT 0 CHECK (never IN (0, 1)),
  PRIMARY KEY (requester, request_id)
) STRICT, WITHOUT ROWID;

-- A session id is used once. Kept as long as audit records: its order has long passed its deadline then, and its
-- request is dead.
CREATE TABLE claimed_session (
  session_id    BLOB PRIMARY KEY CHECK (length(session_id) = 32),
  requester     TEXT NOT NULL,
  request_id    TEXT NOT NULL,
  -- The requester's, or that of the coordinator which ordered a request once more or what nobody has asked for.
  account       TEXT NOT NULL,
  -- The same as ledger_time.
  ran_ms        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX claimed_session_by_time ON claimed_session (ran_ms);

CREATE TABLE key_share (
  session_id    BLOB PRIMARY KEY CHECK (length(session_id) = 32),
  key           TEXT NOT NULL,
  epoch         INTEGER NOT NULL CHECK (epoch > 0),
  -- That the last reshare of the key made; 0 if there was none.
  reshare_epoch INTEGER NOT NULL CHECK (reshare_epoch BETWEEN 0 AND epoch),
  scheme        INTEGER NOT NULL,
  -- SUPERSEDED: a share of a new key, abandoned for a newer one. ABANDONED: of a later epoch, not waited for, but kept,
  -- because a certificate may still make it the active one.
  state         TEXT NOT NULL CHECK (state IN ('PROVISIONAL', 'ACTIVE', 'SUPERSEDED', 'ABANDONED')),
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
  -- For whose disk it counts: that of the requester that created the key, whoever renews it.
  account       TEXT NOT NULL,
  -- ABANDONED: the party that said that it has no share of the session; 0 if none did.
  decliner      INTEGER NOT NULL DEFAULT 0,
  -- ACTIVE: evidence signatures of all members, in their order, 64 bytes each.
  certificate   BLOB NOT NULL DEFAULT x''
) STRICT, WITHOUT ROWID;

-- A key has one share that is used, whatever its epoch, and beside it at most one that is to take its place.
CREATE UNIQUE INDEX key_share_one_active ON key_share (key) WHERE state = 'ACTIVE';
CREATE UNIQUE INDEX key_share_one_provisional ON key_share (key) WHERE state = 'PROVISIONAL';
CREATE INDEX key_share_by_key ON key_share (key);

-- Groups of approvers, by epoch. An epoch is begun for one request, and each of its results is stored once and never
-- replaced: the signatures of this party about the epoch follow from them.
CREATE TABLE group_epoch (
  name           TEXT NOT NULL,
  epoch          INTEGER NOT NULL CHECK (epoch > 0),
  requester      TEXT NOT NULL,
  request_id     TEXT NOT NULL,
  intent_digest  BLOB NOT NULL CHECK (length(intent_digest) = 32),
  -- coterie.core.v1.GroupParties
  parties        BLOB NOT NULL,
  -- coterie.core.v1.KeyPublic and this party's sealed share of the openers' key, and of the issuing key.
  opening_public BLOB,
  opening_sealed BLOB CHECK ((opening_sealed IS NULL) = (opening_public IS NULL)),
  issuing_public BLOB,
  issuing_sealed BLOB CHECK ((issuing_sealed IS NULL) = (issuing_public IS NULL)),
  -- The group's public data, as this issuer signs them.
  published      BLOB CHECK (published IS NULL OR issuing_public IS NOT NULL),
  -- The group with the signatures of all issuers.
  attested       BLOB,
  -- For whose disk it counts.
  account        TEXT NOT NULL,
  PRIMARY KEY (name, epoch)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER group_epoch_once BEFORE UPDATE ON group_epoch
  WHEN old.opening_public IS NOT NULL AND old.opening_public IS NOT new.opening_public
    OR old.opening_sealed IS NOT NULL AND old.opening_sealed IS NOT new.opening_sealed
    OR old.issuing_public IS NOT NULL AND old.issuing_public IS NOT new.issuing_public
    OR old.issuing_sealed IS NOT NULL AND old.issuing_sealed IS NOT new.issuing_sealed
    OR old.published IS NOT NULL AND old.published IS NOT new.published
    OR old.attested IS NOT NULL AND old.attested IS NOT new.attested
BEGIN
  SELECT RAISE(ABORT, 'a result of an epoch is stored once');
END;

-- Tickets that this issuer has bound, each to one application of one identity, and the members that came of them. All
-- of it is stored before it is told. A record of a member changes in its count of runs alone, which only grows.
CREATE TABLE group_ticket (
  name           TEXT NOT NULL,
  epoch          INTEGER NOT NULL,
  ticket         BLOB NOT NULL CHECK (length(ticket) = 32),
  identity       BLOB NOT NULL CHECK (length(identity) = 32),
  -- The intent that it is the digest of, as its requester has signed it.
  intent         BLOB NOT NULL,
  reservation    BLOB NOT NULL,
  -- The record of the member with its count of runs, and the issuers' part of its secret.
  member         BLOB,
  part           BLOB CHECK ((part IS NULL) = (member IS NULL)),
  runs           INTEGER NOT NULL DEFAULT 0 CHECK (runs BETWEEN 0 AND 8),
  -- The registry's entry: the member's point, and the identity's signature of it.
  point          BLOB CHECK ((point IS NULL) = (member IS NULL)),
  acceptance     BLOB CHECK ((acceptance IS NULL) = (member IS NULL)),
  -- For whose disk it counts.
  account        TEXT NOT NULL,
  PRIMARY KEY (name, epoch, ticket),
  UNIQUE (name, epoch, identity),
  UNIQUE (name, epoch, point)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER group_ticket_once BEFORE UPDATE ON group_ticket
  WHEN old.identity IS NOT new.identity
    OR old.intent IS NOT new.intent
    OR old.reservation IS NOT new.reservation
    OR old.member IS NOT NULL AND (old.part IS NOT new.part OR old.point IS NOT new.point
      OR old.acceptance IS NOT new.acceptance OR old.member IS NOT new.member AND new.runs <= old.runs)
    OR new.runs < old.runs
BEGIN
  SELECT RAISE(ABORT, 'a ticket is bound once');
END;

-- Refreshes of which this party has told others that it has no share and never will: none is stored after that.
-- Forgotten when the key has its next epoch.
CREATE TABLE declined_session (
  session_id     BLOB PRIMARY KEY CHECK (length(session_id) = 32),
  key            TEXT NOT NULL,
  -- Id of the party that asked first.
  asker          INTEGER NOT NULL,
  declined_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX declined_session_by_key ON declined_session (key);
CREATE INDEX declined_session_by_asker ON declined_session (asker, key);

-- Signatures of most schemes are random: a request that was signed twice would have two. So it is bound to one session
-- here, until that one cannot become a signature any more. Kept as long as the claim of the request.
CREATE TABLE bound_request (
  requester    TEXT NOT NULL,
  request_id   TEXT NOT NULL,
  session_id   BLOB NOT NULL CHECK (length(session_id) = 32),
  -- coterie.party.v1.Order, without the signed intent.
  order_bytes  BLOB NOT NULL,
  -- This party's message of that session, to be sent again; empty if it was not known yet when the session began.
  envelope     BLOB NOT NULL,
  not_after_ms INTEGER NOT NULL,
  PRIMARY KEY (requester, request_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX bound_request_by_end ON bound_request (not_after_ms);

-- Sessions that were claimed and multiply with peers, until they have ended; a process that dies leaves its own.
CREATE TABLE open_multiplication (
  session_id BLOB PRIMARY KEY CHECK (length(session_id) = 32),
  key        TEXT NOT NULL,
  epoch      INTEGER NOT NULL,
  -- Ids of the peers, ascending, separated by commas.
  peers      TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Exact Ed25519: the nonce point of each message that was signed with a key, by whichever peers. The nonce is a
-- function of key and message, so another point would come of a deviation or a fault, and an answer under it would give
-- this party's share away; so would one point for two messages. Kept for ever: a key whose share was destroyed here can
-- be imported again, and has the nonces that it had.
CREATE TABLE exact_nonce (
  public_key     BLOB NOT NULL CHECK (length(public_key) = 32),
  -- SHA-512 of the message.
  message_digest BLOB NOT NULL CHECK (length(message_digest) = 64),
  nonce_point    BLOB NOT NULL CHECK (length(nonce_point) = 32),
  -- For whose disk it counts: that of the requester that asked first.
  account        TEXT NOT NULL,
  PRIMARY KEY (public_key, message_digest),
  UNIQUE (public_key, nonce_point)
) STRICT, WITHOUT ROWID;

-- The logs of this party's claims, the current one with the highest number: the first begins with the file, another one
-- each time that the file is known to have been put back to an earlier state.
CREATE TABLE log (
  number          INTEGER PRIMARY KEY,
  id              BLOB NOT NULL CHECK (length(id) = 32),
  -- The head at which the log before it is left; empty in the first one.
  previous        BLOB NOT NULL,
  previous_claims INTEGER NOT NULL,
  previous_hash   BLOB NOT NULL
) STRICT;

-- Where the logs have been: one row for each start of the process, the current one with the highest number.
CREATE TABLE start (
  mark   BLOB PRIMARY KEY CHECK (length(mark) = 32),
  log    INTEGER NOT NULL REFERENCES log (number),
  starts INTEGER NOT NULL,
  -- The same as claims, when it began.
  base   INTEGER NOT NULL,
  -- Sessions that were claimed or declined by then, over all starts.
  claims INTEGER NOT NULL,
  -- Over the mark and each of those sessions since, in their order.
  hash   BLOB NOT NULL CHECK (length(hash) = 32)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX start_by_number ON start (log, starts);

CREATE TABLE ledger (
  id       INTEGER PRIMARY KEY CHECK (id = 1),
  -- The file comes out of a backup, and nothing was made of that yet.
  restored       INTEGER NOT NULL,
  -- When the store was last found to have gone back, in ms since 1970: no request id of before is claimed.
  fence_ms       INTEGER NOT NULL,
  -- When the file was made, in ms since 1970; 0 until it is written. The party may have had another one before: of
  -- requests of that time it does not say that it never signs them.
  made_ms        INTEGER NOT NULL
) STRICT;
INSERT INTO ledger (id, restored, fence_ms, made_ms) VALUES (1, 0, 0, 0);

-- The time by which requests are forgotten. It follows the clock slowly, so a clock that jumps does not make the party
-- forget.
CREATE TABLE ledger_time (
  id         INTEGER PRIMARY KEY CHECK (id = 1),
  -- In ms since 1970; 0 until the party has looked at its clock.
  reached_ms INTEGER NOT NULL,
  -- For how long processes have run with this file, all together: records are stamped with it and forgotten by it, so
  -- no clock makes them young or old.
  ran_ms     INTEGER NOT NULL
) STRICT;
INSERT INTO ledger_time (id, reached_ms, ran_ms) VALUES (1, 0, 0);

-- How far each peer's ledger has come, by its own word; never replaced by less.
CREATE TABLE shown_claims (
  party     INTEGER PRIMARY KEY,
  -- coterie.party.v1.ClaimCount, signed by the peer.
  statement BLOB NOT NULL,
  -- The last one of the start before; empty if there was none.
  before    BLOB NOT NULL
) STRICT;

-- Shares that were here when a store went back, this party's own (-1) or a peer's. They were not active then: uses
-- of them since may be forgotten, so when one becomes active it multiplies with nobody, or not with the peer.
CREATE TABLE forgetful_share (
  session_id BLOB NOT NULL CHECK (length(session_id) = 32),
  party      INTEGER NOT NULL,
  PRIMARY KEY (session_id, party)
) STRICT, WITHOUT ROWID;

-- How many incarnations of this process have left such a session with the peer. Forgotten when the key has new shares.
CREATE TABLE unclean_end (
  key   TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  party INTEGER NOT NULL,
  ends  INTEGER NOT NULL,
  PRIMARY KEY (key, epoch, party)
) STRICT, WITHOUT ROWID;

-- Parties with which this one runs no session of the key any more; party -1 is this one itself: its store went back. A
-- key that is used with nobody is frozen, which is a hold.
CREATE TABLE exclusion (
  key            TEXT NOT NULL,
  party          INTEGER NOT NULL CHECK (party <> 0),
  -- That showed why; empty if none did.
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
  hash          BLOB NOT NULL,
  -- That of the session which it is about; empty if it is about none that was claimed.
  account       TEXT NOT NULL,
  -- The same as ledger_time.
  ran_ms        INTEGER NOT NULL
) STRICT;

-- The last of the first audit records that were forgotten after their time: the chain begins with its hash.
CREATE TABLE audit_beginning (
  id       INTEGER PRIMARY KEY CHECK (id = 1),
  sequence INTEGER NOT NULL,
  hash     BLOB NOT NULL
) STRICT;

-- Bytes that are kept for each account: a requester, coordinators/NAME, or nobody (empty). The triggers below count
-- them in the transaction that writes or deletes a row, so nothing is ever read to know them. A row counts with what it
-- holds and its part of half-empty pages and indexes.
CREATE TABLE kept_bytes (
  account TEXT PRIMARY KEY,
  bytes   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER claimed_request_kept AFTER INSERT ON claimed_request BEGIN
  INSERT INTO kept_bytes VALUES (new.requester, 200)
    ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER claimed_request_gone AFTER DELETE ON claimed_request BEGIN
  UPDATE kept_bytes SET bytes = bytes - 200 WHERE account = old.requester;
END;

CREATE TRIGGER claimed_session_kept AFTER INSERT ON claimed_session BEGIN
  INSERT INTO kept_bytes VALUES (new.account, 300)
    ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER claimed_session_gone AFTER DELETE ON claimed_session BEGIN
  UPDATE kept_bytes SET bytes = bytes - 300 WHERE account = old.account;
END;

CREATE TRIGGER kept_intent_kept AFTER INSERT ON kept_intent BEGIN
  INSERT INTO kept_bytes VALUES (new.account, 200 + octet_length(new.signed_intent))
    ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER kept_intent_gone AFTER DELETE ON kept_intent BEGIN
  UPDATE kept_bytes SET bytes = bytes - 200 - octet_length(old.signed_intent) WHERE account = old.account;
END;

CREATE TRIGGER bound_request_kept AFTER INSERT ON bound_request BEGIN
  INSERT INTO kept_bytes VALUES (new.requester, 200 + octet_length(new.order_bytes) + octet_length(new.envelope))
    ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER bound_request_changed AFTER UPDATE ON bound_request BEGIN
  UPDATE kept_bytes SET bytes = bytes + octet_length(new.order_bytes) + octet_length(new.envelope)
    - octet_length(old.order_bytes) - octet_length(old.envelope) WHERE account = new.requester;
END;
CREATE TRIGGER bound_request_gone AFTER DELETE ON bound_request BEGIN
  UPDATE kept_bytes SET bytes = bytes - 200 - octet_length(old.order_bytes) - octet_length(old.envelope)
    WHERE account = old.requester;
END;

CREATE TRIGGER exact_nonce_kept AFTER INSERT ON exact_nonce BEGIN
  INSERT INTO kept_bytes VALUES (new.account, 400)
    ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
END;

CREATE TRIGGER audit_record_kept AFTER INSERT ON audit_record BEGIN
  INSERT INTO kept_bytes VALUES (new.account, 200 + octet_length(new.fields))
    ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER audit_record_gone AFTER DELETE ON audit_record BEGIN
  UPDATE kept_bytes SET bytes = bytes - 200 - octet_length(old.fields) WHERE account = old.account;
END;

-- A share counts for the keys of the requester that created the key, until it is destroyed.
CREATE TRIGGER key_share_kept AFTER INSERT ON key_share BEGIN
  INSERT INTO kept_bytes VALUES (new.account, 600 + octet_length(new.key_public) + octet_length(new.sealed)
    + octet_length(new.certificate))
    ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER key_share_changed AFTER UPDATE OF certificate, sealed ON key_share BEGIN
  UPDATE kept_bytes SET bytes = bytes + octet_length(new.certificate) - octet_length(old.certificate)
    + octet_length(new.sealed) - octet_length(old.sealed) WHERE account = new.account;
END;
CREATE TRIGGER key_share_gone AFTER DELETE ON key_share BEGIN
  UPDATE kept_bytes SET bytes = bytes - 600 - octet_length(old.key_public) - octet_length(old.sealed)
    - octet_length(old.certificate) WHERE account = old.account;
END;

CREATE TRIGGER group_epoch_kept AFTER INSERT ON group_epoch BEGIN
  INSERT INTO kept_bytes VALUES (new.account, 400 + octet_length(new.parties))
    ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER group_epoch_changed AFTER UPDATE ON group_epoch BEGIN
  UPDATE kept_bytes SET bytes = bytes
      + ifnull(octet_length(new.opening_public), 0) + ifnull(octet_length(new.opening_sealed), 0)
      + ifnull(octet_length(new.issuing_public), 0) + ifnull(octet_length(new.issuing_sealed), 0)
      + ifnull(octet_length(new.published), 0) + ifnull(octet_length(new.attested), 0)
      - ifnull(octet_length(old.opening_public), 0) - ifnull(octet_length(old.opening_sealed), 0)
      - ifnull(octet_length(old.issuing_public), 0) - ifnull(octet_length(old.issuing_sealed), 0)
      - ifnull(octet_length(old.published), 0) - ifnull(octet_length(old.attested), 0)
    WHERE account = new.account;
END;

CREATE TRIGGER group_ticket_kept AFTER INSERT ON group_ticket BEGIN
  INSERT INTO kept_bytes VALUES (new.account, 400 + octet_length(new.intent) + octet_length(new.reservation))
    ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER group_ticket_changed AFTER UPDATE ON group_ticket BEGIN
  UPDATE kept_bytes SET bytes = bytes
      + ifnull(octet_length(new.member), 0) + ifnull(octet_length(new.part), 0)
      + ifnull(octet_length(new.point), 0) + ifnull(octet_length(new.acceptance), 0)
      - ifnull(octet_length(old.member), 0) - ifnull(octet_length(old.part), 0)
      - ifnull(octet_length(old.point), 0) - ifnull(octet_length(old.acceptance), 0)
    WHERE account = new.account;
END;
