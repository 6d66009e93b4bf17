// Removes every address from text that the team or a program wrote: addresses of teams, of users,
// and of anyone else.
//
// It uses no data about the user, so the result is the same for every guess of the team. Words,
// marks and numbers stay, as help desks read them.

import InternetMessage
import Support

/// The text that replaces a removed text.
enum NeutralMark {
    static let address = Array("[address]".utf8)
    static let path = Array("[path]".utf8)
    static let quotation = Array("[quotation removed]".utf8)
    /// An address within a link, which a bracket would end.
    static let addressInLink = Array("%5Baddress%5D".utf8)

    /// The mark of an address, in the encoding of the text.
    static func address(in lens: DecodingPass) -> [UInt8] {
        lens.contains(.percent) ? addressInLink : address
    }
}

/// Writes quoted text and programs' text without addresses. Not thread-safe: make one for each
/// message.
final class Neutraliser {
    private let names: ReplyNames
    private let reader: TokenReader
    private let own: OwnTokens
    /// Finds the anchors of the account's tokens.
    private let anchors: WordTable
    private let scratch = Scratch()

    /// Levels of nested base64 that are decoded.
    private static let maximumDepth = 2
    /// Octets searched at a time. Two windows overlap by more than any address with its encodings.
    private static let window = 262_144
    private static let overlap = 2_048
    /// Octets around an encoded character that are read again.
    private static let reach = 1_024

    /// - Parameters:
    ///   - names: only the relay's own addresses, the team's domains and the
    ///     correspondents are used.
    ///   - reader: reads tokens in all texts of one message; so does `own`.
    init(names: ReplyNames, reader: TokenReader? = nil, own: OwnTokens? = nil) {
        self.names = names
        self.reader = reader ?? TokenReader(names: names)
        let own = own ?? OwnTokens(names: names)
        self.own = own
        var table = WordTable()
        for anchor in own.anchors { table.append(anchor) }
        anchors = table
    }

    /// Memory that is reused for each text.
    private final class Scratch {
        private var last: DecodedWindow?
        private(set) lazy var base64 = (0..<Neutraliser.maximumDepth).map { _ in EmbeddedBase64() }

        func window(_ capacity: Int) -> DecodedWindow {
            if let last, last.textCapacity >= capacity { return last }
            let made = DecodedWindow(foldsUnicode: true, capacity: max(capacity, 1_024))
            last = made
            return made
        }

        func letGo() {
            last = nil
            base64 = (0..<Neutraliser.maximumDepth).map { _ in EmbeddedBase64() }
        }
    }

    /// Releases the memory kept between texts.
    func letGo() { scratch.letGo() }

    /// The replacements in all stretches of a text that are not typed, in
    /// order and without overlaps.
    func edits(_ utf8: [UInt8], syntax: TextSyntax = .plain, in stretches: Stretches) -> [TextEdit]
    {
        var edits: [TextEdit] = []
        stretches.forEach(upTo: utf8.count) { range, standing in
            guard !standing.isTyped else { return }
            let stretch = range.count == utf8.count ? utf8 : Array(utf8[range])
            edits += self.edits(
                of: stretch, syntax: syntax, isAttribution: standing == .attribution, depth: 0
            ).map {
                $0.moved(by: range.lowerBound)
            }
        }
        return edits
    }

    /// A text without addresses; nil if nothing changes.
    func rewrite(
        _ utf8: [UInt8], syntax: TextSyntax = .plain, as standing: Standing = .program
    ) -> [UInt8]? {
        let edits = edits(utf8, syntax: syntax, in: Stretches(standing))
        return edits.isEmpty ? nil : edits.applied(to: utf8)
    }

    /// One find in a text: removed, or protected from change.
    struct Find {
        enum Kind: Int {
            /// A link that is cut, a path, a name.
            case cut
            /// An address of anyone.
            case address
            /// Text that the relay itself writes there.
            case made
            /// Text that stays, regardless of other finds in it.
            case kept
        }
        let kind: Kind
        let range: Range<Int>
        let replacement: [UInt8]
    }

