-- Generation of the key's shares: that of key_public, where the database can compare it.
alter table keys add column epoch integer not null default 1 check (epoch >= 1);

-- Every request to give a key new shares. At most one runs for a key. One that failed may be opened again
-- when its parties turn out to have the new shares.
create table key_refreshes (
  id              bigint generated always as identity primary key,
  key_name        text        not null,
  requester       text        not null,
  request_id      uuid        not null,
  intent_digest   bytea       not null check (octet_length(intent_digest) = 32),
  -- The serialised SignedIntent as it was received: what a resumed run sends to the signers.
  signed_intent   bytea       not null,
  from_epoch      integer     not null check (from_epoch >= 1),
  state           smallint    not null check (state between 1 and 3), -- RUNNING, DONE, FAILED
  sessions        integer     not null default 0,
  not_after       timestamptz not null,
  created_at      timestamptz not null,
  -- The serialised google.rpc.Status, set when FAILED.
  error           bytea,
  constraint key_refreshes_request_once unique (requester, request_id),
  constraint key_refreshes_result check ((state = 3) = (error is not null))
);
create unique index key_refreshes_one_running on key_refreshes (key_name) where state = 1;
create index key_refreshes_by_epoch on key_refreshes (key_name, from_epoch);
