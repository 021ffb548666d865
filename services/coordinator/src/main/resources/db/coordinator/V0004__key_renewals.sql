-- New shares may be for other parties, and another number of them may sign: what the key is to be.
alter table key_refreshes rename to key_renewals;
alter table key_renewals
  add column threshold   smallint,
  add column party_ids   integer[],
  add column party_names text[],
  -- Somebody asked that it come to nothing, if it still can.
  add column cancelled   boolean not null default false;
update key_renewals r set threshold = k.threshold, party_ids = k.party_ids, party_names = k.party_names
  from keys k where k.name = r.key_name and k.state = 2;
alter table key_renewals
  alter column threshold set not null,
  alter column party_ids set not null,
  alter column party_names set not null,
  add constraint key_renewals_parties check (cardinality(party_ids) = cardinality(party_names)
                                             and threshold between 1 and cardinality(party_ids));
