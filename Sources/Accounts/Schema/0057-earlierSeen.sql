-- Migration 57: when an account was seen before the day on which it was seen last. Seconds since 1970.

ALTER TABLE grants ADD COLUMN earlier_seen_at {int};
UPDATE grants SET last_seen_at = last_authorized_at WHERE last_seen_at < last_authorized_at;
