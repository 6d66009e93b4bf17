-- Migration 52: who signs in by the OpenID provider that the operator has: its issuer and subject name the user, never an address.
-- A session says when its user signed in there, in seconds since 1970, and how (RFC 8176, separated by spaces).

CREATE TABLE upstream_identities (
    id {id},
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    user_id {int} NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at {int} NOT NULL,
    last_used_at {int} NOT NULL,
    UNIQUE (issuer, subject)
) {strict};
CREATE INDEX upstream_identities_user ON upstream_identities (user_id);

ALTER TABLE page_sessions ADD COLUMN authenticated_at {int};
ALTER TABLE page_sessions ADD COLUMN amr TEXT;
