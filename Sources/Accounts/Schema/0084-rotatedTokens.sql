-- Migration 84: refresh tokens of public apps, each of which serves once (RFC 9700 section 4.14.2). family_hash: of what all tokens of
-- one sign-in begin with. former_hash: of the token that the present one replaced, at rotated_at.

ALTER TABLE refresh_tokens ADD COLUMN family_hash {bytes};
ALTER TABLE refresh_tokens ADD COLUMN former_hash {bytes};
ALTER TABLE refresh_tokens ADD COLUMN rotated_at {int};
CREATE UNIQUE INDEX refresh_tokens_family ON refresh_tokens (family_hash);
