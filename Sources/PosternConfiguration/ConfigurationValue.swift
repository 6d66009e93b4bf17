// Values of configuration keys: as written in the source, and after the check.

import Accounts
import DNSClient
import HTTP
import InternetMessage
import RelayCore
import SignIn
import Support

/// A value as written in the file, a variable or a flag, before the check of its kind.
enum RawValue: Sendable {
    case scalar(String)
    case list([String])
    case table([String: String])
    case nested([String: [String: String]])
    case null

    fileprivate var isEmptyText: Bool { if case .scalar("") = self { true } else { false } }
}

/// The address at which the HTTP API listens.
package struct ListenAddress: Sendable, Hashable {
    /// A name or an address, without brackets.
    package let host: String
    /// 0 for any free port.
    package let port: Int

    /// Reads `HOST:PORT`; an IPv6 address is in brackets.
    package init?(_ text: String) {
        guard let colon = text.lastIndex(of: ":"),
            let port = Int(text[text.index(after: colon)...]), (0...65535).contains(port),
            text[text.index(after: colon)...].utf8.allSatisfy({ (0x30...0x39).contains($0) })
        else { return nil }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
        } else if host.contains(":") {
            return nil
        }
        guard !host.isEmpty, !host.contains(where: { $0.isWhitespace || $0 == "/" || $0 == "[" })
        else { return nil }
        self.host = String(host)
        self.port = port
    }

    /// As `HOST:PORT`.
    package var text: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

    /// Whether only this machine can reach it.
    package var isLoopback: Bool {
        if host == "localhost" || host == "::1" { return true }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false).map { UInt8($0) }
        return parts.count == 4 && parts[0] == 127 && !parts.contains(nil)
    }
}

/// A checked value.
package enum ConfigurationValue: Sendable, Hashable {
    case none
    case text(String)
    case integer(Int)
    case list([String])
    case table([String: String])
    case providers(ProviderRules)
    case issuers([Issuer])
    case identities([OutgoingIdentity])

    /// The value on one line, for people.
    package var text: String {
        switch self {
        case .none: "(none)"
        case .text(let text): text
        case .integer(let number): "\(number)"
        case .list(let items): "[" + items.joined(separator: ", ") + "]"
        case .table(let items):
            "{"
                + items.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }.joined(
                    separator: ", ") + "}"
        case .issuers(let issuers):
            "{"
                + issuers.map {
                    "\($0.name): {iss: \($0.iss), jwks_\($0.source.rawValue): \($0.location), "
                        + "algorithms: [\($0.algorithms.joined(separator: ", "))], nonce_form: \($0.nonceForm), leeway: \($0.leeway)}"
                }
                .joined(separator: ", ") + "}"
        case .identities(let identities):
            "{"
                + identities.map { identity in
                    let parts =
                        [
                            ("helo", identity.heloName), ("address", identity.address),
                            ("address6", identity.address6),
                        ]
                        .compactMap { name, value in value.map { "\(name): \($0)" } }
                    return "\(identity.name): {\(parts.joined(separator: ", "))}"
                }.joined(separator: ", ") + "}"
        case .providers(let providers):
            "{"
                + providers.rules.sorted { $0.key < $1.key }.map {
                    "\($0.key): \(Self.text($0.value))"
                }.joined(separator: ", ")
                + "}"
        }
    }

    private static func text(_ rule: ProviderRules.Rule) -> String {
        var parts: [String] = []
        if rule.ignoresDots { parts.append("ignore_dots: true") }
        if rule.plusTags { parts.append("plus_tags: true") }
        if let same = rule.sameAs { parts.append("same_as: \(same)") }
        return "{" + parts.joined(separator: ", ") + "}"
    }
}

/// The values that a key accepts.
enum ValueKind: Sendable {
    case text
    /// One line for people: at most 100 characters, none of them invisible or changing the
    /// direction of text.
    case title
    /// IP addresses, each alone or with a port.
    case nameServers
    /// One word that may be in a header field without quotes.
    case token
    /// A domain name, normalised.
    case domain
    case domains
    /// Several texts without white space.
    case words
    /// Several IP addresses and networks.
    case networks
    case integer(ClosedRange<Int>)
    /// Octets, with kB, MB or GB (powers of 1000) or KiB, MiB, GiB allowed after the number.
    case size(ClosedRange<Int>)
    case choice([String])
    /// File permissions in octal.
    case mode
    case address
    /// Local parts and addresses.
    case addresses
    case providers
    /// Names, each with iss, jwks_uri or jwks_file, and optionally
    /// algorithms, nonce_form and leeway.
    case issuers
    /// Names, each with helo, and address, address6 or both.
    case identities
    /// `inet:PORT@HOST`, `inet6:PORT@HOST` or `unix:/path`.
    case socket
    /// `HOST:PORT`, `[ADDRESS]:PORT`, or `off`.
    case listen
    /// `HOST:PORT`, an IPv6 address in brackets.
    case endpoint
    /// `https://HOST` or `http://HOST`, optionally with a port, without a path.
    case webAddress
    /// A page (`https://…`, `http://…`) or a mail address (`mailto:…`): at most 2,000 octets of
    /// ASCII.
    case link
    /// A date, as in 2026-11-30, or `off`.
    case day

