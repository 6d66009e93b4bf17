// The configuration in the form that the rest of the program uses.

import Accounts
import Foundation
import HTTP
import InternetMessage
import RelayCore
import SignIn
import Support

/// All settings. Defaults and their reasons are in `ConfigurationKey`.
package struct Configuration: Sendable {
    /// In lower case; new addresses are at the first.
    package let relayDomains: [String]
    /// Domains of relay addresses that are no longer in use.
    package let formerRelayDomains: [String]
    package let database: DatabaseLocation
    /// A standby of the same server, for listings; nil if there is none.
    package let replica: DatabaseLocation?
    /// Absolute path of the key file.
    package let keyFilePath: String
    package let hostname: String
    package let authservID: String
    package let trustedAuthservIDs: [String]
    /// The address to which mail to postmaster and abuse goes; nil if the operator has set none.
    package let operatorAddress: AddrSpec?
    /// Lists of IP addresses that the doctor queries.
    package let blockLists: [String]
    /// The recipients by local part, which is in lower case.
    package let localRecipients: [String: AddrSpec]
    /// Characters of new relay addresses, 10 … 16.
    package let addressLength: Int
    package let returnPathDays: Int
    /// The smtpd for copies; nil if copies are off.
    package let fanOut: ListenAddress?
    /// Postfix's configuration directory.
    package let postfixDirectory: String
    package let milter: MilterSettings
    package let limits: Limits
    /// The limits at which forwarding to an inbox is suspended; nil for never.
    package let suspension: Suspension?
    /// Postfix's log, an absolute path; nil if the service reads none.
    package let deliveryLogPath: String?
    /// The first day (since 1970, UTC) of this host's warm-up; nil for none.
    package let warmUpDay: Int64?
    /// The identities by which forwards of some teams leave, in the order of names.
    package let outgoingIdentities: [OutgoingIdentity]
    /// The thresholds of the limit by consequence; nil for no limit.
    package let delivery: Delivery?
    package let dns: DNSSettings
    package let providers: ProviderRules
    /// The issuers of the file; the store has these and those that commands add.
    package let issuers: [Issuer]
    package let log: LogSettings
    package let http: HTTPSettings
    /// The name of the service for users.
    package let serviceName: String
    /// The colours of the users' pages; nil for Postern's own.
    package let pageColours: AccentColours?
    /// Days until all data of a user is deleted; 0 for at once.
    package let pageDeletionDays: Int
    package let pageLogoPath: String?
    package let pageLinks: PageLinks
    /// The address at which users reach the HTTP service, without `/` at the end; nil if they
    /// cannot.
    package let publicURL: String?
    /// Further certificate authorities for event endpoints.
    package let eventRootsPath: String?
    /// Whether receivers that teams configure may be at private addresses, and be reached over
    /// http.
    package let allowsPrivateReceivers: Bool
    package let provider: ProviderSettings
    package let mail: MailSettings
    package let verification: VerificationSettings

    package struct MailSettings: Sendable {
        package let submission: ListenAddress
        package let security: Security
        /// Name and absolute path of the password file; nil if no login is configured.
        package let credentials: (user: String, passwordPath: String)?
        /// Further certificate authorities.
        package let rootsPath: String?
        package let from: AddrSpec
        /// Absolute path of the folder with texts; nil for the built-in ones.
        package let templates: String?

        package enum Security: String, Sendable { case none, starttls, implicit }
    }

    package struct VerificationSettings: Sendable {
        package let hours: Int
        /// Wrong codes allowed for one message.
        package let tries: Int
        /// Messages per hour.
        package let perInbox: Int
        package let perUser: Int
        package let perInstallation: Int
        /// Messages per hour to people who are not users yet.
        package let toStrangers: Int
    }

    package struct MilterSettings: Sendable {
        /// In libmilter's form: `inet:PORT@HOST` or `unix:/path`.
        package let socket: String
        /// Permissions of a unix socket.
        package let socketMode: UInt32
        /// Names or numbers of the users of this machine who may connect.
        package let peers: [String]
    }

    package struct Limits: Sendable {
        /// Messages per day, account and direction.
        package let messagesPerDay: Limit
        /// Octets.
        package let messageSize: Limit
        /// Octets of one field.
        package let headerField: Limit
        /// Fields of a message.
        package let headerFields: Limit
        /// Octets of all fields.
        package let headerSize: Limit
        package let hops: Limit
        /// Recipients of a transaction.
        package let recipients: Limit
        /// Octets of memory for replies, over all sessions.
        package let replyMemory: Limit
    }

    package struct Suspension: Sendable, Hashable {
        /// Permanent failures of an inbox within the window.
        package let failures: Int
        /// Their share of the mail forwarded to it, in percent.
        package let percent: Int
        /// The window, today included.
        package let days: Int
    }

    package struct Delivery: Sendable, Hashable {
        /// Different users, and messages of seven days, that any limit needs.
        package let users: Int
        package let messages: Int
        /// For each thousand messages; nil: never.
        package let complaintsPerThousand: Int?
        package let refusalsPerThousand: Int?
        /// Mail is held from this many times these thresholds.
        package let holdFactor: Int
        /// Messages an hour that pass while mail is slowed.
        package let slowedPerHour: Limit
    }

    package struct DNSSettings: Sendable {
        /// `ADDRESS` or `ADDRESS:PORT`; empty means /etc/resolv.conf.
        package let servers: [String]
        package let timeoutMilliseconds: Int
        package let tries: Int
        package let budgetMilliseconds: Int
    }

    package struct HTTPSettings: Sendable {
        /// Nil if there is no HTTP API.
        package let listen: ListenAddress?
        /// Absolute paths of certificate chain and private key; nil without TLS.
        package let certificate: (chain: String, key: String)?
        /// Open at the same time.
        package let connections: Int
        /// For one client.
        package let connectionsPerClient: Int
        /// The proxies whose statement of a client's address is trusted.
        package let proxies: TrustedProxies
        /// Octets.
        package let bodySize: Int
        /// For one API key.
        package let requestsPerSecond: Int
    }

    package struct ProviderSettings: Sendable {
        /// `iss`: a web address without path and final slash; nil if nothing is signed.
        package let issuer: String?
        package let authorizationEndpoint: String?
        /// The page for requests that `/auth/authorize` checked; nil if that endpoint is off.
        package let signInPage: String?
        /// Whether that page is Postern's own.
        package let isPageBuiltIn: Bool
        /// How surely every user must have signed in.
        package let level: SignInLevel
        /// Days that a user waits who lost the second factor; 0 for no such way.
        package let recoveryDays: Int
        /// The people who may become users there.
        package let signUp: SignUpRules
        package let limits: SignInLimits
        /// How long users stay signed in there.
        package let sessions: SessionLifetime
        /// The operator's own OpenID provider; nil if users sign in only with Postern.
        package let upstream: UpstreamSource?
        /// The folder of language catalogues; nil if there is none.
        package let languagesPath: String?
        /// The file of manufacturers' certificates; nil if Postern requests no attestation of
        /// passkeys.
        package let passkeyRootsPath: String?
        package let refreshesPerDay: Int
    }

    package struct LogSettings: Sendable {
        package enum Format: String, Sendable { case text, json }
        /// A level of swift-log: trace, debug, info, notice, warning, error.
        package let level: String
        package let format: Format
    }

    /// Converts checked values. Throws `ConfigurationError` for conflicts between several values.
    package init(_ resolved: ResolvedConfiguration) throws {
        let folder = ((resolved.path as NSString).deletingLastPathComponent as NSString)
        func text(_ key: ConfigurationKey) -> String {
            if case .text(let text) = resolved.value(key) { text } else { "" }
        }
        func integer(_ key: ConfigurationKey) -> Int {
            if case .integer(let number) = resolved.value(key) { number } else { 0 }
        }
        func list(_ key: ConfigurationKey) -> [String] {
            if case .list(let items) = resolved.value(key) { items } else { [] }
        }
        func path(_ key: ConfigurationKey) -> String {
            let text = text(key)
            let absolute = text.hasPrefix("/") ? text : folder.appendingPathComponent(text)
            return absolute.hasPrefix("/")
                ? absolute : FileManager.default.currentDirectoryPath + "/" + absolute
        }
        func limit(_ key: ConfigurationKey) -> Limit {
            Limit(
                max: integer(key),
                onExceed: key.facts.consequence ?? .tryLater(code: 451, enhanced: "4.3.0"))
        }
        relayDomains = list(.relayDomains)
        formerRelayDomains = list(.formerRelayDomains)
        if let both = formerRelayDomains.first(where: relayDomains.contains) {
            throw ConfigurationError(
                .invalidValue, at: resolved.path,
                "former_relay_domains: \(both) is one of relay_domains, which are in use")
        }
        database = try DatabaseLocation(
            text(.database), path: path(.database), connections: integer(.databaseConnections),
            at: resolved.path)
        replica = try DatabaseLocation.replica(
            text(.databaseReplica), of: database, connections: integer(.databaseConnections),
            at: resolved.path)
        keyFilePath = path(.keyFile)
        hostname = text(.hostname)
        authservID = text(.authservID)
        trustedAuthservIDs = list(.trustedAuthservIDs)
        operatorAddress =
            text(.operatorAddress).isEmpty ? nil : try AddrSpec.typed(text(.operatorAddress))
        blockLists = list(.blockLists)
        if case .table(let table) = resolved.value(.localRecipients) {
            localRecipients = try table.mapValues(AddrSpec.typed)
        } else {
            localRecipients = [:]
        }
        addressLength = integer(.addressLength)
        returnPathDays = integer(.returnPathDays)
        guard let smtpd = ListenAddress(text(.fanOutSmtpd)) else {
            throw ConfigurationError(
                .invalidValue, at: resolved.path, "fan_out_smtpd: must be HOST:PORT")
        }
        fanOut = text(.fanOut) == "on" ? smtpd : nil
        postfixDirectory = text(.postfixDirectory)
        milter = MilterSettings(
            socket: text(.milterSocket),
            socketMode: UInt32(text(.milterSocketMode), radix: 8) ?? 0o660,
            peers: list(.milterPeers))
        limits = Limits(
            messagesPerDay: limit(.limitsMessagesPerDay), messageSize: limit(.limitsMessageSize),
            headerField: limit(.limitsHeaderField),
            headerFields: limit(.limitsHeaderFields), headerSize: limit(.limitsHeaderSize),
            hops: limit(.limitsHops),
            recipients: limit(.limitsRecipients), replyMemory: limit(.limitsReplyMemory))
        suspension =
            integer(.suspensionFailures) == 0
            ? nil
            : Suspension(
                failures: integer(.suspensionFailures), percent: integer(.suspensionPercent),
                days: integer(.suspensionDays)
            )
        func threshold(_ key: ConfigurationKey) -> Int? {
            integer(key) == 0 ? nil : integer(key)
        }
        deliveryLogPath = text(.deliveryLog).isEmpty ? nil : path(.deliveryLog)
        warmUpDay = CivilDate.days(text(.deliveryWarmUp))
        delivery =
            text(.deliveryLimit) == "off"
            ? nil
            : Delivery(
                users: integer(.deliveryUsers), messages: integer(.deliveryMessages),
                complaintsPerThousand: threshold(.deliveryComplaints),
                refusalsPerThousand: threshold(.deliveryRefusals),
                holdFactor: integer(.deliveryHoldFactor),
                slowedPerHour: limit(.deliverySlowedPerHour))
        dns = DNSSettings(
            servers: list(.dnsServers), timeoutMilliseconds: integer(.dnsTimeoutMilliseconds),
            tries: integer(.dnsTries),
            budgetMilliseconds: integer(.dnsBudgetMilliseconds))
        if case .providers(let rules) = resolved.value(.providers) {
            providers = rules
        } else {
            providers = .standard
        }
        if case .identities(let list) = resolved.value(.outgoingIdentities) {
            outgoingIdentities = list
        } else {
            outgoingIdentities = []
        }
        if case .issuers(let list) = resolved.value(.issuers) {
            issuers = list
        } else {
            issuers = []
        }
        log = LogSettings(
            level: text(.logLevel), format: LogSettings.Format(rawValue: text(.logFormat)) ?? .text)
        let isOff = text(.httpListen) == "off"
        let (chain, key) = (text(.httpTLSCertificate), text(.httpTLSKey))
        guard chain.isEmpty == key.isEmpty else {
            throw ConfigurationError(
                .invalidValue, at: resolved.path,
                "http.tls_certificate and http.tls_key: set both, or neither")
        }
        http = HTTPSettings(
            listen: isOff ? nil : ListenAddress(text(.httpListen)),
            certificate: chain.isEmpty ? nil : (path(.httpTLSCertificate), path(.httpTLSKey)),
            connections: integer(.httpConnections),
            connectionsPerClient: integer(.httpConnectionsPerClient),
            proxies: TrustedProxies(list(.httpTrustedProxies)) ?? TrustedProxies(),
            bodySize: integer(.httpBodySize),
            requestsPerSecond: integer(.httpRequestsPerSecond))
        if let listen = http.listen, !listen.isLoopback, http.certificate == nil {
            throw ConfigurationError(
                .invalidValue, at: resolved.path,
                "http.listen: API keys would be sent unencrypted to \(text(.httpListen)): set http.tls_certificate and http.tls_key, "
                    + "or listen on 127.0.0.1")
        }
        serviceName = text(.serviceName)
        pageColours =
            try text(.pageColour).isEmpty ? nil : Self.colours(text(.pageColour), resolved.path)
        pageDeletionDays = integer(.pageDeletionDays)
        pageLogoPath = text(.pageLogo).isEmpty ? nil : path(.pageLogo)
        func link(_ key: ConfigurationKey) -> String? { text(key).isEmpty ? nil : text(key) }
        pageLinks = PageLinks(
            help: link(.pageHelp), privacy: link(.pagePrivacy), terms: link(.pageTerms),
            imprint: link(.pageImprint))
        publicURL = text(.httpPublicURL).isEmpty ? nil : text(.httpPublicURL)
        eventRootsPath =
            text(.eventsTrustedCertificates).isEmpty ? nil : path(.eventsTrustedCertificates)
        allowsPrivateReceivers = text(.eventsPrivateReceivers) == "yes"
        let page = text(.providerAuthorizationEndpoint)
        guard page.isEmpty || page.hasPrefix("https://") || page.hasPrefix("http://"),
            !page.contains("#")
        else {
            throw ConfigurationError(
                .invalidValue, at: resolved.path,
                "provider.authorization_endpoint: must be a URL, as in https://id.example/sign-in")
        }
        let isPageBuiltIn = text(.signInPage) == "built-in"
        if isPageBuiltIn, publicURL == nil {
            throw ConfigurationError(
                .invalidValue, at: resolved.path,
                "sign_in.page: the built-in page needs http.public_url, at which browsers reach it"
            )
        }
        let signInPage = isPageBuiltIn ? "\(text(.httpPublicURL))/sign-in" : text(.signInPage)
        let isURL = signInPage.hasPrefix("https://") || signInPage.hasPrefix("http://")
        guard
            signInPage.isEmpty
                || isURL && !signInPage.contains("#")
                    && signInPage.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else {
            throw ConfigurationError(
                .invalidValue, at: resolved.path,
                "sign_in.page: must be built-in, or a URL as in https://sign-in.example/")
        }
        guard page.isEmpty || signInPage.isEmpty else {
            throw ConfigurationError(
                .invalidValue, at: resolved.path,
                "sign_in.page and provider.authorization_endpoint: set one of them, or neither")
        }
        provider = ProviderSettings(
            issuer: text(.providerIssuer).isEmpty ? nil : text(.providerIssuer),
            authorizationEndpoint: page.isEmpty ? nil : page,
            signInPage: signInPage.isEmpty ? nil : signInPage,
            isPageBuiltIn: isPageBuiltIn,
            level: SignInLevel(rawValue: text(.signInRequire)) ?? .any,
            recoveryDays: integer(.signInRecoveryDays),
            signUp: SignUpRules(
                SignUpRules.Mode(rawValue: text(.signInSignUp)) ?? .closed,
                domains: list(.signInSignUpDomains)),
            limits: SignInLimits(
                requestsPerNetwork: integer(.signInMessagesPerNetwork),
                wrongCodesPerNetwork: integer(.signInWrongCodesPerNetwork),
                wrongCodesPerHour: integer(.signInWrongCodesPerHour)),
            sessions: SessionLifetime(
                total: Int64(integer(.signInSessionHours)) * 3_600,
                idle: Int64(integer(.signInIdleMinutes)) * 60),
            upstream: try UpstreamSource(
                text, scopes: list(.signInUpstreamScopes),
                secretPath: path(.signInUpstreamSecretFile),
                hasPage: publicURL != nil, at: resolved.path),
            languagesPath: text(.signInLanguages).isEmpty ? nil : path(.signInLanguages),
            passkeyRootsPath: text(.signInPasskeyRoots).isEmpty ? nil : path(.signInPasskeyRoots),
            refreshesPerDay: integer(.providerRefreshesPerDay))
        let relayDomains = relayDomains
        if let url = publicURL, url.hasPrefix("http://"),
            !Self.isLoopback(String(url.dropFirst("http://".count)))
        {
            throw ConfigurationError(
                .invalidValue, at: resolved.path,
                "http.public_url: users' cookies would be sent unencrypted: use https, except on loopback"
            )
        }
        guard let submission = ListenAddress(text(.mailSubmission)) else {
            throw ConfigurationError(
                .invalidValue, at: resolved.path, "mail.submission: must be HOST:PORT")
        }
        let security =
            MailSettings.Security(rawValue: text(.mailSubmissionTLS))
            ?? (submission.isLoopback ? .none : .starttls)
        let (user, password) = (text(.mailSubmissionUser), text(.mailSubmissionPasswordFile))
        guard user.isEmpty == password.isEmpty else {
            throw ConfigurationError(
                .invalidValue, at: resolved.path,
                "mail.submission_user and mail.submission_password_file: set both, or neither")
        }
        guard user.isEmpty || security != .none || submission.isLoopback else {
            throw ConfigurationError(
                .invalidValue, at: resolved.path,
                "mail.submission_user: the password would be sent unencrypted: set mail.submission_tls"
            )
        }
        mail = MailSettings(
            submission: submission, security: security,
            credentials: user.isEmpty ? nil : (user, path(.mailSubmissionPasswordFile)),
            rootsPath: text(.mailTrustedCertificates).isEmpty
                ? nil : path(.mailTrustedCertificates),
            from: try AddrSpec.typed(text(.mailFrom)),
            templates: text(.mailTemplates).isEmpty ? nil : path(.mailTemplates))
        verification = VerificationSettings(
            hours: integer(.verificationHours), tries: integer(.verificationTries),
            perInbox: integer(.verificationPerInbox),
            perUser: integer(.verificationPerUser),
            perInstallation: integer(.verificationPerInstallation),
            toStrangers: integer(.verificationToStrangers))
        guard relayDomains.contains(mail.from.domain) else {
            throw ConfigurationError(
                .invalidValue, at: resolved.path,
                "mail.from: must be at a relay domain, for which Postern signs its mail")
        }
        for address in [operatorAddress].compactMap({ $0 }) + localRecipients.values {
            guard !relayDomains.contains(where: { DomainName.isEqualOrBelow(address.domain, $0) })
            else {
                throw ConfigurationError(
                    .invalidValue, at: resolved.path,
                    "\(address.wireForm) is at a relay domain: mail to it would come back here")
            }
        }
    }

    private static func colours(
        _ text: String, _ path: String
    ) throws(ConfigurationError) -> AccentColours {
        guard let colour = Colour(text) else {
            throw ConfigurationError(
                .invalidValue, at: path,
                "page.colour: must be a colour, as in '#0f5c55' (in quotation marks)")
        }
        guard let colours = AccentColours(colour) else {
            let contrast = (AccentColours.contrast(of: colour) * 10).rounded(.down) / 10
            throw ConfigurationError(
                .invalidValue, at: path,
                "page.colour: \(colour) has a contrast of \(contrast) to 1 with the page, and \(AccentColours.leastContrast) is the least that can "
                    + "be read (WCAG 2.2, 1.4.3): choose a darker one")
        }
        return colours
    }

    /// Whether `HOST` or `HOST:PORT` is this machine only.
    private static func isLoopback(_ authority: String) -> Bool {
        (ListenAddress(authority) ?? ListenAddress(authority + ":80"))?.isLoopback ?? false
    }
}
