-- Migration 37: leases with a fence, and what every delivery writes apart from what every change reads.
-- A lock lived as long as its connection, and so with a process that hung. A lease is renewed by work, and its fence tells
-- the store a former holder from the present one.
--
-- Each delivery wrote the endpoint's row, which each change of an account reads: on PostgreSQL one of the two had to be
-- repeated.

DROP TABLE delivery_lease;
-- `fence` rises with each taking, `beat` with each renewal too. `holder` is random; empty: the lease is free.
CREATE TABLE leases (
    name TEXT NOT NULL,
    fence {int} NOT NULL,
    holder TEXT NOT NULL,
    beat {int} NOT NULL,
    PRIMARY KEY (name)
) {clustered};

-- How an endpoint does. `failures` in a row since the last success; while there are any, nothing is tried before `retry_at`.
CREATE TABLE endpoint_health (
    endpoint_id {int} NOT NULL REFERENCES event_endpoints (id) ON DELETE CASCADE,
    failures {int} NOT NULL DEFAULT 0,
    retry_at {int} NOT NULL DEFAULT 0,
    last_error TEXT,
    last_success_at {int},
    PRIMARY KEY (endpoint_id)
) {clustered};
INSERT INTO endpoint_health (endpoint_id, failures, retry_at, last_error, last_success_at)
    SELECT id, failures, retry_at, last_error, last_success_at FROM event_endpoints;
ALTER TABLE event_endpoints DROP COLUMN failures;
ALTER TABLE event_endpoints DROP COLUMN retry_at;
ALTER TABLE event_endpoints DROP COLUMN last_error;
ALTER TABLE event_endpoints DROP COLUMN last_success_at;

-- Most events that wait are due at once (next_attempt_at = 0): in their order, without sorting.
DROP INDEX outbox_due;
CREATE INDEX outbox_due ON outbox (endpoint_id, next_attempt_at, id) WHERE state = 'pending';
