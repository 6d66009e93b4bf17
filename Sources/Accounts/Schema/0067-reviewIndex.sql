-- Migration 67: decisions that people may have to look at, without those that let someone pass.

CREATE INDEX decisions_review ON decisions (evaluated_at) WHERE for_review = 1 OR decision = 'require_verification';
