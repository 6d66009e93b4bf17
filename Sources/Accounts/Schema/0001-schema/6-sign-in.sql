-- Sign-in: issuers, keys of identity tokens, what apps were given, and sessions of the user's own page.

-- Issuers whose identity tokens are accepted.
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

-- The last good document of an issuer: a cache that survives a restart while the issuer cannot be reached.
CREATE TABLE issuer_keys (
    issuer_id {int} NOT NULL PRIMARY KEY REFERENCES issuers (id) ON DELETE CASCADE,
    document {bytes} NOT NULL,
    fetched_at {int} NOT NULL,
    fresh_until {int} NOT NULL
) {strict};

-- Where events of the Shared Signals Framework are fetched. By name: postern.yaml may make an issuer again under it.
CREATE TABLE issuer_polls (
    issuer TEXT NOT NULL,
    url TEXT NOT NULL,
    allows_http {int} NOT NULL CHECK (allows_http IN (0, 1)),
    token_key TEXT,
    token_sealed {bytes},
    created_at {int} NOT NULL,
    PRIMARY KEY (issuer)
) {clustered};

-- Keys of the identity tokens that Postern issues. Rows and revisions as in `dkim_keys`; no kid is used twice.
CREATE TABLE identity_keys (
    id {id},
    kid TEXT NOT NULL UNIQUE,
    algorithm TEXT NOT NULL,
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
-- For each algorithm, one key signs, and one is published before it does.
CREATE UNIQUE INDEX identity_keys_active ON identity_keys (algorithm, state) WHERE state IN ('active', 'next');
CREATE INDEX identity_keys_revision ON identity_keys (revision);

-- An app's request waits here while its user signs in, and then for the browser that fetches the response. Addresses, cookies
-- and mails contain its handle alone. `content` and `response` are encrypted with a key made from the handle.
-- `response` is NULL until the user answered, and empty once it was fetched. `browser_hash` is NULL until the browser is known.
-- Each step of the page moves `expires_at`, at most to `ends_at`. A check that a decision required waits here too.
CREATE TABLE pending_requests (
    id {id},
    handle_hash {bytes} NOT NULL UNIQUE,
    content {bytes} NOT NULL,
    octets {int} NOT NULL,
    network_hash {bytes} NOT NULL,
    browser_hash {bytes},
    ticket_hash {bytes} UNIQUE,
    response {bytes},
    created_at {int} NOT NULL,
    expires_at {int} NOT NULL,
    ends_at {int} NOT NULL
) {strict};
CREATE INDEX pending_requests_network ON pending_requests (network_hash, id, octets);
CREATE INDEX pending_requests_expiry ON pending_requests (expires_at);

-- Codes and tokens are bound to one `generation` of a grant. `scopes` are words in alphabetical order. `challenge`: of PKCE
-- (RFC 7636, S256). `real_user_status`: for the first identity tokens. `amr` (RFC 8176) and `acr`: how the user signed in.
-- `sid`: the session's name in this app's tokens.
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
    amr TEXT,
    acr TEXT,
    sid TEXT,
    expires_at {int} NOT NULL,
    PRIMARY KEY (code_hash)
) {clustered};
CREATE INDEX authorization_codes_grant ON authorization_codes (grant_id);
CREATE INDEX authorization_codes_app ON authorization_codes (app_id);
CREATE INDEX authorization_codes_sid ON authorization_codes (sid) WHERE sid IS NOT NULL;
CREATE INDEX authorization_codes_expiry ON authorization_codes (expires_at);

