-- Migration 70: events of an endpoint in each state, and those that have waited too long. With the endpoint alone SQLite
-- would take it for those that are due as well, and pass over all that were delivered.

CREATE INDEX outbox_endpoint ON outbox (endpoint_id, state);
CREATE INDEX outbox_park ON outbox (park_at) WHERE state = 'pending';
