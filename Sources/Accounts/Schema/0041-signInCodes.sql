-- Migration 41: codes of six digits, for whoever reads the mail elsewhere than in the browser that asked.
-- A browser that asked has a row, whether anyone has the inbox or not, so that what is answered to a code, and how fast, does not
-- depend on that. The rows of a user stay a day, for the limit of wrong codes.

CREATE TABLE page_codes (
    id {id},
    browser_hash {bytes} NOT NULL,
    code_hash {bytes} NOT NULL,
    link_id {int} REFERENCES page_links (id) ON DELETE SET NULL,
    user_id {int} REFERENCES users (id) ON DELETE CASCADE,
    tries {int} NOT NULL DEFAULT 0,
    created_at {int} NOT NULL,
    expires_at {int} NOT NULL,
    kept_until {int} NOT NULL
) {strict};
CREATE INDEX page_codes_browser ON page_codes (browser_hash);
CREATE INDEX page_codes_link ON page_codes (link_id);
CREATE INDEX page_codes_user ON page_codes (user_id, created_at);
CREATE INDEX page_codes_kept ON page_codes (kept_until);
