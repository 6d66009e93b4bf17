-- Migration 33: teams that were removed, and go in small steps.
-- `removed_at` is not NULL from the moment of the removal on: the team with its accounts counts as gone from then, whatever
-- is still there. An account whose rows are too many for one transaction is put into such a team of its own.

ALTER TABLE teams ADD COLUMN removed_at {int};
CREATE INDEX teams_removed ON teams (removed_at) WHERE removed_at IS NOT NULL;
CREATE INDEX accounts_team ON accounts (team_id, id);
