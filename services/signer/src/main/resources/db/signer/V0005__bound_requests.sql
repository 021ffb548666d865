-- Signatures of most schemes are random: a request that was signed twice would have two. So it is bound to one session here, until
-- that one cannot become a signature any more. Kept until the intent has expired.
CREATE TABLE bound_request (
  requester    TEXT NOT NULL,
  request_id   TEXT NOT NULL,
  session_id   BLOB NOT NULL CHECK (length(session_id) = 32),
  -- coterie.party.v1.Order, without the signed intent.
  order_bytes  BLOB NOT NULL,
  -- What this party sends in that session, to be sent again; empty if it was not known yet when the session began.
  envelope     BLOB NOT NULL,
  not_after_ms INTEGER NOT NULL,
  PRIMARY KEY (requester, request_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX bound_request_by_end ON bound_request (not_after_ms);
