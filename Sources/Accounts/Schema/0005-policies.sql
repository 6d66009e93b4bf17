-- Migration 5: risk policies, which of them decide, and what each host makes of that.
-- A policy is kept under the hash of its document, so that a decision can name the one that it was made by. Every change of
-- what decides for whom, and every candidate that was refused, is a row of policy_changes; its highest id tells a
-- running service whether to look again.

CREATE TABLE policies (
    hash TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    document {bytes} NOT NULL,
    added_at {int} NOT NULL
) {strict};

-- What each name stands for now. One name serves whoever is bound to none.
CREATE TABLE policy_names (
    name TEXT NOT NULL,
    hash TEXT NOT NULL REFERENCES policies (hash),
    is_default {int} NOT NULL DEFAULT 0 CHECK (is_default IN (0, 1)),
    since {int} NOT NULL,
    PRIMARY KEY (name)
) {clustered};
CREATE UNIQUE INDEX policy_names_default ON policy_names (is_default) WHERE is_default = 1;

CREATE TABLE policy_team_bindings (
    team_id {int} NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    PRIMARY KEY (team_id)
) {clustered};

CREATE TABLE policy_app_bindings (
    app_id {int} NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    PRIMARY KEY (app_id)
) {clustered};

-- hash_before and default_before say what a rollback goes back to; undone: it did.
CREATE TABLE policy_changes (
    id {id},
    at {int} NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL CHECK (action IN ('activate', 'rollback', 'refuse', 'bind', 'unbind')),
    name TEXT NOT NULL,
    version TEXT NOT NULL DEFAULT '',
    hash TEXT,
    hash_before TEXT,
    default_before TEXT,
    detail TEXT NOT NULL DEFAULT '',
    undone {int} NOT NULL DEFAULT 0 CHECK (undone IN (0, 1))
) {strict};
CREATE INDEX policy_changes_name ON policy_changes (name, id);

-- reason NULL: the host decides by what the name stands for.
CREATE TABLE policy_hosts (
    host TEXT NOT NULL,
    name TEXT NOT NULL,
    wanted TEXT NOT NULL,
    serving TEXT,
    reason TEXT,
    at {int} NOT NULL,
    PRIMARY KEY (host, name)
) {clustered};
