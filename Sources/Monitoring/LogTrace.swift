// Follows one message through the lines of Postfix's and Postern's logs. Pure.

import Support

/// Finds all lines about the messages that a clue leads to: a queue id, a Message-ID, the reference of a refusal, an address.
package struct LogTrace {
    /// Most identifiers that are followed: a clue that leads to more, such as the address of a busy team, leads nowhere.
    package static let maximumIdentifiers = 2_000

    /// Identifiers that were found, in lower case where case does not matter.
    private var known: Set<[UInt8]> = []
    /// Whether more identifiers were found than are followed.
    package private(set) var isCut = false

    package init() {}

    /// The lines, in their order, that are about the messages.
    /// - Parameters:
    ///   - clue: as someone has it in hand; case does not matter.
    ///   - lines: without their ends.
    package mutating func lines(about clue: String, in lines: [ArraySlice<UInt8>]) -> [ArraySlice<UInt8>] {
        let wanted = Self.trimmed(clue)
        guard !wanted.isEmpty else { return [] }
        var chosen = Set<Int>()
        let ids = lines.map(Self.identifiers)
        for (place, line) in lines.enumerated() where Self.contains(line, wanted) {
            chosen.insert(place)
            add(ids[place])
        }
        // A copy leads to its own lines, those to the delivery, that to a bounce.
        var before = -1
        while before != chosen.count {
            before = chosen.count
            for (place, own) in ids.enumerated() where !chosen.contains(place) && own.contains(where: known.contains) {
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

    /// Without the brackets of a Message-ID or a reference.
    private static func trimmed(_ clue: String) -> [UInt8] {
        var octets = clue.utf8.map(\.asciiLowercased)[...]
        while let first = octets.first, [0x20, 0x09, UInt8(ascii: "<"), UInt8(ascii: "[")].contains(first) {
            octets.removeFirst()
        }
        while let last = octets.last, [0x20, 0x09, UInt8(ascii: ">"), UInt8(ascii: "]"), UInt8(ascii: ":")].contains(last) {
            octets.removeLast()
        }
        return Array(octets)
    }

    /// Whether a line holds the words, not as a part of longer ones.
    private static func contains(_ line: ArraySlice<UInt8>, _ words: [UInt8]) -> Bool {
        var start = line.startIndex
        while line.endIndex - start >= words.count {
            guard
                let found = (start...(line.endIndex - words.count)).first(where: { place in
                    line[place].asciiLowercased == words[0]
                        && line[place..<place + words.count].lazy.map(\.asciiLowercased).elementsEqual(words)
                })
            else { return false }
            let end = found + words.count
            let isWhole =
                (found == line.startIndex || !isWord(line[found - 1])) && (end == line.endIndex || !isWord(line[end]))
            if isWhole { return true }
            start = found + 1
        }
        return false
    }

    private static func isWord(_ octet: UInt8) -> Bool { octet.isASCIILetter || octet.isASCIIDigit || octet == UInt8(ascii: "_") }

    // MARK: Identifiers of a line

    /// Before the identifiers that Postern (as text and as JSON) and Postfix write.
    private static let marks: [[UInt8]] = [
        " ref=", " queue=", " copy=", "\"ref\":\"", "\"queue\":\"", "\"copy\":\"", "queued as ", "message-id=<",
        "resent-message-id=<",
        "sender delivery notification: ", "sender non-delivery notification: ", "sender delay notification: ",
    ].map { Array($0.utf8) }

    private static func identifiers(_ line: ArraySlice<UInt8>) -> [[UInt8]] {
        var found: [[UInt8]] = []
        for mark in marks {
            guard let place = line.firstRange(of: mark) else { continue }
            let value = line[place.upperBound...].prefix { octet in
                mark.last == UInt8(ascii: "<") ? octet != UInt8(ascii: ">") : octet.isASCIILetter || octet.isASCIIDigit
            }
            // Postfix writes NOQUEUE, and an unknown copy has no identifier.
            if value.count >= 5, !value.elementsEqual("unknown".utf8) { found.append(value.map(\.asciiLowercased)) }
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
        guard word.count >= 6, line[word.endIndex...].first == UInt8(ascii: ":"), !word.elementsEqual("NOQUEUE".utf8),
            !word.elementsEqual("warning".utf8), !word.elementsEqual("statistics".utf8)
        else { return nil }
        return word.map(\.asciiLowercased)
    }

    /// The reference that ends the text of a refusal: `[o27n2eps]`.
    private static func reference(_ line: ArraySlice<UInt8>) -> [UInt8]? {
        var rest = line
        while let open = rest.firstIndex(of: UInt8(ascii: "[")) {
            let word = line[(open + 1)...].prefix { Base32.isEncoded(CollectionOfOne($0)) }
            if word.count == 8, line[word.endIndex...].first == UInt8(ascii: "]") { return Array(word) }
            rest = line[(open + 1)...]
        }
        return nil
    }
}

extension LogTrace {
    /// A line in which every address shows as `l…@example.com`, but those that are let through.
    /// - Parameter isShown: gets an address without its brackets.
    package static func masked(_ line: ArraySlice<UInt8>, unless isShown: (String) -> Bool) -> String {
        var text: [UInt8] = []
        var rest = line
        while let at = rest.firstIndex(of: UInt8(ascii: "@")) {
            let before = rest[..<at].reversed().prefix(while: isAddress)
            let start = at - before.count
            let after = rest[(at + 1)...].prefix { isAddress($0) && $0 != UInt8(ascii: "=") }
            let whole = String(decoding: rest[start..<after.endIndex], as: UTF8.self)
            text += rest[..<start]
            if before.isEmpty || after.isEmpty || isShown(whole) {
                text += whole.utf8
            } else {
                let first = String(decoding: rest[start..<at], as: UTF8.self).unicodeScalars.first.map { String($0) } ?? ""
                text += "\(first)…@".utf8
                text += after
            }
            rest = rest[after.endIndex...]
        }
        return String(decoding: text + rest, as: UTF8.self)
    }

    /// What a local part or a domain has in a log, without the characters around them.
    private static func isAddress(_ octet: UInt8) -> Bool {
        octet >= 0x80 || octet.isASCIILetter || octet.isASCIIDigit || "!#$%&'*+-/=?^_`{|}~.".utf8.contains(octet)
    }
}
