-- Policies, decisions with their outcomes, what policies count, lists, and devices.

-- A policy is kept under the hash of its document: decisions name it. `served_at`: when a host last said that it decides by
-- it. It is kept for as long as the log goes back to then.
CREATE TABLE policies (
    hash TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    document {bytes} NOT NULL,
    added_at {int} NOT NULL,
    served_at {int} NOT NULL DEFAULT 0
) {strict};

-- The policy that each name refers to now. The default serves teams and apps that are bound to none.
CREATE TABLE policy_names (
    name TEXT NOT NULL,
    hash TEXT NOT NULL REFERENCES policies (hash),
    is_default {int} NOT NULL DEFAULT 0 CHECK (is_default IN (0, 1)),
    since {int} NOT NULL,
    PRIMARY KEY (name)
) {clustered};
CREATE UNIQUE INDEX policy_names_default ON policy_names (is_default) WHERE is_default = 1;

CREATE TABLE policy_team_bindings (
    team_id {int} NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    PRIMARY KEY (team_id)
) {clustered};

CREATE TABLE policy_app_bindings (
    app_id {int} NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    PRIMARY KEY (app_id)
) {clustered};

-- Every change of what decides, and every candidate that was refused. A running service looks again when the highest `id`
-- has changed. A rollback goes back to `hash_before` and `default_before`, and sets `undone`.
CREATE TABLE policy_changes (
    id {id},
    at {int} NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL CHECK (action IN ('activate', 'rollback', 'refuse', 'bind', 'unbind')),
    name TEXT NOT NULL,
    version TEXT NOT NULL DEFAULT '',
    hash TEXT,
    hash_before TEXT,
    default_before TEXT,
    detail TEXT NOT NULL DEFAULT '',
    undone {int} NOT NULL DEFAULT 0 CHECK (undone IN (0, 1))
) {strict};
CREATE INDEX policy_changes_name ON policy_changes (name, id);

-- The policy that each host serves. `reason` NULL: it is the wanted one.
CREATE TABLE policy_hosts (
    host TEXT NOT NULL,
    name TEXT NOT NULL,
    wanted TEXT NOT NULL,
    serving TEXT,
    reason TEXT,
    at {int} NOT NULL,
    PRIMARY KEY (host, name)
) {clustered};

-- Lists are words separated by spaces. `reasons` are for the operator, `wire_reasons` for the team. `signals` is JSON.
-- `grant_id` is kept in place of the `sub`, and is removed with the account. `error_texts`: why conditions ended in an
-- error, one line each. They may read what the log holds only as a hash, so nothing else could tell later.
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
    error_texts TEXT NOT NULL DEFAULT '',
    shadow TEXT NOT NULL,
    snoozed TEXT NOT NULL DEFAULT '',
    for_review {int} NOT NULL DEFAULT 0,
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
-- Decisions that people may have to look at, and the few that a rule wants looked at.
CREATE INDEX decisions_review ON decisions (evaluated_at) WHERE for_review = 1 OR decision = 'require_verification';
CREATE INDEX decisions_review_team ON decisions (team_id, evaluated_at)
    WHERE for_review = 1 OR decision = 'require_verification';
CREATE INDEX decisions_for_review ON decisions (for_review, evaluated_at) WHERE for_review = 1;

-- One row for each challenge of a decision that began. One that has neither passed nor failed after an hour counts as failed.
-- `method`: how the page carried it out; NULL: the team reported it.
CREATE TABLE checks (
    decision_id TEXT NOT NULL,
    challenge TEXT NOT NULL,
    grant_id {int} REFERENCES grants (id) ON DELETE CASCADE,
    method TEXT CHECK (method IN ('proof_of_work', 'mailed_code', 'two_factors', 'passkey', 'provider')),
    initiated_at {int} NOT NULL,
    passed_at {int},
    failed_at {int},
    PRIMARY KEY (decision_id, challenge)
) {clustered};
CREATE INDEX checks_grant ON checks (grant_id, challenge, method, initiated_at, passed_at, failed_at);
CREATE INDEX checks_time ON checks (initiated_at);

