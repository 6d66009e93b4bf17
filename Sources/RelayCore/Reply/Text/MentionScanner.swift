// Finds mentions of hidden and reverse addresses in one window of text, and their replacements.

import InternetMessage
import LeakSearch
import Support

/// The syntax in which replacements must be written.
package enum TextSyntax: Sendable, Hashable {
    case plain
    /// HTML and XML: `&`, `<`, `>` and quotes are written as references.
    case markup
    /// A file name: text next to an address in it, as in `bill-anna@example.org.pdf`, does not
    /// belong to the address.
    case fileName
}

/// A class, because each candidate would otherwise copy all its content.
final class MentionScanner {
    let index: NameIndex
    let names: ReplyNames
    private let reader: TokenReader
    private let own: OwnTokens
    let relayLocal: [UInt8]
    let relayDomain: [UInt8]

    /// Maximum octets of a local part that is read, including its tag. A longer one is not a
    /// deliverable address.
    private static let maximumLocal = 128
    /// Maximum tags of one local part that are tried. A local part `a+b+c+…` with more is read
    /// without them.
    private static let maximumTags = 8

    init(index: NameIndex, names: ReplyNames, reader: TokenReader, own: OwnTokens) {
        self.index = index
        self.names = names
        self.reader = reader
        self.own = own
        relayLocal = Array(names.relayAddress.localPart.lowercased().utf8)
        relayDomain = Array(names.relayAddress.domain.utf8)
    }

    /// - Parameters:
    ///   - text: the complete text, to which the window's offsets refer.
    ///   - range: offsets at which the word that identifies a mention may begin. The text before
    ///     and after belongs to other windows, and is only context.
    func scan(
        _ window: DecodedWindow, text: UnsafeBufferPointer<UInt8>, lens: DecodingPass,
        syntax: TextSyntax, range: Range<Int>,
        search: TypedSearch, into edits: inout [TextEdit]
    ) {
        typed(
            window, text: text, lens: lens, syntax: syntax, range: range, search: search,
            into: &edits)
        if search.isCounting { return }
        let units = window.octets
        var found: [TextEdit] = []
        _ = index.pairs.search(units) { position in
            let start = window.start(position)
            guard start < range.upperBound else { return true }
            guard start >= range.lowerBound else { return false }
            _ = index.table.contains(at: position, in: units) { number in
                let pattern = index.patterns[number]
                let end = position + pattern.octets.count
                let view = View(window: window, text: text, lens: lens, syntax: syntax)
                switch pattern.kind {
                case .relayDomain(let domain): ours(view, position..<end, domain, &found)
                case .token: token(view, position, &found)
                case .user: break
                }
                return false
            }
            return false
        }
        ForeignTokens.find(window, range, isForeign: reader.isForeign) { units in
            found.append(
                TextEdit(
                    range: window.start(units.lowerBound)..<window.end(units.upperBound - 1),
                    replacement: NeutralMark.address(in: lens), isWeak: true))
        }
        edits += found
    }

    /// A window with the data that its classification and its edits need.
    private struct View {
        let window: DecodedWindow
        let text: UnsafeBufferPointer<UInt8>
        let lens: DecodingPass
        let syntax: TextSyntax

        func source(_ range: Range<Int>) -> Range<Int> {
            window.start(range.lowerBound)..<window.end(range.upperBound - 1)
        }

        func hasGap(_ unit: Int) -> Bool { window.separators[unit] != 0 }

        func isAlphanumeric(_ unit: Int) -> Bool {
            guard unit >= 0, unit < window.octets.count else { return false }
            let octet = window.octets[unit]
            return (0x61...0x7A).contains(octet) || (0x30...0x39).contains(octet)
        }

        /// Whether a relay domain ends here, and does not continue to a longer domain that exists.
        /// Other letters after it are text without its space: `relay.exampleTel`.
        func domainEnds(at end: Int) -> Bool {
            let units = window.octets
            guard end < units.count, !hasGap(end) else { return true }
            var first = end
            while first > 0, !hasGap(first), isAlphanumeric(first - 1) { first -= 1 }
            var stop = end
            while stop < units.count, stop - end < AddressFinder.maximumDomain, !hasGap(stop),
                isOfDomain(units[stop])
            {
                stop += 1
            }
            if syntax == .fileName { return stop == end || !isAlphanumeric(end) }
            // The labels of which the last octets come after the domain.
            var start = first
            while start < stop {
                let next = units[start..<stop].firstIndex(of: UInt8(ascii: ".")) ?? stop
                var name = next
                while name > start, units[name - 1] == UInt8(ascii: "-") { name -= 1 }
                if next > end, TopLevelDomains.contains(units[start..<name]),
                    start <= end || !AddressFinder.beginsSentence(start, window, text)
                {
                    return false
                }
                start = next + 1
            }
            return true
        }

