// Checks a finished reply, without any code of the rewriting: the map of stretches covers the
// message, and no stretch reveals the user.

import InternetMessage
import Support

package struct LeakCheck {
    /// An outgoing header field with its stretches; ends are octets of the field.
    package struct Field {
        package var name: String
        package var octets: [UInt8]
        package var stretches: [StretchMap.Stretch]

        package init(name: String, octets: [UInt8], stretches: [StretchMap.Stretch]) {
            self.name = name
            self.octets = octets
            self.stretches = stretches
        }
    }

    package enum Verdict: Sendable, Equatable {
        case clean
        /// The rewriting missed a name, at this place.
        case leak(String)
        /// Text that must not contain any address, of any owner, contains one.
        case neutral(String)
        /// The same as `leak`, in typed text that the rewriting does not read: encoded text, or
        /// text that is not in its charset.
        case encoded(String)
        /// Typed text contains more addresses that the rewriting does not read than one reply may
        /// confirm. Their owners do not matter.
        case tooMany
        /// An address of the user is in the file with this number.
        case file(Int)
        /// The map is incomplete, so it proves nothing.
        case uncovered(String)
        /// The budget ended before the check.
        case tooMuchWork
    }

    /// Levels of encoded messages within each other that are read.
    private static let maximumDepth = 8

    private let names: LeakNames

    package init(_ names: LeakNames) { self.names = names }

    /// Whether an address can be read in a text that must not contain any, except the relay address
    /// that the team knows.
    /// - Parameters:
    ///   - neutral: UTF-8.
    ///   - work: is charged. Once it is spent, the result is true.
    package func holdsAddress(
        _ neutral: ArraySlice<UInt8>, isMarkup: Bool, work: WorkBudget
    ) -> Bool {
        let search = StretchSearch(names, work: work)
        search.search(RelayMask(names.relayAddress).masked(neutral), .neutral, isMarkup: isMarkup)
        return search.isFound || work.isSpent
    }

    /// Searches a finished message.
    /// - Parameters:
    ///   - body: in consecutive pieces, divided in any way.
    ///   - work: the budget of the message.
    package func verdict(
        header: [Field], body: [ArraySlice<UInt8>], map: StretchMap, work: WorkBudget
    ) -> Verdict {
        var run = Run(names, work)
        for field in header {
            let place = "header field \(field.name)"
            guard run.text(field.octets[...], StretchMap.Form(), field.stretches, isExact: true)
            else { return .uncovered(place) }
            if let leak = run.leak(place) { return leak }
        }
        let verdict = run.body(Octets(body), map, depth: 0)
        if work.isSpent { return .tooMuchWork }
        if verdict == .clean, run.typed.holdsTooMany { return .tooMany }
        if verdict == .clean, run.typed.typedLeaks { return .leak("typed text") }
        return verdict
    }

    /// Octets in several pieces of memory.
    private struct Octets {
        private let pieces: [ArraySlice<UInt8>]
        let count: Int
        private var next = 0
        private var start = 0

        init(_ pieces: [ArraySlice<UInt8>]) {
            self.pieces = pieces
            count = pieces.reduce(0) { $0 + $1.count }
        }

        /// The octets of a range that begins at the end of the last one. They are copied only if
        /// they are divided.
        mutating func take(_ range: Range<Int>) -> ArraySlice<UInt8> {
            var output: [UInt8]?
            var position = range.lowerBound
            while next < pieces.count {
                let piece = pieces[next]
                let end = start + piece.count
                let upper = min(end, range.upperBound)
                if position < upper {
                    let from = piece.startIndex + position - start
                    let slice = piece[from..<(piece.startIndex + upper - start)]
                    if upper == range.upperBound, output == nil { return slice }
                    output = (output ?? []) + slice
                    position = upper
                }
                guard end <= range.upperBound else { break }
                start = end
                next += 1
            }
            return (output ?? [])[...]
        }
    }

    /// One search of a message.
    private struct Run {
        let typed: StretchSearch
        private let neutral: StretchSearch
        private let files: FileSearch
        private let work: WorkBudget
        private let relay: RelayMask

        init(_ names: LeakNames, _ work: WorkBudget) {
            relay = RelayMask(names.relayAddress)
            let memory = SearchMemory()
            typed = StretchSearch(names, work: work, memory: memory)
            neutral = StretchSearch(names, work: work, memory: memory)
            files = FileSearch(names, work: work, memory: memory)
            self.work = work
        }

        func leak(_ place: String) -> Verdict? {
            if typed.isFound { return typed.isFoundOpenly ? .leak(place) : .encoded(place) }
            return neutral.isFound ? .neutral(place) : nil
        }

        mutating func body(_ octets: Octets, _ map: StretchMap, depth: Int) -> Verdict {
            guard map.end == octets.count, depth <= LeakCheck.maximumDepth else {
                return .uncovered("message body")
            }
            var octets = octets
            var start = 0
            for piece in map.pieces {
                guard piece.end >= start else { return .uncovered("message body") }
                let raw = octets.take(start..<piece.end)
                start = piece.end
                guard !work.isSpent else { return .tooMuchWork }
                switch piece.content {
                case .picture: continue
                case .file(let encoding, let number):
                    if files.finds(in: raw, encoding) { return .file(number) }
                case .message(let encoding, let map):
                    let verdict = body(
                        Octets([TransferReading.decode(raw, encoding)[...]]), map, depth: depth + 1)
                    if verdict != .clean { return verdict }
                case .text(let form, let stretches):
                    let isExact = stretches.count != 1
                    guard text(raw, form, stretches, isExact: isExact) else {
                        return .uncovered("message body")
                    }
                    if let leak = leak("message body") { return leak }
                }
            }
            return .clean
        }

        /// Searches the stretches of a text, each alone. False if they do not cover the whole text.
        mutating func text(
            _ raw: ArraySlice<UInt8>, _ form: StretchMap.Form, _ stretches: [StretchMap.Stretch],
            isExact: Bool
        ) -> Bool {
            guard raw.isEmpty || !stretches.isEmpty else { return false }
            if stretches.allSatisfy({ $0.kind == .made }), !isExact { return true }
            let decoded =
                form.encoding.isIdentity ? raw : TransferReading.decode(raw, form.encoding)[...]
            var text = decoded
            if let charset = form.charset {
                guard let characters = Charset.decode(decoded, charset) else { return false }
                text = Array(characters.utf8)[...]
            }
            guard !isExact || (stretches.last?.end ?? 0) == text.count else { return false }
            var start = 0
            // Typed text without the markup in it that may be hidden, as a comment does not divide
            // a word for the reader.
            var (shown, isDivided) = ([UInt8](), false)
            for stretch in stretches {
                let end = isExact ? stretch.end : text.count
                guard end >= start, end <= text.count else { return false }
                defer { start = end }
                if form.isMarkup, isExact {
                    let part = text[(text.startIndex + start)..<(text.startIndex + end)]
                    if stretch.kind == .typed || part.first != UInt8(ascii: "<") {
                        shown += stretch.kind == .typed ? part : [0x20]
                    } else if let last = shown.last, last > 0x20, last != UInt8(ascii: ">") {
                        isDivided = true
                    }
                }
                guard stretch.kind != .made, end > start else { continue }
                search(
                    text[(text.startIndex + start)..<(text.startIndex + end)], stretch.kind,
                    isMarkup: form.isMarkup)
            }
            if isDivided { typed.search(relay.masked(shown[...]), .typed, isMarkup: true) }
            // A program may ignore the charset. Octets that are not text in it are compared only
            // with the user's addresses.
            if !isExact, form.charset != nil, stretches.first?.kind == .typed {
                typed.search(decoded, .binary, isMarkup: form.isMarkup, isEncoded: true)
            }
            return true
        }

        private func search(_ octets: ArraySlice<UInt8>, _ kind: StretchMap.Kind, isMarkup: Bool) {
            switch kind {
            case .typed: typed.search(relay.masked(octets), .typed, isMarkup: isMarkup)
            case .neutral: neutral.search(relay.masked(octets), .neutral, isMarkup: isMarkup)
            case .made: break
            }
        }
    }
}

