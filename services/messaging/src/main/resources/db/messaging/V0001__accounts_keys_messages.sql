-- Accounts and their devices. An account keeps its identifiers when its number registers again.
CREATE TABLE account (
    aci                    uuid PRIMARY KEY,
    pni                    uuid NOT NULL UNIQUE,
    number                 text NOT NULL UNIQUE,
    aci_identity_key       bytea NOT NULL CHECK (length(aci_identity_key) = 33),
    pni_identity_key       bytea NOT NULL CHECK (length(pni_identity_key) = 33),
    unidentified_access_key bytea CHECK (length(unidentified_access_key) = 16),
    unrestricted_access    boolean NOT NULL,
    created_at             timestamptz NOT NULL
);

CREATE TABLE device (
    aci                 uuid NOT NULL REFERENCES account ON DELETE CASCADE,
    device_id           smallint NOT NULL CHECK (device_id BETWEEN 1 AND 127),
    password_salt       bytea NOT NULL,
    password_hash       bytea NOT NULL,
    registration_id     integer NOT NULL CHECK (registration_id BETWEEN 1 AND 16383),
    pni_registration_id integer NOT NULL CHECK (pni_registration_id BETWEEN 1 AND 16383),
    name                text,
    fetches_messages    boolean NOT NULL,
    capabilities        text[] NOT NULL,
    created_at          timestamptz NOT NULL,
    last_seen_at        timestamptz NOT NULL,
    PRIMARY KEY (aci, device_id)
);

-- Accounts that deleted themselves: a sender who still has the access key is told that the account is gone.
CREATE TABLE deleted_account (
    aci                     uuid PRIMARY KEY,
    unidentified_access_key bytea CHECK (length(unidentified_access_key) = 16),
    unrestricted_access     boolean NOT NULL,
    deleted_at              timestamptz NOT NULL
);

-- One-time tokens with which a number may register. A row is never removed, so a token is never accepted twice.
CREATE TABLE enrolment (
    number     text NOT NULL,
    token_hash bytea NOT NULL CHECK (length(token_hash) = 32),
    created_at timestamptz NOT NULL,
    used_at    timestamptz,
    PRIMARY KEY (number, token_hash)
);

-- Keys that may be handed out many times: the signed EC key and the last-resort KEM key.
-- identity: 0 ACI, 1 PNI. kind: 0 EC, 1 KEM.
CREATE TABLE repeated_prekey (
    aci        uuid NOT NULL,
    device_id  smallint NOT NULL,
    identity   smallint NOT NULL CHECK (identity IN (0, 1)),
    kind       smallint NOT NULL CHECK (kind IN (0, 1)),
    key_id     bigint NOT NULL,
    public_key bytea NOT NULL,
    signature  bytea NOT NULL,
    PRIMARY KEY (aci, device_id, identity, kind),
    FOREIGN KEY (aci, device_id) REFERENCES device ON DELETE CASCADE
);

-- Keys that are handed out once: taking one deletes its row.
CREATE TABLE one_time_prekey (
    aci        uuid NOT NULL,
    device_id  smallint NOT NULL,
    identity   smallint NOT NULL CHECK (identity IN (0, 1)),
    kind       smallint NOT NULL CHECK (kind IN (0, 1)),
    key_id     bigint NOT NULL,
    public_key bytea NOT NULL,
    signature  bytea,
    PRIMARY KEY (aci, device_id, identity, kind, key_id),
    FOREIGN KEY (aci, device_id) REFERENCES device ON DELETE CASCADE
);

-- The body of a message to many: once, whatever the number of recipients.
CREATE TABLE shared_body (
    id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    body bytea NOT NULL
);

-- Messages that wait for a device. envelope is the Envelope without what the other columns hold: of a message to
-- many, its content is cut out of the shared body by recipient_view. sender is the account that the envelope names, if
-- it names one; bytes are those that the device gets.
CREATE TABLE stored_message (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    aci            uuid NOT NULL,
    device_id      smallint NOT NULL,
    received_at    timestamptz NOT NULL,
    envelope       bytea NOT NULL,
    shared_body_id bigint REFERENCES shared_body,
    recipient_view bytea,
    traceparent    text,
    sender         uuid,
    bytes          integer NOT NULL,
    FOREIGN KEY (aci, device_id) REFERENCES device ON DELETE CASCADE,
    CHECK ((shared_body_id IS NULL) = (recipient_view IS NULL))
);
CREATE INDEX stored_message_by_device ON stored_message (aci, device_id, id) INCLUDE (sender, bytes);
CREATE INDEX stored_message_by_age ON stored_message (received_at);
CREATE INDEX stored_message_by_body ON stored_message (shared_body_id) WHERE shared_body_id IS NOT NULL;
