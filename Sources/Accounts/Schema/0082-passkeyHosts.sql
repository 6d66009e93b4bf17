-- Migration 82: the host that a passkey belongs to (its relying party). NULL: made before, for the host of then.

ALTER TABLE passkeys ADD COLUMN rp_id TEXT;