/// Masks the relay address where a text shows it in plain form. Encoded readings would change its
/// letters: after `=`, its first two may be hexadecimal digits.
private struct RelayMask {
    private static let mark = Array("[relay]".utf8)
    /// Lower case.
    private let address: [UInt8]

    init(_ address: [UInt8]) { self.address = address }

    func masked(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var output: [UInt8] = []
        var copied = text.startIndex
        var index = text.startIndex
        while index + address.count <= text.endIndex {
            guard text[index].asciiLowercased == address[0], isHere(text, index) else {
                index += 1
                continue
            }
            output += text[copied..<index] + Self.mark
            index += address.count
            copied = index
        }
        return copied == text.startIndex ? text : (output + text[copied...])[...]
    }

    private func isHere(_ text: ArraySlice<UInt8>, _ start: Int) -> Bool {
        for offset in address.indices where text[start + offset].asciiLowercased != address[offset]
        { return false }
        // A longer domain is another domain.
        let rest = text[(start + address.count)...].prefix(2)
        guard let next = rest.first else { return true }
        if AddressReading.isOfDomain(next), next != UInt8(ascii: "."), next != UInt8(ascii: "-") {
            return false
        }
        return
            !(rest.count == 2 && (next == UInt8(ascii: ".") || next == UInt8(ascii: "-"))
            && AddressReading.isOfDomain(rest.last ?? 0))
    }
}
