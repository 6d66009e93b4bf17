-- A store as the program of 22 November 2026 made it: its schema with the comments of the migrations, a team with a source, an app, an
-- endpoint and an API key, users with inboxes, consents of which one is revoked, counters, events that wait. Without policies.

CREATE TABLE schema_migrations (
    version INTEGER NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL,
    applied_at INTEGER NOT NULL
);
INSERT INTO schema_migrations VALUES(1,'first','da0a610e8ae2f43f63dbc1a79faadf8da5873807752d292922d9e4c1273bc144',1795385117);
INSERT INTO schema_migrations VALUES(2,'dkim-keys','e86057738d01890bff0633e413257c6ec5894b964973b5c264ec32c1ee2e14b7',1795385117);
INSERT INTO schema_migrations VALUES(3,'identity','5ca53e0572df0a16503959a4871a3dce4a7a039165535741d85e06d31a8d761c',1795385117);
INSERT INTO schema_migrations VALUES(4,'decisions','1b0a89e4d9b0f24271bc45b0ec7464581c296cb071337a48376e8029d087750f',1795385117);
INSERT INTO schema_migrations VALUES(5,'policies','2caaf81f2bddd1c5531cb1aa77e106664a5ded7b6f5bc44928602571cfcd966f',1795385117);
INSERT INTO schema_migrations VALUES(6,'api','dfaa1293ee78e1d6935fedf4190d93dd600904b6ca27ebd06dd591ee68a24e50',1795385117);
INSERT INTO schema_migrations VALUES(7,'accounts','129411399e8a4f5477f47cf003cd891479782ad0d6a4bdcc767585c8932c0a64',1795385117);
INSERT INTO schema_migrations VALUES(8,'provider','c4ce899bc58c0435eaf44e5026b3e8218b50036cdf2d3ae2b0238c8f5967b456',1795385117);
INSERT INTO schema_migrations VALUES(9,'inboxVerification','eeb5080b93eb1bbcf6b12c54beb4e0d982e31c5b0da82685eeb18357a38fcf12',1795385117);
INSERT INTO schema_migrations VALUES(10,'inboxSuspension','07aa9dc921e1f9553ec6df399a068592e16bfc17cc78cb017aa7d2b5fb1def6f',1795385117);
INSERT INTO schema_migrations VALUES(11,'liveGrants','710ccb4eca9c78e3f399566d596f3ab2f40800641149da82ddeac27d8d7fd511',1795385117);
INSERT INTO schema_migrations VALUES(12,'lookups','d4f9d8718931f9c016495a4ca8675157973072fd390ce2a5120c58678ee30a43',1795385117);
INSERT INTO schema_migrations VALUES(17,'tokenExpiry','8457fcd9d6459b591752dd356c05b258f8e0c859b19f55daab7c91a53942743d',1795385117);
INSERT INTO schema_migrations VALUES(22,'teamMentions','75cfa20e858945f43a1e1fdcfb633b88e2636347a5dc8cb96e82775446029ff0',1795385117);
INSERT INTO schema_migrations VALUES(26,'serviceMinutes','b423ba8b937916aee924a817cd2d2a2d2ee9d11d40ee99099fa0df68941c42e5',1795385117);
INSERT INTO schema_migrations VALUES(27,'sharedInbox','2d7adcd8cf49fbada10a6171001c29951ff281765247805ec455797a6badc529',1795385117);
INSERT INTO schema_migrations VALUES(28,'eventTimes','51fc23e727886aad60b35391bf74b698d7ecfcfc0a60a345bc5f0a18b7f6a9ef',1795385117);
INSERT INTO schema_migrations VALUES(31,'inboxNumbers','760663ec4dca9a631619a96e246b838aec665d2ccfc88a5e5ad9acd4c2b729c2',1795385117);
INSERT INTO schema_migrations VALUES(33,'removals','3e5eb8a58f137a4c1b4db28f6641a23e8548ddc4c2804d37d86f385dd161865c',1795385117);
INSERT INTO schema_migrations VALUES(34,'transferSteps','c96149b1ca4f41d1cfa46e2c4a69ce0dc4551b6046b6a96ff2b15f2cd3ad8240',1795385117);
INSERT INTO schema_migrations VALUES(37,'deliveryLease','f3ea2eda65e2b31f1454fd848342abb6fa98a80399046cca4c52903084d5820e',1795385117);
INSERT INTO schema_migrations VALUES(38,'removedApps','29957cda906bc527f2a8ed3845732d6f7b6b36b788e445f43b6ce304ee69220b',1795385117);
CREATE TABLE teams (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    handle TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL
, removed_at INTEGER, loses_apps INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO teams VALUES(1,'juice','The Juice Company',1795385538,NULL,0);
CREATE TABLE outbound_sources (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    team_id INTEGER NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('domain', 'address')),
    value TEXT NOT NULL,
    envelope_domain TEXT NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL,
    UNIQUE (team_id, value, envelope_domain)
) STRICT;
INSERT INTO outbound_sources VALUES(1,1,'domain','juice.example','',1795385538);
CREATE TABLE app_groups (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    team_id INTEGER NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    primary_client_id TEXT UNIQUE,
    created_at INTEGER NOT NULL
, removed_from INTEGER) STRICT;
INSERT INTO app_groups VALUES(1,1,'com.juice.app',1795385538,NULL);
CREATE TABLE apps (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    group_id INTEGER NOT NULL REFERENCES app_groups (id) ON DELETE CASCADE,
    client_id TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
, nonce_form TEXT NOT NULL DEFAULT 'raw' CHECK (nonce_form IN ('raw', 'sha256_hex')), nonce_required INTEGER NOT NULL DEFAULT 1 CHECK (nonce_required IN (0, 1))) STRICT;
INSERT INTO apps VALUES(1,1,'com.juice.app',1795385538,'raw',1);
CREATE TABLE users (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    handle TEXT NOT NULL UNIQUE,
    name_key TEXT,
    name_sealed BLOB,
    created_at INTEGER NOT NULL
, is_managed INTEGER CHECK (is_managed IN (0, 1)), last_inbox_number INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO users VALUES(1,'jane','a',X'5dbb5c1ab30ae3369498e29635dd4e807eab2f68210267ebf3e0cfc7cb62322a14aa1149e20ff5740c23e1aef90a5abcb67971a23f98fa518abeec59b0e2ff6e8646d499beb9c7fcc71af27a1c2db23d68972705d993aef6f9b4ee7d',1795385538,NULL,2);
INSERT INTO users VALUES(2,'bob',NULL,NULL,1795385556,NULL,1);
INSERT INTO users VALUES(3,'eve',NULL,NULL,1795385608,NULL,1);
CREATE TABLE inboxes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    address_key TEXT NOT NULL,
    address_sealed BLOB NOT NULL,
    index_key TEXT NOT NULL,
    address_index BLOB NOT NULL,
    canonical_index BLOB NOT NULL,
    is_default INTEGER NOT NULL DEFAULT 0 CHECK (is_default IN (0, 1)),
    reply_only INTEGER NOT NULL DEFAULT 0 CHECK (reply_only IN (0, 1)),
    created_at INTEGER NOT NULL,
    verified_at INTEGER, velocity_index BLOB, tombstone_index BLOB, failures_from INTEGER NOT NULL DEFAULT 0, suspended_at INTEGER, suspended_failures INTEGER, number INTEGER NOT NULL DEFAULT 0, former_number INTEGER,
    UNIQUE (user_id, address_index),
    CHECK (is_default = 0 OR reply_only = 0)
) STRICT;
INSERT INTO inboxes VALUES(1,1,'a',X'c090fcd7e3a86f47de514f03eb72956e08f2488af035f4429d0902e14b57fe0e3b43e35d8447bf77142b81a3c98351b97457c7bdd96721ab907792b1483ba077f63345f9aeff3170e8757577a0f22a83e0d1b21f04e7532d24642b63','a',X'3ce35f4fb18d55a8f60671becb574548',X'd4cee218021d1161a05ea277ae541806',1,0,1795385538,1795385538,X'346220e00dea8f27ebd2045308e22a55',X'371bdc3768ac1ce22042282dcc490159',20779,NULL,NULL,1,NULL);
INSERT INTO inboxes VALUES(2,1,'a',X'a99bad85e7857c5d319bb231cbc857efe8707c945934f6ff8a601325ada670d8edad554653e8525de8cb10bcec8ade6722cbb43e7a1f71373be8b0729664524e15f07f1189ab3c4e17534fb9832e610942ccc0cc0ca7831278a0a529','a',X'76d3f7474404e868bf517705ca3b2375',X'c37ed00fbf3e7834c74d4c8c9b5baeed',0,0,1795385538,1795385538,X'521ab89719de25252dfc5562bcb89606',X'f7bee61558576a77546fcd60a2e9f342',0,NULL,NULL,2,NULL);
INSERT INTO inboxes VALUES(3,2,'a',X'eb7b33e4c2c9cda5beeb1beb37a684c256fefb0a97f0d30395043c6e88527dbd534b40dc02588e6b86b1db8a2de9fecc13cda6949f6a77f03607c38c605585d5534a4e79322925d3be6af87b6394d834732bd7a0ed19e697933beda7','a',X'071f2bab174ae1e07dfcd5b0510ea72d',X'38b731c7f4fb08d2a37be8089fd8cfb7',1,0,1795385556,1795385556,X'34b31c7fbf25ad063c800275988571cc',X'4ac5f17508d24292400e6fe4ac202510',20779,NULL,NULL,1,NULL);
INSERT INTO inboxes VALUES(4,3,'a',X'c5ba88e298e9b0c43bba1a4bdb70fd667eb04ff6afaf550ebdf0695ca2096074fee72f62aae331ae5bdb1aa4b6508dc8d99f74c184e07c567d83b71c9071e1aa32b46c9fed21679302265a9bdd6df6417f9b1ff249616942d26f2074','a',X'6b959df56bd6d6137ed9f037c0e8eb13',X'688cc090e7efd142f9368b8f23162cde',1,0,1795385608,NULL,X'5b17383adf552cbb73dccdac0c727b4b',X'796b202617fae42da8e87de295e18a24',20779,NULL,NULL,1,NULL);
CREATE TABLE accounts (
    id INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id > 0 AND id < 34359738368),
    team_id INTEGER NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    user_id INTEGER REFERENCES users (id) ON DELETE CASCADE,
    inbox_id INTEGER REFERENCES inboxes (id) ON DELETE SET NULL,
    sub TEXT NOT NULL UNIQUE,
    shares_name INTEGER NOT NULL DEFAULT 0 CHECK (shares_name IN (0, 1)),
    created_at INTEGER NOT NULL, email_kind TEXT NOT NULL DEFAULT 'private'
    CHECK (email_kind IN ('private', 'real', 'none')), has_live_grant INTEGER NOT NULL DEFAULT 0 CHECK (has_live_grant IN (0, 1)), target_inbox INTEGER, event_time INTEGER NOT NULL DEFAULT 0,
    UNIQUE (team_id, user_id)
) STRICT;
INSERT INTO accounts VALUES(1,1,1,NULL,'ujp7cspv37n4f7zppa6eo5txhc74yf3o',0,1795385538,'private',1,1,1795385608156);
INSERT INTO accounts VALUES(2,1,2,NULL,'wdie3myer3w2vkf6x2axaplzuaiarf5j',0,1795385556,'private',0,3,1795385608044);
CREATE TABLE grants (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id INTEGER NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    group_id INTEGER NOT NULL REFERENCES app_groups (id) ON DELETE CASCADE,
    state TEXT NOT NULL CHECK (state IN ('authorized', 'revoked')),
    first_authorized_at INTEGER NOT NULL,
    last_authorized_at INTEGER NOT NULL,
    revoked_at INTEGER,
    real_user_status INTEGER CHECK (real_user_status BETWEEN 0 AND 2), prior_status INTEGER CHECK (prior_status BETWEEN 0 AND 2), signup_check TEXT NOT NULL DEFAULT 'none'
    CHECK (signup_check IN ('none', 'pending', 'passed')), first_asked_at INTEGER, last_seen_at INTEGER, transferred_at INTEGER, generation INTEGER NOT NULL DEFAULT 0,
    UNIQUE (account_id, group_id)
) STRICT;
INSERT INTO grants VALUES(1,1,1,'authorized',1795385538,1795385538,NULL,NULL,NULL,'none',NULL,NULL,NULL,0);
INSERT INTO grants VALUES(2,2,1,'revoked',1795385556,1795385556,1795385608,NULL,NULL,'none',NULL,NULL,NULL,1);
CREATE TABLE stored_tokens (
    token TEXT NOT NULL,
    purpose TEXT NOT NULL,
    account_id INTEGER NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    address_key TEXT NOT NULL,
    address_sealed BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    PRIMARY KEY (token)
) STRICT, WITHOUT ROWID;
CREATE TABLE daily_counters (
    account_id INTEGER NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    day INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (account_id, day, kind)
) STRICT, WITHOUT ROWID;
INSERT INTO daily_counters VALUES(1,20779,1,12);
INSERT INTO daily_counters VALUES(1,20779,2,3);
INSERT INTO daily_counters VALUES(1,20779,9,2);
INSERT INTO daily_counters VALUES(1,20780,1,4);
CREATE TABLE once_marks (
    account_id INTEGER NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    purpose TEXT NOT NULL,
    mark BLOB NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, purpose, mark)
) STRICT, WITHOUT ROWID;
CREATE TABLE settings (
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (name)
) STRICT, WITHOUT ROWID;
INSERT INTO settings VALUES('key_check','eofi6geqi3pnp56yodf26r4px44cjwbq');
CREATE TABLE audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL
) STRICT;
INSERT INTO audit VALUES(1,1795385117,'uid:0','dkim.generate','dkim:rsa202611._domainkey.relay.example','rsa 2048 active');
INSERT INTO audit VALUES(2,1795385117,'uid:0','policy.activate','policy:risk-default','c68414c95325');
INSERT INTO audit VALUES(3,1795385538,'uid:0','team.add','team:juice','');
INSERT INTO audit VALUES(4,1795385538,'uid:0','source.add','team:juice','juice.example');
INSERT INTO audit VALUES(5,1795385538,'uid:0','user.add','user:jane','');
INSERT INTO audit VALUES(6,1795385538,'uid:0','inbox.add','user:jane','inbox 1 verified');
INSERT INTO audit VALUES(7,1795385538,'uid:0','inbox.add','user:jane','inbox 2 verified');
INSERT INTO audit VALUES(8,1795385538,'uid:0','app.add','team:juice','com.juice.app group com.juice.app');
INSERT INTO audit VALUES(9,1795385538,'uid:0','grant.authorize','account:1','team:juice app:com.juice.app');
INSERT INTO audit VALUES(10,1795385538,'uid:0','address.issue','account:1','team:juice user:jane s47g3svmj6@relay.example');
INSERT INTO audit VALUES(11,1795385556,'uid:0','endpoint.set','team:juice','app:com.juice.app https://juice.example/events');
INSERT INTO audit VALUES(12,1795385556,'uid:0','user.add','user:bob','');
INSERT INTO audit VALUES(13,1795385556,'uid:0','inbox.add','user:bob','inbox 1 verified');
INSERT INTO audit VALUES(14,1795385556,'uid:0','grant.authorize','account:2','team:juice app:com.juice.app');
INSERT INTO audit VALUES(15,1795385556,'uid:0','address.issue','account:2','team:juice user:bob bfcimfydz6@relay.example');
INSERT INTO audit VALUES(16,1795385608,'uid:0','grant.revoke','account:2','app:com.juice.app');
INSERT INTO audit VALUES(17,1795385608,'uid:0','address.off','account:1','s47g3svmj6@relay.example');
INSERT INTO audit VALUES(18,1795385608,'uid:0','address.on','account:1','s47g3svmj6@relay.example');
INSERT INTO audit VALUES(19,1795385608,'uid:0','user.add','user:eve','');
INSERT INTO audit VALUES(20,1795385608,'uid:0','inbox.add','user:eve','inbox 1');
INSERT INTO audit VALUES(21,1795385608,'uid:0','key.issue','key:4jpyb7a3','team:juice decisions:write');
CREATE TABLE dkim_keys (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    domain TEXT NOT NULL,
    selector TEXT NOT NULL,
    algorithm TEXT NOT NULL CHECK (algorithm IN ('rsa', 'ed25519')),
    bits INTEGER NOT NULL,
    private_key TEXT,
    private_sealed BLOB,
    state TEXT NOT NULL CHECK (state IN ('pending', 'active', 'retiring', 'retired')),
    created_at INTEGER NOT NULL,
    activated_at INTEGER,
    deactivated_at INTEGER,
    retired_at INTEGER,
    revision INTEGER NOT NULL,
    UNIQUE (domain, selector),
    CHECK ((state = 'retired') = (private_sealed IS NULL))
) STRICT;
INSERT INTO dkim_keys VALUES(1,'relay.example','rsa202611','rsa',2048,'a',X'f7f3367fdca85d08833f367b598ceca78e20401ed3c07f4787e8eaa62dc18d34fa636d0ab86717d6ddfda184cf2320af96f471a0054022d63b9e4f8c7278e813e9b18cfed85982d91c2b250f8f7d4a525caca987a7957108464186c83693210664cbb2873a26d4c46d334a6af079462f644da9c1e7ac6956ee045e058c22db8915a6771c2f888b743a685f7704676102a42f9215b43bf95b6a013be1caa998dce027888941fb3f075f0f10f697f362c7979b578e0ee4376a6ae93af2224a460cb0f3f00d1abfc4115291a4469eb6ac1f8d05e5ab5f4ebd2e0f5203451a321fa6b9e08935a5cb889037d4f5d630aa672f6949573f65245b1c4e3e4351dd68d75c3d7d60b996f06e2a1573aedb3357e3e9061f9d0346e563b2b298473775e3ca4e4a4138e7b905c8d3b9884223d0d7fcf138a94c894da0dcba2417be30158fcff076654fca81559ab2c7353424290338e0489e9fe1f9b53694cef5fda10e44cb01b060e3ccdd5f6c518786fe85eb2b712b1d679089d248976cb2da80e633e6727ca4d25c1c189ebe3835a58bab998e6893ae1c4b495b733e40d6b6d889556a41b633fe820a74e0c90130240d807c48f6d0ab70f000b99b558bf84d705a3fb314243ba82a75d005c19306024ad8747e7c6b5401d1fcddf9196548721774432ea0cdaacef790ab4d73f6f0f6d366cbc95c657f13ec5fc61e595031ac8dd8070277a9ecb5e3cba23dc2c2fbccbebd0e51f1fdeef8ecf0fc62343d39f29f50aaebc8d6b7deb7d4b7f0eb88941d4bb76a1f19c66a934072e5e6e3ceba8bc49a127755b5535c4fa6ef31f1a3d452d9d45b29e781d45995e76f9be949a6344b32f17b9d02b08586ba1f1a42a53a5f59f4b2826edbb11796c39118bf1d628662447c93223b87c16120dd8b85effb43a0b2cf182a143591e5c823aea71e9dcdcad773549111c1ab3baad5859446a959d54092ba5ffd189646e8324abbcbb1963ff4d1d6b5455bfb2594c9c6312a367def17e7b0bcfe3f7da3af02d7afbf4560955b9335b1fae6c369c58204dad0cfde70ceded3414a1509bb81d13d60f2debd89cc14b7e29c8b996a00938e4894d727bccca9837f3a0ab3f1b24c98bc0085b84d81745cb1d4c6e6ae05836efb4a90d98d41ba6bcab89dd73e4ac411b33ad6bf5557870fd40fffd29cab5fc9f85e3c7edf4b7a9b0dba45864ee2228b875cd01a280440a19d6fe78ad00924986a01c73f9138915af6283df665c67eb1296d819629f3a22220e0b19968878ed001269a23876f9b0a07a87604bf51c40287c9db2ac1d8b73c783926a3d2dbcb539e625cc003b98073ac3aaca2b3daa925f686d4c5065e937b3e878ad1cb40f90641589aa9c12f5d35b3a5abadfb7da63bdeec7f5a20d9742d23202f6dcf1348a42de1c6532ba42914484ddcbfd5493a8276e749e0f78c5d451cb5d1f6cb2eaab9612b0ca59ec67890e2303560a5c4589ae4ed0259e627a2c36940998dfaf01e28664eaa91fa448beb43aa9e5ef3cbb93dac2378b18220d7248dd452562094fb732f0984cbb240083d39d56c4a52a657c22ae5a716212426a3ea2d4b3bbfaace0c4a6549b7011069d884afeaa33d07d5d3a40afee0342f6d58cdf2995ef538b1c4e981448f01d94ec0f0944c0b12ae520957426137de62a11d1fe7682a16ba22a897a087b8dde3c0d4f4802d9181cf244eccb7b83ddd026e93c08f9bd6f9e1553f9ea915b8360ab8ab25094ad7732b4263d171f996dc2326198a584a63167b087dbc7e3356860a322e5bfdf1e5367891b9690e7909c6a49c9fe7759ef13dade3b7803dbc182b5260f78bb122bcc16594d1bb2618aa9058cfa3ce0bee5d0b9b3f061100e341b11596cdb5e6cd54d2dda88b034ada0e9a6d0f152666e1130641b25bee72d072cefbfa34a2495d32eca1064c67df7ccc26e4d1894158d6ea66dd5586b0e02b69ba4cda16e8b9d8a380ca47ce09daa2393e563e7d42f3c15c39ca52aff6da7d0da1e8a04b429300444e4539772950038a28e06c8a9c11234d055d8c602d471d13c88c39312714d70ef94a241d41dd204163a7f59d3e83d6e47561eab2d72f534f7362a4f7e1db3e8c4b592d80a603272e37c13fc74fa829bc2c38e38c191ab3d650d45f619f20a1b889bbc857116759c367c5e1989a318c4823b1384b4d37e27d6c14eb4d673f98b4df7d1d3a80bcb1a38951a023b6e924e7d95773513a991782acb9bf6770d71b75e3fdf2834f77d670adbddd7ef8471fefb44a5b7c39c7c678c7fa1b68c151fd413bb456cbacaf456c159854d53d08460e8b003359d282bfebbd252c5a75c41bc8757a110a7cf03268b623b38189219225b90bbe1f8572574edc8c3f1d7f4be5593adb0a6df02e5a703f03c4a6e9019928decebe972b8090a010d8d35752055b1963937bdb2a8a96a14b46fc02fb893195d5b8571bb98186016b2b17421d8f75f57903101a6a36afa2de01','active',1795385117,1795385117,NULL,NULL,1);
CREATE TABLE issuers (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    iss TEXT NOT NULL UNIQUE,
    source TEXT NOT NULL CHECK (source IN ('uri', 'file', 'inline')),
    location TEXT NOT NULL,
    allows_http INTEGER NOT NULL CHECK (allows_http IN (0, 1)),
    algorithms TEXT NOT NULL,
    nonce_form TEXT NOT NULL CHECK (nonce_form IN ('raw', 'sha256_hex')),
    leeway INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE issuer_keys (
    issuer_id INTEGER NOT NULL PRIMARY KEY REFERENCES issuers (id) ON DELETE CASCADE,
    document BLOB NOT NULL,
    fetched_at INTEGER NOT NULL,
    fresh_until INTEGER NOT NULL
) STRICT;
CREATE TABLE identity_keys (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kid TEXT NOT NULL UNIQUE,
    public_jwk TEXT NOT NULL,
    private_key TEXT,
    private_sealed BLOB,
    state TEXT NOT NULL CHECK (state IN ('next', 'active', 'retiring', 'retired')),
    created_at INTEGER NOT NULL,
    activated_at INTEGER,
    deactivated_at INTEGER,
    retired_at INTEGER,
    revision INTEGER NOT NULL,
    CHECK ((state = 'retired') = (private_sealed IS NULL))
) STRICT;
CREATE TABLE external_identities (
    team_id INTEGER NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    account_id INTEGER NOT NULL UNIQUE REFERENCES accounts (id) ON DELETE CASCADE,
    forwarding_on INTEGER CHECK (forwarding_on IN (0, 1)),
    created_at INTEGER NOT NULL, email_event_at INTEGER, consent_event_at INTEGER,
    PRIMARY KEY (team_id, subject, issuer)
) STRICT, WITHOUT ROWID;
CREATE TABLE decisions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    decision_id TEXT NOT NULL UNIQUE,
    team_id INTEGER NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    client_id TEXT NOT NULL,
    grant_id INTEGER REFERENCES grants (id) ON DELETE SET NULL,
    app_account BLOB,
    claimed_event TEXT NOT NULL,
    event TEXT NOT NULL,
    decision TEXT NOT NULL CHECK (decision IN ('allow', 'require_verification')),
    challenges TEXT NOT NULL,
    reasons TEXT NOT NULL,
    wire_reasons TEXT NOT NULL,
    asked TEXT NOT NULL,
    skips TEXT NOT NULL,
    waived TEXT NOT NULL,
    missing TEXT NOT NULL,
    errors TEXT NOT NULL,
    shadow TEXT NOT NULL,
    overridden_by TEXT,
    signals TEXT NOT NULL,
    policy_name TEXT NOT NULL,
    policy_version TEXT NOT NULL,
    policy_hash TEXT NOT NULL,
    real_user_status INTEGER,
    credential_state TEXT NOT NULL,
    upgrade_result TEXT,
    degraded INTEGER NOT NULL CHECK (degraded IN (0, 1)),
    evaluated_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    label TEXT CHECK (label IN ('legitimate', 'fraudulent')),
    labelled_at INTEGER
) STRICT;
CREATE TABLE checks (
    decision_id TEXT NOT NULL,
    challenge TEXT NOT NULL,
    grant_id INTEGER REFERENCES grants (id) ON DELETE CASCADE,
    initiated_at INTEGER NOT NULL,
    passed_at INTEGER,
    failed_at INTEGER,
    PRIMARY KEY (decision_id, challenge)
) STRICT, WITHOUT ROWID;
CREATE TABLE consumed_nonces (
    mark BLOB NOT NULL,
    subject BLOB NOT NULL,
    claimed_event TEXT NOT NULL,
    event TEXT NOT NULL,
    decision_id TEXT NOT NULL,
    answer TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (mark)
) STRICT, WITHOUT ROWID;
CREATE TABLE upgraded_accounts (
    team_id INTEGER NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    app_account BLOB NOT NULL,
    grant_id INTEGER REFERENCES grants (id) ON DELETE SET NULL,
    decision_id TEXT NOT NULL,
    bound_at INTEGER NOT NULL,
    PRIMARY KEY (team_id, app_account)
) STRICT, WITHOUT ROWID;
CREATE TABLE idempotency_keys (
    team_id INTEGER NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    endpoint TEXT NOT NULL,
    key_mark BLOB NOT NULL,
    body_mark BLOB NOT NULL,
    status INTEGER,
    answer TEXT,
    begun_at INTEGER NOT NULL,
    PRIMARY KEY (team_id, endpoint, key_mark)
) STRICT, WITHOUT ROWID;
CREATE TABLE verified_signups (
    velocity_index BLOB NOT NULL,
    team_id INTEGER NOT NULL,
    user_id INTEGER NOT NULL,
    day INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (velocity_index, team_id, user_id, day)
) STRICT, WITHOUT ROWID;
CREATE TABLE app_signups (
    app_id INTEGER NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    slice INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (app_id, slice)
) STRICT, WITHOUT ROWID;
CREATE TABLE policies (
    hash TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    document BLOB NOT NULL,
    added_at INTEGER NOT NULL
) STRICT;
CREATE TABLE policy_names (
    name TEXT NOT NULL,
    hash TEXT NOT NULL REFERENCES policies (hash),
    is_default INTEGER NOT NULL DEFAULT 0 CHECK (is_default IN (0, 1)),
    since INTEGER NOT NULL,
    PRIMARY KEY (name)
) STRICT, WITHOUT ROWID;
CREATE TABLE policy_team_bindings (
    team_id INTEGER NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    PRIMARY KEY (team_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE policy_app_bindings (
    app_id INTEGER NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    PRIMARY KEY (app_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE policy_changes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL CHECK (action IN ('activate', 'rollback', 'refuse', 'bind', 'unbind')),
    name TEXT NOT NULL,
    version TEXT NOT NULL DEFAULT '',
    hash TEXT,
    hash_before TEXT,
    default_before TEXT,
    detail TEXT NOT NULL DEFAULT '',
    undone INTEGER NOT NULL DEFAULT 0 CHECK (undone IN (0, 1))
) STRICT;
CREATE TABLE policy_hosts (
    host TEXT NOT NULL,
    name TEXT NOT NULL,
    wanted TEXT NOT NULL,
    serving TEXT,
    reason TEXT,
    at INTEGER NOT NULL,
    PRIMARY KEY (host, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE api_keys (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    handle TEXT NOT NULL UNIQUE,
    team_id INTEGER REFERENCES teams (id) ON DELETE CASCADE,
    scopes TEXT NOT NULL,
    note TEXT NOT NULL,
    secret_hash BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    last_used_day INTEGER,
    rotated_to TEXT,
    revision INTEGER NOT NULL
) STRICT;
INSERT INTO api_keys VALUES(1,'4jpyb7a3',1,'decisions:write','',X'9e416af7d520d3f1646d29a246858c070894a6d0bf27c796daa725aba6029c9c',1795385608,NULL,NULL,NULL,NULL,1);
CREATE TABLE rejections (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    team_id INTEGER NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    source TEXT NOT NULL,
    hour INTEGER NOT NULL,
    answer TEXT NOT NULL,
    reason TEXT NOT NULL,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    count INTEGER NOT NULL,
    reference TEXT NOT NULL,
    UNIQUE (team_id, hour, source, answer, reason)
) STRICT;
CREATE TABLE service_status (
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    snapshot TEXT NOT NULL,
    PRIMARY KEY (host, pid)
) STRICT, WITHOUT ROWID;
CREATE TABLE event_endpoints (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    group_id INTEGER UNIQUE REFERENCES app_groups (id) ON DELETE SET NULL,
    audience TEXT NOT NULL,
    url TEXT NOT NULL,
    allow_http INTEGER NOT NULL DEFAULT 0 CHECK (allow_http IN (0, 1)),
    allow_private INTEGER NOT NULL DEFAULT 0 CHECK (allow_private IN (0, 1)),
    created_at INTEGER NOT NULL
, removed_at INTEGER) STRICT;
INSERT INTO event_endpoints VALUES(1,1,'com.juice.app','https://juice.example/events',0,0,1795385556,NULL);
CREATE TABLE outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    jti TEXT NOT NULL UNIQUE,
    endpoint_id INTEGER NOT NULL REFERENCES event_endpoints (id) ON DELETE CASCADE,
    account_id INTEGER NOT NULL,
    type TEXT NOT NULL CHECK (
        type IN ('email-disabled', 'email-enabled', 'consent-revoked', 'account-delete', 'test')),
    sub TEXT NOT NULL,
    email TEXT,
    event_time INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'parked')),
    park_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    next_attempt_at INTEGER NOT NULL,
    last_attempt_at INTEGER NOT NULL DEFAULT 0,
    last_error TEXT,
    ended_at INTEGER
) STRICT;
INSERT INTO outbox VALUES(1,'u2w4fb46vuoks2tpmgrgbmv3nmaucakr',1,2,'consent-revoked','wdie3myer3w2vkf6x2axaplzuaiarf5j',NULL,1795385608044,1795385608,'pending',1795644808,0,0,0,NULL,NULL);
INSERT INTO outbox VALUES(2,'p6lvquxshb4sm53dohqu3nkl2xf5hcts',1,1,'email-disabled','ujp7cspv37n4f7zppa6eo5txhc74yf3o','s47g3svmj6@relay.example',1795385608105,1795385608,'pending',1795644808,0,0,0,NULL,NULL);
INSERT INTO outbox VALUES(3,'thtmbzp74inoysa2bmn5ul54s6b4tami',1,1,'email-enabled','ujp7cspv37n4f7zppa6eo5txhc74yf3o','s47g3svmj6@relay.example',1795385608156,1795385608,'pending',1795644808,0,0,0,NULL,NULL);
CREATE TABLE received_events (
    mark BLOB NOT NULL,
    received_at INTEGER NOT NULL,
    PRIMARY KEY (mark)
) STRICT, WITHOUT ROWID;
CREATE TABLE tombstones (
    mark BLOB NOT NULL,
    day INTEGER NOT NULL,
    deletions INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    PRIMARY KEY (mark, day)
) STRICT, WITHOUT ROWID;
CREATE TABLE retired_names (
    mark BLOB NOT NULL,
    PRIMARY KEY (mark)
) STRICT, WITHOUT ROWID;
CREATE TABLE app_transfers (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    group_id INTEGER NOT NULL REFERENCES app_groups (id) ON DELETE CASCADE,
    from_team INTEGER NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    to_team INTEGER NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    state TEXT NOT NULL CHECK (state IN ('started', 'moving', 'finished')),
    started_at INTEGER NOT NULL,
    moved_at INTEGER,
    ends_at INTEGER
, moved_through INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE transfer_subs (
    transfer_sub TEXT NOT NULL,
    account_id INTEGER NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    target_team INTEGER NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (transfer_sub),
    UNIQUE (account_id, target_team)
) STRICT, WITHOUT ROWID;
CREATE TABLE account_transfers (
    old_account INTEGER NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    transfer_id INTEGER NOT NULL REFERENCES app_transfers (id) ON DELETE CASCADE,
    new_account INTEGER NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    moved_at INTEGER NOT NULL,
    ends_at INTEGER NOT NULL,
    PRIMARY KEY (old_account, transfer_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE app_redirects (
    app_id INTEGER NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    uri TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (app_id, uri)
) STRICT, WITHOUT ROWID;
CREATE TABLE client_keys (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    team_id INTEGER NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    kid TEXT NOT NULL,
    public_key TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (team_id, kid)
) STRICT;
CREATE TABLE authorization_codes (
    code_hash BLOB NOT NULL,
    grant_id INTEGER NOT NULL REFERENCES grants (id) ON DELETE CASCADE,
    generation INTEGER NOT NULL,
    app_id INTEGER NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    redirect_uri TEXT NOT NULL,
    scopes TEXT NOT NULL,
    nonce TEXT,
    challenge BLOB,
    real_user_status INTEGER,
    org_id TEXT,
    authenticated_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (code_hash)
) STRICT, WITHOUT ROWID;
CREATE TABLE refresh_tokens (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    token_hash BLOB NOT NULL UNIQUE,
    code_hash BLOB NOT NULL UNIQUE,
    grant_id INTEGER NOT NULL REFERENCES grants (id) ON DELETE CASCADE,
    generation INTEGER NOT NULL,
    app_id INTEGER NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    scopes TEXT NOT NULL,
    org_id TEXT,
    authenticated_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    used_day INTEGER NOT NULL DEFAULT 0,
    uses INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE access_tokens (
    token_hash BLOB NOT NULL,
    refresh_id INTEGER REFERENCES refresh_tokens (id) ON DELETE CASCADE,
    app_id INTEGER NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    scopes TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (token_hash)
) STRICT, WITHOUT ROWID;
CREATE TABLE inbox_verifications (
    id INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id > 0 AND id < 34359738368),
    inbox_id INTEGER NOT NULL UNIQUE REFERENCES inboxes (id) ON DELETE CASCADE,
    code_hash BLOB NOT NULL,
    link_hash BLOB NOT NULL UNIQUE,
    answer_nonce INTEGER NOT NULL,
    tries INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    confirmed_at INTEGER
) STRICT;
CREATE TABLE notices (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL CHECK (kind IN ('verification', 'sign-in', 'deletion', 'change')),
    canonical_index BLOB NOT NULL,
    user_id INTEGER REFERENCES users (id) ON DELETE SET NULL,
    sent_at INTEGER NOT NULL
) STRICT;
CREATE TABLE page_links (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    purpose TEXT NOT NULL CHECK (purpose IN ('sign-in', 'deletion')),
    token_hash BLOB NOT NULL UNIQUE,
    browser_hash BLOB NOT NULL,
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    inbox_id INTEGER NOT NULL REFERENCES inboxes (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE TABLE page_sessions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    token_hash BLOB NOT NULL UNIQUE,
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    inbox_id INTEGER NOT NULL REFERENCES inboxes (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE TABLE inbox_failures (
    inbox_id INTEGER NOT NULL REFERENCES inboxes (id) ON DELETE CASCADE,
    day INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (inbox_id, day)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS "relay_addresses" (
    local_part TEXT NOT NULL,
    domain TEXT NOT NULL,
    account_id INTEGER NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    is_current INTEGER NOT NULL DEFAULT 1 CHECK (is_current IN (0, 1)),
    forwarding_on INTEGER NOT NULL DEFAULT 1 CHECK (forwarding_on IN (0, 1)),
    created_at INTEGER NOT NULL,
    retired_at INTEGER,
    PRIMARY KEY (local_part, domain),
    UNIQUE (account_id, ordinal),
    CHECK (is_current = 0 OR retired_at IS NULL)
) STRICT, WITHOUT ROWID;
INSERT INTO relay_addresses VALUES('bfcimfydz6','relay.example',2,1,1,1,1795385556,NULL);
INSERT INTO relay_addresses VALUES('s47g3svmj6','relay.example',1,1,1,1,1795385538,NULL);
CREATE TABLE team_mentions (
    day INTEGER NOT NULL,
    team_id INTEGER NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    messages INTEGER NOT NULL,
    PRIMARY KEY (day, team_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE service_minutes (
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    at INTEGER NOT NULL,
    counts TEXT NOT NULL,
    PRIMARY KEY (host, pid, at)
) STRICT, WITHOUT ROWID;
CREATE TABLE leases (
    name TEXT NOT NULL,
    fence INTEGER NOT NULL,
    holder TEXT NOT NULL,
    beat INTEGER NOT NULL,
    PRIMARY KEY (name)
) STRICT, WITHOUT ROWID;
CREATE TABLE endpoint_health (
    endpoint_id INTEGER NOT NULL REFERENCES event_endpoints (id) ON DELETE CASCADE,
    failures INTEGER NOT NULL DEFAULT 0,
    retry_at INTEGER NOT NULL DEFAULT 0,
    last_error TEXT,
    last_success_at INTEGER,
    PRIMARY KEY (endpoint_id)
) STRICT, WITHOUT ROWID;
INSERT INTO endpoint_health VALUES(1,0,0,NULL,NULL);
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('dkim_keys',1);
INSERT INTO sqlite_sequence VALUES('audit',21);
INSERT INTO sqlite_sequence VALUES('policy_changes',1);
INSERT INTO sqlite_sequence VALUES('teams',1);
INSERT INTO sqlite_sequence VALUES('outbound_sources',1);
INSERT INTO sqlite_sequence VALUES('users',3);
INSERT INTO sqlite_sequence VALUES('inboxes',4);
INSERT INTO sqlite_sequence VALUES('app_groups',1);
INSERT INTO sqlite_sequence VALUES('apps',1);
INSERT INTO sqlite_sequence VALUES('accounts',2);
INSERT INTO sqlite_sequence VALUES('grants',2);
INSERT INTO sqlite_sequence VALUES('event_endpoints',1);
INSERT INTO sqlite_sequence VALUES('outbox',3);
INSERT INTO sqlite_sequence VALUES('api_keys',1);
CREATE INDEX outbound_sources_value ON outbound_sources (value);
CREATE INDEX app_groups_team ON app_groups (team_id);
CREATE UNIQUE INDEX app_groups_mail_alone ON app_groups (team_id) WHERE primary_client_id IS NULL;
CREATE INDEX apps_group ON apps (group_id);
CREATE UNIQUE INDEX inboxes_default ON inboxes (user_id) WHERE is_default = 1;
CREATE UNIQUE INDEX inboxes_verified ON inboxes (address_index) WHERE verified_at IS NOT NULL;
CREATE INDEX inboxes_canonical ON inboxes (canonical_index);
CREATE INDEX accounts_user ON accounts (user_id);
CREATE INDEX accounts_inbox ON accounts (inbox_id);
CREATE INDEX stored_tokens_account ON stored_tokens (account_id);
CREATE INDEX stored_tokens_expiry ON stored_tokens (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX daily_counters_day ON daily_counters (day);
CREATE INDEX once_marks_expiry ON once_marks (expires_at);
CREATE INDEX audit_at ON audit (at);
CREATE UNIQUE INDEX dkim_keys_active ON dkim_keys (domain, algorithm) WHERE state = 'active';
CREATE INDEX dkim_keys_revision ON dkim_keys (revision);
CREATE UNIQUE INDEX identity_keys_active ON identity_keys (state) WHERE state IN ('active', 'next');
CREATE INDEX identity_keys_revision ON identity_keys (revision);
CREATE INDEX decisions_time ON decisions (evaluated_at);
CREATE INDEX decisions_team ON decisions (team_id, evaluated_at);
CREATE INDEX decisions_grant ON decisions (grant_id) WHERE grant_id IS NOT NULL;
CREATE INDEX checks_grant ON checks (grant_id, challenge, initiated_at, passed_at, failed_at);
CREATE INDEX checks_time ON checks (initiated_at);
CREATE INDEX consumed_nonces_expiry ON consumed_nonces (expires_at);
CREATE INDEX upgraded_accounts_grant ON upgraded_accounts (grant_id);
CREATE INDEX idempotency_keys_time ON idempotency_keys (begun_at);
CREATE INDEX verified_signups_time ON verified_signups (at);
CREATE INDEX app_signups_slice ON app_signups (slice);
CREATE UNIQUE INDEX policy_names_default ON policy_names (is_default) WHERE is_default = 1;
CREATE INDEX policy_changes_name ON policy_changes (name, id);
CREATE INDEX api_keys_team ON api_keys (team_id);
CREATE INDEX api_keys_revision ON api_keys (revision);
CREATE INDEX rejections_last ON rejections (last_at);
CREATE INDEX outbox_order ON outbox (endpoint_id, account_id, id) WHERE state = 'pending';
CREATE INDEX outbox_account ON outbox (account_id);
CREATE INDEX outbox_ended ON outbox (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX received_events_time ON received_events (received_at);
CREATE INDEX tombstones_day ON tombstones (day);
CREATE UNIQUE INDEX app_transfers_group ON app_transfers (group_id) WHERE state <> 'finished';
CREATE INDEX app_transfers_from ON app_transfers (from_team);
CREATE INDEX app_transfers_to ON app_transfers (to_team);
CREATE INDEX transfer_subs_team ON transfer_subs (target_team);
CREATE INDEX account_transfers_new ON account_transfers (new_account);
CREATE INDEX account_transfers_transfer ON account_transfers (transfer_id);
CREATE INDEX account_transfers_end ON account_transfers (ends_at);
CREATE INDEX authorization_codes_grant ON authorization_codes (grant_id);
CREATE INDEX authorization_codes_app ON authorization_codes (app_id);
CREATE INDEX authorization_codes_expiry ON authorization_codes (expires_at);
CREATE INDEX refresh_tokens_grant ON refresh_tokens (grant_id, app_id);
CREATE INDEX refresh_tokens_app ON refresh_tokens (app_id);
CREATE INDEX access_tokens_refresh ON access_tokens (refresh_id);
CREATE INDEX access_tokens_app ON access_tokens (app_id);
CREATE INDEX access_tokens_expiry ON access_tokens (expires_at);
CREATE INDEX inbox_verifications_expiry ON inbox_verifications (expires_at);
CREATE INDEX notices_sent ON notices (sent_at);
CREATE INDEX notices_inbox ON notices (canonical_index, sent_at);
CREATE INDEX notices_user ON notices (user_id, sent_at);
CREATE INDEX page_links_user ON page_links (user_id);
CREATE INDEX page_links_inbox ON page_links (inbox_id);
CREATE INDEX page_links_expiry ON page_links (expires_at);
CREATE INDEX page_sessions_user ON page_sessions (user_id);
CREATE INDEX page_sessions_inbox ON page_sessions (inbox_id);
CREATE INDEX page_sessions_expiry ON page_sessions (expires_at);
CREATE INDEX inbox_failures_day ON inbox_failures (day);
CREATE UNIQUE INDEX relay_addresses_current ON relay_addresses (account_id) WHERE is_current = 1;
CREATE TRIGGER grants_added AFTER INSERT ON grants WHEN NEW.state = 'authorized' BEGIN
    UPDATE accounts SET has_live_grant = 1 WHERE id = NEW.account_id AND has_live_grant = 0;
END;
CREATE TRIGGER grants_changed AFTER UPDATE OF state, account_id ON grants BEGIN
    UPDATE accounts SET has_live_grant =
        EXISTS (SELECT 1 FROM grants g WHERE g.account_id = accounts.id AND g.state = 'authorized')
        WHERE id IN (OLD.account_id, NEW.account_id);
END;
CREATE TRIGGER grants_removed AFTER DELETE ON grants WHEN OLD.state = 'authorized' BEGIN
    UPDATE accounts SET has_live_grant =
        EXISTS (SELECT 1 FROM grants g WHERE g.account_id = accounts.id AND g.state = 'authorized')
        WHERE id = OLD.account_id;
END;
CREATE TRIGGER accounts_added AFTER INSERT ON accounts BEGIN
    UPDATE accounts SET target_inbox = COALESCE(
        inbox_id, (SELECT d.id FROM inboxes d WHERE d.user_id = NEW.user_id AND d.is_default = 1)) WHERE id = NEW.id;
END;
CREATE TRIGGER accounts_changed AFTER UPDATE OF inbox_id, user_id ON accounts BEGIN
    UPDATE accounts SET target_inbox = COALESCE(
        inbox_id, (SELECT d.id FROM inboxes d WHERE d.user_id = NEW.user_id AND d.is_default = 1)) WHERE id = NEW.id;
END;
CREATE TRIGGER inboxes_added AFTER INSERT ON inboxes WHEN NEW.is_default = 1 BEGIN
    UPDATE accounts SET target_inbox = COALESCE(inbox_id, NEW.id) WHERE user_id = NEW.user_id;
END;
CREATE TRIGGER inboxes_changed AFTER UPDATE OF is_default, user_id ON inboxes BEGIN
    UPDATE accounts SET target_inbox = COALESCE(
        inbox_id, (SELECT d.id FROM inboxes d WHERE d.user_id = accounts.user_id AND d.is_default = 1))
        WHERE user_id IN (OLD.user_id, NEW.user_id);
END;
CREATE TRIGGER inboxes_removed AFTER DELETE ON inboxes BEGIN
    UPDATE accounts SET target_inbox = COALESCE(
        inbox_id, (SELECT d.id FROM inboxes d WHERE d.user_id = accounts.user_id AND d.is_default = 1))
        WHERE user_id = OLD.user_id;
END;
CREATE INDEX inboxes_suspended ON inboxes (suspended_at) WHERE suspended_at IS NOT NULL;
CREATE UNIQUE INDEX inboxes_number ON inboxes (user_id, number);
CREATE INDEX teams_removed ON teams (removed_at) WHERE removed_at IS NOT NULL;
CREATE INDEX accounts_team ON accounts (team_id, id);
CREATE INDEX grants_group ON grants (group_id, id);
CREATE INDEX outbox_due ON outbox (endpoint_id, next_attempt_at, id) WHERE state = 'pending';
CREATE INDEX app_groups_removed ON app_groups (removed_from) WHERE removed_from IS NOT NULL;
CREATE INDEX event_endpoints_removed ON event_endpoints (removed_at) WHERE removed_at IS NOT NULL;
