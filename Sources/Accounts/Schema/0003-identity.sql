-- Migration 3: who issues the identity tokens that are taken, and the keys of those that are given.
-- `issuer_keys` is a cache that survives a restart: the last good document of an issuer, for as long as the issuer is away.
-- `identity_keys` never lose a row, so that the maximum of `revision` tells a running service whether to read them again; a
-- retired key keeps its row without the private part, and its id is never used again.

CREATE TABLE issuers (
    id {id},
    name TEXT NOT NULL UNIQUE,
    iss TEXT NOT NULL UNIQUE,
    source TEXT NOT NULL CHECK (source IN ('uri', 'file', 'inline')),
    location TEXT NOT NULL,
    allows_http {int} NOT NULL CHECK (allows_http IN (0, 1)),
    algorithms TEXT NOT NULL,
    nonce_form TEXT NOT NULL CHECK (nonce_form IN ('raw', 'sha256_hex')),
    leeway {int} NOT NULL,
    created_at {int} NOT NULL
) {strict};
CREATE TABLE issuer_keys (
    issuer_id {int} NOT NULL PRIMARY KEY REFERENCES issuers (id) ON DELETE CASCADE,
    document {bytes} NOT NULL,
    fetched_at {int} NOT NULL,
    fresh_until {int} NOT NULL
) {strict};
CREATE TABLE identity_keys (
    id {id},
    kid TEXT NOT NULL UNIQUE,
    public_jwk TEXT NOT NULL,
    private_key TEXT,
    private_sealed {bytes},
    state TEXT NOT NULL CHECK (state IN ('next', 'active', 'retiring', 'retired')),
    created_at {int} NOT NULL,
    activated_at {int},
    deactivated_at {int},
    retired_at {int},
    revision {int} NOT NULL,
    CHECK ((state = 'retired') = (private_sealed IS NULL))
) {strict};
-- One signs, and one is published before it does.
CREATE UNIQUE INDEX identity_keys_active ON identity_keys (state) WHERE state IN ('active', 'next');
CREATE INDEX identity_keys_revision ON identity_keys (revision);
