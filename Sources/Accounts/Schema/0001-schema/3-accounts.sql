-- Accounts of users with teams, their grants and relay addresses, and apps that move to another team.

-- `id` is the number in address tokens, which have 35 bits for it. `email_kind`: the address that the team has of the user.
-- `event_time`: milliseconds since 1970 of the last event, 0 for none. The next one is later, whichever host writes it.
-- `has_live_grant` and `target_inbox` follow from grants and inboxes. The triggers below set them whatever changes those, a
-- cascade included. With millions of accounts, mail then needs three pages of the store for an address and not six.
-- `target_inbox` is the inbox chosen for the account, otherwise the user's default one. It has no foreign key, which would
-- need an index: the triggers do what the key would.
CREATE TABLE accounts (
    id {id} CHECK (id > 0 AND id < 34359738368),
    team_id {int} NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    user_id {int} REFERENCES users (id) ON DELETE CASCADE,
    inbox_id {int} REFERENCES inboxes (id) ON DELETE SET NULL,
    sub TEXT NOT NULL UNIQUE,
    email_kind TEXT NOT NULL DEFAULT 'private' CHECK (email_kind IN ('private', 'real', 'none')),
    shares_name {int} NOT NULL DEFAULT 0 CHECK (shares_name IN (0, 1)),
    has_live_grant {int} NOT NULL DEFAULT 0 CHECK (has_live_grant IN (0, 1)),
    target_inbox {int},
    event_time {int} NOT NULL DEFAULT 0,
    created_at {int} NOT NULL,
    UNIQUE (team_id, user_id)
) {strict};
CREATE INDEX accounts_team ON accounts (team_id, id);
-- The expression keeps the planner from another index for the team (`SQL.filter`).
CREATE INDEX accounts_of_user ON accounts (user_id, (team_id + 0));
CREATE INDEX accounts_inbox ON accounts (inbox_id);

-- Accounts of external issuers: the first verified token creates one, without user and relay address.
-- `forwarding_on` is what the issuer's events said of its own relay address; NULL: nothing. `email_event_at` and
-- `consent_event_at`: milliseconds since 1970 of the latest event of each kind. `risk_event` is for policies alone.
CREATE TABLE external_identities (
    team_id {int} NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    account_id {int} NOT NULL UNIQUE REFERENCES accounts (id) ON DELETE CASCADE,
    forwarding_on {int} CHECK (forwarding_on IN (0, 1)),
    email_event_at {int},
    consent_event_at {int},
    risk_event TEXT,
    risk_event_at {int},
    created_at {int} NOT NULL,
    PRIMARY KEY (team_id, subject, issuer)
) {clustered};
-- Events name no team.
CREATE INDEX external_identities_subject ON external_identities (subject, issuer);

-- The name that a user gave to one team in place of the stored one, sealed as two lines; NULL: none.
CREATE TABLE given_names (
    account_id {int} PRIMARY KEY REFERENCES accounts (id) ON DELETE CASCADE,
    given_key TEXT,
    given_sealed {bytes}
) {strict};

-- What users call their addresses and write about them, for themselves alone.
CREATE TABLE account_notes (
    account_id {int} NOT NULL PRIMARY KEY REFERENCES accounts (id) ON DELETE CASCADE,
    name_key TEXT,
    name_sealed {bytes},
    note_key TEXT,
    note_sealed {bytes}
) {strict};

-- `generation` rises when the grant is revoked: codes and tokens of an earlier one are invalid, also after a return.
-- `real_user_status` is the first that a verified token gave; `prior_status` is the one before a revocation and return.
-- `first_asked_at` NULL: no decision since the last return, so the next one is for a sign-up. `signup_check` is 'pending'
-- from a check at sign-up until it is passed. `transferred_at`: when the grant came to this team.
-- `visit_at`: when today's visit began. `earlier_seen_at`: when the user was last seen before it.
CREATE TABLE grants (
    id {id},
    account_id {int} NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    group_id {int} NOT NULL REFERENCES app_groups (id) ON DELETE CASCADE,
    state TEXT NOT NULL CHECK (state IN ('authorized', 'revoked')),
    generation {int} NOT NULL DEFAULT 0,
    first_authorized_at {int} NOT NULL,
    last_authorized_at {int} NOT NULL,
    revoked_at {int},
    transferred_at {int},
    real_user_status {int} CHECK (real_user_status BETWEEN 0 AND 2),
    prior_status {int} CHECK (prior_status BETWEEN 0 AND 2),
    signup_check TEXT NOT NULL DEFAULT 'none' CHECK (signup_check IN ('none', 'pending', 'passed')),
    first_asked_at {int},
    last_seen_at {int},
    visit_at {int},
    earlier_seen_at {int},
    UNIQUE (account_id, group_id)
) {strict};
CREATE INDEX grants_group ON grants (group_id, id);

-- `ordinal`: the number of the address among those of its account, from 1. `switches_at`: when forwarding switches by itself.
-- Forwarding ends when the account has forwarded `ends_at_count` messages in all. `switched_at`, `switched_by`: when forwarding was
-- last switched, and by what (`SwitchCause`); NULL: never.
CREATE TABLE relay_addresses (
    local_part TEXT NOT NULL,
    domain TEXT NOT NULL,
    account_id {int} NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    ordinal {int} NOT NULL,
    is_current {int} NOT NULL DEFAULT 1 CHECK (is_current IN (0, 1)),
    forwarding_on {int} NOT NULL DEFAULT 1 CHECK (forwarding_on IN (0, 1)),
    switches_at {int},
    ends_at_count {int},
    switched_at {int},
    switched_by {int},
    created_at {int} NOT NULL,
    retired_at {int},
    PRIMARY KEY (local_part, domain),
    UNIQUE (account_id, ordinal),
    CHECK (is_current = 0 OR retired_at IS NULL)
) {clustered};
CREATE UNIQUE INDEX relay_addresses_current ON relay_addresses (account_id) WHERE is_current = 1;
CREATE INDEX relay_addresses_switches ON relay_addresses (switches_at) WHERE switches_at IS NOT NULL;
CREATE INDEX relay_addresses_ending ON relay_addresses (account_id) WHERE ends_at_count IS NOT NULL;

-- An app that moves to another team: started, moving (its grants follow one by one), finished. Grants up to
-- `moved_through` have been processed.
CREATE TABLE app_transfers (
    id {id},
    group_id {int} NOT NULL REFERENCES app_groups (id) ON DELETE CASCADE,
    from_team {int} NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    to_team {int} NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    state TEXT NOT NULL CHECK (state IN ('started', 'moving', 'finished')),
    moved_through {int} NOT NULL DEFAULT 0,
    started_at {int} NOT NULL,
    moved_at {int},
    ends_at {int}
) {strict};
CREATE UNIQUE INDEX app_transfers_group ON app_transfers (group_id) WHERE state <> 'finished';
CREATE INDEX app_transfers_from ON app_transfers (from_team);
CREATE INDEX app_transfers_to ON app_transfers (to_team);

-- Identifiers by which the old team tells the new one of a user. `account_id` is the old team's account.
CREATE TABLE transfer_subs (
    transfer_sub TEXT NOT NULL,
    account_id {int} NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    target_team {int} NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    created_at {int} NOT NULL,
    PRIMARY KEY (transfer_sub),
    UNIQUE (account_id, target_team)
) {clustered};
CREATE INDEX transfer_subs_team ON transfer_subs (target_team, account_id);

-- Accounts whose grant moved. Until `ends_at` the old address admits the new team too.
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
