-- Migration 88: why conditions of a decision ended in an error, a line each. They may read what the log holds only as a hash, so that
-- nothing else could tell later.

ALTER TABLE decisions ADD COLUMN error_texts TEXT NOT NULL DEFAULT '';
