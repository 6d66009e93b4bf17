// Data about the user that a team may want to know, in a right and a wrong form, in the spellings
// of people and programs.

/// The mail of a pair that is meant.
package enum Side: Sendable { case right, wrong }

/// An address of the user's, and one that differs from it in every letter. Every spelling of both
/// has the same length.
package struct Guess: Sendable {
    package let name: String
    let right: (local: String, domain: String)
    let wrong: (local: String, domain: String)

    private static let wrongLocal = "vctu.q41p"

    /// The inbox from which the user writes.
    package static let inbox = "jane.k77x@home.example"
    /// Another inbox, at a provider that ignores dots and tags.
    package static let second = "k77x.jane42@gmail.com"
    package static let inboxes = [inbox, second]

    package static let all: [Guess] = [
        Guess(
            name: "inbox", right: ("jane.k77x", "home.example"), wrong: (wrongLocal, "home.example")
        ),
        Guess(
            name: "domain", right: ("jane.k77x", "home.example"),
            wrong: ("jane.k77x", "hume.example")),
        Guess(
            name: "second", right: ("k77x.jane42", "gmail.com"), wrong: ("q41p.vctu13", "gmail.com")
        ),
        Guess(
            name: "second's dots", right: ("k77xjane42", "gmail.com"),
            wrong: ("q41pvctu13", "gmail.com")),
        Guess(
            name: "second's sister", right: ("k77x.jane42", "googlemail.com"),
            wrong: ("q41p.vctu13", "googlemail.com")),
    ]

    func local(_ side: Side) -> String { side == .right ? right.local : wrong.local }
    func domain(_ side: Side) -> String { side == .right ? right.domain : wrong.domain }

    /// - Parameter side: the right or the wrong one, in this spelling.
    package func spelled(_ spelling: Spelling, _ side: Side) -> String {
        spelling.write(local(side), domain(side))
    }
}

