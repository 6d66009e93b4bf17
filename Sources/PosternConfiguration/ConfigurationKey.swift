// Every configuration key; the fixed facts about each are in ConfigurationKey+Facts.swift.

/// One key of postern.yaml. The raw value is the key, with dots between levels.
package enum ConfigurationKey: String, Sendable, Hashable, CaseIterable {
    case relayDomains = "relay_domains"
    case formerRelayDomains = "former_relay_domains"
    case database
    case databaseConnections = "database_connections"
    case databaseReplica = "database_replica"
    case keyFile = "key_file"
    case hostname
    case authservID = "authserv_id"
    case trustedAuthservIDs = "trusted_authserv_ids"
    case operatorAddress = "operator_address"
    case localRecipients = "local_recipients"
    case blockLists = "block_lists"
    case addressLength = "address_length"
    case returnPathDays = "return_path_days"
    case fanOut = "fan_out"
    case fanOutSmtpd = "fan_out_smtpd"
    case postfixDirectory = "postfix_directory"

    case milterSocket = "milter.socket"
    case milterSocketMode = "milter.socket_mode"
    case milterPeers = "milter.peers"

    case limitsMessagesPerDay = "limits.messages_per_day"
    case limitsMessageSize = "limits.message_size"
    case limitsHeaderField = "limits.header_field"
    case limitsHeaderFields = "limits.header_fields"
    case limitsHeaderSize = "limits.header_size"
    case limitsHops = "limits.hops"
    case limitsRecipients = "limits.recipients"
    case limitsReplyMemory = "limits.reply_memory"

    case suspensionFailures = "suspension.failures"
    case suspensionPercent = "suspension.percent"
    case suspensionDays = "suspension.days"

    case deliveryLog = "delivery.log"
    case deliveryLimit = "delivery.limit"
    case deliveryUsers = "delivery.users"
    case deliveryMessages = "delivery.messages"
    case deliveryComplaints = "delivery.complaints_per_thousand"
    case deliveryRefusals = "delivery.refusals_per_thousand"
    case deliveryHoldFactor = "delivery.hold_factor"
    case deliverySlowedPerHour = "delivery.slowed_per_hour"
    case deliveryWarmUp = "delivery.warm_up"
    case outgoingIdentities = "outgoing.identities"

    case dnsServers = "dns.servers"
    case dnsTimeoutMilliseconds = "dns.timeout_ms"
    case dnsTries = "dns.tries"
    case dnsBudgetMilliseconds = "dns.budget_ms"

    case providers
    case issuers
    case serviceName = "service_name"

    case pageColour = "page.colour"
    case pageLogo = "page.logo"
    case pageDeletionDays = "page.deletion_days"
    case pageHelp = "page.links.help"
    case pagePrivacy = "page.links.privacy"
    case pageTerms = "page.links.terms"
    case pageImprint = "page.links.imprint"

    case httpListen = "http.listen"
    case httpPublicURL = "http.public_url"
    case httpTLSCertificate = "http.tls_certificate"
    case httpTLSKey = "http.tls_key"
    case httpConnections = "http.connections"
    case httpConnectionsPerClient = "http.connections_per_client"
    case httpTrustedProxies = "http.trusted_proxies"
    case httpBodySize = "http.body_size"
    case httpRequestsPerSecond = "http.requests_per_second"

    case mailSubmission = "mail.submission"
    case mailSubmissionTLS = "mail.submission_tls"
    case mailSubmissionUser = "mail.submission_user"
    case mailSubmissionPasswordFile = "mail.submission_password_file"
    case mailTrustedCertificates = "mail.trusted_certificates"
    case mailFrom = "mail.from"
    case mailTemplates = "mail.templates"

    case providerIssuer = "provider.issuer"
    case providerAuthorizationEndpoint = "provider.authorization_endpoint"
    case providerRefreshesPerDay = "provider.refreshes_per_day"

    case signInPage = "sign_in.page"
    case signInRequire = "sign_in.require"
    case signInRecoveryDays = "sign_in.recovery_days"
    case signInSignUp = "sign_in.sign_up"
    case signInSignUpDomains = "sign_in.sign_up_domains"
    case signInUpstreamIssuer = "sign_in.upstream.issuer"
    case signInMessagesPerNetwork = "sign_in.messages_per_network"
    case signInWrongCodesPerNetwork = "sign_in.wrong_codes_per_network"
    case signInWrongCodesPerHour = "sign_in.wrong_codes_per_hour"
    case signInUpstreamClientID = "sign_in.upstream.client_id"
    case signInUpstreamSecretFile = "sign_in.upstream.secret_file"
    case signInUpstreamName = "sign_in.upstream.name"
    case signInUpstreamScopes = "sign_in.upstream.scopes"
    case signInUpstreamLinks = "sign_in.upstream.links"
    case signInUpstreamAddresses = "sign_in.upstream.addresses"
    case signInUpstreamOnly = "sign_in.upstream.only"
    case signInSessionHours = "sign_in.session_hours"
    case signInIdleMinutes = "sign_in.idle_minutes"
    case signInPasskeyRoots = "sign_in.passkey_roots"
    case signInLanguages = "sign_in.languages"

    case eventsTrustedCertificates = "events.trusted_certificates"
    case eventsPrivateReceivers = "events.private_receivers"

    case verificationHours = "verification.hours"
    case verificationTries = "verification.tries"
    case verificationPerInbox = "verification.per_inbox"
    case verificationPerUser = "verification.per_user"
    case verificationPerInstallation = "verification.per_installation"
    case verificationToStrangers = "verification.to_strangers"

    case logLevel = "log.level"
    case logFormat = "log.format"

    /// The source of a value that is not set.
    package enum Default: Sendable {
        /// The key has no default: it must be set.
        case required
        /// Absent.
        case absent
        case value(ConfigurationValue)
        /// Derived from other values when the configuration is read; the text explains how.
        case derived(String)
    }

    /// The fixed facts about a key.
    package struct Facts: Sendable {
        let kind: ValueKind
        package let standard: Default
        /// The reply to the sender beyond the limit; nil if the key is not a limit.
        let consequence: Limit.Consequence?
        /// Whether a change takes effect with the next message, decision or connection after
        /// SIGHUP; otherwise at the next start.
        package let isLive: Bool
        /// The purpose of the key, and the reason for the default.
        package let reason: String

        init(
            _ kind: ValueKind, _ standard: Default, beyond consequence: Limit.Consequence? = nil,
            live isLive: Bool = false,
            _ reason: String
        ) {
            self.kind = kind
            self.standard = standard
            self.consequence = consequence
            self.isLive = isLive
            self.reason = reason
        }

        /// The reply beyond the limit, for example `452 4.7.1`; nil if the key is not a limit.
        package var beyond: String? { consequence?.text }

        /// The accepted values, in a few words.
        package var values: String { kind.text }

        /// The default in the form of the file.
        package var standardText: String {
            switch standard {
            case .required: "(must be set)"
            case .absent: "(none)"
            case .derived(let how): "(\(how))"
            case .value(let value):
                if case .mode = kind { "\"\(value.text)\"" } else { value.text }
            }
        }
    }

    /// The section and the rest of the path; the section is nil for a key at the top level.
    package var place: (section: String?, name: String) {
        let parts = rawValue.split(separator: ".", maxSplits: 1).map(String.init)
        return parts.count == 2 ? (parts[0], parts[1]) : (nil, rawValue)
    }

    /// The environment variable for the key: with the prefix `POSTERN_`, capitals, and underscores.
    package var variable: String {
        "POSTERN_" + rawValue.uppercased().map { $0 == "." ? "_" : String($0) }.joined()
    }
}