-- `code_hash`: of the code that gave the token, so that a second use of the code is noticed whenever it comes.
-- Tokens of public apps are used once (RFC 9700 section 4.14.2). `family_hash`: of the beginning that all tokens of one sign-in
-- share. `former_hash`: of the token that this one replaced at `rotated_at`. `uses`: refreshes on `used_day`.
CREATE TABLE refresh_tokens (
    id {id},
    token_hash {bytes} NOT NULL UNIQUE,
    family_hash {bytes},
    former_hash {bytes},
    code_hash {bytes} NOT NULL UNIQUE,
    grant_id {int} NOT NULL REFERENCES grants (id) ON DELETE CASCADE,
    generation {int} NOT NULL,
    app_id {int} NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    scopes TEXT NOT NULL,
    org_id TEXT,
    authenticated_at {int} NOT NULL,
    amr TEXT,
    acr TEXT,
    sid TEXT,
    created_at {int} NOT NULL,
    rotated_at {int},
    used_day {int} NOT NULL DEFAULT 0,
    uses {int} NOT NULL DEFAULT 0
) {strict};
CREATE UNIQUE INDEX refresh_tokens_family ON refresh_tokens (family_hash);
CREATE INDEX refresh_tokens_grant ON refresh_tokens (grant_id, app_id);
CREATE INDEX refresh_tokens_app ON refresh_tokens (app_id);
CREATE INDEX refresh_tokens_sid ON refresh_tokens (sid) WHERE sid IS NOT NULL;

-- `refresh_id` NULL: the client's own token, from client_credentials.
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

-- Messages that Postern sent to inboxes, for the limits alone. `network_hash`: of the network that asked for the message.
-- `domain_hash`: of the inbox's domain, for people who are no users yet.
CREATE TABLE notices (
    id {id},
    kind TEXT NOT NULL CHECK (kind IN ('verification', 'sign-in', 'deletion', 'change')),
    canonical_index {bytes} NOT NULL,
    user_id {int} REFERENCES users (id) ON DELETE SET NULL,
    network_hash {bytes},
    domain_hash {bytes},
    sent_at {int} NOT NULL
) {strict};
CREATE INDEX notices_sent ON notices (sent_at);
CREATE INDEX notices_inbox ON notices (canonical_index, sent_at);
CREATE INDEX notices_user ON notices (user_id, sent_at);

-- Wrong codes from all networks, by five minutes.
CREATE TABLE wrong_codes (
    period {int} PRIMARY KEY,
    count {int} NOT NULL
) {strict};

-- Mailed links. `request_sealed`: the request that the link continues, encrypted with a key made from the link's token.
CREATE TABLE page_links (
    id {id},
    purpose TEXT NOT NULL CHECK (purpose IN ('sign-in', 'deletion')),
    token_hash {bytes} NOT NULL UNIQUE,
    browser_hash {bytes} NOT NULL,
    user_id {int} NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    inbox_id {int} NOT NULL REFERENCES inboxes (id) ON DELETE CASCADE,
    request_sealed {bytes},
    created_at {int} NOT NULL,
    expires_at {int} NOT NULL
) {strict};
CREATE INDEX page_links_user ON page_links (user_id);
CREATE INDEX page_links_inbox ON page_links (inbox_id);
CREATE INDEX page_links_expiry ON page_links (expires_at);

-- Mailed codes of six digits, for people who read their mail in another program than the browser that asked. Each browser that
-- asked has a row, whether the inbox is known or not: the response to a code, and its time, must not depend on that.
-- A user's rows stay for a day, for the limit of wrong codes. `inbox_mark`: of an inbox that is to become a user. The address
-- itself is sealed in a cookie, so nothing is kept of people who never type the code. `token_hash` and `request_sealed`: of
-- the link in the same message.
CREATE TABLE page_codes (
    id {id},
    browser_hash {bytes} NOT NULL,
    code_hash {bytes} NOT NULL,
    token_hash {bytes},
    link_id {int} REFERENCES page_links (id) ON DELETE SET NULL,
    user_id {int} REFERENCES users (id) ON DELETE CASCADE,
    inbox_mark {bytes},
    request_sealed {bytes},
    tries {int} NOT NULL DEFAULT 0,
    created_at {int} NOT NULL,
    expires_at {int} NOT NULL,
    kept_until {int} NOT NULL
) {strict};
CREATE UNIQUE INDEX page_codes_token ON page_codes (token_hash);
CREATE INDEX page_codes_browser ON page_codes (browser_hash);
CREATE INDEX page_codes_link ON page_codes (link_id);
CREATE INDEX page_codes_user ON page_codes (user_id, created_at);
CREATE INDEX page_codes_mark ON page_codes (inbox_mark, created_at);
CREATE INDEX page_codes_kept ON page_codes (kept_until);

