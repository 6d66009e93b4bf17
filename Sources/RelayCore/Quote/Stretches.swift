// The kind of each stretch of a text: typed by the user, or never compared with the user's
// addresses.

import InternetMessage

/// The place of a text in a reply. It adds what the form of the text does not show.
enum TextPlace: Sendable {
    /// Written by the user, or by the user's program.
    case typed
    /// A text part. Quotations in it are recognised by their form.
    case body
    /// In an attached message of the team's, or in an alternative to a quotation.
    case quoted
    /// Written by a program: a Subject, a name, automatic mail, a calendar answer.
    case whole
}

/// The kind of a stretch of a reply's text.
enum Standing: UInt8, Sendable {
    /// Written by the user, as far as its form shows.
    case typed
    /// A quotation, with marks or below an attribution.
    case quoted
    /// The line or the block of fields above a quotation. A name next to an address is removed with
    /// it.
    case attribution
    /// Written by a program: hidden text, automatic mail, calendar answers.
    case program

    var isTyped: Bool { self == .typed }
}

/// The stretches of one text, in order and without gaps.
struct Stretches: Sendable, Equatable {
    /// The start of each; the first is 0.
    private(set) var starts: [Int]
    private(set) var standings: [Standing]

    /// More stretches than any letter has. A text with more is neutralised completely.
    static let maximumCount = 100_000

    init(_ standing: Standing) {
        starts = [0]
        standings = [standing]
    }

    /// Begins a stretch. One of the same kind as the one before continues it.
    mutating func note(_ standing: Standing, at start: Int) {
        if let last = starts.last, last == start {
            standings[standings.count - 1] = standing
            if standings.count > 1, standings[standings.count - 2] == standing {
                starts.removeLast()
                standings.removeLast()
            }
        } else if standings.last != standing {
            starts.append(start)
            standings.append(standing)
        }
    }

    /// The kind of the stretch at an offset.
    func standing(at index: Int) -> Standing {
        standings[max(0, starts.count(below: index + 1) - 1)]
    }

    /// Whether every octet is the user's own.
    var isTyped: Bool { standings == [.typed] }
    /// Whether the text contains a quotation.
    var hasQuotation: Bool { standings.contains { $0 == .quoted || $0 == .attribution } }

    /// The stretches of a text, by its form and its place.
    init(_ text: [UInt8], syntax: TextSyntax, place: TextPlace) {
        switch place {
        case .typed: self.init(.typed)
        case .body: self = Quotation.stretches(of: text, syntax: syntax)
        case .quoted: self.init(.quoted)
        case .whole: self.init(.program)
        }
    }

    /// The same stretches without any comparison: typed text is treated as quoted.
    var neutral: Stretches {
        var stretches = self
        for index in standings.indices where standings[index].isTyped {
            stretches.standings[index] = .quoted
        }
        return stretches
    }

    /// Calls `body` with each stretch of a text of this length.
    func forEach(upTo length: Int, _ body: (Range<Int>, Standing) -> Void) {
        for number in starts.indices {
            let end = number + 1 < starts.count ? min(starts[number + 1], length) : length
            if starts[number] < end { body(starts[number]..<end, standings[number]) }
        }
    }
}

extension Stretches {
    /// The same stretches in the text after these edits, which are in order and without overlaps.
    /// The replacement of an edit belongs to the stretch in which the edit begins.
    func moved(by edits: [TextEdit]) -> Stretches {
        guard starts.count > 1, !edits.isEmpty else { return self }
        var moved = Stretches(standings[0])
        var (next, shift) = (0, 0)
        for number in starts.indices.dropFirst() {
            while next < edits.count, edits[next].range.upperBound <= starts[number] {
                shift += edits[next].replacement.count - edits[next].range.count
                next += 1
            }
            // An edit across the beginning of a stretch.
            let reach =
                next < edits.count && edits[next].range.lowerBound < starts[number]
                ? edits[next] : nil
            let start = reach.map { $0.range.lowerBound + $0.replacement.count } ?? starts[number]
            moved.note(standings[number], at: start + shift)
        }
        return moved
    }
}

extension [Int] {
    /// Number of elements of an ascending array that are less than this.
    func count(below place: Int) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if self[middle] < place { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
