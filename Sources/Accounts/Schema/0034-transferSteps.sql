-- Migration 34: how far the grants of an app that moves have followed.
-- `moved_through`: grants up to this one were looked at. The index is read from there on, and nothing before it.

ALTER TABLE app_transfers ADD COLUMN moved_through {int} NOT NULL DEFAULT 0;
DROP INDEX grants_group;
CREATE INDEX grants_group ON grants (group_id, id);
