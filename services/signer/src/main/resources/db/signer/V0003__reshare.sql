-- Ids of the parties of the session that made the share, as in parties: those of the key, and those that have left it.
ALTER TABLE key_share ADD COLUMN members TEXT NOT NULL DEFAULT '';
UPDATE key_share SET members = parties;
