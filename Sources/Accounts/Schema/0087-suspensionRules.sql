-- Migration 87: by which rules for reports forwarding to an inbox was suspended (`ReportRules.version`); NULL before there were numbers.

ALTER TABLE inboxes ADD COLUMN suspended_rules {int};
