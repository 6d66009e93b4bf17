-- The schema is made from the files of this folder, in the order of their names. Each has the tables of one subject.
-- Times are seconds since 1970 UTC if nothing else is said, days are whole days since then, and truth values are 0 and 1.
-- {id} numbers are never used twice: tokens that live for years contain account numbers.
-- Octets named `…_sealed` are encrypted, with the key that `…_key` names. `…_hash`, `…_mark` and `…_index` are keyed hashes.
--
-- Teams: where they send from, their API keys, and their apps.

-- `removed_at` is set at once when a team is removed: it counts as gone from then on, and its rows are deleted in small steps.
-- An account with too many rows for one transaction is moved into a removed team of its own.
-- `sign_in_level`: how surely users must have signed in (`SignInLevel`).
-- `outgoing_identity`: the name of the identity by which its forwards leave (`outgoing.identities`); '' is the standard.
-- `waits_for_hold`: nothing of the removed team is left to delete but what a hold keeps (`holds`).
-- `loses_apps`: some accounts of this team may have consents to removed apps alone, so `accounts.has_live_grant` is not enough.
CREATE TABLE teams (
    id {id},
    handle TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    sign_in_level TEXT NOT NULL DEFAULT 'any' CHECK (sign_in_level IN ('any', 'two_factor', 'passkey')),
    outgoing_identity TEXT NOT NULL DEFAULT '',
    loses_apps {int} NOT NULL DEFAULT 0,
    waits_for_hold {int} NOT NULL DEFAULT 0 CHECK (waits_for_hold IN (0, 1)),
    created_at {int} NOT NULL,
    removed_at {int}
) {strict};
CREATE INDEX teams_removed ON teams (removed_at) WHERE removed_at IS NOT NULL;

-- Teams that an administrator froze: no mail passes in either direction, and no one can sign in to their apps. `ends_at` NULL:
-- until an administrator ends it. The reason is in the audit alone.
CREATE TABLE team_freezes (
    team_id {int} NOT NULL PRIMARY KEY REFERENCES teams (id) ON DELETE CASCADE,
    began_at {int} NOT NULL,
    ends_at {int}
) {strict};

-- Sources in use, and nothing else. `envelope_domain` '': no paired domain. A source paired with two domains is two rows.
CREATE TABLE outbound_sources (
    id {id},
    team_id {int} NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('domain', 'address')),
    value TEXT NOT NULL,
    envelope_domain TEXT NOT NULL DEFAULT '',
    created_at {int} NOT NULL,
    UNIQUE (team_id, value, envelope_domain)
) {strict};
CREATE INDEX outbound_sources_value ON outbound_sources (value);

-- Domains that teams prove by a TXT record, and addresses that they prove by a mailed code. A claim says how a source was
-- proved and when its record is looked up again. A source without a claim was added by the administrator.
CREATE TABLE source_claims (
    id {id},
    team_id {int} NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('domain', 'address')),
    value TEXT NOT NULL,
    token TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'proved', 'stopped')),
    created_at {int} NOT NULL,
    proved_at {int},
    failing_since {int},
    warned_at {int},
    next_check_at {int} NOT NULL,
    UNIQUE (team_id, value)
) {strict};
CREATE INDEX source_claims_due ON source_claims (next_check_at);

-- One row for each mailed code. The rows carry the limits of messages and of wrong codes, so they outlive their claim.
-- They refer to its token, which is never issued again. Rows are deleted after a day.
CREATE TABLE source_codes (
    id {id},
    claim_token TEXT NOT NULL,
    team_id {int} NOT NULL,
    mailbox_index {bytes} NOT NULL,
    code_hash {bytes} NOT NULL,
    tries {int} NOT NULL DEFAULT 0,
    sent_at {int} NOT NULL,
    expires_at {int} NOT NULL
) {strict};
CREATE INDEX source_codes_claim ON source_codes (claim_token);
CREATE INDEX source_codes_team ON source_codes (team_id, sent_at);
CREATE INDEX source_codes_mailbox ON source_codes (mailbox_index, sent_at);
CREATE INDEX source_codes_sent ON source_codes (sent_at);

