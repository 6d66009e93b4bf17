-- Migration 8: the provider's clients, and what they were given.
-- Codes and tokens are stored as keyed hashes (`SecretHash`). They are bound to a grant in one `generation`: a revocation
-- begins the next, in which none of them is worth anything. `scopes` are words separated by spaces, in alphabetical order.

-- Where an authorization may be answered to, octet by octet.
CREATE TABLE app_redirects (
    app_id {int} NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    uri TEXT NOT NULL,
    created_at {int} NOT NULL,
    PRIMARY KEY (app_id, uri)
) {clustered};

-- Public keys (PEM, P-256) by which a team's client secrets are verified.
CREATE TABLE client_keys (
    id {id},
    team_id {int} NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    kid TEXT NOT NULL,
    public_key TEXT NOT NULL,
    created_at {int} NOT NULL,
    UNIQUE (team_id, kid)
) {strict};

-- challenge: of PKCE (RFC 7636, S256). real_user_status: where the first identity tokens are to say it.
CREATE TABLE authorization_codes (
    code_hash {bytes} NOT NULL,
    grant_id {int} NOT NULL REFERENCES grants (id) ON DELETE CASCADE,
    generation {int} NOT NULL,
    app_id {int} NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    redirect_uri TEXT NOT NULL,
    scopes TEXT NOT NULL,
    nonce TEXT,
    challenge {bytes},
    real_user_status {int},
    org_id TEXT,
    authenticated_at {int} NOT NULL,
    expires_at {int} NOT NULL,
    PRIMARY KEY (code_hash)
) {clustered};
CREATE INDEX authorization_codes_grant ON authorization_codes (grant_id);
CREATE INDEX authorization_codes_app ON authorization_codes (app_id);
CREATE INDEX authorization_codes_expiry ON authorization_codes (expires_at);

-- code_hash: of the code that gave it, so that the code's second use is known whenever it comes.
-- uses: refreshes on used_day.
CREATE TABLE refresh_tokens (
    id {id},
    token_hash {bytes} NOT NULL UNIQUE,
    code_hash {bytes} NOT NULL UNIQUE,
    grant_id {int} NOT NULL REFERENCES grants (id) ON DELETE CASCADE,
    generation {int} NOT NULL,
    app_id {int} NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    scopes TEXT NOT NULL,
    org_id TEXT,
    authenticated_at {int} NOT NULL,
    created_at {int} NOT NULL,
    used_day {int} NOT NULL DEFAULT 0,
    uses {int} NOT NULL DEFAULT 0
) {strict};
CREATE INDEX refresh_tokens_grant ON refresh_tokens (grant_id, app_id);
CREATE INDEX refresh_tokens_app ON refresh_tokens (app_id);

-- refresh_id NULL: the client's own, by client_credentials.
CREATE TABLE access_tokens (
    token_hash {bytes} NOT NULL,
    refresh_id {int} REFERENCES refresh_tokens (id) ON DELETE CASCADE,
    app_id {int} NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    scopes TEXT NOT NULL,
    expires_at {int} NOT NULL,
    PRIMARY KEY (token_hash)
) {clustered};
CREATE INDEX access_tokens_refresh ON access_tokens (refresh_id);
CREATE INDEX access_tokens_app ON access_tokens (app_id);
CREATE INDEX access_tokens_expiry ON access_tokens (expires_at);