        private func isOfDomain(_ octet: UInt8) -> Bool {
            octet.isASCIIAlphanumeric || octet >= 0x80 || octet == UInt8(ascii: ".")
                || octet == UInt8(ascii: "-")
        }
    }

    // MARK: Addresses of the user

    private func ours(_ view: View, _ domain: Range<Int>, _ name: String, _ edits: inout [TextEdit])
    {
        reversed(view, domain, &edits)
        joined(view, domain, &edits)
        guard view.domainEnds(at: domain.upperBound),
            let separator = Separator(before: domain.lowerBound, in: view.window)
        else {
            return
        }
        if separator.isAtSign, let quoted = quotedRun(view, endingAt: separator.start) {
            replaceQuoted(quoted, view, domain, name, &edits)
            return
        }
        var others: Range<Int>?
        for allowsBreaks in [false, true] {
            guard let run = tokenRun(view, endingAt: separator.start, allowsBreaks: allowsBreaks)
            else { continue }
            others = others ?? run
            let dot = view.window.octets[run].lastIndex(of: UInt8(ascii: "."))
            for start in starts(view, run) {
                // Most words before a relay domain are not tokens, so they are tested before a
                // string is made of them.
                let tail = max(start, dot.map { $0 + 1 } ?? start)..<run.upperBound
                guard
                    TokenMint.mayBeTail(UnsafeBufferPointer(rebasing: view.window.octets[tail]))
                        || isRelayLocal(view, start..<run.upperBound)
                else { continue }
                let local = String(
                    decoding: view.window.octets[start..<run.upperBound], as: UTF8.self)
                switch reader.read(local, domain: name) {
                case .other: continue
                case .relayAddress: return
                case .correspondent(let address):
                    edits.append(
                        TextEdit(
                            range: view.source(start..<run.upperBound),
                            replacement: written(address.localPart, view),
                            isMade: true))
                    edits.append(
                        TextEdit(
                            range: view.source(domain), replacement: Array(address.domain.utf8),
                            isMade: true))
                    return
                case .hidden:
                    edits.append(
                        TextEdit(
                            range: view.source(start..<domain.upperBound),
                            replacement: NeutralMark.address(in: view.lens)))
                    return
                }
            }
        }
        // A token of any other user: otherwise two teams could find out that they have the same
        // user. `x=relay.example` and words before `at relay.example` are no addresses, unless they
        // look like one.
        guard let others,
            let first = separator.isAtSign
                ? others.first(where: {
                    view.isAlphanumeric($0) || view.window.octets[$0] >= 0x80
                }) : lastWord(view, others)
        else { return }
        edits.append(
            TextEdit(
                range: view.source(first..<domain.upperBound),
                replacement: NeutralMark.address(in: view.lens)))
    }

    /// The start of the last word of a run, if it has the form of a relay address that was made at
    /// random.
    private func lastWord(_ view: View, _ run: Range<Int>) -> Int? {
        var start = run.upperBound
        while start > run.lowerBound, run.upperBound - start <= relayLocal.count,
            view.isAlphanumeric(start - 1), start == run.upperBound || !view.hasGap(start)
        {
            start -= 1
        }
        let word = start..<run.upperBound
        return isIssued(Array(view.window.octets[word])) ? start : nil
    }

    /// Whether a word, in lower case, has the form of a relay address that was made at random, and
    /// is no word of a language.
    private func isIssued(_ word: [UInt8]) -> Bool {
        word.count == relayLocal.count && word != relayLocal && Base32.isEncoded(word)
            && LocalPartGuard(word) != .none
    }

