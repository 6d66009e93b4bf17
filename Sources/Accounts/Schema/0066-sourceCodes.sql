-- Migration 66: single addresses that teams want to send from and prove by a mailed code. A claim is to a domain or to an address.
-- A row of source_codes is a message that left: it bears the limits of messages and of wrong codes, which is why it outlives its
-- claim, by which (its token, never given out again) its code is found. Rows go after a day.

ALTER TABLE source_claims RENAME COLUMN domain TO value;
ALTER TABLE source_claims ADD COLUMN kind TEXT NOT NULL DEFAULT 'domain' CHECK (kind IN ('domain', 'address'));

CREATE TABLE source_codes (
    id {id},
    claim_token TEXT NOT NULL,
    team_id {int} NOT NULL,
    mailbox_index {bytes} NOT NULL,
    code_hash {bytes} NOT NULL,
    tries {int} NOT NULL DEFAULT 0,
    sent_at {int} NOT NULL,
    expires_at {int} NOT NULL
) {strict};
CREATE INDEX source_codes_claim ON source_codes (claim_token);
CREATE INDEX source_codes_team ON source_codes (team_id, sent_at);
CREATE INDEX source_codes_mailbox ON source_codes (mailbox_index, sent_at);
CREATE INDEX source_codes_sent ON source_codes (sent_at);
