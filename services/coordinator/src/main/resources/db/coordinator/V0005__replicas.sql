-- The replicas of this coordinator that are there. Each renews its row every second, and deletes it when it stops. All times are this
-- database's.
create table coordinator_replicas (
  name    text        primary key,
  seen_at timestamptz not null
);

-- The replica that works on what has not ended. Of nobody's, and of what a replica works on that is gone, it is the work of whoever comes
-- first.
alter table signings     add column worker text;
alter table keys         add column worker text;
alter table key_renewals add column worker text;

-- A chain of audit records has one writer, so each replica has a chain of its own.
alter table audit_records
  add column trail text not null default 'coordinator',
  drop constraint audit_records_pkey,
  add primary key (trail, sequence);
