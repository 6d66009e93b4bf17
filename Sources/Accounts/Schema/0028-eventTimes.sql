-- Migration 28: the time of an account's last event stays with the account.
-- Milliseconds since 1970; 0 for none. The next event is later, whichever host writes it and whatever its clock says.

ALTER TABLE accounts ADD COLUMN event_time {int} NOT NULL DEFAULT 0;
UPDATE accounts SET event_time = (SELECT MAX(o.event_time) FROM outbox o WHERE o.account_id = accounts.id)
    WHERE id IN (SELECT account_id FROM outbox);
