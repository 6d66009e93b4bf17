// The schema of this program: the files of `Schema` in order. A released file never changes: every database has its checksum.

import Database

extension Migrator {
    /// With every migration of this program.
    package init() { self.init(migrations: Migration.all) }
}

extension Migration {
    /// A file of `Schema`. Its first paragraph describes the migration; the rest is its SQL.
    private init(_ version: Int64, _ name: String, _ file: [UInt8]) {
        let start = file.firstRange(of: Array("\n\n".utf8))?.upperBound ?? 0
        self.init(version: version, name: name, sql: String(decoding: file[start...].dropLast(), as: UTF8.self))
    }

    /// Every migration of this program in order.
    package static let all: [Migration] = [
        Migration(1, "first", PackageResources._001_first_sql),
        Migration(2, "dkim-keys", PackageResources._002_dkim_keys_sql),
        Migration(3, "identity", PackageResources._003_identity_sql),
        Migration(4, "decisions", PackageResources._004_decisions_sql),
        Migration(5, "policies", PackageResources._005_policies_sql),
        Migration(6, "api", PackageResources._006_api_sql),
        Migration(7, "accounts", PackageResources._007_accounts_sql),
        Migration(8, "provider", PackageResources._008_provider_sql),
        Migration(9, "inboxVerification", PackageResources._009_inboxVerification_sql),
        Migration(10, "inboxSuspension", PackageResources._010_inboxSuspension_sql),
        Migration(11, "liveGrants", PackageResources._011_liveGrants_sql),
        Migration(12, "lookups", PackageResources._012_lookups_sql),
        Migration(17, "tokenExpiry", PackageResources._017_tokenExpiry_sql),
        Migration(22, "teamMentions", PackageResources._022_teamMentions_sql),
        Migration(26, "serviceMinutes", PackageResources._026_serviceMinutes_sql),
        Migration(27, "sharedInbox", PackageResources._027_sharedInbox_sql),
        Migration(28, "eventTimes", PackageResources._028_eventTimes_sql),
        Migration(31, "inboxNumbers", PackageResources._031_inboxNumbers_sql),
        Migration(33, "removals", PackageResources._033_removals_sql),
        Migration(34, "transferSteps", PackageResources._034_transferSteps_sql),
        Migration(37, "deliveryLease", PackageResources._037_deliveryLease_sql),
        Migration(38, "removedApps", PackageResources._038_removedApps_sql),
        Migration(39, "cheaperTriggers", PackageResources._039_cheaperTriggers_sql),
        Migration(40, "openID", PackageResources._040_openID_sql),
        Migration(41, "signInCodes", PackageResources._041_signInCodes_sql),
        Migration(42, "passkeys", PackageResources._042_passkeys_sql),
        Migration(43, "signUps", PackageResources._043_signUps_sql),
        Migration(44, "devices", PackageResources._044_devices_sql),
        Migration(46, "liveLists", PackageResources._046_liveLists_sql),
        Migration(47, "accountNotes", PackageResources._047_accountNotes_sql),
        Migration(48, "knownBrowsers", PackageResources._048_knownBrowsers_sql),
        Migration(49, "accountRefusals", PackageResources._049_accountRefusals_sql),
        Migration(50, "forwardingSwitches", PackageResources._050_forwardingSwitches_sql),
        Migration(51, "ownPage", PackageResources._051_ownPage_sql),
        Migration(52, "upstreamIdentities", PackageResources._052_upstreamIdentities_sql),
        Migration(53, "objections", PackageResources._053_objections_sql),
        Migration(54, "velocity", PackageResources._054_velocity_sql),
        Migration(55, "statusDecisions", PackageResources._055_statusDecisions_sql),
        Migration(56, "reviews", PackageResources._056_reviews_sql),
        Migration(57, "earlierSeen", PackageResources._057_earlierSeen_sql),
        Migration(58, "attestedPasskeys", PackageResources._058_attestedPasskeys_sql),
        Migration(59, "complaints", PackageResources._059_complaints_sql),
        Migration(60, "aggregateReports", PackageResources._060_aggregateReports_sql),
        Migration(61, "sharedSignals", PackageResources._061_sharedSignals_sql),
        Migration(62, "riskEvents", PackageResources._062_riskEvents_sql),
        Migration(64, "sourceClaims", PackageResources._064_sourceClaims_sql),
        Migration(65, "issuedKeys", PackageResources._065_issuedKeys_sql),
        Migration(66, "sourceCodes", PackageResources._066_sourceCodes_sql),
        Migration(67, "reviewIndex", PackageResources._067_reviewIndex_sql),
        Migration(68, "servedPolicies", PackageResources._068_servedPolicies_sql),
        Migration(69, "auditSubjects", PackageResources._069_auditSubjects_sql),
        Migration(70, "eventsOfEndpoints", PackageResources._070_eventsOfEndpoints_sql),
        Migration(71, "writtenInboxes", PackageResources._071_writtenInboxes_sql),
        Migration(72, "externalSubjects", PackageResources._072_externalSubjects_sql),
        Migration(73, "unverifiedInboxes", PackageResources._073_unverifiedInboxes_sql),
        Migration(74, "toldRefusals", PackageResources._074_toldRefusals_sql),
        Migration(75, "eventsInOrder", PackageResources._075_eventsInOrder_sql),
        Migration(76, "forReview", PackageResources._076_forReview_sql),
        Migration(77, "transferSubs", PackageResources._077_transferSubs_sql),
        Migration(78, "accountsOfUser", PackageResources._078_accountsOfUser_sql),
    ]
}
