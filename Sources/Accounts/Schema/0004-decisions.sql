-- Migration 4: what decisions need to know of a grant, the decision log, and what teams report back.

-- Grants as decisions see them. `real_user_status` is the first that a verified token gave; `prior_status` the one before
-- a revocation and return. `first_asked_at` NULL: never asked about (since the last return), hence a sign-up.
-- `signup_check` is 'pending' from being asked at sign-up until a pass. `transferred_at`: when it came to this team.
ALTER TABLE grants ADD COLUMN prior_status {int} CHECK (prior_status BETWEEN 0 AND 2);
ALTER TABLE grants ADD COLUMN signup_check TEXT NOT NULL DEFAULT 'none'
    CHECK (signup_check IN ('none', 'pending', 'passed'));
ALTER TABLE grants ADD COLUMN first_asked_at {int};
ALTER TABLE grants ADD COLUMN last_seen_at {int};
ALTER TABLE grants ADD COLUMN transferred_at {int};

-- NULL: not known. 1: a work or school account.
ALTER TABLE users ADD COLUMN is_managed {int} CHECK (is_managed IN (0, 1));

-- A keyed hash of the canonical inbox, under a key used for velocity alone. NULL: added before this migration.
ALTER TABLE inboxes ADD COLUMN velocity_index {bytes};

-- How an app's identity tokens carry the nonce: as it is, or its SHA-256 in hexadecimal.
ALTER TABLE apps ADD COLUMN nonce_form TEXT NOT NULL DEFAULT 'raw' CHECK (nonce_form IN ('raw', 'sha256_hex'));
ALTER TABLE apps ADD COLUMN nonce_required {int} NOT NULL DEFAULT 1 CHECK (nonce_required IN (0, 1));

-- Accounts of external issuers: made by the first verified token, without user and relay address.
-- `forwarding_on` is what the issuer's events said of its own relay address; NULL: nothing.
CREATE TABLE external_identities (
    team_id {int} NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    account_id {int} NOT NULL UNIQUE REFERENCES accounts (id) ON DELETE CASCADE,
    forwarding_on {int} CHECK (forwarding_on IN (0, 1)),
    created_at {int} NOT NULL,
    PRIMARY KEY (team_id, subject, issuer)
) {clustered};

-- Lists are words separated by spaces. `reasons` are for the operator, `wire_reasons` for the team. `signals` is JSON.
-- `grant_id` stands for the `sub` and goes with the account.
CREATE TABLE decisions (
    id {id},
    decision_id TEXT NOT NULL UNIQUE,
    team_id {int} NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    client_id TEXT NOT NULL,
    grant_id {int} REFERENCES grants (id) ON DELETE SET NULL,
    app_account {bytes},
    claimed_event TEXT NOT NULL,
    event TEXT NOT NULL,
    decision TEXT NOT NULL CHECK (decision IN ('allow', 'require_verification')),
    challenges TEXT NOT NULL,
    reasons TEXT NOT NULL,
    wire_reasons TEXT NOT NULL,
    asked TEXT NOT NULL,
    skips TEXT NOT NULL,
    waived TEXT NOT NULL,
    missing TEXT NOT NULL,
    errors TEXT NOT NULL,
    shadow TEXT NOT NULL,
    overridden_by TEXT,
    signals TEXT NOT NULL,
    policy_name TEXT NOT NULL,
    policy_version TEXT NOT NULL,
    policy_hash TEXT NOT NULL,
    real_user_status {int},
    credential_state TEXT NOT NULL,
    upgrade_result TEXT,
    degraded {int} NOT NULL CHECK (degraded IN (0, 1)),
    evaluated_at {int} NOT NULL,
    expires_at {int} NOT NULL,
    label TEXT CHECK (label IN ('legitimate', 'fraudulent')),
    labelled_at {int}
) {strict};
CREATE INDEX decisions_time ON decisions (evaluated_at);
CREATE INDEX decisions_team ON decisions (team_id, evaluated_at);
CREATE INDEX decisions_grant ON decisions (grant_id) WHERE grant_id IS NOT NULL;

-- One row for each challenge of a decision that was begun. Neither passed nor failed an hour later: counts as failed.
CREATE TABLE checks (
    decision_id TEXT NOT NULL,
    challenge TEXT NOT NULL,
    grant_id {int} REFERENCES grants (id) ON DELETE CASCADE,
    initiated_at {int} NOT NULL,
    passed_at {int},
    failed_at {int},
    PRIMARY KEY (decision_id, challenge)
) {clustered};
CREATE INDEX checks_grant ON checks (grant_id, challenge, initiated_at, passed_at, failed_at);
CREATE INDEX checks_time ON checks (initiated_at);

-- Keyed hashes of issuer, audience and nonce, with the answer that was given for it.
CREATE TABLE consumed_nonces (
    mark {bytes} NOT NULL,
    subject {bytes} NOT NULL,
    claimed_event TEXT NOT NULL,
    event TEXT NOT NULL,
    decision_id TEXT NOT NULL,
    answer TEXT NOT NULL,
    expires_at {int} NOT NULL,
    PRIMARY KEY (mark)
) {clustered};
CREATE INDEX consumed_nonces_expiry ON consumed_nonces (expires_at);

-- An app's own accounts that were bound to a grant by an upgrade, under a keyed hash. A deleted grant leaves the mark.
CREATE TABLE upgraded_accounts (
    team_id {int} NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    app_account {bytes} NOT NULL,
    grant_id {int} REFERENCES grants (id) ON DELETE SET NULL,
    decision_id TEXT NOT NULL,
    bound_at {int} NOT NULL,
    PRIMARY KEY (team_id, app_account)
) {clustered};
CREATE INDEX upgraded_accounts_grant ON upgraded_accounts (grant_id);

-- `key_mark` and `body_mark` are hashes. status NULL: in flight.
CREATE TABLE idempotency_keys (
    team_id {int} NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    endpoint TEXT NOT NULL,
    key_mark {bytes} NOT NULL,
    body_mark {bytes} NOT NULL,
    status {int},
    answer TEXT,
    begun_at {int} NOT NULL,
    PRIMARY KEY (team_id, endpoint, key_mark)
) {clustered};
CREATE INDEX idempotency_keys_time ON idempotency_keys (begun_at);

-- Grants first asked about with a verified token, once per inbox, team, user and day; kept for two days, whatever is
-- deleted meanwhile. Numbers only.
CREATE TABLE verified_signups (
    velocity_index {bytes} NOT NULL,
    team_id {int} NOT NULL,
    user_id {int} NOT NULL,
    day {int} NOT NULL,
    at {int} NOT NULL,
    PRIMARY KEY (velocity_index, team_id, user_id, day)
) {clustered};
CREATE INDEX verified_signups_time ON verified_signups (at);

-- Sign-ups of an app in slices of five minutes (time / 300).
CREATE TABLE app_signups (
    app_id {int} NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    slice {int} NOT NULL,
    count {int} NOT NULL,
    PRIMARY KEY (app_id, slice)
) {clustered};
CREATE INDEX app_signups_slice ON app_signups (slice);
