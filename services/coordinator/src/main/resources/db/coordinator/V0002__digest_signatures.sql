-- Schemes that sign a digest: what was signed, what it says, and under which key it verifies. Nothing of
-- this is known of rows that are older.
alter table signings
  add column payload_digest bytea check (octet_length(payload_digest) = 32),
  -- The serialised DecodedPayload.
  add column decoded        bytea,
  add column recovery_id    smallint check (recovery_id between 0 and 3),
  -- The key's own, or its child's at the intent's derivation path.
  add column public_key     bytea,
  add column presigned      boolean not null default false;
alter table signings
  add constraint signings_result_parts check (signature is not null or (recovery_id is null and public_key is null
                                                                        and not presigned));
