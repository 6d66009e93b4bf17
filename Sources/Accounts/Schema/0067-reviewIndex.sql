-- Migration 67: decisions that people may have to look at, by time and by team: those that asked for a check, and those that
-- a rule wants looked at.

CREATE INDEX decisions_review ON decisions (evaluated_at)
    WHERE for_review = 1 OR decision = 'require_verification';
CREATE INDEX decisions_review_team ON decisions (team_id, evaluated_at)
    WHERE for_review = 1 OR decision = 'require_verification';
