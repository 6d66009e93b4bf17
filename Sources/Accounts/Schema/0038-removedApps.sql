-- Migration 38: apps and endpoints that were removed, whose consents and events go in small steps.
-- `app_groups.removed_from`: the team that a group was removed from, not NULL from then on. A group that was removed by
-- itself is in a team of its own, which was removed too; the former team's endpoint still hears that each consent ended.
-- `teams.loses_apps`: accounts of this team may have consents to such a group only, so that `has_live_grant` alone is not
-- the truth. `event_endpoints.removed_at`: nothing is delivered there any more, and its events are deleted.

ALTER TABLE app_groups ADD COLUMN removed_from {int};
UPDATE app_groups SET removed_from = team_id
    WHERE team_id IN (SELECT id FROM teams WHERE removed_at IS NOT NULL);
CREATE INDEX app_groups_removed ON app_groups (removed_from) WHERE removed_from IS NOT NULL;
ALTER TABLE teams ADD COLUMN loses_apps {int} NOT NULL DEFAULT 0;
UPDATE teams SET loses_apps = 1 WHERE EXISTS (
    SELECT 1 FROM app_transfers x JOIN app_groups p ON p.id = x.group_id
    WHERE x.from_team = teams.id AND p.removed_from IS NOT NULL);
ALTER TABLE event_endpoints ADD COLUMN removed_at {int};
CREATE INDEX event_endpoints_removed ON event_endpoints (removed_at) WHERE removed_at IS NOT NULL;
