-- Migration 43: codes that make a user, where anyone may become one.
-- Whose inbox a code was sent to is a keyed hash here: the address itself is sealed in a cookie of the browser that asked, so that
-- nothing is kept of those who never type the code.

ALTER TABLE page_codes ADD COLUMN inbox_mark {bytes};
CREATE INDEX page_codes_mark ON page_codes (inbox_mark, created_at);
