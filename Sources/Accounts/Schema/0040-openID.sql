-- Migration 40: what OpenID Connect clients bring with them, and the authorizations that they ask for.
-- `apps.is_public`: it has no secret and uses PKCE instead. `id_token_algorithm`: of the identity tokens that it is given.
-- Each algorithm has its own active and next key.

ALTER TABLE apps ADD COLUMN is_public {int} NOT NULL DEFAULT 0;
ALTER TABLE apps ADD COLUMN id_token_algorithm TEXT NOT NULL DEFAULT 'ES256';

ALTER TABLE identity_keys ADD COLUMN algorithm TEXT NOT NULL DEFAULT 'ES256';
DROP INDEX identity_keys_active;
CREATE UNIQUE INDEX identity_keys_active ON identity_keys (algorithm, state) WHERE state IN ('active', 'next');

-- Client secrets that Postern issued; keyed hashes. `name` is shown, and tells an app's secrets apart.
CREATE TABLE client_secrets (
    id {id},
    app_id {int} NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    name TEXT NOT NULL UNIQUE,
    secret_hash {bytes} NOT NULL,
    created_at {int} NOT NULL
) {strict};
CREATE INDEX client_secrets_app ON client_secrets (app_id);

-- Client assertions (RFC 7523) that were used and are not expired: a keyed hash of app and jti.
CREATE TABLE client_assertions (
    jti_hash {bytes} NOT NULL,
    expires_at {int} NOT NULL,
    PRIMARY KEY (jti_hash)
) {clustered};
CREATE INDEX client_assertions_expiry ON client_assertions (expires_at);

-- Where a user may be sent after signing out at an app's request, octet by octet.
CREATE TABLE logout_redirects (
    app_id {int} NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    uri TEXT NOT NULL,
    created_at {int} NOT NULL,
    PRIMARY KEY (app_id, uri)
) {clustered};

-- Answers to authorization requests that wait for the browser that asked, for minutes. `content` is encrypted under a key that is
-- made from the ticket of the answer, of which the table has a hash alone.
CREATE TABLE authorization_answers (
    request_hash {bytes} NOT NULL,
    ticket_hash {bytes} NOT NULL UNIQUE,
    content {bytes} NOT NULL,
    expires_at {int} NOT NULL,
    PRIMARY KEY (request_hash)
) {clustered};
CREATE INDEX authorization_answers_expiry ON authorization_answers (expires_at);

-- How the user was authenticated (RFC 8176; words in alphabetical order), in which context class, and whether the app may have
-- the user's name as it is stored.
ALTER TABLE authorization_codes ADD COLUMN amr TEXT;
ALTER TABLE authorization_codes ADD COLUMN acr TEXT;
ALTER TABLE authorization_codes ADD COLUMN gives_name {int} NOT NULL DEFAULT 0;
ALTER TABLE refresh_tokens ADD COLUMN amr TEXT;
ALTER TABLE refresh_tokens ADD COLUMN acr TEXT;
ALTER TABLE refresh_tokens ADD COLUMN gives_name {int} NOT NULL DEFAULT 0;
