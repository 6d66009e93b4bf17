-- Migration 79: the name that a user gave to one team in place of the stored one, sealed as two lines; NULL: none. Codes and tokens
-- only said that it was another one. And an answer to a refused request is not kept, so those that are have one status.

DELETE FROM idempotency_keys WHERE status <> 200;
ALTER TABLE idempotency_keys DROP COLUMN status;

CREATE TABLE given_names (
    account_id {int} PRIMARY KEY REFERENCES accounts (id) ON DELETE CASCADE,
    given_key TEXT,
    given_sealed {bytes}
);
INSERT INTO given_names (account_id)
SELECT a.id FROM accounts a WHERE a.shares_name = 1 AND a.user_id IS NOT NULL AND 0 = (
    SELECT r.gives_name FROM refresh_tokens r JOIN grants g ON g.id = r.grant_id WHERE g.account_id = a.id
        AND ' ' || r.scopes || ' ' LIKE '% name %'
    ORDER BY r.id DESC LIMIT 1);
ALTER TABLE authorization_codes DROP COLUMN gives_name;
ALTER TABLE refresh_tokens DROP COLUMN gives_name;
