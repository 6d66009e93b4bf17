-- Migration 17: addresses of reverse addresses expire.
-- They were kept as long as their account, and a team could make any number. From here on they are kept for a year from the
-- last mail that met them; those that are there have a year from now.

{sqlite}UPDATE stored_tokens SET expires_at = (unixepoch() / 86400 + 366) * 86400 WHERE expires_at IS NULL;
{postgresql}UPDATE stored_tokens SET expires_at = (CAST(floor(extract(epoch FROM now()) / 86400) AS BIGINT) + 366) * 86400
{postgresql}    WHERE expires_at IS NULL;
