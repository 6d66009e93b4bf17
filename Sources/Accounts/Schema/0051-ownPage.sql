-- Migration 51: what the page of one's own keeps of a user: the language in which Postern writes to them, when everything of theirs is
-- to be deleted, whether and when they were told of refused mail, and of what; their latest sign-ins; and after which message forwarding
-- of an address ends, as the count of forwards from a day (since 1970 UTC) on. Times are seconds since 1970.

ALTER TABLE users ADD COLUMN language TEXT;
ALTER TABLE users ADD COLUMN deletes_at {int};
ALTER TABLE users ADD COLUMN wants_refusals {int} NOT NULL DEFAULT 1;
ALTER TABLE users ADD COLUMN refusals_told_at {int};

CREATE INDEX users_deletes ON users (deletes_at) WHERE deletes_at IS NOT NULL;

ALTER TABLE relay_addresses ADD COLUMN counted_from {int};
ALTER TABLE relay_addresses ADD COLUMN ends_at_count {int};

CREATE INDEX relay_addresses_ending ON relay_addresses (account_id) WHERE ends_at_count IS NOT NULL;

CREATE TABLE account_refusals_told (
    account_id {int} NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    kind {int} NOT NULL,
    told_at {int} NOT NULL,
    PRIMARY KEY (account_id, kind)
) {clustered};

CREATE TABLE page_sign_ins (
    id {id},
    user_id {int} NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    at {int} NOT NULL,
    method TEXT NOT NULL
) {strict};
CREATE INDEX page_sign_ins_user ON page_sign_ins (user_id);
