// Follows one message through the lines of Postfix's and Postern's logs. Pure.

import Support

/// Finds all log lines about the messages of a clue: a queue id, a Message-ID, the reference of a
/// refusal, or an address.
package struct LogTrace {
    /// The maximum number of identifiers to follow. A clue that leads to more, such as the address
    /// of a busy team, is not useful.
    package static let maximumIdentifiers = 2_000

    /// The identifiers found so far, in lower case if case does not matter.
    private var known: Set<[UInt8]> = []
    /// Whether more identifiers were found than are followed.
    package private(set) var isCut = false

    package init() {}

    /// The lines about the messages, in their order.
    /// - Parameters:
    ///   - clue: in the form that the operator has; case does not matter.
    ///   - lines: without their line ends.
    package mutating func lines(
        about clue: String, in lines: [ArraySlice<UInt8>]
    ) -> [ArraySlice<UInt8>] {
        let wanted = Self.trimmed(clue)
        guard !wanted.isEmpty else { return [] }
        var chosen = Set<Int>()
        let ids = lines.map(Self.identifiers)
        for (place, line) in lines.enumerated() where Self.contains(line, wanted) {
            chosen.insert(place)
            add(ids[place])
        }
        // Repeated until no line is added: a copy leads to its own lines, these to the delivery,
        // and that to a bounce.
        var before = -1
        while before != chosen.count {
            before = chosen.count
            for (place, own) in ids.enumerated()
            where !chosen.contains(place) && own.contains(where: known.contains) {
                chosen.insert(place)
                add(own)
            }
        }
        return chosen.sorted().map { lines[$0] }
    }

    private mutating func add(_ identifiers: [[UInt8]]) {
        for identifier in identifiers where !known.contains(identifier) {
            guard known.count < Self.maximumIdentifiers else {
                isCut = true
                return
            }
            known.insert(identifier)
        }
    }

    /// Whether a clue can only be a queue id of Postfix: hexadecimal, or the long
    /// form, which has no vowels.
    package static func isQueueID(_ clue: String) -> Bool {
        let octets = Array(clue.utf8)
        guard (6...20).contains(octets.count), octets.contains(where: \.isASCIIDigit) else {
            return false
        }
        let isShort = octets.allSatisfy { $0.isASCIIDigit || (0x41...0x46).contains($0) }
        let isLong =
            octets.count >= 11
            && octets.allSatisfy {
                $0.isASCIIDigit || $0.isASCIILetter && !"aeiou".utf8.contains($0.asciiLowercased)
            }
        return isShort || isLong
    }

    /// The clue without the brackets of a Message-ID or a reference.
    private static func trimmed(_ clue: String) -> [UInt8] {
        var octets = clue.utf8.map(\.asciiLowercased)[...]
        while let first = octets.first,
            [0x20, 0x09, UInt8(ascii: "<"), UInt8(ascii: "[")].contains(first)
        {
            octets.removeFirst()
        }
        while let last = octets.last,
            [0x20, 0x09, UInt8(ascii: ">"), UInt8(ascii: "]"), UInt8(ascii: ":")].contains(last)
        {
            octets.removeLast()
        }
        return Array(octets)
    }

    /// Whether a line contains the words, and not as a part of longer ones.
    private static func contains(_ line: ArraySlice<UInt8>, _ words: [UInt8]) -> Bool {
        var start = line.startIndex
        while line.endIndex - start >= words.count {
            guard
                let found = (start...(line.endIndex - words.count)).first(where: { place in
                    line[place].asciiLowercased == words[0]
                        && line[place..<place + words.count].lazy.map(\.asciiLowercased)
                            .elementsEqual(words)
                })
            else { return false }
            let end = found + words.count
            let isWhole =
                (found == line.startIndex || !isWord(line[found - 1]))
                && (end == line.endIndex || !isWord(line[end]))
            if isWhole { return true }
            start = found + 1
        }
        return false
    }

    private static func isWord(_ octet: UInt8) -> Bool {
        octet.isASCIILetter || octet.isASCIIDigit || octet == UInt8(ascii: "_")
    }

    // MARK: Identifiers of a line

    /// The texts before identifiers in the lines of Postern (as text and as JSON) and of Postfix.
    private static let marks: [[UInt8]] = [
        " ref=", " queue=", " copy=", "\"ref\":\"", "\"queue\":\"", "\"copy\":\"", "queued as ",
        "message-id=<",
        "resent-message-id=<",
        "sender delivery notification: ", "sender non-delivery notification: ",
        "sender delay notification: ",
    ].map { Array($0.utf8) }

    private static func identifiers(_ line: ArraySlice<UInt8>) -> [[UInt8]] {
        var found: [[UInt8]] = []
        for mark in marks {
            guard let place = line.firstRange(of: mark) else { continue }
            let value = line[place.upperBound...].prefix { octet in
                mark.last == UInt8(ascii: "<")
                    ? octet != UInt8(ascii: ">") : octet.isASCIILetter || octet.isASCIIDigit
            }
            // Postfix writes NOQUEUE, and an unknown copy has no identifier.
            if value.count >= 5, !value.elementsEqual("unknown".utf8) {
                found.append(value.map(\.asciiLowercased))
            }
        }
        if let own = postfixQueueID(line) { found.append(own) }
        if let reference = reference(line) { found.append(reference) }
        return found
    }

    /// `postfix/smtp[123]: 4XyZ12: …`
    private static func postfixQueueID(_ line: ArraySlice<UInt8>) -> [UInt8]? {
        guard let program = line.firstRange(of: Array("postfix".utf8)),
            let end = line[program.upperBound...].firstRange(of: Array("]: ".utf8))
        else { return nil }
        let word = line[end.upperBound...].prefix { $0.isASCIILetter || $0.isASCIIDigit }
        guard word.count >= 6, line[word.endIndex...].first == UInt8(ascii: ":"),
            !word.elementsEqual("NOQUEUE".utf8),
            !word.elementsEqual("warning".utf8), !word.elementsEqual("statistics".utf8)
        else { return nil }
        return word.map(\.asciiLowercased)
    }

    /// The reference that ends the text of a refusal: `[o27n2eps]`.
    private static func reference(_ line: ArraySlice<UInt8>) -> [UInt8]? {
        var rest = line
        while let open = rest.firstIndex(of: UInt8(ascii: "[")) {
            let word = line[(open + 1)...].prefix { Base32.isEncoded(CollectionOfOne($0)) }
            if word.count == 8, line[word.endIndex...].first == UInt8(ascii: "]") {
                return Array(word)
            }
            rest = line[(open + 1)...]
        }
        return nil
    }
}

