-- Migration 64: domains that teams want to send from and prove by a TXT record. What serves is in `outbound_sources`, and
-- nothing else is: whoever reads that table needs no state. A claim says how a source came there and when its record is looked
-- for again; a source without a claim is the administrator's.

CREATE TABLE source_claims (
    id {id},
    team_id {int} NOT NULL,
    domain TEXT NOT NULL,
    token TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'proved', 'stopped')),
    created_at {int} NOT NULL,
    proved_at {int},
    failing_since {int},
    warned_at {int},
    next_check_at {int} NOT NULL,
    UNIQUE (team_id, domain)
) {strict};
CREATE INDEX source_claims_due ON source_claims (next_check_at);
