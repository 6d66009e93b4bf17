-- Migration 69: what was done to one user, among all that was done in three years.

CREATE INDEX audit_subject ON audit (subject);
