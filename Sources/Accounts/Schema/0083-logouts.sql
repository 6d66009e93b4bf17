-- Migration 83: apps are told when a session ends (OpenID Connect Back-Channel Logout 1.0).

ALTER TABLE apps ADD COLUMN backchannel_logout_uri TEXT;
ALTER TABLE authorization_codes ADD COLUMN sid TEXT;
ALTER TABLE refresh_tokens ADD COLUMN sid TEXT;
CREATE INDEX authorization_codes_sid ON authorization_codes (sid) WHERE sid IS NOT NULL;
CREATE INDEX refresh_tokens_sid ON refresh_tokens (sid) WHERE sid IS NOT NULL;

-- Where a session of the page signed its user in. sid: the session's name in the tokens of this app alone; random.
CREATE TABLE app_sessions (
    session_id {int} NOT NULL REFERENCES page_sessions (id) ON DELETE CASCADE,
    app_id {int} NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    grant_id {int} NOT NULL REFERENCES grants (id) ON DELETE CASCADE,
    sid TEXT NOT NULL,
    PRIMARY KEY (session_id, app_id)
) {clustered};
CREATE INDEX app_sessions_app ON app_sessions (app_id);
CREATE INDEX app_sessions_grant ON app_sessions (grant_id);

-- Logout tokens on their way to apps.
CREATE TABLE logout_notices (
    id {id},
    app_id {int} NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    sub TEXT NOT NULL,
    sid TEXT NOT NULL,
    jti TEXT NOT NULL,
    created_at {int} NOT NULL,
    attempts {int} NOT NULL DEFAULT 0,
    next_attempt_at {int} NOT NULL
) {strict};
CREATE INDEX logout_notices_app ON logout_notices (app_id);
CREATE INDEX logout_notices_due ON logout_notices (next_attempt_at);