    /// A description of the accepted values, in a few words.
    var text: String {
        switch self {
        case .text: "text"
        case .title: "a line of text"
        case .nameServers: "`ADDRESS` or `ADDRESS:PORT`, several"
        case .token: "one word"
        case .domain: "a domain"
        case .domains: "domains"
        case .words: "words"
        case .networks: "addresses and networks"
        case .integer(let range): "\(range.lowerBound) to \(range.upperBound)"
        case .size(let range): "\(range.lowerBound) to \(range.upperBound) octets, as in 256MB"
        case .choice(let choices): choices.map { "`\($0)`" }.joined(separator: ", ")
        case .mode: "permissions in octal, in quotes"
        case .address: "a mail address"
        case .addresses: "pairs of local part and mail address"
        case .providers: "domains with `ignore_dots`, `plus_tags` or `same_as`"
        case .issuers: "names with `iss` and `jwks_uri` or `jwks_file`"
        case .identities: "names with `helo`, and `address`, `address6` or both"
        case .socket: "`inet:PORT@HOST` or `unix:/path`"
        case .listen: "`HOST:PORT` or `off`"
        case .endpoint: "`HOST:PORT`"
        case .webAddress: "`https://HOST`"
        case .link: "`https://…` or `mailto:…`"
        case .day: "a date or `off`"
        }
    }

    /// The value, or a message that describes the accepted values.
    func check(_ raw: RawValue) -> Result<ConfigurationValue, Complaint> {
        do throws(Complaint) {
            return .success(try checked(raw))
        } catch {
            return .failure(error)
        }
    }

    /// The reason why a value is not accepted.
    struct Complaint: Error { let message: String }

