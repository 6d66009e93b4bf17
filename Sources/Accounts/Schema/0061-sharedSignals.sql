-- Migration 61: endpoints of the OpenID Shared Signals Framework 1.0. Times are in seconds since 1970. `dialect` is the form that an endpoint's
-- events have; `stream_group` is `group_id` of a stream, so that a group may have a stream beside its endpoint. `detail` is what
-- a type of event needs beside its address; `txn` is the same in all events of one change of one account (RFC 8417).
-- `event_streams.requested` is the JSON array that the receiver asked for, NULL where it named none; `types` are the types of event
-- that come of it, words apart by a space, NULL for all. `team_id` is the team that made the stream, also where the app went to
-- another. `refusals_until` is the hour since 1970 up to which refusals were reported. Subjects in `stream_exclusions` were removed from a stream.

ALTER TABLE event_endpoints ADD COLUMN dialect TEXT NOT NULL DEFAULT 'apple' CHECK (dialect IN ('apple', 'apple-2025', 'ssf'));
ALTER TABLE event_endpoints ADD COLUMN stream_group {int} REFERENCES app_groups (id) ON DELETE SET NULL;
CREATE UNIQUE INDEX event_endpoints_stream ON event_endpoints (stream_group) WHERE stream_group IS NOT NULL;

ALTER TABLE outbox ADD COLUMN detail TEXT;
ALTER TABLE outbox ADD COLUMN txn TEXT;

CREATE TABLE event_streams (
    endpoint_id {int} NOT NULL REFERENCES event_endpoints (id) ON DELETE CASCADE,
    stream_id TEXT NOT NULL UNIQUE,
    team_id {int} REFERENCES teams (id) ON DELETE SET NULL,
    is_polled {int} NOT NULL CHECK (is_polled IN (0, 1)),
    status TEXT NOT NULL DEFAULT 'enabled' CHECK (status IN ('enabled', 'paused', 'disabled')),
    reason TEXT,
    requested TEXT,
    types TEXT,
    description TEXT,
    authorization_key TEXT,
    authorization_sealed {bytes},
    refusals_until {int} NOT NULL,
    created_at {int} NOT NULL,
    PRIMARY KEY (endpoint_id)
) {clustered};
CREATE INDEX event_streams_team ON event_streams (team_id);

CREATE TABLE stream_exclusions (
    account_id {int} NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    endpoint_id {int} NOT NULL REFERENCES event_endpoints (id) ON DELETE CASCADE,
    PRIMARY KEY (account_id, endpoint_id)
) {clustered};
CREATE INDEX stream_exclusions_endpoint ON stream_exclusions (endpoint_id);
