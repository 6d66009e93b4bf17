-- Migration 75: events of an endpoint in each state in their order, so that a page of a team's is read without the others'.

DROP INDEX outbox_endpoint;
CREATE INDEX outbox_endpoint ON outbox (endpoint_id, state, id);
