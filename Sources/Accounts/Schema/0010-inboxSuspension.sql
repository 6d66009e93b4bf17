-- Migration 10: permanent failures of inboxes, and the inboxes that forwarding rests for.
-- `failures_from` is a day: failures of messages relayed before it tell nothing of the inbox as it is now, since it was
-- confirmed or became the one that mail goes to on that day. `suspended_failures` is what was counted when forwarding was
-- suspended.

ALTER TABLE inboxes ADD COLUMN failures_from {int} NOT NULL DEFAULT 0;
ALTER TABLE inboxes ADD COLUMN suspended_at {int};
ALTER TABLE inboxes ADD COLUMN suspended_failures {int};

CREATE TABLE inbox_failures (
    inbox_id {int} NOT NULL REFERENCES inboxes (id) ON DELETE CASCADE,
    day {int} NOT NULL,
    count {int} NOT NULL,
    PRIMARY KEY (inbox_id, day)
) {clustered};
CREATE INDEX inbox_failures_day ON inbox_failures (day);
