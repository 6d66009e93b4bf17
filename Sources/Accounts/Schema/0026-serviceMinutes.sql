-- Migration 26: what services counted, minute by minute, and which inboxes are suspended.
-- A service keeps its counts in memory, and they went with it: the last hour started again with each start. `at` is the end of
-- the minute; `counts` is JSON.

CREATE TABLE service_minutes (
    host TEXT NOT NULL,
    pid {int} NOT NULL,
    at {int} NOT NULL,
    counts TEXT NOT NULL,
    PRIMARY KEY (host, pid, at)
) {clustered};

-- Few of very many.
CREATE INDEX inboxes_suspended ON inboxes (suspended_at) WHERE suspended_at IS NOT NULL;