-- Forms of the pages that were sent a moment ago, so that a second press of a button does nothing again. `mark`: of the browser's
-- cookie, the path and the fields. `outcome`: NULL while the first is answered.
CREATE TABLE page_repeats (
    mark {bytes} NOT NULL PRIMARY KEY,
    outcome TEXT,
    began_at {int} NOT NULL
) {strict};
CREATE INDEX page_repeats_began ON page_repeats (began_at);

-- Challenges of passkeys and devices prove themselves. A used one has a row until it expires, so that it is used once.
CREATE TABLE used_challenges (
    id {id},
    challenge_hash {bytes} NOT NULL UNIQUE,
    expires_at {int} NOT NULL
) {strict};
CREATE INDEX used_challenges_expiry ON used_challenges (expires_at);

-- Sessions of the user's own page. `inbox_id`: the inbox that the user signed in with. `authenticated_at` and `amr` (RFC 8176):
-- when and how the user signed in at the operator's OpenID provider. `second_at`: when a code of the user's authenticator app was
-- accepted in this session, or a passkey was made in it. `is_recovered`: whether that was a recovery code instead. `browser`: family and system (`BrowserName`); NULL: unknown.
CREATE TABLE page_sessions (
    id {id},
    token_hash {bytes} NOT NULL UNIQUE,
    user_id {int} NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    inbox_id {int} NOT NULL REFERENCES inboxes (id) ON DELETE CASCADE,
    method TEXT NOT NULL,
    authenticated_at {int},
    amr TEXT,
    second_at {int},
    is_recovered {int} NOT NULL DEFAULT 0 CHECK (is_recovered IN (0, 1)),
    browser TEXT,
    created_at {int} NOT NULL,
    seen_at {int} NOT NULL,
    expires_at {int} NOT NULL
) {strict};
CREATE INDEX page_sessions_user ON page_sessions (user_id);
CREATE INDEX page_sessions_inbox ON page_sessions (inbox_id);
CREATE INDEX page_sessions_expiry ON page_sessions (expires_at);

-- The latest sign-ins of each user.
CREATE TABLE page_sign_ins (
    id {id},
    user_id {int} NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    at {int} NOT NULL,
    method TEXT NOT NULL
) {strict};
CREATE INDEX page_sign_ins_user ON page_sign_ins (user_id);

-- Apps that a session of the page signed its user in to. `sid`: the session's name in this app's tokens alone; random.
CREATE TABLE app_sessions (
    session_id {int} NOT NULL REFERENCES page_sessions (id) ON DELETE CASCADE,
    app_id {int} NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    grant_id {int} NOT NULL REFERENCES grants (id) ON DELETE CASCADE,
    sid TEXT NOT NULL,
    PRIMARY KEY (session_id, app_id)
) {clustered};
CREATE INDEX app_sessions_app ON app_sessions (app_id);
CREATE INDEX app_sessions_grant ON app_sessions (grant_id);

-- Logout tokens that are sent to apps (OpenID Connect Back-Channel Logout 1.0).
CREATE TABLE logout_notices (
    id {id},
    app_id {int} NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    sub TEXT NOT NULL,
    sid TEXT NOT NULL,
    jti TEXT NOT NULL,
    created_at {int} NOT NULL,
    attempts {int} NOT NULL DEFAULT 0,
    next_attempt_at {int} NOT NULL
) {strict};
CREATE INDEX logout_notices_app ON logout_notices (app_id);
CREATE INDEX logout_notices_due ON logout_notices (next_attempt_at);
