-- Migration 68: when a host last said that it decides by a policy, seconds since 1970: it is kept for as long as the log
-- goes back to then. Of policies from before this nothing is known, so that they count as in use until now.

ALTER TABLE policies ADD COLUMN served_at {int} NOT NULL DEFAULT 0;
UPDATE policies SET served_at = {clock} / 1000;