-- The last code that the page mailed for the check of a decision. `sent`: how many were; `tries`: how many wrong ones were
-- entered.
CREATE TABLE check_codes (
    id {id},
    decision_id TEXT NOT NULL UNIQUE,
    user_id {int} NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    code_hash {bytes} NOT NULL,
    sent {int} NOT NULL,
    tries {int} NOT NULL,
    sent_at {int} NOT NULL
) {strict};
CREATE INDEX check_codes_user ON check_codes (user_id, sent_at);
CREATE INDEX check_codes_time ON check_codes (sent_at);

-- Users who object to a check that a decision required. `words`: what they wrote; NULL: nothing.
CREATE TABLE decision_objections (
    decision_id TEXT PRIMARY KEY REFERENCES decisions (decision_id) ON DELETE CASCADE,
    account_id {int} NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    words TEXT,
    created_at {int} NOT NULL
) {clustered};
CREATE INDEX decision_objections_account ON decision_objections (account_id);

CREATE TABLE review_notes (
    id {id},
    decision_id TEXT NOT NULL REFERENCES decisions (decision_id) ON DELETE CASCADE,
    actor TEXT NOT NULL,
    text TEXT NOT NULL,
    created_at {int} NOT NULL
) {strict};
CREATE INDEX review_notes_decision ON review_notes (decision_id);

-- Rules that do not apply to an account for a while.
CREATE TABLE rule_snoozes (
    grant_id {int} NOT NULL REFERENCES grants (id) ON DELETE CASCADE,
    policy_name TEXT NOT NULL,
    rule TEXT NOT NULL,
    reason TEXT NOT NULL,
    created_at {int} NOT NULL,
    expires_at {int} NOT NULL,
    PRIMARY KEY (grant_id, policy_name, rule)
) {clustered};
CREATE INDEX rule_snoozes_expiry ON rule_snoozes (expires_at);

-- What a status policy said of a user at the first authorization of an app, and why: for the operator alone.
CREATE TABLE status_decisions (
    id {id},
    grant_id {int} NOT NULL REFERENCES grants (id) ON DELETE CASCADE,
    status {int} NOT NULL,
    reasons TEXT NOT NULL,
    signals TEXT NOT NULL,
    policy_name TEXT NOT NULL,
    policy_version TEXT NOT NULL,
    policy_hash TEXT NOT NULL,
    decided_at {int} NOT NULL
) {strict};
CREATE INDEX status_decisions_grant ON status_decisions (grant_id);
CREATE INDEX status_decisions_time ON status_decisions (decided_at);

-- Hashes of issuer, audience and nonce, with the response that was given.
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

-- `key_mark` and `body_mark` are hashes of the request. `answer` NULL: the request is being processed.
CREATE TABLE idempotency_keys (
    team_id {int} NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    endpoint TEXT NOT NULL,
    key_mark {bytes} NOT NULL,
    body_mark {bytes} NOT NULL,
    answer TEXT,
    begun_at {int} NOT NULL,
    PRIMARY KEY (team_id, endpoint, key_mark)
) {clustered};
CREATE INDEX idempotency_keys_time ON idempotency_keys (begun_at);

-- An app's own accounts that an upgrade bound to a grant, as hashes. A deleted grant leaves the mark.
CREATE TABLE upgraded_accounts (
    team_id {int} NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    app_account {bytes} NOT NULL,
    grant_id {int} REFERENCES grants (id) ON DELETE SET NULL,
    decision_id TEXT NOT NULL,
    PRIMARY KEY (team_id, app_account)
) {clustered};
CREATE INDEX upgraded_accounts_grant ON upgraded_accounts (grant_id);

-- First decisions about a grant with a verified token, once for each inbox, team, user and day. Kept for two days,
-- whatever is deleted meanwhile. Numbers only.
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

