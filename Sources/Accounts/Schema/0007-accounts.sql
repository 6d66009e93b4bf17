-- Migration 7: how accounts end, what teams are told of it, and how an app moves to another team.

-- What the team has as the user's address: a relay address of ours, the real one, or none.
ALTER TABLE accounts ADD COLUMN email_kind TEXT NOT NULL DEFAULT 'private'
    CHECK (email_kind IN ('private', 'real', 'none'));
-- Grows when the grant is revoked: what was issued under an earlier one is worth nothing, also after a return.
ALTER TABLE grants ADD COLUMN generation {int} NOT NULL DEFAULT 0;

-- The mark of the inbox in tombstones. NULL: added before this migration.
ALTER TABLE inboxes ADD COLUMN tombstone_index {bytes};

-- The latest event of each kind that an issuer sent about its account, milliseconds since 1970.
ALTER TABLE external_identities ADD COLUMN email_event_at {int};
ALTER TABLE external_identities ADD COLUMN consent_event_at {int};

-- Where a group of apps hears of changes. group_id NULL: the group was removed; the row goes with its last event.
-- `audience` is the primary app's client_id, or the team's identifier for mail alone. `failures` in a row since
-- the last success; while there are any, nothing is tried before `retry_at`.
CREATE TABLE event_endpoints (
    id {id},
    group_id {int} UNIQUE REFERENCES app_groups (id) ON DELETE SET NULL,
    audience TEXT NOT NULL,
    url TEXT NOT NULL,
    allow_http {int} NOT NULL DEFAULT 0 CHECK (allow_http IN (0, 1)),
    allow_private {int} NOT NULL DEFAULT 0 CHECK (allow_private IN (0, 1)),
    failures {int} NOT NULL DEFAULT 0,
    retry_at {int} NOT NULL DEFAULT 0,
    last_error TEXT,
    last_success_at {int},
    created_at {int} NOT NULL
) {strict};

-- Events on their way out. An account's events go to an endpoint in the order of id, and outlive the account:
-- account_id is its number alone. email: the relay address, in events about it.
CREATE TABLE outbox (
    id {id},
    jti TEXT NOT NULL UNIQUE,
    endpoint_id {int} NOT NULL REFERENCES event_endpoints (id) ON DELETE CASCADE,
    account_id {int} NOT NULL,
    type TEXT NOT NULL CHECK (
        type IN ('email-disabled', 'email-enabled', 'consent-revoked', 'account-delete', 'test')),
    sub TEXT NOT NULL,
    email TEXT,
    event_time {int} NOT NULL,
    created_at {int} NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'parked')),
    park_at {int} NOT NULL,
    attempts {int} NOT NULL DEFAULT 0,
    next_attempt_at {int} NOT NULL,
    last_attempt_at {int} NOT NULL DEFAULT 0,
    last_error TEXT,
    ended_at {int}
) {strict};
CREATE INDEX outbox_order ON outbox (endpoint_id, account_id, id) WHERE state = 'pending';
CREATE INDEX outbox_due ON outbox (endpoint_id, next_attempt_at) WHERE state = 'pending';
CREATE INDEX outbox_account ON outbox (account_id);
CREATE INDEX outbox_ended ON outbox (ended_at) WHERE ended_at IS NOT NULL;

-- Which of several processes delivers. Milliseconds since 1970.
CREATE TABLE delivery_lease (
    name TEXT NOT NULL,
    holder TEXT NOT NULL,
    expires_at {int} NOT NULL,
    PRIMARY KEY (name)
) {clustered};

-- Events that issuers sent, by their hash, so that each counts once.
CREATE TABLE received_events (
    mark {bytes} NOT NULL,
    received_at {int} NOT NULL,
    PRIMARY KEY (mark)
) {clustered};
CREATE INDEX received_events_time ON received_events (received_at);

-- What is left of deleted accounts, for 30 days: keyed hashes of the canonical inbox and of issuer and subject.
CREATE TABLE tombstones (
    mark {bytes} NOT NULL,
    day {int} NOT NULL,
    deletions {int} NOT NULL,
    failures {int} NOT NULL,
    PRIMARY KEY (mark, day)
) {clustered};
CREATE INDEX tombstones_day ON tombstones (day);

-- Keyed hashes of every `sub` and relay address that ended: none is ever issued again.
CREATE TABLE retired_names (
    mark {bytes} NOT NULL,
    PRIMARY KEY (mark)
) {clustered};

-- An app's way to another team: started, moving (its grants follow one by one), finished.
CREATE TABLE app_transfers (
    id {id},
    group_id {int} NOT NULL REFERENCES app_groups (id) ON DELETE CASCADE,
    from_team {int} NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    to_team {int} NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    state TEXT NOT NULL CHECK (state IN ('started', 'moving', 'finished')),
    started_at {int} NOT NULL,
    moved_at {int},
    ends_at {int}
) {strict};
CREATE UNIQUE INDEX app_transfers_group ON app_transfers (group_id) WHERE state <> 'finished';
CREATE INDEX app_transfers_from ON app_transfers (from_team);
CREATE INDEX app_transfers_to ON app_transfers (to_team);

-- By which the old team tells the new one of a user. account_id is the old team's account.
CREATE TABLE transfer_subs (
    transfer_sub TEXT NOT NULL,
    account_id {int} NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    target_team {int} NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    created_at {int} NOT NULL,
    PRIMARY KEY (transfer_sub),
    UNIQUE (account_id, target_team)
) {clustered};
CREATE INDEX transfer_subs_team ON transfer_subs (target_team);

-- Accounts whose grant moved. Until ends_at the old address admits the new team too.
CREATE TABLE account_transfers (
    old_account {int} NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    transfer_id {int} NOT NULL REFERENCES app_transfers (id) ON DELETE CASCADE,
    new_account {int} NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    moved_at {int} NOT NULL,
    ends_at {int} NOT NULL,
    PRIMARY KEY (old_account, transfer_id)
) {clustered};
CREATE INDEX account_transfers_new ON account_transfers (new_account);
CREATE INDEX account_transfers_transfer ON account_transfers (transfer_id);
CREATE INDEX account_transfers_end ON account_transfers (ends_at);
