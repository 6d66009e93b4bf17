// What a message's Received fields tell of the machine it was written on.

import InternetMessage
import MailAuth

enum ClientTraces {
    /// Traces looked for in one message; a message passes a handful of machines. The topmost ones count.
    private static let maximum = 60

    /// Host names and IP addresses of `from` clauses and of originating-client fields, lower case. Names of large providers' servers and
    /// addresses that mean no machine in particular are left out.
    /// - Parameter client: the SMTP client, whose own Received field Postfix has not written yet when the message comes in.
    static func find(in header: HeaderSection, client: SMTPClientIdentity?, relayDomains: [String]) -> [String] {
        var found: [String] = []
        for word in [client?.address, client?.helo].compactMap({ $0 }).flatMap({ words(Array($0.utf8), isReceived: false) })
        where isTelling(word, isHello: true, relayDomains: relayDomains) && !found.contains(word) { found.append(word) }
        for field in header.fields {
            let isReceived = field.isNamed("Received")
            guard
                isReceived || field.isNamed("X-Originating-IP") || field.isNamed("X-Source-IP")
                    || field.isNamed("X-Originating-Host")
            else { continue }
            for (place, word) in words(field.unfoldedBytes, isReceived: isReceived).enumerated()
            where isTelling(word, isHello: place == 0, relayDomains: relayDomains) {
                if !found.contains(word) { found.append(word) }
                if found.count == maximum { return found }
            }
        }
        return found
    }

    /// The words of a `from` clause: up to `by`.
    private static func words(_ value: [UInt8], isReceived: Bool) -> [String] {
        let pieces = value.split { octet in
            !(octet.isASCIILetter || octet.isASCIIDigit || octet >= 0x80 || octet == UInt8(ascii: ".")
                || octet == UInt8(ascii: "-") || octet == UInt8(ascii: ":")
                || octet == UInt8(ascii: "_"))
        }
        var words: [String] = []
        for piece in pieces {
            let word = String(decoding: piece, as: UTF8.self).lowercased()
            if isReceived, word == "by" { break }
            words.append(word.hasPrefix("ipv6:") ? String(word.dropFirst(5)) : word)
        }
        return isReceived && words.first == "from" ? Array(words.dropFirst()) : isReceived ? [] : words
    }

    private static func isTelling(_ word: String, isHello: Bool, relayDomains: [String]) -> Bool {
        let octets = Array(word.utf8)
        guard octets.count >= 6 else { return false }
        let isAddress =
            octets.allSatisfy { $0.isASCIIDigit || $0 == UInt8(ascii: ".") }
            && octets.split(separator: UInt8(ascii: ".")).count == 4
        if isAddress { return !word.hasPrefix("127.") && word != "0.0.0.0" && !word.hasPrefix(".") }
        if octets.filter({ $0 == UInt8(ascii: ":") }).count >= 2 {
            return octets.allSatisfy { $0.hexValue != nil || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".") }
        }
        if octets.contains(UInt8(ascii: ":")) || SharedProviders.isBelow(word) { return false }
        if relayDomains.contains(where: { word == $0 || word.hasSuffix("." + $0) }) { return false }
        // A name without a dot is a machine's only where it looks like one: `desktop-7f3k2`, `annas-mbp`.
        let isDotted = octets.dropFirst().dropLast().contains(UInt8(ascii: "."))
        if !isDotted {
            return octets.contains(UInt8(ascii: "-")) && octets.contains(where: \.isASCIILetter)
                && (isHello || octets.contains(where: \.isASCIIDigit))
        }
        return octets.contains(where: \.isASCIILetter) && word != "localhost.localdomain"
    }
}

extension OutboundSource {
    /// The domain that was registered, or that of the registered address; lower case.
    var registeredDomain: String {
        switch scope {
        case .domain(let domain): domain
        case .address(let address): address.domain.lowercased()
        }
    }
}
