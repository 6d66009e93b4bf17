-- Migration 42: passkeys of users, and how a session began.
-- A challenge proves itself (it carries a code made with the installation's key and the browser's cookie); only a used one has a row,
-- until it would have expired, so that it is used once.

CREATE TABLE passkeys (
    id {id},
    user_id {int} NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    credential_id {bytes} NOT NULL UNIQUE,
    public_key {bytes} NOT NULL,
    sign_count {int} NOT NULL,
    aaguid {bytes} NOT NULL,
    backup_eligible {int} NOT NULL,
    backed_up {int} NOT NULL,
    name_key TEXT NOT NULL,
    name_sealed {bytes} NOT NULL,
    created_at {int} NOT NULL,
    last_used_at {int}
) {strict};
CREATE INDEX passkeys_user ON passkeys (user_id);

CREATE TABLE used_challenges (
    id {id},
    challenge_hash {bytes} NOT NULL UNIQUE,
    expires_at {int} NOT NULL
) {strict};
CREATE INDEX used_challenges_expiry ON used_challenges (expires_at);

ALTER TABLE page_sessions ADD COLUMN method TEXT NOT NULL DEFAULT 'mail';
