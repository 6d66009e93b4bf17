-- Events that teams are sent, and those that issuers sent.

-- `group_id` NULL: the group was removed, and the row is deleted with its last event; or the endpoint is the stream of
-- `stream_group`. A group may have both. `audience`: the primary app's client_id, or the team's identifier for mail alone.
-- `removed_at`: nothing is delivered any more, and the endpoint's events are deleted.
CREATE TABLE event_endpoints (
    id {id},
    group_id {int} UNIQUE REFERENCES app_groups (id) ON DELETE SET NULL,
    stream_group {int} REFERENCES app_groups (id) ON DELETE SET NULL,
    dialect TEXT NOT NULL CHECK (dialect IN ('apple', 'apple-2025', 'ssf')),
    audience TEXT NOT NULL,
    url TEXT NOT NULL,
    allow_private {int} NOT NULL DEFAULT 0 CHECK (allow_private IN (0, 1)),
    created_at {int} NOT NULL,
    removed_at {int}
) {strict};
CREATE UNIQUE INDEX event_endpoints_stream ON event_endpoints (stream_group) WHERE stream_group IS NOT NULL;
CREATE INDEX event_endpoints_removed ON event_endpoints (removed_at) WHERE removed_at IS NOT NULL;

-- What every delivery writes is apart from the endpoint, which every change of an account reads: on PostgreSQL one of the two
-- would be repeated. `failures` in a row since the last success; while there are any, nothing is tried before `retry_at`.
CREATE TABLE endpoint_health (
    endpoint_id {int} NOT NULL REFERENCES event_endpoints (id) ON DELETE CASCADE,
    failures {int} NOT NULL DEFAULT 0,
    retry_at {int} NOT NULL DEFAULT 0,
    last_error TEXT,
    last_success_at {int},
    PRIMARY KEY (endpoint_id)
) {clustered};

-- Streams of the OpenID Shared Signals Framework 1.0. `requested`: the JSON array that the receiver asked for, NULL if it named
-- none. `types`: the event types that result, separated by spaces; NULL: all. `team_id`: the team that made the stream, also
-- when the app has moved. `refusals_until`: the hour since 1970 up to which refusals were reported.
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

-- Subjects that were removed from a stream.
CREATE TABLE stream_exclusions (
    account_id {int} NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    endpoint_id {int} NOT NULL REFERENCES event_endpoints (id) ON DELETE CASCADE,
    PRIMARY KEY (account_id, endpoint_id)
) {clustered};
CREATE INDEX stream_exclusions_endpoint ON stream_exclusions (endpoint_id);

-- Events that are to be delivered. An account's events go to an endpoint in the order of `id`, and outlive the account:
-- `account_id` is its number alone. `email`: the relay address, in events about it. `detail`: what a type of event needs
-- besides. `txn`: the same in all events of one change of one account (RFC 8417). `event_time`: milliseconds since 1970.
CREATE TABLE outbox (
    id {id},
    jti TEXT NOT NULL UNIQUE,
    endpoint_id {int} NOT NULL REFERENCES event_endpoints (id) ON DELETE CASCADE,
    account_id {int} NOT NULL,
    type TEXT NOT NULL,
    sub TEXT NOT NULL,
    email TEXT,
    decision_id TEXT,
    detail TEXT,
    txn TEXT,
    event_time {int} NOT NULL,
    created_at {int} NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'parked')),
    park_at {int} NOT NULL,
    attempts {int} NOT NULL DEFAULT 0,
    next_attempt_at {int} NOT NULL,
    last_attempt_at {int} NOT NULL DEFAULT 0,
    last_error TEXT,
    ended_at {int}
) {strict};
CREATE INDEX outbox_order ON outbox (endpoint_id, account_id, id) WHERE state = 'pending';
-- Most events are due at once (`next_attempt_at` 0): in their order, without sorting.
CREATE INDEX outbox_due ON outbox (endpoint_id, next_attempt_at, id) WHERE state = 'pending';
CREATE INDEX outbox_account ON outbox (account_id);
CREATE INDEX outbox_ended ON outbox (ended_at) WHERE ended_at IS NOT NULL;
-- With the endpoint alone, SQLite would use this one for due events too, and read all that were delivered.
CREATE INDEX outbox_endpoint ON outbox (endpoint_id, state, id);
CREATE INDEX outbox_park ON outbox (park_at) WHERE state = 'pending';

-- Hashes of events that issuers sent, so that each counts once.
CREATE TABLE received_events (
    mark {bytes} NOT NULL,
    received_at {int} NOT NULL,
    PRIMARY KEY (mark)
) {clustered};
CREATE INDEX received_events_time ON received_events (received_at);
