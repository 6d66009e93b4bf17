-- Migration 74: what users were told long ago.

CREATE INDEX account_refusals_told_at ON account_refusals_told (told_at);
