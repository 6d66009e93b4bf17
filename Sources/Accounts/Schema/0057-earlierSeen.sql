-- Migration 57: when an account's visit of today began, and when it was seen last before that. Seconds since 1970.

ALTER TABLE grants ADD COLUMN visit_at {int};
ALTER TABLE grants ADD COLUMN earlier_seen_at {int};
UPDATE grants SET last_seen_at = last_authorized_at WHERE last_seen_at < last_authorized_at;
