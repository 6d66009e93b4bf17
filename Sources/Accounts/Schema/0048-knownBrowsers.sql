-- Migration 48: how often a user signed out everywhere: browsers from before are new ones then.

ALTER TABLE users ADD COLUMN browser_generation {int} NOT NULL DEFAULT 0;
