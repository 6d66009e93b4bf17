-- Migration 86: when the user last answered the message that verifies an inbox, so that they are told once a day that no one reads
-- such answers. `answer_nonce` still ties the address of answers to its message.

ALTER TABLE inbox_verifications ADD COLUMN answered_at {int};
