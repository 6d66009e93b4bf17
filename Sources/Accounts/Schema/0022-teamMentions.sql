-- Migration 22: in how many forwards each team wrote real inboxes of its users, by day.
-- `daily_counters` has it by account, which no one can add up for each question of a monitoring system. The first of a day
-- is a line of the audit.

CREATE TABLE team_mentions (
    day {int} NOT NULL,
    team_id {int} NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    messages {int} NOT NULL,
    PRIMARY KEY (day, team_id)
) {clustered};
