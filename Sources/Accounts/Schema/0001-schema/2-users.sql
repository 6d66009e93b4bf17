-- Users, their inboxes and passkeys, and marks that outlive them.

-- `is_managed` NULL: not known; 1: a work or school account. `last_inbox_number`: inboxes are numbered for each user, and no
-- number is used twice. `browser_generation` rises when the user signs out everywhere: known browsers are new ones then.
-- `deletes_at`: when everything of the user is deleted. `wants_refusals`: whether the user is told of refused mail.
-- `two_factor`: whether every sign-in of the user needs two factors.
CREATE TABLE users (
    id {id},
    handle TEXT NOT NULL UNIQUE,
    name_key TEXT,
    name_sealed {bytes},
    language TEXT,
    is_managed {int} CHECK (is_managed IN (0, 1)),
    last_inbox_number {int} NOT NULL DEFAULT 0,
    browser_generation {int} NOT NULL DEFAULT 0,
    two_factor {int} NOT NULL DEFAULT 0 CHECK (two_factor IN (0, 1)),
    wants_refusals {int} NOT NULL DEFAULT 1,
    refusals_told_at {int},
    created_at {int} NOT NULL,
    deletes_at {int}
) {strict};
CREATE INDEX users_deletes ON users (deletes_at) WHERE deletes_at IS NOT NULL;

-- Users whom an administrator froze: they cannot sign in, and no mail passes in either direction. `ends_at` NULL: until an
-- administrator ends it. The reason is in the audit alone.
CREATE TABLE user_freezes (
    user_id {int} NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    began_at {int} NOT NULL,
    ends_at {int}
) {strict};

-- `number` is the one that people see. `canonical_index` is of the mailbox, however it is spelled. `velocity_index` and
-- `tombstone_index` are hashes of it under keys that serve for these purposes alone.
-- `failures_from`: the day on which the inbox was confirmed or became the target. Failures before it say nothing of it now.
-- `suspended_failures` and `suspended_rules`: the count and the version of the rules (`ReportRules.version`) that suspended it.
CREATE TABLE inboxes (
    id {id},
    user_id {int} NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    number {int} NOT NULL,
    address_key TEXT NOT NULL,
    address_sealed {bytes} NOT NULL,
    index_key TEXT NOT NULL,
    address_index {bytes} NOT NULL,
    canonical_index {bytes} NOT NULL,
    velocity_index {bytes} NOT NULL,
    tombstone_index {bytes} NOT NULL,
    is_default {int} NOT NULL DEFAULT 0 CHECK (is_default IN (0, 1)),
    reply_only {int} NOT NULL DEFAULT 0 CHECK (reply_only IN (0, 1)),
    failures_from {int} NOT NULL DEFAULT 0,
    suspended_at {int},
    suspended_failures {int},
    suspended_rules {int},
    created_at {int} NOT NULL,
    verified_at {int},
    UNIQUE (user_id, address_index),
    CHECK (is_default = 0 OR reply_only = 0)
) {strict};
CREATE UNIQUE INDEX inboxes_number ON inboxes (user_id, number);
CREATE UNIQUE INDEX inboxes_default ON inboxes (user_id) WHERE is_default = 1;
-- A verified inbox belongs to one user. An unverified claim must not keep its owner out.
CREATE UNIQUE INDEX inboxes_verified ON inboxes (address_index) WHERE verified_at IS NOT NULL;
-- Inboxes of users who were invited and have not confirmed them yet.
CREATE INDEX inboxes_unverified ON inboxes (address_index) WHERE verified_at IS NULL;
CREATE INDEX inboxes_canonical ON inboxes (canonical_index);
CREATE INDEX inboxes_suspended ON inboxes (suspended_at) WHERE suspended_at IS NOT NULL;

