-- The schema of the coordinator. One row each for a request to create a key, to renew one and to sign; rows are never
-- deleted.
--
-- The column "worker" names the replica that works on a request that has not ended. A request without a worker, or
-- with one that is gone, belongs to the replica that takes it first.

-- Every attempt to create a key, the successful one included. A request id belongs to its requester for ever; a name
-- belongs to the one attempt that is running or has succeeded.
create table keys (
  id              bigint generated always as identity primary key,
  name            text        not null check (name ~ '^keys/[a-z][a-z0-9-]{0,62}$'),
  requester       text        not null,
  request_id      uuid        not null,
  intent_digest   bytea       not null check (octet_length(intent_digest) = 32),
  -- The serialised SignedIntent as it was received: a resumed run sends it to the signers.
  signed_intent   bytea       not null,
  scheme          smallint    not null,
  threshold       smallint    not null check (threshold >= 1),
  -- In ascending order of party id; names as they were in the roster at creation.
  party_ids       integer[]   not null,
  party_names     text[]      not null,
  state           smallint    not null check (state between 1 and 3), -- Key.State: CREATING, ACTIVE, FAILED
  -- Sessions tried.
  sessions        integer     not null default 0,
  not_after       timestamptz not null,
  created_at      timestamptz not null,
  worker          text,
  -- Generation of the key's shares. It repeats what the attestation says, so that the database can compare it.
  epoch           integer     not null default 1 check (epoch >= 1),
  -- The serialised Attestation, whose last completion has the KeyPublic. Set when ACTIVE.
  attestation     bytea,
  -- The serialised google.rpc.Status, set when FAILED.
  error           bytea,
  constraint keys_request_once unique (requester, request_id),
  constraint keys_result check ((state = 2) = (attestation is not null) and (state = 3) = (error is not null)),
  constraint keys_parties check (cardinality(party_ids) = cardinality(party_names)
                                 and threshold <= cardinality(party_ids))
);
create unique index keys_name_once on keys (name) where state in (1, 2);
create index keys_by_name on keys (name, id desc);
create index keys_creating on keys (id) where state = 1;

-- Every request to give a key new shares, perhaps for other parties or with another threshold. At most one runs for a
-- key. A failed one is opened again when its parties turn out to have the new shares.
create table key_renewals (
  id              bigint generated always as identity primary key,
  key_name        text        not null,
  requester       text        not null,
  request_id      uuid        not null,
  intent_digest   bytea       not null check (octet_length(intent_digest) = 32),
  -- The serialised SignedIntent as it was received: a resumed run sends it to the signers.
  signed_intent   bytea       not null,
  from_epoch      integer     not null check (from_epoch >= 1),
  -- Of the key after the renewal.
  threshold       smallint    not null,
  party_ids       integer[]   not null,
  party_names     text[]      not null,
  -- A client asked that the renewal fail, if it still can.
  cancelled       boolean     not null default false,
  -- Its requester was told that it failed: the parties are only asked whether they hold its shares.
  reopened        boolean     not null default false,
  state           smallint    not null check (state between 1 and 3), -- RUNNING, DONE, FAILED
  -- Sessions tried.
  sessions        integer     not null default 0,
  not_after       timestamptz not null,
  created_at      timestamptz not null,
  worker          text,
  -- The serialised google.rpc.Status, set when FAILED.
  error           bytea,
  constraint key_renewals_request_once unique (requester, request_id),
  constraint key_renewals_result check ((state = 3) = (error is not null)),
  constraint key_renewals_parties check (cardinality(party_ids) = cardinality(party_names)
                                         and threshold between 1 and cardinality(party_ids))
);
create unique index key_renewals_one_running on key_renewals (key_name) where state = 1;
create index key_renewals_by_epoch on key_renewals (key_name, from_epoch);

-- Every request to make an epoch of a group of approvers. An epoch belongs to one request for ever, also if it was not
-- made: parties may have signed for it.
create table approver_groups (
  id               bigint generated always as identity primary key,
  name             text        not null check (name ~ '^groups/[a-z][a-z0-9-]{0,62}$'),
  epoch            integer     not null check (epoch >= 1),
  requester        text        not null,
  request_id       uuid        not null,
  intent_digest    bytea       not null check (octet_length(intent_digest) = 32),
  -- The serialised SignedIntent as it was received: a resumed run sends it to the signers.
  signed_intent    bytea       not null,
  issuer_threshold smallint    not null,
  issuers          text[]      not null,
  opener_threshold smallint    not null,
  openers          text[]      not null,
  state            smallint    not null check (state between 1 and 3), -- Group.State: CREATING, ACTIVE, FAILED
  not_after        timestamptz not null,
  created_at       timestamptz not null,
  worker           text,
  -- The group with the signatures of all issuers. Set when ACTIVE.
  attested         bytea,
  -- The serialised google.rpc.Status, set when FAILED.
  error            bytea,
  constraint approver_groups_request_once unique (requester, request_id),
  constraint approver_groups_epoch_once unique (name, epoch),
  constraint approver_groups_result check ((state = 2) = (attested is not null) and (state = 3) = (error is not null))
);
create index approver_groups_creating on approver_groups (id) where state = 1;

