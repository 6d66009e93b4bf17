-- Migration 49: what was refused on its way to each user, by day, kind and the domain that the sender named; and whom users block.
-- Both are for the user's own page. Days are since 1970 UTC; kinds are those of RefusalKind.

CREATE TABLE account_refusals (
    account_id {int} NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    day {int} NOT NULL,
    kind {int} NOT NULL,
    domain TEXT NOT NULL,
    count {int} NOT NULL,
    last_at {int} NOT NULL,
    PRIMARY KEY (account_id, day, kind, domain)
) {clustered};

CREATE INDEX account_refusals_day ON account_refusals (day);

CREATE TABLE account_blocks (
    account_id {int} NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    value TEXT NOT NULL,
    created_at {int} NOT NULL,
    PRIMARY KEY (account_id, value)
) {clustered};
