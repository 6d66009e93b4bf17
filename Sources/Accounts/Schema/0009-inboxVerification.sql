-- Migration 9: inboxes on their way to being verified, and the page of one's own.
-- Codes, links and cookies are stored as keyed hashes (`SecretHash`). An inbox that is removed, and a user who is deleted,
-- take every link and session along.

-- id is the number in the address that an answer goes to, which has 35 bits for it. A row stays until it expires,
-- so that a link that is opened twice says the same thing twice.
CREATE TABLE inbox_verifications (
    id {id} CHECK (id > 0 AND id < 34359738368),
    inbox_id {int} NOT NULL UNIQUE REFERENCES inboxes (id) ON DELETE CASCADE,
    code_hash {bytes} NOT NULL,
    link_hash {bytes} NOT NULL UNIQUE,
    answer_nonce {int} NOT NULL,
    tries {int} NOT NULL DEFAULT 0,
    created_at {int} NOT NULL,
    expires_at {int} NOT NULL,
    confirmed_at {int}
) {strict};
CREATE INDEX inbox_verifications_expiry ON inbox_verifications (expires_at);

-- Every message that Postern wrote to an inbox of its own accord, for the limits alone. The index is that of the
-- mailbox, whatever its spelling.
CREATE TABLE notices (
    id {id},
    kind TEXT NOT NULL CHECK (kind IN ('verification', 'sign-in', 'deletion', 'change')),
    canonical_index {bytes} NOT NULL,
    user_id {int} REFERENCES users (id) ON DELETE SET NULL,
    sent_at {int} NOT NULL
) {strict};
CREATE INDEX notices_sent ON notices (sent_at);
CREATE INDEX notices_inbox ON notices (canonical_index, sent_at);
CREATE INDEX notices_user ON notices (user_id, sent_at);

CREATE TABLE page_links (
    id {id},
    purpose TEXT NOT NULL CHECK (purpose IN ('sign-in', 'deletion')),
    token_hash {bytes} NOT NULL UNIQUE,
    browser_hash {bytes} NOT NULL,
    user_id {int} NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    inbox_id {int} NOT NULL REFERENCES inboxes (id) ON DELETE CASCADE,
    created_at {int} NOT NULL,
    expires_at {int} NOT NULL
) {strict};
CREATE INDEX page_links_user ON page_links (user_id);
CREATE INDEX page_links_inbox ON page_links (inbox_id);
CREATE INDEX page_links_expiry ON page_links (expires_at);

-- inbox_id: through which the user signed in.
CREATE TABLE page_sessions (
    id {id},
    token_hash {bytes} NOT NULL UNIQUE,
    user_id {int} NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    inbox_id {int} NOT NULL REFERENCES inboxes (id) ON DELETE CASCADE,
    created_at {int} NOT NULL,
    seen_at {int} NOT NULL,
    expires_at {int} NOT NULL
) {strict};
CREATE INDEX page_sessions_user ON page_sessions (user_id);
CREATE INDEX page_sessions_inbox ON page_sessions (inbox_id);
CREATE INDEX page_sessions_expiry ON page_sessions (expires_at);