-- Every request to sign. No foreign key to keys: keys are never deleted, and the check would take a share lock on the
-- row of a busy key for every signature.
create table signings (
  -- First 16 bytes of a hash over requester and request id; the last part of the resource name.
  id              uuid        primary key,
  requester       text        not null,
  request_id      uuid        not null,
  key_name        text        not null,
  intent_digest   bytea       not null check (octet_length(intent_digest) = 32),
  signed_intent   bytea       not null,
  scheme          smallint    not null,
  -- Schemes that sign a digest: that digest.
  payload_digest  bytea       check (octet_length(payload_digest) = 32),
  -- The serialised DecodedPayload.
  decoded         bytea       not null,
  -- Approvals of the intent as they were received, of 416 bytes each.
  approvals       bytea       not null default '' check (octet_length(approvals) % 416 = 0
                                                         and octet_length(approvals) <= 32 * 416),
  -- Signing.State: PENDING, SIGNED, UNKNOWN, NOT_SIGNED
  state           smallint    not null check (state between 1 and 4),
  -- Sessions tried.
  sessions        integer     not null default 0,
  signing_set     text[]      not null default '{}',
  not_after       timestamptz not null,
  created_at      timestamptz not null,
  worker          text,
  completed_at    timestamptz,
  signature       bytea,
  recovery_id     smallint    check (recovery_id between 0 and 3),
  -- The key that verifies the signature: the key's own, or its child at the intent's derivation path.
  public_key      bytea,
  presigned       boolean     not null default false,
  error           bytea,
  -- A serialised Signing with nothing but the receipts of the parties. Set when NOT_SIGNED.
  receipts        bytea,
  constraint signings_request_once unique (requester, request_id),
  constraint signings_result check ((state = 2) = (signature is not null) and (state = 2) = (public_key is not null)
                                    and (state = 3) = (error is not null) and (state = 4) = (receipts is not null)
                                    and (state = 1) = (completed_at is null)),
  constraint signings_result_parts check (signature is not null or (recovery_id is null and not presigned))
);
create index signings_by_key on signings (key_name, created_at desc, id desc);
create index signings_by_requester on signings (key_name, requester, created_at desc, id desc);
create index signings_pending on signings (created_at) where state = 1;

-- Parties that were shown to have deviated in a session of a key, and parties whose store went back to an earlier state
-- (STORE_WENT_BACK, with an empty session id). They are not asked for that key before it has new shares or an operator
-- removes the row.
create table key_exclusions (
  key_name    text        not null,
  party_id    integer     not null,
  cause       text        not null,
  session_id  bytea       not null,
  excluded_at timestamptz not null,
  primary key (key_name, party_id)
);

-- How far the ledger of each party has come, in the party's own signed statements. A row never goes back; a party that
-- has enrolled anew has another evidence key.
create table party_ledgers (
  party_id     integer not null check (party_id between 1 and 65535),
  evidence_key bytea   not null check (octet_length(evidence_key) = 32),
  -- The latest ClaimCount, and the last one at the start before; empty if there was none.
  statement    bytea   not null check (octet_length(statement) <= 512),
  before       bytea   not null check (octet_length(before) <= 512),
  primary key (party_id, evidence_key)
);

-- The accusations that parties showed of each other in key generations, refreshes and reshares, and the core's
-- verdicts. The store keeps a number of records of each verdict, for a time.
create table abort_evidence (
  id          bigint generated always as identity primary key,
  session_id  bytea       not null check (octet_length(session_id) = 32),
  key_name    text        not null,
  protocol    text        not null, -- coterie.core.v1.ProtocolId
  cause       text        not null, -- coterie.core.v1.AbortCause
  accused     integer     not null,
  reporter    integer     not null,
  verdict     text        not null, -- coterie.core.v1.Verdict
  -- The serialised SessionConfig and Accusation: with them anyone can judge again.
  session     bytea       not null check (octet_length(session) <= 65536),
  accusation  bytea       not null check (octet_length(accusation) <= 262144),
  judged_at   timestamptz not null
);

-- The replicas of this coordinator. Each renews its row every second and deletes it when it stops. All times are this
-- database's.
create table coordinator_replicas (
  name       text        primary key,
  seen_at    timestamptz not null,
  -- Since then no renewal of the row was missed.
  seen_since timestamptz not null default now()
);

-- The account of each replica at the messaging service, sealed under that replica's data key.
create table channel_account (
  replica     text        primary key,
  sealed      bytea       not null,
  enrolled_at timestamptz not null
);

-- Hash-chained audit records. The chain cannot fork because a sequence number exists once. A chain has one writer, so
-- each replica has a chain of its own.
create table audit_records (
  trail         text        not null,
  sequence      bigint      not null,
  time          timestamptz not null,
  actor         text        not null,
  action        text        not null,
  outcome       text        not null,
  fields        text        not null, -- JSON object, names in order
  previous_hash bytea       not null,
  hash          bytea       not null,
  primary key (trail, sequence)
);