    /// `relay.example=dmmxyr2pup`, in the return paths of SRS.
    private func reversed(_ view: View, _ domain: Range<Int>, _ edits: inout [TextEdit]) {
        let units = view.window.octets
        var end = domain.upperBound + 1
        guard end < units.count, units[domain.upperBound] == UInt8(ascii: "="),
            !view.hasGap(domain.upperBound)
        else { return }
        while end < units.count, !view.hasGap(end), view.isAlphanumeric(end) { end += 1 }
        let word = (domain.upperBound + 1)..<end
        guard isIssued(Array(units[word])) else { return }
        edits.append(
            TextEdit(
                range: view.source(domain.lowerBound..<end),
                replacement: NeutralMark.address(in: view.lens)))
    }

    /// `dmmxyr2pup_relay.example`, in the addresses of gateways.
    private func joined(_ view: View, _ domain: Range<Int>, _ edits: inout [TextEdit]) {
        let end = domain.lowerBound - 1
        guard end > 0, view.window.octets[end] == UInt8(ascii: "_"), !view.hasGap(end),
            !view.hasGap(domain.lowerBound), let start = lastWord(view, 0..<end)
        else { return }
        edits.append(
            TextEdit(
                range: view.source(start..<domain.upperBound),
                replacement: NeutralMark.address(in: view.lens)))
    }

    /// The content of a quoted local part (RFC 5321 section 4.1.2) that ends before a unit.
    private func quotedRun(_ view: View, endingAt end: Int) -> Range<Int>? {
        let units = view.window.octets
        guard end > 2, units[end - 1] == UInt8(ascii: "\"") else { return nil }
        var start = end - 1
        while start > 0, end - start < 66, units[start - 1] != UInt8(ascii: "\"") { start -= 1 }
        return start > 0 && start < end - 1 && units[start - 1] == UInt8(ascii: "\"")
            ? start..<(end - 1) : nil
    }

    private func replaceQuoted(
        _ run: Range<Int>, _ view: View, _ domain: Range<Int>, _ name: String,
        _ edits: inout [TextEdit]
    ) {
        let whole = view.source((run.lowerBound - 1)..<domain.upperBound)
        switch reader.read(
            String(decoding: view.window.octets[run], as: UTF8.self), domain: name)
        {
        case .relayAddress: return
        case .correspondent(let address):
            let at = view.lens.contains(.percent) ? Array("%40".utf8) : [UInt8(ascii: "@")]
            edits.append(
                TextEdit(
                    range: whole,
                    replacement: written(address.localPart, view) + at
                        + Array(address.domain.utf8), isMade: true))
        case .hidden, .other:
            edits.append(
                TextEdit(range: whole, replacement: NeutralMark.address(in: view.lens)))
        }
    }

    private func isRelayLocal(_ view: View, _ range: Range<Int>) -> Bool {
        range.count == relayLocal.count
            && relayLocal.indices.allSatisfy {
                view.window.octets[range.lowerBound + $0] == relayLocal[$0]
            }
    }

    /// A token without its domain. If the domain follows, the edit of the complete address replaces
    /// this one.
    private func token(_ view: View, _ anchor: Int, _ edits: inout [TextEdit]) {
        let joins: (Int) -> Bool = {
            view.window.separators[$0] & ~DecodedWindow.unseen == 0
                || view.window.separators[$0] & DecodedWindow.lineBreak != 0
        }
        guard
            let found = own.find(
                around: anchor, in: view.window.octets, joins: joins, isApart: { view.hasGap($0) })
        else {
            return
        }
        let at = view.lens.contains(.percent) ? Array("%40".utf8) : [UInt8(ascii: "@")]
        let replacement =
            found.correspondent.map { written($0.localPart, view) + at + Array($0.domain.utf8) }
            ?? NeutralMark.address(in: view.lens)
        edits.append(
            TextEdit(
                range: view.source(found.range), replacement: replacement, isWeak: true,
                isMade: found.correspondent != nil))
    }

    /// The units that may be a token: at most 64 octets of a dot-atom directly before the
    /// separator.
    private func tokenRun(_ view: View, endingAt end: Int, allowsBreaks: Bool) -> Range<Int>? {
        let units = view.window.octets
        var at = end
        while at > 0, end - at < 64 {
            let octet = units[at - 1]
            guard view.isAlphanumeric(at - 1) || ".!#$%&'*+-/=?^_`{|}~".utf8.contains(octet) else {
                break
            }
            let isApart = at < end && view.window.separators[at] & ~DecodedWindow.unseen != 0
            if isApart, !(allowsBreaks && view.window.separators[at] & DecodedWindow.lineBreak != 0)
            {
                break
            }
            at -= 1
        }
        return at < end ? at..<end : nil
    }

