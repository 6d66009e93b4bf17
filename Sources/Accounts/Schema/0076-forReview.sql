-- Migration 76: decisions that a rule wants looked at, which are few among those that asked for a check.

CREATE INDEX decisions_for_review ON decisions (for_review, evaluated_at) WHERE for_review = 1;
