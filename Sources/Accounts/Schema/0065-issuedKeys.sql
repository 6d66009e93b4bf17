-- Migration 65: keys that teams issue themselves, each with less than the key that issued it. `issued_by` is the handle of that
-- one, with which they end.

ALTER TABLE api_keys ADD COLUMN issued_by TEXT;