    private func edits(
        of text: [UInt8], syntax: TextSyntax, isAttribution: Bool, depth: Int
    ) -> [TextEdit] {
        let finds = text.withUnsafeBufferPointer { buffer -> [Find] in
            // Text decoded from other data is searched only for addresses, as its links lead
            // nowhere.
            var links =
                depth == 0 ? NeutralLinks(buffer, syntax: syntax, isTeamHost: names.isAtTeam) : nil
            links?.read()
            var finds = links?.finds ?? []
            let teamLinks = links?.teamLinks ?? []
            var addresses: [Range<Int>] = []
            for lens in TextRewriter.lenses(buffer, syntax: syntax) {
                read(buffer, lens: lens) { window, range in
                    find(
                        in: window, buffer, lens, syntax, range, isInner: depth > 0, teamLinks,
                        &finds, &addresses)
                }
            }
            if isAttribution {
                for address in addresses {
                    finds += NeutralNames.finds(
                        before: address.lowerBound, in: buffer, syntax: syntax)
                }
            }
            finds += hexadecimal(buffer, teamLinks)
            return finds
        }
        var all = finds + encodedWords(text, depth: depth)
        if depth < Self.maximumDepth { all += base64(text, depth: depth) }
        return Self.merged(all)
    }

    /// In order and without overlaps. A find that contains another replaces it; finds that partly
    /// overlap become one.
    private static func merged(_ finds: [Find]) -> [TextEdit] {
        let ordered = finds.sorted {
            $0.range.lowerBound != $1.range.lowerBound
                ? $0.range.lowerBound < $1.range.lowerBound
                : $0.range.upperBound != $1.range.upperBound
                    ? $0.range.upperBound > $1.range.upperBound
                    : $0.kind.rawValue > $1.kind.rawValue
        }
        var kept: [Find] = []
        for find in ordered {
            guard let last = kept.last, find.range.lowerBound < last.range.upperBound else {
                kept.append(find)
                continue
            }
            if find.range.upperBound <= last.range.upperBound || last.kind == .kept { continue }
            if find.kind == .kept {
                kept[kept.count - 1] = find
            } else if find.kind == .made || last.kind == .made {
                kept[kept.count - 1] = last.kind == .made ? last : find
            } else {
                kept[kept.count - 1] = Find(
                    kind: .address, range: last.range.lowerBound..<find.range.upperBound,
                    replacement: last.replacement.elementsEqual(find.replacement)
                        ? last.replacement : last.replacement + find.replacement)
            }
        }
        return kept.filter { $0.kind != .kept }.map {
            TextEdit(range: $0.range, replacement: $0.replacement, isMade: $0.kind == .made)
        }
    }

    // MARK: Reading

    /// Reads a text in one decoding, in windows. `body` gets each window with the range of the text
    /// in which a find may begin.
    private func read(
        _ text: UnsafeBufferPointer<UInt8>, lens: DecodingPass,
        _ body: (DecodedWindow, Range<Int>) -> Void
    ) {
        guard !lens.isEmpty else { return read(text, 0..<text.count, lens: lens, body) }
        var next = DecodedWindow.nextDecoded(lens, text, from: 0)
        while let first = next {
            var last = first
            next = DecodedWindow.nextDecoded(lens, text, from: first + 1)
            while let following = next, following - last < Self.reach * 4 {
                last = following
                next = DecodedWindow.nextDecoded(lens, text, from: following + 1)
            }
            read(
                text, max(0, first - Self.reach)..<min(text.count, last + Self.reach), lens: lens,
                body)
        }
    }

    private func read(
        _ text: UnsafeBufferPointer<UInt8>, _ range: Range<Int>, lens: DecodingPass,
        _ body: (DecodedWindow, Range<Int>) -> Void
    ) {
        let window = scratch.window(
            min(text.count, range.count + 2 * Self.overlap, Self.window + 2 * Self.overlap))
        var from = range.lowerBound
        while from < range.upperBound {
            let limit = min(range.upperBound, from + Self.window)
            window.read(
                text, from: max(0, from - Self.overlap), to: min(text.count, limit + Self.overlap),
                lens: lens)
            body(window, from..<limit)
            from = limit
        }
    }

    // MARK: Addresses

