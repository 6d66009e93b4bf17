-- Migration 39: PostgreSQL's triggers of accounts and inboxes without a plan, and a search path, for each row.
-- A plan for any two numbers costs more than that for an old and a new one of which one is NULL: PostgreSQL planned each
-- call again. And a function with a search path of its own sets it at each call; tables are named with their schema
-- instead.

{postgresql}DO $migration$
{postgresql}DECLARE
{postgresql}    body text;
{postgresql}BEGIN
{postgresql}    FOREACH body IN ARRAY ARRAY[
{postgresql}        $body$ CREATE OR REPLACE FUNCTION #.settle_live_grant() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
{postgresql}            IF TG_OP <> 'DELETE' THEN
{postgresql}                UPDATE #.accounts a SET has_live_grant = 1 - a.has_live_grant
{postgresql}                    WHERE a.id = NEW.account_id AND (a.has_live_grant = 1) <>
{postgresql}                    EXISTS (SELECT 1 FROM #.grants g WHERE g.account_id = a.id AND g.state = 'authorized');
{postgresql}            END IF;
{postgresql}            IF TG_OP = 'DELETE' OR TG_OP = 'UPDATE' AND OLD.account_id IS DISTINCT FROM NEW.account_id THEN
{postgresql}                UPDATE #.accounts a SET has_live_grant = 1 - a.has_live_grant
{postgresql}                    WHERE a.id = OLD.account_id AND (a.has_live_grant = 1) <>
{postgresql}                    EXISTS (SELECT 1 FROM #.grants g WHERE g.account_id = a.id AND g.state = 'authorized');
{postgresql}            END IF;
{postgresql}            RETURN NULL;
{postgresql}        END $$ $body$,
{postgresql}        $body$ CREATE OR REPLACE FUNCTION #.settle_target_inbox() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
{postgresql}            NEW.target_inbox := COALESCE(
{postgresql}                NEW.inbox_id, (SELECT d.id FROM #.inboxes d WHERE d.user_id = NEW.user_id AND d.is_default = 1));
{postgresql}            RETURN NEW;
{postgresql}        END $$ $body$,
{postgresql}        $body$ CREATE OR REPLACE FUNCTION #.settle_target_inboxes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
{postgresql}            IF TG_OP <> 'DELETE' THEN
{postgresql}                UPDATE #.accounts a SET target_inbox = COALESCE(
{postgresql}                        a.inbox_id, (SELECT d.id FROM #.inboxes d WHERE d.user_id = a.user_id AND d.is_default = 1))
{postgresql}                    WHERE a.user_id = NEW.user_id AND a.target_inbox IS DISTINCT FROM COALESCE(
{postgresql}                        a.inbox_id, (SELECT d.id FROM #.inboxes d WHERE d.user_id = a.user_id AND d.is_default = 1));
{postgresql}            END IF;
{postgresql}            IF TG_OP = 'DELETE' OR TG_OP = 'UPDATE' AND OLD.user_id IS DISTINCT FROM NEW.user_id THEN
{postgresql}                UPDATE #.accounts a SET target_inbox = COALESCE(
{postgresql}                        a.inbox_id, (SELECT d.id FROM #.inboxes d WHERE d.user_id = a.user_id AND d.is_default = 1))
{postgresql}                    WHERE a.user_id = OLD.user_id AND a.target_inbox IS DISTINCT FROM COALESCE(
{postgresql}                        a.inbox_id, (SELECT d.id FROM #.inboxes d WHERE d.user_id = a.user_id AND d.is_default = 1));
{postgresql}            END IF;
{postgresql}            RETURN NULL;
{postgresql}        END $$ $body$
{postgresql}    ] LOOP
{postgresql}        EXECUTE replace(body, '#', quote_ident(current_schema()));
{postgresql}    END LOOP;
{postgresql}END $migration$;
