-- Migration 2: the keys that sign what the relay sends.
-- `revision` grows with every change of any row, and rows are never deleted, so that its maximum tells a running service
-- whether to read the keys again. A retired key keeps its row, without the private part: a selector is never used twice.

CREATE TABLE dkim_keys (
    id {id},
    domain TEXT NOT NULL,
    selector TEXT NOT NULL,
    algorithm TEXT NOT NULL CHECK (algorithm IN ('rsa', 'ed25519')),
    bits {int} NOT NULL,
    private_key TEXT,
    private_sealed {bytes},
    state TEXT NOT NULL CHECK (state IN ('pending', 'active', 'retiring', 'retired')),
    created_at {int} NOT NULL,
    activated_at {int},
    deactivated_at {int},
    retired_at {int},
    revision {int} NOT NULL,
    UNIQUE (domain, selector),
    CHECK ((state = 'retired') = (private_sealed IS NULL))
) {strict};
-- Two keys of one algorithm never sign both.
CREATE UNIQUE INDEX dkim_keys_active ON dkim_keys (domain, algorithm) WHERE state = 'active';
CREATE INDEX dkim_keys_revision ON dkim_keys (revision);
