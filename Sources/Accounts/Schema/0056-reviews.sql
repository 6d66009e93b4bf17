-- Migration 56: what people do with decisions: notes, rules that leave an account alone for a while, and which decisions a rule
-- wants looked at; events can name a decision. Times are in seconds since 1970; lists are words apart by a space.

ALTER TABLE decisions ADD COLUMN snoozed TEXT NOT NULL DEFAULT '';
ALTER TABLE decisions ADD COLUMN for_review {int} NOT NULL DEFAULT 0;

CREATE TABLE rule_snoozes (
    grant_id {int} NOT NULL REFERENCES grants (id) ON DELETE CASCADE,
    policy_name TEXT NOT NULL,
    rule TEXT NOT NULL,
    reason TEXT NOT NULL,
    created_at {int} NOT NULL,
    expires_at {int} NOT NULL,
    PRIMARY KEY (grant_id, policy_name, rule)
) {clustered};
CREATE INDEX rule_snoozes_expiry ON rule_snoozes (expires_at);

CREATE TABLE review_notes (
    id {id},
    decision_id TEXT NOT NULL REFERENCES decisions (decision_id) ON DELETE CASCADE,
    actor TEXT NOT NULL,
    text TEXT NOT NULL,
    created_at {int} NOT NULL
) {strict};
CREATE INDEX review_notes_decision ON review_notes (decision_id);

-- Without the list of types that an event may have: they are more now.
ALTER TABLE outbox ADD COLUMN event_type TEXT NOT NULL DEFAULT '';
UPDATE outbox SET event_type = type;
ALTER TABLE outbox DROP COLUMN type;
ALTER TABLE outbox RENAME COLUMN event_type TO type;
ALTER TABLE outbox ADD COLUMN decision_id TEXT;