    private func find(
        in window: DecodedWindow, _ text: UnsafeBufferPointer<UInt8>, _ lens: DecodingPass,
        _ syntax: TextSyntax,
        _ range: Range<Int>, isInner: Bool, _ teamLinks: [Range<Int>], _ finds: inout [Find],
        _ addresses: inout [Range<Int>]
    ) {
        let units = window.octets
        func source(_ range: Range<Int>) -> Range<Int> {
            window.start(range.lowerBound)..<window.end(range.upperBound - 1)
        }
        func mark(_ range: Range<Int>) -> [UInt8] {
            let isInLink = lens.contains(.percent) || Self.contains(teamLinks, range.lowerBound)
            let mark = isInLink ? NeutralMark.addressInLink : NeutralMark.address
            return lens.contains(.tags) ? mark + Elements.tags(in: text, range) : mark
        }
        var finder = AddressFinder(window, of: text, lens: lens)
        finder.forEach(in: range) { candidate in
            if candidate.isSplit { return }
            if let relay = ours(candidate, window, text, lens, syntax) {
                finds.append(
                    relay.replacement == nil
                        ? Find(kind: .address, range: relay.range, replacement: mark(relay.range))
                        : relay.find)
                return
            }
            guard Self.isLikely(candidate, units), !isInner || candidate.isComplete else { return }
            let range = source(candidate.whole)
            finds.append(Find(kind: .address, range: range, replacement: mark(range)))
            addresses.append(range)
        }
        tokens(window, range) { units, correspondent in
            let range = source(units)
            guard let correspondent else {
                finds.append(Find(kind: .address, range: range, replacement: mark(range)))
                return
            }
            let at = lens.contains(.percent) ? Array("%40".utf8) : [UInt8(ascii: "@")]
            finds.append(
                Find(
                    kind: .made, range: range,
                    replacement: AddressWriting.local(
                        correspondent.localPart, lens: lens, syntax: syntax) + at
                        + Array(correspondent.domain.utf8)))
        }
    }

    /// Whether a reader would take a candidate for an address, and not for a program's value or
    /// words of a sentence.
    private static func isLikely(
        _ candidate: AddressFinder.Candidate, _ units: UnsafeBufferPointer<UInt8>
    ) -> Bool {
        if candidate.isDoubtful { return false }
        let local = units[candidate.local]
        switch candidate.form {
        case .at, .gateway: return true
        case .spelled: return local.contains { $0.isASCIIDigit || "._-".utf8.contains($0) }
        case .verp, .reversed:
            let end = candidate.whole.upperBound
            return end < units.count && units[end] == UInt8(ascii: "@")
                || local.contains(UInt8(ascii: "."))
        }
    }

    /// The replacement of an address at a relay domain; a nil replacement means that the address is
    /// not this account's.
    private struct Ours {
        let range: Range<Int>
        let replacement: [UInt8]?
        let isKept: Bool

        var find: Find {
            Find(kind: isKept ? .kept : .made, range: range, replacement: replacement ?? [])
        }
    }

    private func ours(
        _ candidate: AddressFinder.Candidate, _ window: DecodedWindow,
        _ text: UnsafeBufferPointer<UInt8>, _ lens: DecodingPass,
        _ syntax: TextSyntax
    ) -> Ours? {
        let units = window.octets
        guard candidate.form != .reversed,
            let domain = names.relayDomains.first(where: {
                units[candidate.domain].elementsEqual($0.utf8)
            })
        else { return nil }
        let run = candidate.run
        func source(from start: Int) -> Range<Int> {
            window.start(start)..<window.end(candidate.domain.upperBound - 1)
        }
        // At the beginning of the run, and after each mark in it.
        for start in run
        where start == run.lowerBound
            || units[start].isASCIIAlphanumeric && !units[start - 1].isASCIIAlphanumeric
                && units[start - 1] != UInt8(ascii: ".")
        {
            let local = String(decoding: units[start..<run.upperBound], as: UTF8.self)
            switch reader.read(local, domain: domain) {
            case .relayAddress:
                return Ours(range: source(from: start), replacement: [], isKept: true)
            case .correspondent(let address):
                let separator = text[
                    window.end(run.upperBound - 1)..<window.start(candidate.domain.lowerBound)]
                return Ours(
                    range: source(from: start),
                    replacement: AddressWriting.local(address.localPart, lens: lens, syntax: syntax)
                        + separator
                        + Array(address.domain.utf8),
                    isKept: false)
            case .hidden: return Ours(range: source(from: start), replacement: nil, isKept: false)
            case .other: continue
            }
        }
        return Ours(
            range: source(from: candidate.local.lowerBound), replacement: nil, isKept: false)
    }

