-- Migration 73: inboxes of users who were invited and have not shown yet that they are theirs.

CREATE INDEX inboxes_unverified ON inboxes (address_index) WHERE verified_at IS NULL;
