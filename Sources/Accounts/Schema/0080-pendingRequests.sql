-- Migration 80: an app's request waits here while its user signs in, and then for the browser that fetches the response: addresses,
-- cookies and mails carry only its handle. `content` and `response` are encrypted with a key made from the handle, of which the
-- table has a hash alone. `response` is NULL before the user answered, and empty once it was fetched. `browser_hash` is NULL until
-- the browser is known, `network_hash` tells which requests came from one network.

DROP TABLE authorization_answers;
CREATE TABLE pending_requests (
    id {id},
    handle_hash {bytes} NOT NULL UNIQUE,
    content {bytes} NOT NULL,
    octets {int} NOT NULL,
    network_hash {bytes} NOT NULL,
    browser_hash {bytes},
    ticket_hash {bytes} UNIQUE,
    response {bytes},
    created_at {int} NOT NULL,
    expires_at {int} NOT NULL
) {strict};
CREATE INDEX pending_requests_network ON pending_requests (network_hash, id, octets);
CREATE INDEX pending_requests_expiry ON pending_requests (expires_at);

-- The request that a mailed link goes on with, encrypted with a key made from the link's token.
ALTER TABLE page_links ADD COLUMN request_sealed {bytes};
