-- Migration 27: the inbox that was shared with a team stays the one that was shared.
-- Where the user shares the inbox itself, its account named none, so that a team that was given one inbox was given every
-- later default too. It keeps the one that it has today.

UPDATE accounts SET inbox_id = target_inbox WHERE email_kind = 'real' AND inbox_id IS NULL;