-- Permanent failures of mail to an inbox.
CREATE TABLE inbox_failures (
    inbox_id {int} NOT NULL REFERENCES inboxes (id) ON DELETE CASCADE,
    day {int} NOT NULL,
    count {int} NOT NULL,
    PRIMARY KEY (inbox_id, day)
) {clustered};
CREATE INDEX inbox_failures_day ON inbox_failures (day);

-- Confirmations of inboxes. `id` is the number in the address for answers, which has 35 bits for it. A row stays until it
-- expires, so that a link opened twice gets the same response. `answered_at`: the user's last reply to the message. Once a
-- day, the user is told that no one reads such replies.
CREATE TABLE inbox_verifications (
    id {id} CHECK (id > 0 AND id < 34359738368),
    inbox_id {int} NOT NULL UNIQUE REFERENCES inboxes (id) ON DELETE CASCADE,
    code_hash {bytes} NOT NULL,
    link_hash {bytes} NOT NULL UNIQUE,
    answer_nonce {int} NOT NULL,
    tries {int} NOT NULL DEFAULT 0,
    created_at {int} NOT NULL,
    expires_at {int} NOT NULL,
    confirmed_at {int},
    answered_at {int}
) {strict};
CREATE INDEX inbox_verifications_expiry ON inbox_verifications (expires_at);

-- `rp_id`: the host that the passkey belongs to. `is_attested`: the maker of the device vouched for it, by a configured root.
CREATE TABLE passkeys (
    id {id},
    user_id {int} NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    credential_id {bytes} NOT NULL UNIQUE,
    rp_id TEXT NOT NULL,
    public_key {bytes} NOT NULL,
    sign_count {int} NOT NULL,
    backup_eligible {int} NOT NULL,
    backed_up {int} NOT NULL,
    is_attested {int} NOT NULL,
    name_key TEXT NOT NULL,
    name_sealed {bytes} NOT NULL,
    created_at {int} NOT NULL,
    last_used_at {int}
) {strict};
CREATE INDEX passkeys_user ON passkeys (user_id);

-- Authenticator apps (RFC 6238), one of a user. `used_step`: the time step of the last code that was accepted; no code serves
-- twice, on any host. `wrong`: codes that were tried since `wrong_since`, less those that were right; `wrong_known`: those from
-- browsers in which the user showed the second factor before.
CREATE TABLE authenticators (
    user_id {int} NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    secret_key TEXT NOT NULL,
    secret_sealed {bytes} NOT NULL,
    used_step {int} NOT NULL,
    wrong {int} NOT NULL DEFAULT 0,
    wrong_since {int} NOT NULL,
    wrong_known {int} NOT NULL DEFAULT 0,
    wrong_known_since {int} NOT NULL DEFAULT 0,
    created_at {int} NOT NULL,
    last_used_at {int}
) {strict};

-- Recovery codes, each good in place of a second factor once. They belong to users who have one.
CREATE TABLE recovery_codes (
    user_id {int} NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    code_hash {bytes} NOT NULL,
    created_at {int} NOT NULL,
    PRIMARY KEY (user_id, code_hash)
) {clustered};

-- Waits after which users who lost their second factor sign in without it. `stop_hash`: of the link that stops the wait.
CREATE TABLE recovery_waits (
    user_id {int} NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    stop_hash {bytes} NOT NULL UNIQUE,
    begun_at {int} NOT NULL,
    ends_at {int} NOT NULL
) {strict};

-- Users who sign in with the operator's OpenID provider. Issuer and subject identify the user, never an address.
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

-- What remains of deleted accounts for 30 days: hashes of the inbox, and of issuer and subject.
CREATE TABLE tombstones (
    mark {bytes} NOT NULL,
    day {int} NOT NULL,
    deletions {int} NOT NULL,
    failures {int} NOT NULL,
    PRIMARY KEY (mark, day)
) {clustered};
CREATE INDEX tombstones_day ON tombstones (day);

-- Hashes of every `sub` and relay address that ended: none is ever issued again.
CREATE TABLE retired_names (
    mark {bytes} NOT NULL,
    PRIMARY KEY (mark)
) {clustered};
