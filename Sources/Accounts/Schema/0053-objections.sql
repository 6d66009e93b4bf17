-- Migration 53: users who object to a check that was asked of them. The time is in seconds since 1970.

CREATE TABLE decision_objections (
    decision_id TEXT PRIMARY KEY REFERENCES decisions (decision_id) ON DELETE CASCADE,
    account_id {int} NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    created_at {int} NOT NULL
) {clustered};
CREATE INDEX decision_objections_account ON decision_objections (account_id);
