// Writes envelope senders in few bits, so that most fit into a return path and need no row in the
// store.

import InternetMessage
import Support

/// What the relay knows of the senders of an account's mail. A sender is written against it.
package struct SenderContext: Sendable {
    /// Domains of the team's sources, and those paired with them: lower-case A-labels.
    package let domains: [String]
    /// The relay addresses that the account has or had. Bulk senders write the recipient into the
    /// envelope sender ("VERP").
    package let relayAddresses: [AddrSpec]

    package init(domains: [String], relayAddresses: [AddrSpec]) {
        self.domains = domains
        self.relayAddresses = relayAddresses
    }

    package init(sources: [RegisteredSource], relayAddresses: [AddrSpec]) {
        self.init(
            domains: sources.flatMap { source in
                let own =
                    switch source.scope {
                    case .domain(let domain): domain
                    case .address(let address): address.domain.lowercased()
                    }
                return [own] + (source.pairedEnvelopeDomain.map { [$0] } ?? [])
            },
            relayAddresses: relayAddresses)
    }
}

extension RelayAccount {
    /// What the senders of this account's mail are written against.
    package var senderContext: SenderContext {
        SenderContext(sources: sources, relayAddresses: [relayAddress])
    }
}

/// A number that holds one address. Its symbols are strings of octets in classes: a
/// class is written with the share of what has occurred of it so far in this address ("ANS" with
/// exact integers), and a member of a class in equal shares. So a run of digits costs little more
/// than digits need, and the same holds for hexadecimal and other ids.
enum SenderCode {
    /// Base32 characters of a sender that is written against a context.
    static let digits = 28
    /// Base32 characters of a sender that is written whole.
    static let wholeDigits = 33
    /// Octets of an address, and of what a hostile number may be read as: RFC 5321 section 4.5.3.1.
    private static let maximumLength = 64 + 1 + 255

    /// The kinds of symbols. The order and the numbers are part of the code.
    private enum Class: Int, CaseIterable {
        case end
        /// The recipient: `local=domain`, or the local part.
        case recipient
        case word
        case lowHex, low, digit, highHex, high
        case hyphen, dot, underscore, plus, equals, at
        /// Any other printable octet of ASCII.
        case other

        /// How often it is taken to have occurred before the first symbol.
        var first: UInt32 {
            switch self {
            case .low: 9
            case .lowHex, .digit: 6
            case .hyphen: 4
            case .word, .dot: 3
            case .end, .recipient, .high, .equals: 2
            case .highHex, .underscore, .plus, .at, .other: 1
            }
        }

        /// Whether one occurrence makes the next more likely.
        var repeats: Bool {
            switch self {
            case .end, .recipient, .at: false
            default: true
            }
        }
    }

    private static let increment: UInt32 = 6

    private struct Symbol {
        let kind: Class
        let member: Int
    }

    private static let words: [[UInt8]] = [
        "bounces", "bounce", "return", "noreply", "no-reply", "newsletter", "owner", "prvs=",
        "SRS0=", "request", ".com", ".net", ".org", ".co",
    ].map { Array($0.utf8) }

    /// The members of the classes that have one octet each.
    private static let octets: [Class: [UInt8]] = {
        var members: [Class: [UInt8]] = [
            .lowHex: Array("abcdef".utf8), .low: Array("ghijklmnopqrstuvwxyz".utf8),
            .digit: Array("0123456789".utf8), .highHex: Array("ABCDEF".utf8),
            .high: Array("GHIJKLMNOPQRSTUVWXYZ".utf8), .hyphen: Array("-".utf8),
            .dot: Array(".".utf8), .underscore: Array("_".utf8), .plus: Array("+".utf8),
            .equals: Array("=".utf8), .at: Array("@".utf8),
        ]
        let known = Set(members.values.joined())
        members[.other] = (0x20...0x7E).filter { !known.contains($0) }
        return members
    }()

    private static let symbols: [UInt8: Symbol] = {
        var symbols: [UInt8: Symbol] = [:]
        for (kind, members) in octets {
            for (member, octet) in members.enumerated() {
                symbols[octet] = Symbol(kind: kind, member: member)
            }
        }
        return symbols
    }()

    // MARK: Writing