    /// The possible starts of a token in a run: its beginning, and the place after each mark that
    /// does not belong to a readable address as programs write it.
    private func starts(_ view: View, _ run: Range<Int>) -> [Int] {
        [run.lowerBound]
            + run.dropFirst().filter {
                !view.isAlphanumeric($0 - 1) && view.isAlphanumeric($0)
                    && view.window.octets[$0 - 1] != UInt8(ascii: ".")
            }
    }

    /// A local part, escaped as its place requires.
    private func written(_ local: String, _ view: View) -> [UInt8] {
        AddressWriting.local(local, lens: view.lens, syntax: view.syntax)
    }
}

/// The separator between local part and domain.
struct Separator {
    /// The first unit of the separator.
    let start: Int
    /// `=`, `#`, `%`: the forms of an address within the local part of another.
    let isVERP: Bool
    /// Whether it is `@` or a replacement of it, and not a word of a sentence.
    let isAtSign: Bool

    /// Maximum octets of a comment that is skipped.
    private static let longestComment = 60

    /// The start of a comment in parentheses that ends directly before a unit.
    private static func comment(endingBefore end: Int, in units: UnsafeBufferPointer<UInt8>) -> Int?
    {
        guard end > 2, units[end - 1] == UInt8(ascii: ")") else { return nil }
        var start = end - 2
        while start > 0, end - start < longestComment, units[start] != UInt8(ascii: "("),
            units[start] != UInt8(ascii: ")")
        {
            start -= 1
        }
        return start > 0 && units[start] == UInt8(ascii: "(") ? start : nil
    }

    private static let words = [[UInt8]("at".utf8), [UInt8]("@".utf8), [UInt8]("a".utf8)]

    /// The opening bracket for a closing one; any other mark closes itself.
    private static func opening(_ closing: UInt8) -> UInt8 {
        switch closing {
        case 0x29: 0x28
        case 0x5D: 0x5B
        case 0x7D: 0x7B
        case 0x3E: 0x3C
        default: closing
        }
    }

    private init(_ start: Int, isVERP: Bool = false, isWord: Bool = false) {
        self.start = start
        self.isVERP = isVERP
        isAtSign = !isVERP && !isWord
    }

    /// The separator that ends directly before a unit: `@`, `\@`, `=`, `#`, `%`, `(at)`,
    /// ` at ` and similar ones.
    init?(before unit: Int, in window: DecodedWindow) {
        let units = window.octets
        guard unit > 1 else { return nil }
        let last = unit - 1
        switch units[last] {
        case UInt8(ascii: "@"):
            let at = last > 1 && units[last - 1] == UInt8(ascii: "\\") ? last - 1 : last
            self.init(Self.comment(endingBefore: at, in: units) ?? at)
        case UInt8(ascii: "="), UInt8(ascii: "#"), UInt8(ascii: "%"): self.init(last, isVERP: true)
        case UInt8(ascii: ")"), UInt8(ascii: "]"), UInt8(ascii: "}"), UInt8(ascii: ">"),
            UInt8(ascii: "-"), UInt8(ascii: "_"):
            let opening = Self.opening(units[last])
            for word in Self.words {
                let start = last - word.count - 1
                guard start > 0, units[start] == opening,
                    word.indices.allSatisfy({ units[start + 1 + $0] == word[$0] })
                else {
                    continue
                }
                self.init(start)
                return
            }
            // `anna@(home)example.org` (RFC 5322 section 3.4.1).
            guard let start = Self.comment(endingBefore: unit, in: units), start > 1,
                units[start - 1] == UInt8(ascii: "@")
            else {
                return nil
            }
            self.init(start - 1)
        case UInt8(ascii: "t"):
            guard last > 1, units[last - 1] == UInt8(ascii: "a"), window.separators[unit] != 0,
                window.separators[last - 1] != 0
            else {
                return nil
            }
            self.init(last - 1, isWord: true)
        default: return nil
        }
    }
}
