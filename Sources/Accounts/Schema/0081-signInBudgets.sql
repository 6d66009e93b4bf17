-- Migration 81: messages are counted by the network that asked for them, and those to people who are no users yet by the domain of
-- their inbox: keyed hashes. Wrong codes of all networks are counted by five minutes. And a person who is no user yet gets a link
-- beside the code, which goes on with the request that it was asked for.

ALTER TABLE notices ADD COLUMN network_hash {bytes};
ALTER TABLE notices ADD COLUMN domain_hash {bytes};

CREATE TABLE wrong_codes (
    period {int} PRIMARY KEY,
    count {int} NOT NULL
);

ALTER TABLE page_codes ADD COLUMN token_hash {bytes};
ALTER TABLE page_codes ADD COLUMN request_sealed {bytes};
CREATE UNIQUE INDEX page_codes_token ON page_codes (token_hash);
