-- Migration 11: live grants by account, for the path of mail.
-- Whether an account has a live grant is told by the index alone, without the grant's row: a page less for each look-up,
-- which with millions of accounts is read from the file.

CREATE INDEX grants_live ON grants (account_id) WHERE state = 'authorized';