    private func checked(_ raw: RawValue) throws(Complaint) -> ConfigurationValue {
        switch self {
        case .text: return .text(try scalar(raw))
        case .token:
            let text = try scalar(raw)
            guard
                text.utf8.allSatisfy({
                    $0 > 0x20 && $0 < 0x7F && !"()<>@,;:\\\"/[]?=".utf8.contains($0)
                })
            else {
                throw Complaint(
                    message: "one word without spaces or any of ()<>@,;:\\\"/[]?= is required")
            }
            return .text(text.lowercased())
        case .domain: return .text(try domain(try scalar(raw)))
        case .domains:
            var domains: [String] = []
            for item in try items(raw) {
                let domain = try domain(item)
                guard !domains.contains(where: { $0.hasSameOctets(as: domain) }) else {
                    throw Complaint(message: "\(domain) is named twice")
                }
                domains.append(domain)
            }
            return .list(domains)
        case .words: return .list(try items(raw))
        case .networks:
            let items = try items(raw)
            guard TrustedProxies(items) != nil else {
                throw Complaint(
                    message: "must be addresses or networks, as in 192.0.2.7 or 2001:db8::/32")
            }
            return .list(items)
        case .integer(let range):
            let text = try scalar(raw)
            guard let number = Int(text), range.contains(number) else {
                throw Complaint(
                    message:
                        "must be a whole number from \(range.lowerBound) to \(range.upperBound)")
            }
            return .integer(number)
        case .size(let range):
            guard let number = Self.size(try scalar(raw)), range.contains(number) else {
                throw Complaint(
                    message:
                        "must be a size from \(range.lowerBound) to \(range.upperBound) octets, as in 40000000 or 256MB"
                )
            }
            return .integer(number)
        case .choice(let choices):
            let text = try scalar(raw)
            guard choices.contains(text) else {
                throw Complaint(message: "must be one of \(choices.joined(separator: ", "))")
            }
            return .text(text)
        case .title:
            let text = try scalar(raw)
            guard !text.isEmpty, text.unicodeScalars.count <= 100 else {
                throw Complaint(message: "must have 1 to 100 characters")
            }
            guard !text.utf8.contains(0x0A), !text.utf8.contains(0x09) else {
                throw Complaint(message: "must be one line")
            }
            if let place = PersonText.place(in: text) {
                throw Complaint(
                    message:
                        "the character at place \(place) is not allowed: it is not seen, changes the direction of text, or is one mark too many"
                )
            }
            return .text(text)
        case .nameServers:
            let value = try Self.words.checked(raw)
            guard case .list(let servers) = value else { return value }
            if let wrong = servers.first(where: { DNSServerAddress($0) == nil }) {
                throw Complaint(
                    message: "\"\(PersonText.cleaned(wrong).text)\" is not ADDRESS or ADDRESS:PORT")
            }
            return value
        case .mode:
            let text = try scalar(raw)
            guard (3...4).contains(text.utf8.count), let mode = Int(text, radix: 8),
                mode & 0o7000 == 0
            else {
                throw Complaint(message: "must be permissions in octal, in quotes, as in \"0660\"")
            }
            guard mode & 0o600 == 0o600 else {
                throw Complaint(message: "must let the owner read and write, as in \"0660\"")
            }
            return .text(text)
        case .address: return .text(try address(try scalar(raw)))
        case .addresses:
            guard case .table(let table) = raw else {
                throw Complaint(message: "must be pairs of local part and address")
            }
            var result: [String: String] = [:]
            for (local, target) in table {
                guard (try? AddrSpec.typed("\(local)@example.com")) != nil else {
                    throw Complaint(message: "\(local) is not a valid local part")
                }
                result[local.lowercased()] = try address(target)
            }
            return .table(result)
        case .providers: return .providers(try providers(raw))
        case .issuers: return .issuers(try issuers(raw))
        case .identities: return .identities(try identities(raw))
        case .endpoint:
            let text = try scalar(raw)
            guard let address = ListenAddress(text), address.port > 0 else {
                throw Complaint(message: "must be HOST:PORT, as in 127.0.0.1:25")
            }
            return .text(text)
        case .webAddress:
            var text = try scalar(raw).lowercased()
            if text.hasSuffix("/") { text.removeLast() }
            guard
                text.wholeMatch(of: /https?:\/\/([a-z0-9.-]+|\[[0-9a-f:]+\])(:[0-9]{1,5})?/) != nil
            else {
                throw Complaint(
                    message: "must be https://HOST, optionally with a port, without a path")
            }
            // Browsers omit the default port in an origin. With the port, this site would look like
            // another one to them.
            for (scheme, port) in [("https://", ":443"), ("http://", ":80")]
            where text.hasPrefix(scheme) && text.hasSuffix(port) {
                text.removeLast(port.utf8.count)
            }
            return .text(text)
        case .day:
            let text = try scalar(raw)
            guard text.hasSameOctets(as: "off") || CivilDate.days(text) != nil else {
                throw Complaint(message: "must be a date, as in 2026-11-30, or off")
            }
            return .text(text)
        case .link:
            let text = try scalar(raw)
            guard text.utf8.count <= 2_000,
                text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && !"<>\"\\^`{|}".utf8.contains($0) }
                ),
                let end = text.utf8.firstIndex(of: UInt8(ascii: ":"))
            else {
                throw Complaint(
                    message:
                        "must be a link, as in https://example.com/help or mailto:help@example.com")
            }
            let rest = text.utf8[end...].dropFirst()
            switch String(decoding: text.utf8[..<end], as: UTF8.self).lowercased() {
            case "https" where rest.starts(with: "//".utf8) && rest.count > 2,
                "http" where rest.starts(with: "//".utf8) && rest.count > 2,
                "mailto" where rest.contains(UInt8(ascii: "@")):
                return .text(text)
            default:
                throw Complaint(
                    message:
                        "must be a link, as in https://example.com/help or mailto:help@example.com")
            }
        case .socket:
            let text = try scalar(raw)
            guard Self.isSocket(text) else {
                throw Complaint(message: "must be inet:PORT@HOST or unix:/path")
            }
            return .text(text)
        case .listen:
            if raw.isEmptyText { return .text("off") }
            let text = try scalar(raw)
            guard text == "off" || ListenAddress(text) != nil else {
                throw Complaint(
                    message: "must be HOST:PORT, as in 127.0.0.1:8890 or [::1]:8890, or off")
            }
            return .text(text)
        }
    }

    private func scalar(_ raw: RawValue) throws(Complaint) -> String {
        guard case .scalar(let text) = raw, !text.isEmpty else {
            throw Complaint(message: "must be a single value")
        }
        return text
    }

    /// The items of a list. A single value is a list of one, and variables use commas.
    private func items(_ raw: RawValue) throws(Complaint) -> [String] {
        let items: [String]
        switch raw {
        case .list(let list): items = list
        case .scalar(let text):
            items = text.split(separator: ",").map { $0.trimmingPrefix(while: \.isWhitespace) }
                .map { String($0.reversed().trimmingPrefix(while: \.isWhitespace).reversed()) }
        case .null: items = []
        default: throw Complaint(message: "must be a list")
        }
        guard items.allSatisfy({ !$0.isEmpty && !$0.contains(where: \.isWhitespace) }) else {
            throw Complaint(message: "an item of the list is empty or contains white space")
        }
        return items
    }

    private func domain(_ text: String) throws(Complaint) -> String {
        guard let domain = HostName(text), domain.labels.count > 1 else {
            throw Complaint(message: "\(text) is not a valid domain name")
        }
        return domain.text
    }

    private func address(_ text: String) throws(Complaint) -> String {
        guard let address = try? AddrSpec.typed(text) else {
            throw Complaint(message: "\(text) is not a valid address")
        }
        return address.wireForm
    }

    /// Entries are added to the standard ones, or replace those of the same domain.
    private func providers(_ raw: RawValue) throws(Complaint) -> ProviderRules {
        var rules = ProviderRules.standard.rules
        let entries: [String: [String: String]]
        switch raw {
        case .nested(let nested): entries = nested
        case .table(let table) where table.isEmpty: entries = [:]
        default: throw Complaint(message: "must be domains with ignore_dots, plus_tags or same_as")
        }
        for (name, settings) in entries {
            for (key, value) in settings where key != "same_as" {
                guard key == "ignore_dots" || key == "plus_tags" else {
                    throw Complaint(
                        message:
                            "unknown key \(key): a provider has ignore_dots, plus_tags and same_as")
                }
                guard value == "true" || value == "false" else {
                    throw Complaint(message: "\(key) must be true or false")
                }
            }
            rules[try domain(name)] = ProviderRules.Rule(
                ignoresDots: settings["ignore_dots"] == "true",
                plusTags: settings["plus_tags"] == "true",
                sameAs: try settings["same_as"].map(domain))
        }
        return ProviderRules(rules)
    }

    private func issuers(_ raw: RawValue) throws(Complaint) -> [Issuer] {
        let entries: [String: [String: String]]
        switch raw {
        case .nested(let nested): entries = nested
        case .table(let table) where table.isEmpty: entries = [:]
        default:
            throw Complaint(
                message:
                    "must be names with iss and jwks_uri or jwks_file, as docs/OPERATING-TEAMS.md shows"
            )
        }
        var result: [Issuer] = []
        for (name, settings) in entries.sorted(by: { $0.key < $1.key }) {
            result.append(try issuer(name, settings))
        }
        return result
    }

    private func issuer(_ name: String, _ settings: [String: String]) throws(Complaint) -> Issuer {
        func wrong(_ what: String) -> Complaint { Complaint(message: "\(name): \(what)") }
        let known = ["iss", "jwks_uri", "jwks_file", "algorithms", "nonce_form", "leeway"]
        if let other = settings.keys.sorted().first(where: { !known.contains($0) }) {
            throw wrong("an issuer has \(known.joined(separator: ", ")), not \(other)")
        }
        guard let iss = settings["iss"], (1...2048).contains(iss.utf8.count),
            iss.unicodeScalars.allSatisfy({ $0.value > 0x20 && $0.value != 0x7F })
        else {
            throw wrong("iss is required, 1 to 2048 octets without spaces and control characters")
        }
        let (source, location): (Issuer.Source, String)
        switch (settings["jwks_uri"], settings["jwks_file"]) {
        case (let uri?, nil):
            if let objection = KeySetAddress.objection(uri, allowingHTTP: false) {
                throw wrong("jwks_uri: \(objection)")
            }
            (source, location) = (.uri, uri)
        case (nil, let file?):
            guard file.hasPrefix("/") else { throw wrong("jwks_file must be an absolute path") }
            (source, location) = (.file, file)
        default: throw wrong("one of jwks_uri and jwks_file is required")
        }
        let algorithms = (settings["algorithms"] ?? "RS256,ES256").split(separator: ",").map {
            $0.filter { !$0.isWhitespace }
        }
        guard !algorithms.isEmpty, Set(algorithms).isSubset(of: ["RS256", "ES256"]) else {
            throw wrong("algorithms must be RS256 or ES256")
        }
        let form = settings["nonce_form"] ?? NonceForm.raw.rawValue
        guard NonceForm(rawValue: form) != nil else {
            throw wrong("nonce_form must be raw or sha256_hex")
        }
        guard let leeway = Int64(settings["leeway"] ?? "\(IssuerConfiguration.defaultLeeway)"),
            (0...IssuerConfiguration.maximumLeeway).contains(leeway)
        else { throw wrong("leeway must be 0 to \(IssuerConfiguration.maximumLeeway) seconds") }
        return Issuer(
            name: name, iss: iss, source: source, location: location,
            algorithms: Array(Set(algorithms)), nonceForm: form,
            leeway: leeway)
    }

    private func identities(_ raw: RawValue) throws(Complaint) -> [OutgoingIdentity] {
        let entries: [String: [String: String]]
        switch raw {
        case .nested(let nested): entries = nested
        case .table(let table) where table.isEmpty: entries = [:]
        default: throw Complaint(message: "must be names with helo, and address, address6 or both")
        }
        guard entries.count <= OutgoingIdentity.most else {
            throw Complaint(message: "there may be \(OutgoingIdentity.most) identities at most")
        }
        var result: [OutgoingIdentity] = []
        for (name, settings) in entries.sorted(by: { $0.key < $1.key }) {
            let identity = try identity(name, settings)
            let taken = result.flatMap(\.addresses)
            if let address = identity.addresses.first(where: { address in
                taken.contains { $0.hasSameOctets(as: address) }
            }) {
                throw Complaint(message: "\(name): another identity has the address \(address)")
            }
            result.append(identity)
        }
        return result
    }

    private func identity(
        _ name: String, _ settings: [String: String]
    ) throws(Complaint) -> OutgoingIdentity {
        func wrong(_ what: String) -> Complaint {
            Complaint(message: "\(PersonText.cleaned(name).text): \(what)")
        }
        guard let checkedName = OutgoingIdentityName(name) else {
            throw wrong(
                "a name has 1 to \(OutgoingIdentityName.maximumLength) lower-case letters, digits and hyphens, and begins with a letter"
            )
        }
        let known = ["helo", "address", "address6"]
        if let other = settings.keys.sorted().first(where: { !known.contains($0) }) {
            throw wrong("an identity has \(known.joined(separator: ", ")), not \(other)")
        }
        guard let helo = settings["helo"] else { throw wrong("helo is required") }
        let heloName: String
        do throws(Complaint) { heloName = try domain(helo) } catch {
            throw wrong("helo: \(error.message)")
        }
        for (key, isVersion6) in [("address", false), ("address6", true)] {
            guard let address = settings[key] else { continue }
            guard TrustedProxies([address]) != nil, !address.utf8.contains(UInt8(ascii: "/")),
                address.utf8.contains(UInt8(ascii: ":")) == isVersion6
            else { throw wrong("\(key) must be an IPv\(isVersion6 ? 6 : 4) address of this host") }
        }
        let identity = OutgoingIdentity(
            name: checkedName, address: settings["address"], address6: settings["address6"],
            heloName: heloName)
        guard !identity.addresses.isEmpty else {
            throw wrong("one of address and address6 is required")
        }
        return identity
    }

    private static func size(_ text: String) -> Int? {
        let units = [
            ("KiB", 1024), ("MiB", 1_048_576), ("GiB", 1_073_741_824), ("kB", 1000),
            ("MB", 1_000_000), ("GB", 1_000_000_000),
        ]
        for (unit, factor) in units where text.hasSuffix(unit) {
            let digits = text.dropLast(unit.count)
            guard let number = Int(digits.last == " " ? digits.dropLast() : digits), number >= 0
            else { return nil }
            let (product, overflow) = number.multipliedReportingOverflow(by: factor)
            return overflow ? nil : product
        }
        return Int(text)
    }

    private static func isSocket(_ text: String) -> Bool {
        // sun_path holds 108 octets.
        if text.hasPrefix("unix:/") { return text.utf8.count > 6 && text.utf8.count <= 5 + 107 }
        for family in ["inet:", "inet6:"] where text.hasPrefix(family) {
            let parts = text.dropFirst(family.count).split(
                separator: "@", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, let port = Int(parts[0]), (1...65535).contains(port) else {
                return false
            }
            return !parts[1].isEmpty && !parts[1].contains(where: \.isWhitespace)
        }
        return false
    }
}
