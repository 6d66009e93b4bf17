-- Migration 46: lists that policies read while they change: of the installation (team_id NULL) or of a team.
-- An entry is part of its list if its generation is the list's; those of another one are being imported or taken away. `staging` is the
-- generation of the last import. A removed entry stays for a while, so that hosts that look for what is new see that it is gone.
-- `value` of a personal list: a keyed hash. The revision rises with every change of any list, in the order of the commits.

CREATE TABLE live_lists (
    id {id},
    team_id {int} REFERENCES teams (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('text', 'domain', 'range', 'personal')),
    generation {int} NOT NULL DEFAULT 1,
    staging {int} NOT NULL DEFAULT 1,
    entries {int} NOT NULL DEFAULT 0,
    revision {int} NOT NULL,
    created_at {int} NOT NULL,
    changed_at {int} NOT NULL,
    removed_at {int}
) {strict};
CREATE INDEX live_lists_team ON live_lists (team_id, name);
CREATE UNIQUE INDEX live_lists_own ON live_lists (name) WHERE team_id IS NULL AND removed_at IS NULL;
CREATE UNIQUE INDEX live_lists_of_team ON live_lists (team_id, name) WHERE team_id IS NOT NULL AND removed_at IS NULL;

CREATE TABLE live_list_entries (
    list_id {int} NOT NULL REFERENCES live_lists (id) ON DELETE CASCADE,
    generation {int} NOT NULL,
    value TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    added_at {int} NOT NULL,
    expires_at {int},
    removed_at {int},
    revision {int} NOT NULL,
    PRIMARY KEY (list_id, generation, value)
) {clustered};
CREATE INDEX live_list_entries_revision ON live_list_entries (list_id, generation, revision);
CREATE INDEX live_list_entries_expiry ON live_list_entries (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX live_list_entries_removed ON live_list_entries (removed_at) WHERE removed_at IS NOT NULL;

CREATE TABLE live_list_revision (
    id {int} NOT NULL PRIMARY KEY CHECK (id = 1),
    revision {int} NOT NULL
) {strict};
