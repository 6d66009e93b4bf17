-- Migration 62: what transmitters of the Shared Signals Framework say of their accounts, for policies alone, and where such events are
-- fetched. `risk_event` is the latest kind, `risk_event_at` when it happened (seconds since 1970); how many there were is a counter
-- by day, kind 22. `issuer_polls` has an issuer's name, as postern.yaml may make an issuer again under it.

ALTER TABLE external_identities ADD COLUMN risk_event TEXT;
ALTER TABLE external_identities ADD COLUMN risk_event_at {int};

CREATE TABLE issuer_polls (
    issuer TEXT NOT NULL,
    url TEXT NOT NULL,
    allows_http {int} NOT NULL CHECK (allows_http IN (0, 1)),
    token_key TEXT,
    token_sealed {bytes},
    created_at {int} NOT NULL,
    PRIMARY KEY (issuer)
) {clustered};