-- What policies have counted. `mark`: of a team's counter and of the value that it counts by. A row is a slice of a window
-- (`part`: the slice in eight octets). If distinct values are counted, it is one value (`part`: its hash) and its last slice.
CREATE TABLE velocity (
    mark {bytes} NOT NULL,
    part {bytes} NOT NULL,
    slice {int} NOT NULL,
    count {int} NOT NULL,
    ends_at {int} NOT NULL,
    PRIMARY KEY (mark, part)
) {clustered};
CREATE INDEX velocity_end ON velocity (ends_at);

-- Lists that policies read while they change, of a team or of the installation (`team_id` NULL). Entries of the list's
-- generation are part of it; others are being imported or deleted. `staging`: the generation of the last import.
CREATE TABLE live_lists (
    id {id},
    team_id {int} REFERENCES teams (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('text', 'domain', 'range', 'personal')),
    generation {int} NOT NULL DEFAULT 1,
    staging {int} NOT NULL DEFAULT 1,
    entries {int} NOT NULL DEFAULT 0,
    revision {int} NOT NULL,
    created_at {int} NOT NULL,
    changed_at {int} NOT NULL,
    removed_at {int}
) {strict};
CREATE INDEX live_lists_team ON live_lists (team_id, name);
CREATE UNIQUE INDEX live_lists_own ON live_lists (name) WHERE team_id IS NULL AND removed_at IS NULL;
CREATE UNIQUE INDEX live_lists_of_team ON live_lists (team_id, name) WHERE team_id IS NOT NULL AND removed_at IS NULL;

-- A removed entry stays for a while, so that hosts that read what is new see its removal. `value` of a personal list is a hash.
CREATE TABLE live_list_entries (
    list_id {int} NOT NULL REFERENCES live_lists (id) ON DELETE CASCADE,
    generation {int} NOT NULL,
    value TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    added_at {int} NOT NULL,
    expires_at {int},
    removed_at {int},
    revision {int} NOT NULL,
    PRIMARY KEY (list_id, generation, value)
) {clustered};
CREATE INDEX live_list_entries_revision ON live_list_entries (list_id, generation, revision);
CREATE INDEX live_list_entries_expiry ON live_list_entries (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX live_list_entries_removed ON live_list_entries (removed_at) WHERE removed_at IS NOT NULL;

-- Rises with every change of any list, in the order of the commits.
CREATE TABLE live_list_revision (
    id {int} NOT NULL PRIMARY KEY CHECK (id = 1),
    revision {int} NOT NULL
) {strict};

-- Apps whose devices attest themselves (App Attest).
CREATE TABLE attested_apps (
    app_id {int} NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    environment TEXT NOT NULL,
    root {bytes} NOT NULL,
    created_at {int} NOT NULL,
    PRIMARY KEY (app_id, name, environment)
) {clustered};

-- `mark`: of the id of the device's key and of the app, so that it means nothing to other apps.
CREATE TABLE devices (
    id {id},
    app_id {int} NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    mark {bytes} NOT NULL UNIQUE,
    name TEXT NOT NULL,
    environment TEXT NOT NULL,
    public_key TEXT NOT NULL,
    public_sealed {bytes} NOT NULL,
    counter {int} NOT NULL,
    assertions {int} NOT NULL,
    attested_at {int} NOT NULL,
    seen_at {int} NOT NULL
) {strict};
CREATE INDEX devices_app ON devices (app_id);
CREATE INDEX devices_seen ON devices (seen_at);

-- Accounts that decisions named together with the device. `mark`: of the account's name and the app.
CREATE TABLE device_accounts (
    id {id},
    device_id {int} NOT NULL REFERENCES devices (id) ON DELETE CASCADE,
    mark {bytes} NOT NULL,
    seen_at {int} NOT NULL
) {strict};
CREATE UNIQUE INDEX device_accounts_mark ON device_accounts (device_id, mark);
CREATE INDEX device_accounts_seen ON device_accounts (seen_at);
