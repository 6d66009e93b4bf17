-- Migration 1: teams and where they send from, users and their inboxes, accounts, relay addresses, tokens, counters.
-- Times are seconds since 1970 UTC, days are whole days since then, truth values are 0 and 1.
-- Identifiers are never used twice, since account numbers are in tokens that live for years ({id} ensures that).

CREATE TABLE teams (
    id {id},
    handle TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    created_at {int} NOT NULL
) {strict};

-- envelope_domain '' means: no paired domain. One source paired with two domains is two rows.
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

-- primary_client_id NULL: the group of mail alone, for a team without apps.
CREATE TABLE app_groups (
    id {id},
    team_id {int} NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    primary_client_id TEXT UNIQUE,
    created_at {int} NOT NULL
) {strict};
CREATE INDEX app_groups_team ON app_groups (team_id);
CREATE UNIQUE INDEX app_groups_mail_alone ON app_groups (team_id) WHERE primary_client_id IS NULL;

CREATE TABLE apps (
    id {id},
    group_id {int} NOT NULL REFERENCES app_groups (id) ON DELETE CASCADE,
    client_id TEXT NOT NULL UNIQUE,
    created_at {int} NOT NULL
) {strict};
CREATE INDEX apps_group ON apps (group_id);

CREATE TABLE users (
    id {id},
    handle TEXT NOT NULL UNIQUE,
    name_key TEXT,
    name_sealed {bytes},
    created_at {int} NOT NULL
) {strict};

CREATE TABLE inboxes (
    id {id},
    user_id {int} NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    address_key TEXT NOT NULL,
    address_sealed {bytes} NOT NULL,
    index_key TEXT NOT NULL,
    address_index {bytes} NOT NULL,
    canonical_index {bytes} NOT NULL,
    is_default {int} NOT NULL DEFAULT 0 CHECK (is_default IN (0, 1)),
    reply_only {int} NOT NULL DEFAULT 0 CHECK (reply_only IN (0, 1)),
    created_at {int} NOT NULL,
    verified_at {int},
    UNIQUE (user_id, address_index),
    CHECK (is_default = 0 OR reply_only = 0)
) {strict};
CREATE UNIQUE INDEX inboxes_default ON inboxes (user_id) WHERE is_default = 1;
-- A verified inbox belongs to one user. An unverified claim must not keep its owner out.
CREATE UNIQUE INDEX inboxes_verified ON inboxes (address_index) WHERE verified_at IS NOT NULL;
CREATE INDEX inboxes_canonical ON inboxes (canonical_index);

-- id is the number in address tokens, which have 35 bits for it.
CREATE TABLE accounts (
    id {id} CHECK (id > 0 AND id < 34359738368),
    team_id {int} NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    user_id {int} REFERENCES users (id) ON DELETE CASCADE,
    inbox_id {int} REFERENCES inboxes (id) ON DELETE SET NULL,
    sub TEXT NOT NULL UNIQUE,
    shares_name {int} NOT NULL DEFAULT 0 CHECK (shares_name IN (0, 1)),
    created_at {int} NOT NULL,
    UNIQUE (team_id, user_id)
) {strict};
CREATE INDEX accounts_user ON accounts (user_id);
CREATE INDEX accounts_inbox ON accounts (inbox_id);

CREATE TABLE grants (
    id {id},
    account_id {int} NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    group_id {int} NOT NULL REFERENCES app_groups (id) ON DELETE CASCADE,
    state TEXT NOT NULL CHECK (state IN ('authorized', 'revoked')),
    first_authorized_at {int} NOT NULL,
    last_authorized_at {int} NOT NULL,
    revoked_at {int},
    real_user_status {int} CHECK (real_user_status BETWEEN 0 AND 2),
    UNIQUE (account_id, group_id)
) {strict};
CREATE INDEX grants_group ON grants (group_id);

CREATE TABLE relay_addresses (
    id {id},
    account_id {int} NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    local_part TEXT NOT NULL,
    domain TEXT NOT NULL,
    is_current {int} NOT NULL DEFAULT 1 CHECK (is_current IN (0, 1)),
    forwarding_on {int} NOT NULL DEFAULT 1 CHECK (forwarding_on IN (0, 1)),
    created_at {int} NOT NULL,
    retired_at {int},
    UNIQUE (local_part, domain),
    CHECK (is_current = 0 OR retired_at IS NULL)
) {strict};
CREATE UNIQUE INDEX relay_addresses_current ON relay_addresses (account_id) WHERE is_current = 1;
CREATE INDEX relay_addresses_account ON relay_addresses (account_id);

CREATE TABLE stored_tokens (
    token TEXT NOT NULL,
    purpose TEXT NOT NULL,
    account_id {int} NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    address_key TEXT NOT NULL,
    address_sealed {bytes} NOT NULL,
    created_at {int} NOT NULL,
    expires_at {int},
    PRIMARY KEY (token)
) {clustered};
CREATE INDEX stored_tokens_account ON stored_tokens (account_id);
CREATE INDEX stored_tokens_expiry ON stored_tokens (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE daily_counters (
    account_id {int} NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    day {int} NOT NULL,
    kind {int} NOT NULL,
    count {int} NOT NULL,
    PRIMARY KEY (account_id, day, kind)
) {clustered};
CREATE INDEX daily_counters_day ON daily_counters (day);

-- Things that may happen once: an automatic note to a correspondent in a day, a bounce per nonce. Keyed hashes only.
CREATE TABLE once_marks (
    account_id {int} NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    purpose TEXT NOT NULL,
    mark {bytes} NOT NULL,
    expires_at {int} NOT NULL,
    PRIMARY KEY (account_id, purpose, mark)
) {clustered};
CREATE INDEX once_marks_expiry ON once_marks (expires_at);

CREATE TABLE settings (
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (name)
) {clustered};

CREATE TABLE audit (
    id {id},
    at {int} NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL
) {strict};
CREATE INDEX audit_at ON audit (at);
