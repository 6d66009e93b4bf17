-- Triggers that set `has_live_grant` and `target_inbox` of accounts: mail to an inbox that is no longer the default would be
-- a breach.

{sqlite}CREATE TRIGGER grants_added AFTER INSERT ON grants WHEN NEW.state = 'authorized' BEGIN
{sqlite}    UPDATE accounts SET has_live_grant = 1 WHERE id = NEW.account_id AND has_live_grant = 0;
{sqlite}END;
{sqlite}CREATE TRIGGER grants_changed AFTER UPDATE OF state, account_id ON grants BEGIN
{sqlite}    UPDATE accounts SET has_live_grant =
{sqlite}        EXISTS (SELECT 1 FROM grants g WHERE g.account_id = accounts.id AND g.state = 'authorized')
{sqlite}        WHERE id IN (OLD.account_id, NEW.account_id);
{sqlite}END;
{sqlite}CREATE TRIGGER grants_removed AFTER DELETE ON grants WHEN OLD.state = 'authorized' BEGIN
{sqlite}    UPDATE accounts SET has_live_grant =
{sqlite}        EXISTS (SELECT 1 FROM grants g WHERE g.account_id = accounts.id AND g.state = 'authorized')
{sqlite}        WHERE id = OLD.account_id;
{sqlite}END;
{sqlite}CREATE TRIGGER accounts_added AFTER INSERT ON accounts BEGIN
{sqlite}    UPDATE accounts SET target_inbox = COALESCE(
{sqlite}        inbox_id, (SELECT d.id FROM inboxes d WHERE d.user_id = NEW.user_id AND d.is_default = 1)) WHERE id = NEW.id;
{sqlite}END;
{sqlite}CREATE TRIGGER accounts_changed AFTER UPDATE OF inbox_id, user_id ON accounts BEGIN
{sqlite}    UPDATE accounts SET target_inbox = COALESCE(
{sqlite}        inbox_id, (SELECT d.id FROM inboxes d WHERE d.user_id = NEW.user_id AND d.is_default = 1)) WHERE id = NEW.id;
{sqlite}END;
{sqlite}CREATE TRIGGER inboxes_added AFTER INSERT ON inboxes WHEN NEW.is_default = 1 BEGIN
{sqlite}    UPDATE accounts SET target_inbox = COALESCE(inbox_id, NEW.id) WHERE user_id = NEW.user_id;
{sqlite}END;
{sqlite}CREATE TRIGGER inboxes_changed AFTER UPDATE OF is_default, user_id ON inboxes BEGIN
{sqlite}    UPDATE accounts SET target_inbox = COALESCE(
{sqlite}        inbox_id, (SELECT d.id FROM inboxes d WHERE d.user_id = accounts.user_id AND d.is_default = 1))
{sqlite}        WHERE user_id IN (OLD.user_id, NEW.user_id);
{sqlite}END;
{sqlite}CREATE TRIGGER inboxes_removed AFTER DELETE ON inboxes BEGIN
{sqlite}    UPDATE accounts SET target_inbox = COALESCE(
{sqlite}        inbox_id, (SELECT d.id FROM inboxes d WHERE d.user_id = accounts.user_id AND d.is_default = 1))
{sqlite}        WHERE user_id = OLD.user_id;
{sqlite}END;

-- On PostgreSQL these run for each row. Tables are named with their schema (`#`): a function with a search path of its own
-- sets it at each call. OLD and NEW get a statement each: a plan for both numbers costs more than one for either, of which
-- one is NULL for most changes, so PostgreSQL would plan each call again.
{postgresql}DO $migration$
{postgresql}DECLARE
{postgresql}    body text;
{postgresql}BEGIN
{postgresql}    FOREACH body IN ARRAY ARRAY[
{postgresql}        $body$ CREATE FUNCTION #.set_live_grant() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
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
{postgresql}        $body$ CREATE FUNCTION #.set_target_inbox() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
{postgresql}            NEW.target_inbox := COALESCE(
{postgresql}                NEW.inbox_id, (SELECT d.id FROM #.inboxes d WHERE d.user_id = NEW.user_id AND d.is_default = 1));
{postgresql}            RETURN NEW;
{postgresql}        END $$ $body$,
{postgresql}        $body$ CREATE FUNCTION #.set_target_inboxes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
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
{postgresql}CREATE TRIGGER grants_changed AFTER INSERT OR DELETE OR UPDATE OF state, account_id ON grants
{postgresql}    FOR EACH ROW EXECUTE FUNCTION set_live_grant();
{postgresql}CREATE TRIGGER accounts_changed BEFORE INSERT OR UPDATE OF inbox_id, user_id ON accounts
{postgresql}    FOR EACH ROW EXECUTE FUNCTION set_target_inbox();
{postgresql}CREATE TRIGGER inboxes_changed AFTER INSERT OR DELETE OR UPDATE OF is_default, user_id ON inboxes
{postgresql}    FOR EACH ROW EXECUTE FUNCTION set_target_inboxes();
