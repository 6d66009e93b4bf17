// What each stretch of a text is: typed by the user, or something that is never compared with the user's addresses.

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

    /// Calls with each stretch of a text of this length.
    func forEach(upTo length: Int, _ body: (Range<Int>, Standing) -> Void) {
        for number in starts.indices {
            let end = number + 1 < starts.count ? min(starts[number + 1], length) : length
            if starts[number] < end { body(starts[number]..<end, standings[number]) }
        }
    }
}
