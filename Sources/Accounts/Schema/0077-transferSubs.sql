-- Migration 77: accounts of which a team was told a transfer_sub in their order, so that they are counted piece by piece.

DROP INDEX transfer_subs_team;
CREATE INDEX transfer_subs_team ON transfer_subs (target_team, account_id);
