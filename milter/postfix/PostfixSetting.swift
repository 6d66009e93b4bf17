// One Postfix setting that the relay needs, as data.

/// How a required value is combined with the operator's value.
package enum SettingRule: Sendable, Hashable {
    /// The value must be exactly this.
    case exactly(String)
    /// A number, or a time in seconds, that must not be lower; 0 means "no limit" and is
    /// kept if `zeroIsUnlimited`.
    case atLeast(Int, zeroIsUnlimited: Bool)
    /// A time (`30s`, `5m`) that must not be shorter, in seconds.
    case atLeastSeconds(Int)
    /// A list that must contain these items; the operator's items stay in their order,
    /// and ours come after them.
    case containing([String])
    /// A list that must begin with these items, because its first match wins; the operator's
    /// items follow in their order.
    case beginningWith([String])
    /// Set only if the operator has no value or `weak`; any other value is equally good or better.
    case unless(weak: [String], then: String)
    /// C escapes side by side (`\0\200`) that must include this one.
    case characters(String)
}

/// A setting of main.cf with the reason why the relay needs it.
package struct PostfixSetting: Sendable, Hashable {
    /// The parameter's name.
    package let name: String
    package let rule: SettingRule
    /// The reason, in words that an operator understands.
    package let reason: String

    package init(_ name: String, _ rule: SettingRule, _ reason: String) {
        self.name = name
        self.rule = rule
        self.reason = reason
    }

    /// The value if the operator has none.
    package var value: String {
        switch rule {
        case .exactly(let value), .unless(_, let value), .characters(let value): value
        case .atLeast(let number, _): String(number)
        case .atLeastSeconds(let seconds): "\(seconds)s"
        case .containing(let items), .beginningWith(let items): items.joined(separator: ", ")
        }
    }
}

/// The inputs of the settings.
package struct PostfixInputs: Sendable, Hashable {
    /// The relay domains, ASCII (A-labels), in the order of postern.yaml.
    package var relayDomains: [String]
    /// The address at which Postern listens, in Postfix's form: `unix:/run/postern/milter.sock`,
    /// `inet:127.0.0.1:8891`.
    package var socket: String
    /// `myhostname`, as in Postfix's own Received.
    package var hostName: String
    /// `mail_name`, as in the same field.
    package var mailName: String
    /// The path of the header check, as main.cf refers to it.
    package var headerChecksFile: String
    /// HOST:PORT of the smtpd for copies, as in master.cf; nil for none.
    package var fanOut: String?
    /// The smtpd services that accept mail for the relay domains from other servers, as
    /// `name/type`.
    package var incoming = ["smtp/inet"]
    /// Domains that were relay domains and are no longer used.
    package var formerDomains: [String] = []
    /// The addresses at which Postern listened after an earlier set-up, in Postfix's form.
    package var formerSockets: [String] = []
    /// The outgoing identities besides Postfix's own.
    package var outgoing: [OutgoingService] = []
    /// Postfix's smtpd_recipient_limit: an error limit must be above it.
    package var recipientLimit = 1_000

    package init(
        relayDomains: [String], socket: String, hostName: String, mailName: String = "Postfix",
        headerChecksFile: String = "/etc/postfix/postern_header_checks", fanOut: String? = nil
    ) {
        self.fanOut = fanOut
        self.relayDomains = relayDomains
        self.socket = socket
        self.hostName = hostName
        self.mailName = mailName
        self.headerChecksFile = headerChecksFile
    }
}

/// A parameter of one service in master.cf (`-o name=value`).
package struct MasterSetting: Sendable, Hashable {
    /// `name/type`, as `postconf -P` writes it: `cleanup/unix`.
    package let service: String
    package let name: String
    package let value: String
    package let reason: String
}
