-- The installation: settings, the audit, and what running services say of themselves.

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
CREATE INDEX audit_subject ON audit (subject);

-- Holds: data that no retention deletes before `ends_at`. `target`: the number of a user, a team or, for an address, its account.
-- It has no foreign key: a hold outlives what it is about. `subject`: how the audit names that. `ended_at` NULL: it is in force.
-- `is_confidential`: the user's download does not mention it.
CREATE TABLE holds (
    id {id},
    scope TEXT NOT NULL CHECK (scope IN ('user', 'team', 'address')),
    target {int} NOT NULL,
    subject TEXT NOT NULL,
    reason TEXT NOT NULL,
    is_confidential {int} NOT NULL CHECK (is_confidential IN (0, 1)),
    created_at {int} NOT NULL,
    ends_at {int} NOT NULL,
    ended_at {int}
) {strict};

-- The kinds of data (`DataClass`) that a hold keeps.
CREATE TABLE hold_data (
    hold_id {int} NOT NULL REFERENCES holds (id) ON DELETE CASCADE,
    data TEXT NOT NULL,
    PRIMARY KEY (hold_id, data)
) {clustered};
CREATE INDEX hold_data_kind ON hold_data (data);

-- Accounts that were deleted while a hold was about them: their numbers alone.
CREATE TABLE held_accounts (
    account_id {int} NOT NULL,
    hold_id {int} NOT NULL REFERENCES holds (id) ON DELETE CASCADE,
    PRIMARY KEY (account_id, hold_id)
) {clustered};
CREATE INDEX held_accounts_hold ON held_accounts (hold_id);

-- A lease is renewed by work, so a process that hangs loses it. `fence` rises with each holder: the store refuses what an
-- earlier one writes. `beat` rises with each renewal too. `holder` is random; empty: the lease is free.
CREATE TABLE leases (
    name TEXT NOT NULL,
    fence {int} NOT NULL,
    holder TEXT NOT NULL,
    beat {int} NOT NULL,
    PRIMARY KEY (name)
) {clustered};

-- What each running service last said of itself, as JSON; for `postern status`.
CREATE TABLE service_status (
    host TEXT NOT NULL,
    pid {int} NOT NULL,
    updated_at {int} NOT NULL,
    snapshot TEXT NOT NULL,
    PRIMARY KEY (host, pid)
) {clustered};

-- What services counted, minute by minute, so that the last hour survives a restart. `at`: the end of the minute.
-- `counts` is JSON.
CREATE TABLE service_minutes (
    host TEXT NOT NULL,
    pid {int} NOT NULL,
    at {int} NOT NULL,
    counts TEXT NOT NULL,
    PRIMARY KEY (host, pid, at)
) {clustered};