    /// Without the known domain, of which only labels before it are written, and with the relay
    /// address as one symbol.
    /// - Returns: nil if the domain is not known, if the address has octets beyond printable ASCII,
    ///   or if it needs more characters.
    static func encode(_ sender: AddrSpec, context: SenderContext) -> [UInt8]? {
        let (local, domain) = parts(sender)
        guard let relay = context.relayAddresses.first, !local.contains(at),
            let known = context.domains.lazy.map({ Array($0.utf8) })
                .filter({ isWithin(domain, $0) }).max(by: { $0.count < $1.count })
        else { return nil }
        let labels = domain.count == known.count ? [] : [at] + domain.dropLast(known.count + 1)
        return number(local + labels, recipient: names(relay), digits: digits)
    }

    /// - Returns: nil if the address has octets beyond printable ASCII, or needs more characters.
    static func encodeWhole(_ sender: AddrSpec) -> [UInt8]? {
        let (local, domain) = parts(sender)
        guard !local.contains(at) else { return nil }
        return number(local + [at] + domain, recipient: [], digits: wholeDigits)
    }

    private static let at = UInt8(ascii: "@")

    private static func parts(_ address: AddrSpec) -> (local: [UInt8], domain: [UInt8]) {
        (Array(address.localPart.utf8), Array(address.domain.lowercased().utf8))
    }

    /// Whether a domain is another one or lies below it.
    private static func isWithin(_ domain: [UInt8], _ parent: [UInt8]) -> Bool {
        guard !parent.isEmpty, domain.count >= parent.count,
            domain.suffix(parent.count).elementsEqual(parent)
        else { return false }
        return domain.count == parent.count
            || domain[domain.count - parent.count - 1] == UInt8(ascii: ".")
    }

    private static func names(_ relay: AddrSpec) -> [[UInt8]] {
        let (local, domain) = parts(relay)
        return [local + [UInt8(ascii: "=")] + domain, local]
    }

    private static func symbols(of text: [UInt8], recipient: [[UInt8]]) -> [Symbol]? {
        var list: [Symbol] = []
        var rest = text[...]
        while let octet = rest.first {
            if let member = recipient.firstIndex(where: { !$0.isEmpty && rest.starts(with: $0) }) {
                list.append(Symbol(kind: .recipient, member: member))
                rest = rest.dropFirst(recipient[member].count)
            } else if let member = words.firstIndex(where: { rest.starts(with: $0) }) {
                list.append(Symbol(kind: .word, member: member))
                rest = rest.dropFirst(words[member].count)
            } else if let symbol = symbols[octet] {
                list.append(symbol)
                rest = rest.dropFirst()
            } else {
                return nil
            }
        }
        return list
    }

    /// The last symbol is written first, as reading takes off what was put on last.
    private static func number(
        _ text: [UInt8], recipient: [[UInt8]], digits: Int
    ) -> [UInt8]? {
        guard var list = symbols(of: text, recipient: recipient) else { return nil }
        list.append(Symbol(kind: .end, member: 0))
        var shares = Shares()
        let steps = list.map { symbol in
            let step = shares.step(symbol.kind)
            shares.add(symbol.kind)
            return step
        }
        var number = Number()
        for (symbol, step) in zip(list, steps).reversed() {
            number.multiply(by: memberCount(symbol.kind), adding: UInt32(symbol.member))
            let rest = number.divide(by: step.share)
            number.multiply(by: step.total, adding: step.start + rest)
            guard number.isBelow(bits: UInt32(digits) * 5) else { return nil }
        }
        return number.written(digits: digits)
    }

    private static func memberCount(_ kind: Class) -> UInt32 {
        switch kind {
        case .recipient: 2
        case .word: UInt32(words.count)
        default: UInt32(octets[kind]?.count ?? 1)
        }
    }

    // MARK: Reading

    /// The addresses that the characters can mean: one for each domain and relay address. Which
    /// one is meant, the caller knows from its hash.
    static func decode(_ text: some Sequence<UInt8>, context: SenderContext) -> [AddrSpec] {
        var found: [AddrSpec] = []
        for relay in context.relayAddresses {
            guard let (local, labels) = read(text, recipient: names(relay)) else { continue }
            found += context.domains.map { domain in
                AddrSpec(
                    localPart: local, domain: labels.map { "\($0).\(domain)" } ?? domain)
            }
        }
        return found
    }

