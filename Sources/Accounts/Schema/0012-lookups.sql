-- Migration 12: what a look-up by relay address needs, on half as many pages.
-- With millions of accounts each table and each index that a look-up goes through is a page of its own that no cache holds.
-- They were six. Now they are three: the address, in a table ordered by it (on SQLite); the account, which knows whether it
-- has a live grant and which inbox is its target; and that inbox.
--
-- What the account knows follows from grants and inboxes. Triggers ensure that, so that nothing that touches those, a cascade
-- included, can leave it behind: mail that went to an inbox that is no longer the default would be a breach.

-- Other hosts write meanwhile: nothing of theirs may come between a table and its copy.
{postgresql}LOCK TABLE accounts, grants, inboxes, relay_addresses IN ACCESS EXCLUSIVE MODE;

-- ordinal: the how-manyth address of its account, from 1.
CREATE TABLE new_relay_addresses (
    local_part TEXT NOT NULL,
    domain TEXT NOT NULL,
    account_id {int} NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    ordinal {int} NOT NULL,
    is_current {int} NOT NULL DEFAULT 1 CHECK (is_current IN (0, 1)),
    forwarding_on {int} NOT NULL DEFAULT 1 CHECK (forwarding_on IN (0, 1)),
    created_at {int} NOT NULL,
    retired_at {int},
    PRIMARY KEY (local_part, domain),
    UNIQUE (account_id, ordinal),
    CHECK (is_current = 0 OR retired_at IS NULL)
) {clustered};
INSERT INTO new_relay_addresses
    (local_part, domain, account_id, ordinal, is_current, forwarding_on, created_at, retired_at)
    SELECT r.local_part, r.domain, r.account_id,
        (SELECT COUNT(*) FROM relay_addresses o WHERE o.account_id = r.account_id AND o.id <= r.id),
        r.is_current, r.forwarding_on, r.created_at, r.retired_at
    FROM relay_addresses r ORDER BY r.local_part, r.domain;
DROP TABLE relay_addresses;
ALTER TABLE new_relay_addresses RENAME TO relay_addresses;
CREATE UNIQUE INDEX relay_addresses_current ON relay_addresses (account_id) WHERE is_current = 1;

ALTER TABLE accounts ADD COLUMN has_live_grant {int} NOT NULL DEFAULT 0 CHECK (has_live_grant IN (0, 1));
-- Where the account's mail goes: the inbox chosen for it, else the user's default one. No foreign key, which would ask for an
-- index: the triggers do what it would.
ALTER TABLE accounts ADD COLUMN target_inbox {int};
UPDATE accounts SET
    has_live_grant = CASE WHEN EXISTS (
        SELECT 1 FROM grants g WHERE g.account_id = accounts.id AND g.state = 'authorized') THEN 1 ELSE 0 END,
    target_inbox = COALESCE(
        inbox_id, (SELECT d.id FROM inboxes d WHERE d.user_id = accounts.user_id AND d.is_default = 1));
DROP INDEX grants_live;

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
{postgresql}CREATE FUNCTION settle_live_grant() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN
{postgresql}    UPDATE accounts a SET has_live_grant = 1 - a.has_live_grant
{postgresql}        WHERE a.id IN (OLD.account_id, NEW.account_id) AND (a.has_live_grant = 1) <>
{postgresql}        EXISTS (SELECT 1 FROM grants g WHERE g.account_id = a.id AND g.state = 'authorized');
{postgresql}    RETURN NULL;
{postgresql}END $$;
{postgresql}CREATE TRIGGER grants_changed AFTER INSERT OR DELETE OR UPDATE OF state, account_id ON grants
{postgresql}    FOR EACH ROW EXECUTE FUNCTION settle_live_grant();

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
{postgresql}CREATE FUNCTION settle_target_inbox() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN
{postgresql}    NEW.target_inbox := COALESCE(
{postgresql}        NEW.inbox_id, (SELECT d.id FROM inboxes d WHERE d.user_id = NEW.user_id AND d.is_default = 1));
{postgresql}    RETURN NEW;
{postgresql}END $$;
{postgresql}CREATE TRIGGER accounts_changed BEFORE INSERT OR UPDATE OF inbox_id, user_id ON accounts
{postgresql}    FOR EACH ROW EXECUTE FUNCTION settle_target_inbox();
{postgresql}CREATE FUNCTION settle_target_inboxes() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN
{postgresql}    UPDATE accounts a SET target_inbox = t.inbox FROM (
{postgresql}        SELECT x.id, COALESCE(
{postgresql}            x.inbox_id, (SELECT d.id FROM inboxes d WHERE d.user_id = x.user_id AND d.is_default = 1)) AS inbox
{postgresql}        FROM accounts x WHERE x.user_id IN (OLD.user_id, NEW.user_id)
{postgresql}    ) t WHERE a.id = t.id AND a.target_inbox IS DISTINCT FROM t.inbox;
{postgresql}    RETURN NULL;
{postgresql}END $$;
{postgresql}CREATE TRIGGER inboxes_changed AFTER INSERT OR DELETE OR UPDATE OF is_default, user_id ON inboxes
{postgresql}    FOR EACH ROW EXECUTE FUNCTION settle_target_inboxes();
