-- Migration 85: nothing is kept of what teams write. Kinds 14, 15 and 20 of counters were messages with the inbox, hidden quotations, and
-- addresses in text.

DROP INDEX daily_counters_inboxes;
DROP TABLE team_mentions;
DELETE FROM once_marks WHERE purpose = 'mention';
DELETE FROM daily_counters WHERE kind IN (14, 15, 20);
