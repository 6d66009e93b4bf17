-- Migration 31: inboxes are numbered for each user.
-- Until now the number of an inbox was its `id`, which told how many there were at the time. `former_number` stays with the
-- inboxes of before: a command or a program that still uses it gets an error that says the new one, and no other inbox of
-- the user ever has it. So the inboxes of a user whose small old numbers would come back as those of other inboxes keep
-- theirs.

{postgresql}LOCK TABLE users, inboxes IN ACCESS EXCLUSIVE MODE;
ALTER TABLE users ADD COLUMN last_inbox_number {int} NOT NULL DEFAULT 0;
ALTER TABLE inboxes ADD COLUMN number {int} NOT NULL DEFAULT 0;
ALTER TABLE inboxes ADD COLUMN former_number {int};
UPDATE inboxes SET former_number = id,
    number = (SELECT COUNT(*) FROM inboxes o WHERE o.user_id = inboxes.user_id AND o.id <= inboxes.id);
UPDATE inboxes SET number = id WHERE user_id IN
    (SELECT a.user_id FROM inboxes a JOIN inboxes b ON b.user_id = a.user_id AND b.id = a.number AND b.id <> a.id);
UPDATE users SET last_inbox_number = COALESCE((SELECT MAX(i.number) FROM inboxes i WHERE i.user_id = users.id), 0);
CREATE UNIQUE INDEX inboxes_number ON inboxes (user_id, number);
