-- Migration 71: teams that wrote inboxes of their users are few among the counters, and found without reading the others. 14 is
-- `CounterKind.inboxWritten`.

CREATE INDEX daily_counters_inboxes ON daily_counters (day) WHERE kind = 14;