    /// Tokens without their domain. Those of this account are found anywhere, those of others only
    /// as words.
    private func tokens(
        _ window: DecodedWindow, _ range: Range<Int>, _ body: (Range<Int>, AddrSpec?) -> Void
    ) {
        let units = window.octets
        let joins: (Int) -> Bool = {
            window.separators[$0] & ~DecodedWindow.unseen == 0
                || window.separators[$0] & DecodedWindow.lineBreak != 0
        }
        _ = anchors.pairs.search(units) { position in
            let start = window.start(position)
            guard start < range.upperBound else { return true }
            guard start >= range.lowerBound else { return false }
            _ = anchors.contains(at: position, in: units) { _ in
                if let found = own.find(
                    around: position, in: units, joins: joins,
                    isApart: { window.separators[$0] != 0 })
                {
                    body(found.range, found.correspondent)
                }
                return false
            }
            return false
        }
        ForeignTokens.find(window, range, isForeign: reader.isForeign) { body($0, nil) }
    }

    private static func contains(_ ranges: [Range<Int>], _ index: Int) -> Bool {
        var (low, high) = (0, ranges.count)
        while low < high {
            let middle = (low + high) / 2
            if ranges[middle].upperBound <= index { low = middle + 1 } else { high = middle }
        }
        return low < ranges.count && ranges[low].contains(index)
    }

    // MARK: What is encoded

    private func base64(_ text: [UInt8], depth: Int) -> [Find] {
        text.withUnsafeBufferPointer { buffer in
            scratch.base64[depth].edits(
                in: buffer,
                mayHold: { $0.contains(UInt8(ascii: "@")) || $0.contains(UInt8(ascii: "%")) }
            ) {
                decoded, _ in
                let content = GoogleShortForm.expanded(decoded) ?? decoded
                let edits = edits(
                    of: content, syntax: .plain, isAttribution: false, depth: depth + 1)
                return edits.isEmpty ? nil : edits.applied(to: content)
            }
        }.map { Find(kind: .cut, range: $0.range, replacement: $0.replacement) }
    }

    private func encodedWords(_ text: [UInt8], depth: Int) -> [Find] {
        guard depth == 0, text.contains(UInt8(ascii: "?")), text.contains(UInt8(ascii: "=")) else {
            return []
        }
        return EncodedWordRuns.find(in: text).compactMap { run in
            let decoded = Array(EncodedWord.decode(HeaderField.unfold(text[run])[...]).utf8)
            let edits = edits(of: decoded, syntax: .plain, isAttribution: false, depth: 1)
            guard !edits.isEmpty else { return nil }
            return Find(
                kind: .cut, range: run,
                replacement: HeaderText.encodedWords(edits.applied(to: decoded), startingAt: 12))
        }
    }

    /// Minimum digits of a run that may be a text in hexadecimal.
    private static let shortestHexadecimal = 24

    private func hexadecimal(
        _ text: UnsafeBufferPointer<UInt8>, _ teamLinks: [Range<Int>]
    ) -> [Find] {
        var finds: [Find] = []
        var index = 0
        while index < text.count {
            guard text[index].hexValue != nil else {
                index += 1
                continue
            }
            let start = index
            while index < text.count, text[index].hexValue != nil { index += 1 }
            guard index - start >= Self.shortestHexadecimal else { continue }
            for offset in 0...1 {
                let digits = text[(start + offset)..<index]
                let decoded = stride(from: digits.startIndex, to: digits.endIndex - 1, by: 2).map {
                    (digits[$0].hexValue ?? 0) << 4 | (digits[$0 + 1].hexValue ?? 0)
                }
                guard decoded.contains(UInt8(ascii: "@")),
                    !edits(
                        of: decoded, syntax: .plain, isAttribution: false, depth: Self.maximumDepth
                    ).isEmpty
                else { continue }
                let isInLink = Self.contains(teamLinks, start)
                finds.append(
                    Find(
                        kind: .cut, range: start..<index,
                        replacement: isInLink ? NeutralMark.addressInLink : NeutralMark.address))
                break
            }
        }
        return finds
    }
}

/// Writes addresses in the encoding of a text.
enum AddressWriting {
    /// A local part, escaped as its place requires.
    static func local(_ local: String, lens: DecodingPass, syntax: TextSyntax) -> [UInt8] {
        var output: [UInt8] = []
        for octet in local.utf8 {
            if octet >= 0x80 || octet.isASCIIAlphanumeric || "._-".utf8.contains(octet) {
                output.append(octet)
            } else if lens.contains(.percent) {
                output += Hex.escape(octet, mark: "%")
            } else if syntax == .markup, "&<>\"'".utf8.contains(octet) {
                output += Array("&#\(octet);".utf8)
            } else if !(octet < 0x20 || octet == 0x7F) {
                output.append(octet)
            }
        }
        return output
    }
}
