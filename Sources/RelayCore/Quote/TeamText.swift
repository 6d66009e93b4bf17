// The part of a reply's text that the team wrote itself: it stays, right guess or wrong, so that no answer shows which it was.

import InternetMessage

/// Judges the mentions of an inbox found in a text. Not thread-safe: one for each message.
protocol MentionJudge: AnyObject {
    /// The edits without those of mentions that stay.
    /// - Parameter edits: in order and without overlaps.
    func without(_ edits: [TextEdit], in text: [UInt8], syntax: TextSyntax, place: TextPlace) -> [TextEdit]
    /// The team's own text, which may name the inbox, comes back in another form: as an id, or as a correspondent behind a
    /// reverse address.
    /// - Returns: whether it stays.
    func keepsAnother() -> Bool
}

/// Distinguishes mentions of an inbox that come back to the team from those that the user wrote.
final class TeamText: MentionJudge {
    /// Remembers the marks; nil where nothing may stay.
    private let directory: (any RelayDirectory)?
    private let now: Int64
    private let marks: MentionMarks
    /// Whether a program wrote the answer, its Subject included.
    private let isAutomatic: Bool
    private var known: [MentionSign: Bool] = [:]
    /// Number of mentions, ids of attached messages, and correspondents at the user's addresses that stay unchanged.
    private(set) var kept = 0
    /// Number of mentions in quotations that are hidden, as nothing shows that the team wrote them.
    private(set) var untold = 0
    /// Set where the directory could not answer: the message must be deferred.
    private(set) var failure: DirectoryFailure?

    /// - Parameters:
    ///   - directory: remembers the marks; nil where nothing may stay.
    ///   - isAutomatic: whether a program wrote the answer, its Subject included.
    ///   - now: seconds since 1970.
    init(marks: MentionMarks, directory: (any RelayDirectory)?, isAutomatic: Bool = false, now: Int64) {
        self.marks = marks
        self.isAutomatic = isAutomatic
        self.directory = directory
        self.now = now
    }

    func keepsAnother() -> Bool {
        guard directory != nil else { return false }
        kept += 1
        return true
    }

    func without(_ edits: [TextEdit], in text: [UInt8], syntax: TextSyntax, place: TextPlace) -> [TextEdit] {
        guard directory != nil, place != .typed, edits.contains(where: { $0.mention != nil }) else { return edits }
        var mentions: [Mention] = []
        // The other edits of a body replace reverse addresses.
        var reverse: [Int] = []
        var last: Range<Int>?
        for edit in edits {
            if let range = edit.mention {
                // Both halves of an address are edits of one mention.
                if range != last { mentions.append(Mention(range: range, local: edit.local)) }
                last = range
            } else {
                reverse.append(edit.range.lowerBound)
            }
        }
        let staying = text.withUnsafeBufferPointer {
            self.staying(mentions, before: reverse, in: $0, syntax: syntax, place: place)
        }
        guard !staying.isEmpty else { return edits }
        kept += staying.count
        return edits.filter { edit in edit.mention.map { !staying.contains($0) } ?? true }
    }

    /// A mention, and its local part as it reads.
    private struct Mention {
        let range: Range<Int>
        let local: [UInt8]

        /// Its sign where the forward had too many mentions. Computed on demand, as a text may have a hundred thousand mentions
        /// that the user typed.
        var many: MentionSign { MentionSigns.many(local) }
    }

    /// Octets between a display name and the address that follows it.
    private static let nameReach = 200

    /// Octets between the author of a quotation, named above it by a reverse address, and its subject or its only words.
    private static let authorReach = 2_000

    private func staying(
        _ mentions: [Mention], before reverse: [Int], in text: UnsafeBufferPointer<UInt8>, syntax: TextSyntax, place: TextPlace
    ) -> Set<Range<Int>> {
        var signs = MentionSigns(text, isMarkup: syntax == .markup)
        let first = mentions.map(\.range.lowerBound).min() ?? 0
        if place == .whole {
            let known = areKnown(
                [signs.whole(before: first, isAutomatic: isAutomatic)] + mentions.map { [$0.many] })
            return known[0] || known.dropFirst().allSatisfy { $0 } ? Set(mentions.map(\.range)) : []
        }
        let structure = place == .quoted || place == .signed ? nil : QuoteStructure(text, syntax: syntax, place: place)
        var asked: [(mention: Range<Int>, anyOf: [MentionSign], allOf: [MentionSign])] = []
        for found in mentions {
            let mention = found.range
            switch structure?.standing(at: mention.lowerBound) ?? .quoted {
            case .typed:
                let names = signs.names(mention, before: reverse, within: Self.nameReach)
                if !names.isEmpty { asked.append((mention, names, [])) }
            case .subject:
                // A list, such as of ways to reach the user, is not a header block: that names the team by its reverse address.
                guard let structure, isBelowAuthor(mention, reverse) else {
                    untold += 1
                    continue
                }
                let starts = signs.valueStarts(from: structure.start(of: mention.lowerBound), before: mention.lowerBound)
                asked.append(
                    (mention, signs.whole(from: starts, to: structure.end(of: mention.lowerBound, in: text)) + [found.many], []))
            case .quoted: asked.append((mention, [signs.form(mention), found.many], []))
            case .attribution:
                // The program's own line, unless the team's mail began with it.
                var alone = MentionSigns(text, isMarkup: syntax == .markup)
                let places = alone.places(mention, isWholeText: false)
                asked.append(
                    (
                        mention, signs.names(mention, before: reverse, within: Self.nameReach) + [found.many],
                        [places.before, places.behind].compactMap { $0 }
                    ))
                if places.before == nil || places.behind == nil { asked[asked.count - 1].allOf = [] }
            case .below:
                let places = signs.places(mention, isWholeText: false)
                let short = isBelowAuthor(mention, reverse) ? signs.short(mention) : nil
                asked.append((mention, [places.before, places.behind, short].compactMap { $0 } + [found.many], []))
            }
        }
        guard !asked.isEmpty else { return [] }
        _ = areKnown(asked.map { $0.anyOf + $0.allOf })
        var staying: Set<Range<Int>> = []
        for (mention, anyOf, allOf) in asked {
            if anyOf.contains(where: { known[$0] == true }) || (!allOf.isEmpty && allOf.allSatisfy { known[$0] == true }) {
                staying.insert(mention)
            } else if structure?.standing(at: mention.lowerBound) != .typed {
                untold += 1
            }
        }
        return staying
    }

    private func isBelowAuthor(_ mention: Range<Int>, _ reverse: [Int]) -> Bool {
        reverse.last(below: mention.lowerBound).map { mention.lowerBound - $0 < Self.authorReach } ?? false
    }

    /// Whether any of each group of signs is remembered; asks for all of them at once.
    private func areKnown(_ groups: [[MentionSign]]) -> [Bool] {
        var owner: [[UInt8]: MentionSign] = [:]
        for sign in groups.joined() where known[sign] == nil {
            known[sign] = false
            for mark in marks.marks(sign) { owner[mark] = sign }
        }
        if !owner.isEmpty, let directory {
            do throws(DirectoryFailure) {
                for mark in try directory.remembered(Array(owner.keys), account: marks.account, now: now) {
                    if let sign = owner[mark] { known[sign] = true }
                }
            } catch {
                failure = error
            }
        }
        return groups.map { $0.contains { known[$0] == true } }
    }
}