    /// The address that is written whole; nil if the characters are no address.
    static func decodeWhole(_ text: some Sequence<UInt8>) -> AddrSpec? {
        guard let (local, domain) = read(text, recipient: []), let domain else { return nil }
        return AddrSpec(localPart: local, domain: domain)
    }

    /// The text before the at sign, and the text behind it, if there is one.
    private static func read(
        _ text: some Sequence<UInt8>, recipient: [[UInt8]]
    ) -> (before: String, after: String?)? {
        guard var number = Number(text) else { return nil }
        var shares = Shares()
        var out: [UInt8] = []
        while out.count <= maximumLength {
            let slot = number.divide(by: shares.total)
            guard let (kind, step) = shares.find(slot) else { return nil }
            number.multiply(by: step.share, adding: slot - step.start)
            let member = Int(number.divide(by: memberCount(kind)))
            shares.add(kind)
            switch kind {
            case .end:
                guard number.isZero else { return nil }
                let parts = out.split(separator: at, maxSplits: 1, omittingEmptySubsequences: false)
                    .map { String(decoding: $0, as: UTF8.self) }
                return (parts[0], parts.count > 1 ? parts[1] : nil)
            case .recipient:
                guard member < recipient.count else { return nil }
                out += recipient[member]
            case .word: out += words[member]
            default:
                guard let members = octets[kind], member < members.count else { return nil }
                out.append(members[member])
            }
        }
        return nil
    }

    // MARK: Arithmetic

    /// The classes' shares, which follow what has occurred.
    private struct Shares {
        private var counts = Class.allCases.map(\.first)
        private(set) var total: UInt32

        init() { total = counts.reduce(0, +) }

        struct Step {
            let start, share, total: UInt32
        }

        func step(_ kind: Class) -> Step {
            Step(
                start: counts[..<kind.rawValue].reduce(0, +), share: counts[kind.rawValue],
                total: total)
        }

        /// - Parameter slot: below `total`.
        func find(_ slot: UInt32) -> (Class, Step)? {
            var start: UInt32 = 0
            for kind in Class.allCases {
                let share = counts[kind.rawValue]
                if slot < start + share {
                    return (kind, Step(start: start, share: share, total: total))
                }
                start += share
            }
            return nil
        }

        mutating func add(_ kind: Class) {
            guard kind.repeats else { return }
            counts[kind.rawValue] += SenderCode.increment
            total += SenderCode.increment
        }
    }

    /// A natural number of some 190 bits.
    private struct Number {
        /// 32 bits each, the least first.
        private var limbs = [UInt32](repeating: 0, count: 6)

        init() {}

        /// Reads base32 characters; nil for others.
        init?(_ text: some Sequence<UInt8>) {
            for character in text {
                guard let value = Base32.number([character]) else { return nil }
                multiply(by: 32, adding: UInt32(value))
            }
        }

        var isZero: Bool { limbs.allSatisfy { $0 == 0 } }

        func isBelow(bits: UInt32) -> Bool {
            let (limb, rest) = (Int(bits / 32), bits % 32)
            return limbs[limb] >> rest == 0 && limbs[(limb + 1)...].allSatisfy { $0 == 0 }
        }

        mutating func multiply(by factor: UInt32, adding summand: UInt32) {
            var carry = UInt64(summand)
            for index in limbs.indices {
                carry += UInt64(limbs[index]) * UInt64(factor)
                limbs[index] = UInt32(truncatingIfNeeded: carry)
                carry >>= 32
            }
        }

        /// Divides, and returns what is left.
        mutating func divide(by divisor: UInt32) -> UInt32 {
            var rest: UInt64 = 0
            for index in limbs.indices.reversed() {
                rest = rest << 32 | UInt64(limbs[index])
                limbs[index] = UInt32(rest / UInt64(divisor))
                rest %= UInt64(divisor)
            }
            return UInt32(rest)
        }

        func written(digits: Int) -> [UInt8] {
            var rest = self
            return Array(
                (0..<digits).map { _ in Base32.encode(UInt64(rest.divide(by: 32)), digits: 1)[0] }
                    .reversed())
        }
    }
}
