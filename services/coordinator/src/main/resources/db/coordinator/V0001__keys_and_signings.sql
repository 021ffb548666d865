-- Every attempt to create a key, the successful one included. A request id belongs to its requester for
-- ever; a name belongs to the one attempt that is running or has succeeded.
create table keys (
  id              bigint generated always as identity primary key,
  name            text        not null check (name ~ '^keys/[a-z][a-z0-9-]{0,62}$'),
  requester       text        not null,
  request_id      uuid        not null,
  intent_digest   bytea       not null check (octet_length(intent_digest) = 32),
  -- The serialised SignedIntent as it was received: what a resumed run sends to the signers.
  signed_intent   bytea       not null,
  scheme          smallint    not null,
  threshold       smallint    not null check (threshold >= 1),
  -- In ascending order of party id; names as they were in the roster at creation.
  party_ids       integer[]   not null,
  party_names     text[]      not null,
  state           smallint    not null check (state between 1 and 3), -- Key.State: CREATING, ACTIVE, FAILED
  sessions        integer     not null default 0,
  not_after       timestamptz not null,
  created_at      timestamptz not null,
  -- The serialised KeyPublic, set when ACTIVE.
  key_public      bytea,
  -- The serialised google.rpc.Status, set when FAILED.
  error           bytea,
  constraint keys_request_once unique (requester, request_id),
  constraint keys_result check ((state = 2) = (key_public is not null) and (state = 3) = (error is not null)),
  constraint keys_parties check (cardinality(party_ids) = cardinality(party_names)
                                 and threshold <= cardinality(party_ids))
);
create unique index keys_name_once on keys (name) where state in (1, 2);
create index keys_by_name on keys (name, id desc);
create index keys_creating on keys (id) where state = 1;

-- One row a signing request. No foreign key to keys: keys are never deleted, and the check would take a
-- share lock on the row of a busy key for every signature.
create table signings (
  -- First 16 bytes of a hash over requester and request id; the last part of the resource name.
  id              uuid        primary key,
  requester       text        not null,
  request_id      uuid        not null,
  key_name        text        not null,
  intent_digest   bytea       not null check (octet_length(intent_digest) = 32),
  signed_intent   bytea       not null,
  scheme          smallint    not null,
  state           smallint    not null check (state between 1 and 3), -- Signing.State: PENDING, SIGNED, FAILED
  -- Sessions tried.
  sessions        integer     not null default 0,
  signing_set     text[]      not null default '{}',
  not_after       timestamptz not null,
  created_at      timestamptz not null,
  completed_at    timestamptz,
  signature       bytea,
  error           bytea,
  constraint signings_request_once unique (requester, request_id),
  constraint signings_result check ((state = 2) = (signature is not null) and (state = 3) = (error is not null)
                                    and (state = 1) = (completed_at is null))
);
create index signings_pending on signings (created_at) where state = 1;

-- Parties that were shown to have deviated in a session of a key: never asked again for that key until an
-- operator removes the row.
create table key_exclusions (
  key_name    text        not null,
  party_id    integer     not null,
  cause       text        not null,
  session_id  bytea       not null,
  excluded_at timestamptz not null,
  primary key (key_name, party_id)
);

-- This replica's account at the messaging service, sealed under the data key of the coordinator.
create table channel_account (
  replica     text        primary key,
  sealed      bytea       not null,
  enrolled_at timestamptz not null
);

-- Hash-chained audit records; the chain cannot fork because a sequence number exists once.
create table audit_records (
  sequence      bigint      primary key,
  time          timestamptz not null,
  actor         text        not null,
  action        text        not null,
  outcome       text        not null,
  fields        text        not null, -- JSON object, names in order
  previous_hash bytea       not null,
  hash          bytea       not null
);