-- `team_id` NULL: a key of the operator. `issued_by`: handle of the key that issued this one, and ends with it.
-- `revision` grows with every change that running services need, but not with the last use.
CREATE TABLE api_keys (
    id {id},
    handle TEXT NOT NULL UNIQUE,
    team_id {int} REFERENCES teams (id) ON DELETE CASCADE,
    issued_by TEXT,
    scopes TEXT NOT NULL,
    note TEXT NOT NULL,
    secret_hash {bytes} NOT NULL,
    created_at {int} NOT NULL,
    expires_at {int},
    revoked_at {int},
    last_used_day {int},
    rotated_to TEXT,
    revision {int} NOT NULL
) {strict};
CREATE INDEX api_keys_team ON api_keys (team_id);
CREATE INDEX api_keys_revision ON api_keys (revision);

-- `primary_client_id` NULL: the group for mail alone, of a team without apps.
-- `removed_from`: the team that a removed group belonged to. The removed group is in a removed team of its own, and the
-- former team's endpoint is still told that each consent ended.
CREATE TABLE app_groups (
    id {id},
    team_id {int} NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    primary_client_id TEXT UNIQUE,
    removed_from {int},
    created_at {int} NOT NULL
) {strict};
CREATE INDEX app_groups_team ON app_groups (team_id);
CREATE UNIQUE INDEX app_groups_mail_alone ON app_groups (team_id) WHERE primary_client_id IS NULL;
CREATE INDEX app_groups_removed ON app_groups (removed_from) WHERE removed_from IS NOT NULL;

-- `nonce_form`: whether identity tokens contain the nonce as it is, or its SHA-256 in hexadecimal.
-- `is_public`: the app has no secret and uses PKCE.
CREATE TABLE apps (
    id {id},
    group_id {int} NOT NULL REFERENCES app_groups (id) ON DELETE CASCADE,
    client_id TEXT NOT NULL UNIQUE,
    name TEXT,
    icon {bytes},
    is_public {int} NOT NULL DEFAULT 0,
    id_token_algorithm TEXT NOT NULL DEFAULT 'ES256',
    nonce_form TEXT NOT NULL DEFAULT 'raw' CHECK (nonce_form IN ('raw', 'sha256_hex')),
    nonce_required {int} NOT NULL DEFAULT 1 CHECK (nonce_required IN (0, 1)),
    backchannel_logout_uri TEXT,
    sign_in_level TEXT NOT NULL DEFAULT 'any' CHECK (sign_in_level IN ('any', 'two_factor', 'passkey')),
    created_at {int} NOT NULL
) {strict};
CREATE INDEX apps_group ON apps (group_id);

-- Redirect URIs for authorization responses and after a logout, compared octet by octet.
CREATE TABLE app_redirects (
    app_id {int} NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    uri TEXT NOT NULL,
    created_at {int} NOT NULL,
    PRIMARY KEY (app_id, uri)
) {clustered};
CREATE TABLE logout_redirects (
    app_id {int} NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    uri TEXT NOT NULL,
    created_at {int} NOT NULL,
    PRIMARY KEY (app_id, uri)
) {clustered};

-- Public keys (PEM, P-256) that verify a team's client secrets.
CREATE TABLE client_keys (
    id {id},
    team_id {int} NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    kid TEXT NOT NULL,
    public_key TEXT NOT NULL,
    created_at {int} NOT NULL,
    UNIQUE (team_id, kid)
) {strict};

-- Client secrets that Postern issued. `name` is shown, and distinguishes an app's secrets.
CREATE TABLE client_secrets (
    id {id},
    app_id {int} NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    name TEXT NOT NULL UNIQUE,
    secret_hash {bytes} NOT NULL,
    created_at {int} NOT NULL
) {strict};
CREATE INDEX client_secrets_app ON client_secrets (app_id);

-- Client assertions (RFC 7523) that were used and have not expired: a hash of app and jti.
CREATE TABLE client_assertions (
    jti_hash {bytes} NOT NULL,
    expires_at {int} NOT NULL,
    PRIMARY KEY (jti_hash)
) {clustered};
CREATE INDEX client_assertions_expiry ON client_assertions (expires_at);
