-- Migration 72: an account of another issuer by what the issuer says of it: events name no team.

CREATE INDEX external_identities_subject ON external_identities (subject, issuer);