/// The written form of an address, or of a part of it.
package enum Spelling: String, CaseIterable, Sendable {
    // Forms that may also be an address in a header field.
    case plain, upper, title, tagged
    // One word.
    case percent, percentDots, verp, printable, gateway, dashHex, starHex, base64, base64Shifted,
        base64URL, hexadecimal
    case numbered, glued, gluedBehind, underscored, hyphened, local, localUpper, localTagged, host
    // Text.
    case atWord, atBrackets, dotWords, spaced, quotedLocal, comment, fullWidth, zeroWidth,
        softHyphen, angle, localSentence
    case windowsPath, homePath, fileURL, mailto, query, queryEncoded, queryBase64, path, user,
        otherURL, localURL, calendarURL
    case client, helo
    // Markup.
    case numericAt, hexAt, namedAt, allNumeric, wordBreak, markupComment, bold, shy, span

    package var isAddress: Bool {
        self == .plain || self == .upper || self == .title || self == .tagged
    }
    package var isMarkup: Bool {
        switch self {
        case .numericAt, .hexAt, .namedAt, .allNumeric, .wordBreak, .markupComment, .bold, .shy,
            .span:
            true
        default: false
        }
    }
    /// One word without marks that have a meaning in a header field or a parameter.
    package var isWord: Bool {
        switch self {
        case .plain, .upper, .title, .tagged, .percent, .percentDots, .verp, .printable, .gateway,
            .dashHex, .starHex, .base64URL,
            .hexadecimal, .numbered, .glued, .gluedBehind, .underscored, .hyphened, .local,
            .localUpper, .localTagged, .host,
            .client, .helo:
            true
        default: false
        }
    }

    private static func capitalised(_ text: String) -> String {
        var octets = Array(text.utf8)
        if let first = octets.first, first >= 0x61, first <= 0x7A { octets[0] = first - 0x20 }
        return String(decoding: octets, as: UTF8.self)
    }

    private static func upper(_ text: String) -> String {
        String(decoding: text.utf8.map { $0 >= 0x61 && $0 <= 0x7A ? $0 - 0x20 : $0 }, as: UTF8.self)
    }

    private static func base64(_ text: String) -> String {
        String(decoding: Octets.base64(text.utf8), as: UTF8.self)
    }

    private static func url64(_ text: String) -> String {
        String(
            decoding: Octets.base64(text.utf8).compactMap { octet -> UInt8? in
                switch octet {
                case UInt8(ascii: "="): nil
                case UInt8(ascii: "+"): UInt8(ascii: "-")
                case UInt8(ascii: "/"): UInt8(ascii: "_")
                default: octet
                }
            }, as: UTF8.self)
    }

    private static func references(_ text: String) -> String {
        text.utf8.map { "&#\($0);" }.joined()
    }

    private static func hex(_ text: String) -> String {
        String(
            decoding: text.utf8.flatMap {
                [Octets.hexadecimal[Int($0 >> 4)], Octets.hexadecimal[Int($0 & 15)]]
            }, as: UTF8.self)
    }

    private static func under(_ text: String) -> String { Octets.replace(".", with: "_", in: text) }

    func write(_ l: String, _ d: String) -> String {
        let (head, tail) = (
            String(decoding: l.utf8.prefix(3), as: UTF8.self),
            String(decoding: l.utf8.dropFirst(3), as: UTF8.self)
        )
        return switch self {
        case .plain: "\(l)@\(d)"
        case .upper: Self.upper("\(l)@\(d)")
        case .title: "\(Self.capitalised(l))@\(Self.capitalised(d))"
        case .tagged: "\(l)+tag@\(d)"
        case .percent: "\(l)%40\(d)"
        case .percentDots:
            "\(Octets.replace(".", with: "%2E", in: l))%40\(Octets.replace(".", with: "%2e", in: d))"
        case .verp: "\(l)=\(d)"
        case .printable: "\(l)=40\(d)"
        case .gateway: Self.under("\(l)_\(d)")
        case .dashHex: "\(l)-40\(d)"
        case .starHex: "\(l)*40\(d)"
        case .base64: Self.base64("\(l)@\(d)")
        case .base64Shifted: Self.base64("x\(l)@\(d)/")
        case .base64URL: Self.url64("{\"e\":\"\(l)@\(d)\"}")
        case .hexadecimal: Self.hex("\(l)@\(d)")
        case .numbered: Self.base64("19#\(l)@\(d)7ded9217").split(separator: "=").joined()
        case .glued: "x\(l)@\(d)"
        case .gluedBehind: "\(l)@\(d)Tel.99"
        case .underscored: "_\(l)@\(d)_"
        case .hyphened: "\(l)@\(d)-Adresse"
        case .local: l
        case .localUpper: Self.upper(l)
        case .localTagged: "\(l)-7"
        case .host: d
        case .atWord: "\(l) at \(d)"
        case .atBrackets: "\(l) [at] \(d)"
        case .dotWords: "\(l) (at) \(Octets.replace(".", with: " dot ", in: d))"
        case .spaced: "\(l) @ \(d)"
        case .quotedLocal: "\"\(l)\"@\(d)"
        case .comment: "\(l)(home)@\(d)"
        case .fullWidth: "\(l)\u{FF20}\(d)"
        case .zeroWidth: "\(head)\u{200B}\(tail)@\(d)"
        case .softHyphen: "\(l)@\u{AD}\(d)"
        case .angle: "<\(l)@\(d)>"
        case .localSentence: "user \(l), or \(Self.capitalised(l))"
        case .windowsPath: "C:\\Users\\\(l)\\clip.xml"
        case .homePath: "/home/\(l)/mail"
        case .fileURL: "file:///C:\\Users\\\(l)\\clip.xml"
        case .mailto: "mailto:\(l)@\(d)"
        case .query: "https://juice.example/?e=\(l)@\(d)&x=1"
        case .queryEncoded: "https://juice.example/?e=\(l)%40\(d)&x=1"
        case .queryBase64: "https://juice.example/u/\(Self.url64("\(l)@\(d)"))/off"
        case .path: "https://www.juice.example/\(l)@\(d)/off"
        case .user: "https://\(l)@\(d)/"
        case .otherURL: "https://track.other.test/\(l)@\(d)/off?u=\(l)"
        case .localURL: "https://juice.example/people/\(l)"
        case .calendarURL: "https://calendar.other.test/event?eid=\(Self.url64("19#\(l)@\(d)7ded"))"
        case .client: l == "vctu.q41p" ? "198.51.100.78" : "198.51.100.77"
        case .helo: "desktop-\(l == "vctu.q41p" ? "8g4m3" : "7f3k2").\(d)"
        case .numericAt: "\(l)&#64;\(d)"
        case .hexAt: "\(l)&#x40;\(d)"
        case .namedAt: "\(l)&commat;\(Octets.replace(".", with: "&period;", in: d))"
        case .allNumeric: Self.references("\(l)@\(d)")
        case .wordBreak: "\(l)<wbr>@\(d)"
        case .markupComment: "\(head)<!-- x -->\(tail)@\(d)"
        case .bold: "<b>\(l)</b>@\(d)"
        case .shy: "\(l)&shy;@\(d)"
        case .span: "\(l)<span>@</span>\(d)"
        }
    }
}

/// The octets of a guess, with the corresponding octets of the other.
package struct Substitutions: Sendable {
    private var pairs = [Bool](repeating: false, count: 65_536)

    package init() {}

    /// Learns from two spellings of the same length.
    package mutating func learn(_ right: String, _ wrong: String) {
        for (one, other) in zip(right.utf8, wrong.utf8) { pairs[Int(one) << 8 | Int(other)] = true }
    }

    /// The first octet at which the two answers differ in more than the guess; nil if there is
    /// none.
    package func difference(_ right: [UInt8], _ wrong: [UInt8]) -> Int? {
        for index in 0..<min(right.count, wrong.count) where right[index] != wrong[index] {
            if !pairs[Int(right[index]) << 8 | Int(wrong[index])] { return index }
        }
        return right.count == wrong.count ? nil : min(right.count, wrong.count)
    }

    /// As `difference`; for texts.
    package func areSame(_ right: String, _ wrong: String) -> Bool {
        difference(Array(right.utf8), Array(wrong.utf8)) == nil
    }
}
