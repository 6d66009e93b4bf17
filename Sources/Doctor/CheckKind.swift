// The kinds of checks: of an installation, of its host and domains, and of the domains that a team
// sends from.

/// A kind of check. Its word is shown and never stored. It is stable, because scripts search for
/// it.
package enum CheckKind: CaseIterable, Sendable, Hashable {
    // The installation and its machine.
    case configuration, relayDomains, keyFile, serviceUser, secretOrFile, database, databaseMode,
        databaseIntegrity, databaseDisk, databaseDurability, databaseSettings,
        databaseReplica,
        disk, clock,
        clocks
    case milter, filter, http, httpKey, httpCertificate, copies, policy, postmaster, userPage,
        removals, receivers,
        parkedEvents, holds
    // Postfix.
    case postfix, postfixSetting, postfixService, postfixOwner, postfixHeaderCheck, postfixBypass,
        postfixConflict, postfixFilter,
        postfixQueue, postfixLog
    case certificate, probe, probeReply, probeBounce, probeDSN, probeQueue, parkedMail
    // The host and its relay domains, as others see them.
    case dns, address, ptr, blockList, warmUp, mx, spf, dkim, dmarc, dmarcTags, dmarcReports,
        mtaSTS, tlsReports
    // A domain that a team sends from.
    case registered, forwarding

    package struct Facts: Sendable {
        /// The first word of the check's name; nil if the name is only its subject.
        package let word: String?
        /// The placeholder for the subject in documents; nil if the check has no subject.
        package let subject: String?
        /// A description of what the check examines.
        package let meaning: String

        fileprivate init(_ word: String?, of subject: String? = nil, _ meaning: String) {
            (self.word, self.subject, self.meaning) = (word, subject, meaning)
        }
    }

    package var facts: Facts {
        switch self {
        case .configuration:
            Facts("configuration", "postern.yaml can be read, and each value is within its limits")
        case .relayDomains:
            Facts(
                "relay_domains",
                "every domain that addresses were issued at is still a relay domain")
        case .keyFile:
            Facts(
                "key file",
                "it belongs to this installation, is not older than its last rotation, and only its owner can read it"
            )
        case .serviceUser:
            Facts(
                "service user",
                "the service's user can read its files, even if another user runs the check")
        case .secretOrFile:
            Facts(
                nil, of: "KEY",
                "the secret or file that a key names can be read (`postern config check`)")
        case .database:
            Facts(
                "database",
                "it can be written, has the schema of this program, and its server behaves as PostgreSQL"
            )
        case .databaseMode: Facts("database mode", "other users cannot read it (SQLite)")
        case .databaseIntegrity: Facts("database integrity", "it is intact (SQLite, up to 4 GiB)")
        case .databaseDisk: Facts("database disk", "its file is on a disk of this machine (SQLite)")
        case .databaseDurability:
            Facts(
                "database durability",
                "the server keeps every confirmed change, after a failover too (PostgreSQL)")
        case .databaseSettings:
            Facts(
                "database settings",
                "the server has room for the locks and connections of all hosts (PostgreSQL)")
        case .databaseReplica:
            Facts(
                "database replica",
                "the standby of `database_replica` answers, and has the changes of the primary")
        case .disk: Facts("disk", "space is left for the database")
        case .clock: Facts("clock", "it is plausible, and synchronized")
        case .clocks: Facts("clocks", "the clocks of all hosts agree")
        case .milter: Facts("milter", "the socket can be made (`postern config check`)")
        case .filter: Facts("filter", "the milter answers")
        case .http: Facts("http", "the HTTP API answers, or could listen (`postern config check`)")
        case .httpKey: Facts("http key", "it belongs to the certificate (`postern config check`)")
        case .httpCertificate:
            Facts(
                "http certificate",
                "that of the HTTP API names this host, and is valid for two weeks more")
        case .copies: Facts("copies", "Postfix accepts copies of messages to several users")
        case .policy: Facts("policy", "one is in force, and none was refused")
        case .postmaster: Facts("postmaster", "someone gets the mail to postmaster and abuse")
        case .userPage: Facts("user page", "users can confirm an inbox themselves")
        case .removals: Facts("removals", "the rows of deleted objects are purged")
        case .receivers:
            Facts(
                "receivers",
                "no endpoint or stream leads into a private network that it may not reach")
        case .parkedEvents: Facts("parked events", "no event was given up, and could be sent again")
        case .holds: Facts("holds", "no hold ends within a week, or should have ended")
        case .postfix:
            Facts("postfix", "its settings can be read, and are those that the relay needs")
        case .postfixSetting:
            Facts("postfix", of: "PARAMETER", "a parameter that is not what the relay needs")
        case .postfixService: Facts("postfix service", "Postfix runs")
        case .postfixOwner:
            Facts("postfix mail_owner", "Postfix and the milter may reach each other's sockets")
        case .postfixHeaderCheck:
            Facts("postfix header check", "the one that hides users' machines is set")
        case .postfixBypass:
            Facts("postfix bypass", "no service of master.cf takes mail past the milter")
        case .postfixConflict: Facts("postfix conflict", "nothing in Postfix contradicts the relay")
        case .postfixFilter:
            Facts("postfix filter", "the other milters in Postfix's configuration answer")
        case .postfixQueue:
            Facts("postfix queue", "it can be read, and contains no mail that was not rewritten")
        case .postfixLog:
            Facts("postfix log", "the file that `delivery.log` names can be read")
        case .certificate:
            Facts("certificate", "that of Postfix names this host, and is valid for two weeks more")
        case .probe: Facts("probe", "messages of the doctor's own can be sent through Postfix")
        case .probeReply:
            Facts("probe reply", "a reply leaves without the user's address or machine")
        case .probeBounce: Facts("probe bounce", "a bounce comes back rebuilt, to the team")
        case .probeDSN: Facts("probe dsn", "Postfix offers senders no delivery notices")
        case .probeQueue:
            Facts("probe queue", "messages of the doctor's that were removed from Postfix's queue")
        case .parkedMail: Facts("parked mail", "other mail in the queue that no milter rewrote")
        case .dns:
            Facts("dns", "a name server answers; if none does, the outside checks are skipped")
        case .address: Facts("address", "the DNS says where the relay sends from")
        case .ptr:
            Facts(
                "ptr", of: "ADDRESS", "its reverse name is the name in HELO, and leads back to it")
        case .blockList: Facts("block list", of: "LIST", "the list does not have this host")
        case .warmUp: Facts("warm-up", "yesterday's mail to a provider did not rise suddenly")
        case .mx: Facts("mx", of: "DOMAIN", "mail to the relay domain comes here")
        case .spf:
            Facts(
                "spf", of: "DOMAIN",
                "SPF covers the addresses that mail leaves from, or can be evaluated")
        case .dkim: Facts("dkim", of: "NAME", "the keys that are in use are published, and strong")
        case .dmarc:
            Facts(
                "dmarc", of: "DOMAIN", "the domain asks for something, and its record can be used")
        case .dmarcTags:
            Facts("dmarc tags", of: "DOMAIN", "no tag of the record asks for less than its policy")
        case .dmarcReports: Facts("dmarc reports", of: "DOMAIN", "someone gets the reports")
        case .mtaSTS: Facts("mta-sts", of: "DOMAIN", "the policy is published, and names the MX")
        case .tlsReports: Facts("tls reports", of: "DOMAIN", "someone gets the reports")
        case .registered:
            Facts("registered", "the domain is a source of the team (`postern source check`)")
        case .forwarding:
            Facts("forwarding", "which mail from the domain is forwarded (`postern source check`)")
        }
    }

    /// The name of a check without a subject.
    package var alone: CheckName { CheckName(kind: self, subject: nil) }

    /// The name of the check of one subject.
    package func of(_ subject: String) -> CheckName { CheckName(kind: self, subject: subject) }
}

/// A kind of check, and its subject.
package struct CheckName: Hashable, Sendable {
    package let kind: CheckKind
    package let subject: String?

    /// The name in the output: `mx relay.example`.
    package var text: String {
        [kind.facts.word, subject].compactMap { $0 }.joined(separator: " ")
    }
}

extension CheckName: Encodable, CustomStringConvertible {
    package var description: String { text }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}
