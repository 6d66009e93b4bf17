-- Migration 78: a user's account with a team in one step, for those who have many. The team is written as an expression, so that
-- no other index is used for it (`SQL.filter`). Made before the other is dropped: PostgreSQL lets others read while it makes one.

CREATE INDEX accounts_of_user ON accounts (user_id, (team_id + 0));
DROP INDEX accounts_user;
