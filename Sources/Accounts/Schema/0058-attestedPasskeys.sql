-- Migration 58: whether the maker of the device vouched for a passkey, by a root that is configured.

ALTER TABLE passkeys ADD COLUMN is_attested {int} NOT NULL DEFAULT 0;
