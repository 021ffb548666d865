-- What parties have shown of each other in key generations, refreshes and reshares, and the core's verdict. The store keeps a number of
-- records of each verdict, for a time.
create table abort_evidence (
  id          bigint generated always as identity primary key,
  session_id  bytea       not null check (octet_length(session_id) = 32),
  key_name    text        not null,
  protocol    text        not null, -- coterie.core.v1.ProtocolId
  cause       text        not null, -- coterie.core.v1.AbortCause
  accused     integer     not null,
  reporter    integer     not null,
  verdict     text        not null, -- coterie.core.v1.Verdict
  -- The serialised SessionConfig and Accusation: with them everybody can judge again.
  session     bytea       not null check (octet_length(session) <= 65536),
  accusation  bytea       not null check (octet_length(accusation) <= 262144),
  judged_at   timestamptz not null
);