extension LogTrace {
    /// A line in a form that may be shown. One of Postern's own lines contains no inbox, and is
    /// returned unchanged. In other lines, addresses become `l…@example.com`, and the text of other
    /// servers is removed, because it may name anyone in any form.
    /// - Parameter isShown: gets an address that is between angle brackets.
    package static func masked(
        _ line: ArraySlice<UInt8>, unless isShown: (String) -> Bool
    ) -> String {
        guard !isPosterns(line) else { return String(decoding: line, as: UTF8.self) }
        var text: [UInt8] = []
        var rest = withoutAnswers(line)[...]
        while let next = rest.first {
            if next == UInt8(ascii: "<"), let end = rest.firstIndex(of: UInt8(ascii: ">")) {
                text += masked(address: rest[(rest.startIndex + 1)..<end], unless: isShown)
                rest = rest[(end + 1)...]
                continue
            }
            let word = rest.prefix { $0 != 0x20 && $0 != UInt8(ascii: "<") }
            text += hasAt(word) ? Array("…".utf8) : Array(word)
            rest = rest[word.endIndex...]
            if rest.first == 0x20 {
                text.append(0x20)
                rest = rest.dropFirst()
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Whether Postern wrote a line: from the journal or a file, as text or as JSON. False in case
    /// of doubt.
    private static func isPosterns(_ line: ArraySlice<UInt8>) -> Bool {
        if line.starts(with: "{\"".utf8) {
            return line.firstRange(of: Array("\"level\":\"".utf8)) != nil
        }
        let head = line.prefix { $0 != UInt8(ascii: "]") }
        if head.count < line.count {
            return head.firstRange(of: Array(" postern[".utf8)) != nil
                && head.firstRange(of: Array("postfix".utf8)) == nil
        }
        // `2026-11-21T08:51:18.769Z notice …`
        let words = line.split(separator: 0x20, maxSplits: 2)
        guard words.count == 3, words[0].last == UInt8(ascii: "Z"),
            words[0].first?.isASCIIDigit == true
        else { return false }
        return ["info", "notice", "warning", "error", "debug"].contains {
            words[1].elementsEqual($0.utf8)
        }
    }

    /// The line without the text in parentheses, which is the reply of another server. The queue id
    /// in a reply of Postfix stays.
    private static func withoutAnswers(_ line: ArraySlice<UInt8>) -> [UInt8] {
        guard let open = line.firstIndex(of: UInt8(ascii: "(")),
            let close = line.lastIndex(of: UInt8(ascii: ")")), open < close
        else { return Array(line) }
        var kept = Array("(…".utf8)
        if let mark = line[open..<close].firstRange(of: Array("queued as ".utf8)) {
            kept += " queued as ".utf8
            kept += line[mark.upperBound..<close].prefix { $0.isASCIILetter || $0.isASCIIDigit }
        }
        return Array(line[..<open]) + kept + Array(line[close...])
    }

    private static func masked(
        address: ArraySlice<UInt8>, unless isShown: (String) -> Bool
    ) -> [UInt8] {
        let whole = Array("<".utf8) + address + Array(">".utf8)
        guard hasAt(address) else { return whole }
        let text = String(decoding: address, as: UTF8.self)
        if isShown(text) { return whole }
        guard let at = address.lastIndex(of: UInt8(ascii: "@")) else { return Array("<…>".utf8) }
        let domain = address[(at + 1)...]
        let isDomain = domain.allSatisfy {
            $0 >= 0x80 || $0.isASCIILetter || $0.isASCIIDigit || "-._".utf8.contains($0)
        }
        let first = text.unicodeScalars.first.map { String($0) } ?? ""
        return Array("<\(first)…@".utf8) + (isDomain ? Array(domain) : Array("…".utf8))
            + Array(">".utf8)
    }

    /// Whether a word has an at sign in one of its forms.
    private static func hasAt(_ word: ArraySlice<UInt8>) -> Bool {
        word.contains(UInt8(ascii: "@")) || word.firstRange(of: Array("%40".utf8)) != nil
            // An encoded word (RFC 2047) may contain one, for example in a line that a header check
            // of Postfix logs.
            || word.firstRange(of: Array("=?".utf8)) != nil
            || word.firstRange(of: Array("\u{FF20}".utf8)) != nil
            || word.firstRange(of: Array("\u{FE6B}".utf8)) != nil
    }
}
