// What each stretch of a text is: typed by the user, or something that is never compared with the user's addresses.

import InternetMessage

/// Where a text is in a reply, so far as its own form does not say it.
enum TextPlace: Sendable {
    /// What the user, or the user's program, wrote.
    case typed
    /// A text part, in which quotations are recognized by their form.
    case body
    /// Within a message of the team's that is attached, or an alternative to a quotation.
    case quoted
    /// A program's: a Subject, a name, automatic mail, the answer of a calendar.
    case whole
}

/// What a stretch of a reply's text is.
enum Standing: UInt8, Sendable {
    /// What the user wrote, as far as its form tells.
    case typed
    /// A quotation, with marks or below an attribution.
    case quoted
    /// The line or the block of fields above a quotation: a name beside an address goes with it.
    case attribution
    /// Written by a program: what no reader sees, automatic mail, answers of calendars.
    case program

    var isTyped: Bool { self == .typed }
}

/// The stretches of one text, in order and without gaps.
struct Stretches: Sendable, Equatable {
    /// Where each begins; the first at 0.
    private(set) var starts: [Int]
    private(set) var standings: [Standing]

    /// More stretches than any letter has; a text with more is neutral as a whole.
    static let maximumCount = 100_000

    init(_ standing: Standing) {
        starts = [0]
        standings = [standing]
    }

    /// Begins a stretch. One that stands like the one before continues it.
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

    /// What stands at an offset.
    func standing(at index: Int) -> Standing { standings[max(0, starts.count(below: index + 1) - 1)] }

    /// Whether every octet is the user's own.
    var isTyped: Bool { standings == [.typed] }
    /// Whether a quotation is shown.
    var hasQuotation: Bool { standings.contains { $0 == .quoted || $0 == .attribution } }

    /// The stretches of a text in its place.
    init(_ text: [UInt8], syntax: TextSyntax, place: TextPlace) {
        switch place {
        case .typed: self.init(.typed)
        case .body: self = Quotation.stretches(of: text, syntax: syntax)
        case .quoted: self.init(.quoted)
        case .whole: self.init(.program)
        }
    }

    /// The same stretches where nothing is compared: what was typed is treated as quoted.
    var neutral: Stretches {
        var stretches = self
        for index in standings.indices where standings[index].isTyped { stretches.standings[index] = .quoted }
        return stretches
    }

    /// Calls with each stretch of a text of this length.
    func forEach(upTo length: Int, _ body: (Range<Int>, Standing) -> Void) {
        for number in starts.indices {
            let end = number + 1 < starts.count ? min(starts[number + 1], length) : length
            if starts[number] < end { body(starts[number]..<end, standings[number]) }
        }
    }
}

extension Stretches {
    /// The same stretches in the text that these edits make, which are in order and without overlaps. What an edit writes
    /// belongs to the stretch in which the edit begins.
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
            let reach = next < edits.count && edits[next].range.lowerBound < starts[number] ? edits[next] : nil
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
