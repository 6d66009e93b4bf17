// Links and local paths in text that the team or a program wrote. A link keeps only its scheme and
// host.

import InternetMessage
import Support

/// Finds the links and paths of one text, in one pass.
struct NeutralLinks {
    private let text: UnsafeBufferPointer<UInt8>
    private let isMarkup: Bool
    private let isTeamHost: ([UInt8]) -> Bool
    private(set) var finds: [Neutraliser.Find] = []
    /// Links that stay, at the team's own domains, in order.
    private(set) var teamLinks: [Range<Int>] = []

    /// Maximum letters of a scheme (RFC 3986 section 3.1) that are read.
    private static let longestScheme = 30
    private static let longestHost = 255

    /// - Parameter isTeamHost: whether a host, in lower case, is at or below a domain
    ///   that the team registered.
    init(
        _ text: UnsafeBufferPointer<UInt8>, syntax: TextSyntax,
        isTeamHost: @escaping ([UInt8]) -> Bool
    ) {
        self.text = text
        isMarkup = syntax == .markup
        self.isTeamHost = isTeamHost
    }

    mutating func read() {
        var index = 0
        while index < text.count {
            let end: Int?
            switch text[index] {
            case UInt8(ascii: ":"): end = scheme(colon: index..<(index + 1))
            case UInt8(ascii: "&") where isMarkup:
                let reference = HTMLReference.read(text, at: index)
                end = reference?.scalar == 0x3A ? scheme(colon: index..<reference!.end) : nil
            case UInt8(ascii: "w"), UInt8(ascii: "W"): end = www(at: index)
            case UInt8(ascii: "\\"): end = network(at: index)
            case UInt8(ascii: "/"), UInt8(ascii: "~"), UInt8(ascii: "%"), UInt8(ascii: "."):
                end = home(at: index)
            default: end = nil
            }
            index = max(index + 1, end ?? 0)
        }
    }

    private mutating func cut(_ range: Range<Int>, _ replacement: [UInt8] = []) {
        if !range.isEmpty || !replacement.isEmpty {
            finds.append(Neutraliser.Find(kind: .cut, range: range, replacement: replacement))
        }
    }

    // MARK: Octets as a program reads them

    /// The octet at an index, with a reference decoded, and the index of the next one.
    private func unit(_ index: Int) -> (octet: UInt8, next: Int)? {
        guard index < text.count else { return nil }
        if isMarkup, text[index] == UInt8(ascii: "&"),
            let reference = HTMLReference.read(text, at: index)
        {
            return (reference.scalar < 0x80 ? UInt8(reference.scalar) : 0xFF, reference.end)
        }
        return (text[index], index + 1)
    }

    /// The index after two slashes, also in the escaped form of JSON; nil if there are none.
    private func slashes(_ index: Int) -> Int? {
        var index = index
        for _ in 0..<2 {
            guard var next = unit(index) else { return nil }
            if next.octet == UInt8(ascii: "\\"), let escaped = unit(next.next),
                escaped.octet == UInt8(ascii: "/")
            {
                next = escaped
            }
            guard next.octet == UInt8(ascii: "/") else { return nil }
            index = next.next
        }
        return index
    }

    /// The letters of a scheme before a colon, in lower case.
    private func scheme(before colon: Int) -> [UInt8] {
        var start = colon
        while start > 0, colon - start < Self.longestScheme {
            let octet = text[start - 1]
            guard octet.isASCIIAlphanumeric || "+.-".utf8.contains(octet) else { break }
            start -= 1
        }
        return text[start..<colon].map(\.asciiLowercased)
    }

    // MARK: Links

    private mutating func scheme(colon: Range<Int>) -> Int? {
        let scheme = scheme(before: colon.lowerBound)
        guard let last = scheme.last, last.isASCIIAlphanumeric else { return nil }
        // In `xmailto`, only the last letters count, as other text may be directly before the
        // scheme.
        if let authority = slashes(colon.upperBound) {
            if scheme == Array("file".utf8) || scheme == Array("smb".utf8) {
                return path(from: colon.lowerBound - scheme.count)
            }
            if scheme.count == 1 { return drive(colon: colon.lowerBound) }
            return link(from: colon.lowerBound, authority: authority)
        }
        if scheme.count == 1 { return drive(colon: colon.lowerBound) }
        let from = colon.upperBound
        switch Kind(scheme) {
        case .mailbox:
            let end = end(from: from, opener: opener(colon.lowerBound - scheme.count))
            // The text before the question mark is an address, which is found like any other.
            if let question = text[from..<end].firstIndex(of: UInt8(ascii: "?")) {
                cut(question..<end)
            }
            return end
        case .content:
            let end = end(from: from, opener: opener(colon.lowerBound - scheme.count))
            finds.append(Neutraliser.Find(kind: .kept, range: from..<end, replacement: []))
            return end
        case .data:
            let end = end(from: from, opener: opener(colon.lowerBound - scheme.count))
            guard end > from + 4 else { return nil }
            if text[from..<end].prefix(6).equalsIgnoringASCIICase("image/".utf8) {
                finds.append(Neutraliser.Find(kind: .kept, range: from..<end, replacement: []))
            } else {
                cut(from..<end, [UInt8(ascii: ",")])
            }
            return end
        case .script:
            let end = end(from: from, opener: opener(colon.lowerBound - scheme.count))
            cut(from..<end)
            return end
        case .file: return path(from: colon.lowerBound - scheme.count)
        case nil: return nil
        }
    }

    private enum Kind {
        case mailbox, content, data, script, file

        init?(_ scheme: [UInt8]) {
            switch String(decoding: scheme, as: UTF8.self) {
            case "mailto", "sip", "sips", "xmpp", "im", "skype": self = .mailbox
            case "cid", "mid": self = .content
            case "data": self = .data
            case "javascript", "vbscript": self = .script
            case "file": self = .file
            default: return nil
            }
        }
    }

    /// A link with a scheme: removes everything after the host, and the user name before it.
    private mutating func link(from colon: Int, authority: Int) -> Int {
        let opener = opener(colon - scheme(before: colon).count)
        let end = end(from: authority, opener: opener)
        var host = authority
        var hostEnd = authority
        while hostEnd < end, let next = unit(hostEnd), !Self.endsHost(next.octet) {
            if next.octet == UInt8(ascii: "@") { host = next.next }
            hostEnd = next.next
        }
        if host > authority {
            finds.append(
                Neutraliser.Find(
                    kind: .made, range: authority..<min(hostEnd, end),
                    replacement: Array(text[host..<min(hostEnd, end)])))
        }
        return cut(behind: host..<min(hostEnd, end), to: end, whole: colon..<end)
    }

    private static func endsHost(_ octet: UInt8) -> Bool {
        "/?#\\".utf8.contains(octet) || octet <= 0x20
    }

    /// Removes the text after a host, unless the host is the team's.
    private mutating func cut(behind host: Range<Int>, to end: Int, whole: Range<Int>) -> Int {
        let name = text[host].prefix(Self.longestHost).prefix { $0 != UInt8(ascii: ":") }.map(
            \.asciiLowercased)
        if isTeamHost(name) {
            teamLinks.append(whole)
            return end
        }
        guard host.upperBound < end, var first = unit(host.upperBound) else { return end }
        // `https:\/\/host\/path` ends like `https://host/path`.
        if first.octet == UInt8(ascii: "\\"), let escaped = unit(first.next),
            escaped.octet == UInt8(ascii: "/")
        {
            first = escaped
        }
        let keeps = first.octet == UInt8(ascii: "/") ? first.next : host.upperBound
        if keeps < end { cut(keeps..<end) }
        return end
    }

    /// `www.host/path` without a scheme.
    private mutating func www(at index: Int) -> Int? {
        guard index + 4 < text.count,
            text[index..<(index + 4)].equalsIgnoringASCIICase("www.".utf8),
            text[index + 4].isASCIIAlphanumeric, index == 0 || !Self.isOfWord(text[index - 1])
        else { return nil }
        let end = end(from: index, opener: opener(index))
        var hostEnd = index
        while hostEnd < end, let next = unit(hostEnd), !Self.endsHost(next.octet) {
            hostEnd = next.next
        }
        return cut(behind: index..<min(hostEnd, end), to: end, whole: index..<end)
    }

    private static func isOfWord(_ octet: UInt8) -> Bool {
        octet.isASCIIAlphanumeric || octet >= 0x80 || ".-_@/".utf8.contains(octet)
    }

    private func opener(_ start: Int) -> UInt8 { start > 0 ? text[start - 1] : 0 }

    /// The end of a link: at white space, an angle bracket or a quote, or at the bracket that
    /// closes an earlier one.
    private func end(from start: Int, opener: UInt8) -> Int {
        let closer: UInt8 =
            switch opener {
            case UInt8(ascii: "("): UInt8(ascii: ")")
            case UInt8(ascii: "["): UInt8(ascii: "]")
            case UInt8(ascii: "'"): opener
            default: 0
            }
        var end = start
        while end < text.count {
            let octet = text[end]
            if octet <= 0x20 || octet == 0x7F || "<>\"".utf8.contains(octet)
                || closer != 0 && octet == closer
            {
                break
            }
            if isMarkup, octet == UInt8(ascii: "&"),
                let reference = HTMLReference.read(text, at: end),
                [0x22, 0x27, 0x3C, 0x3E, 0xA0].contains(reference.scalar)
            {
                break
            }
            // A no-break space (U+00A0) and East Asian sentence marks also end it.
            if octet == 0xC2, end + 1 < text.count, text[end + 1] == 0xA0 { break }
            if octet == 0xE3, end + 2 < text.count, text[end + 1] == 0x80 { break }
            end += 1
        }
        guard opener != UInt8(ascii: "\"") else { return end }
        while end > start, ".,;:!?".utf8.contains(text[end - 1]) {
            // The semicolon of a reference is not punctuation of the sentence.
            if isMarkup, text[end - 1] == UInt8(ascii: ";"),
                text[max(start, end - 10)..<end].contains(UInt8(ascii: "&"))
            {
                break
            }
            end -= 1
        }
        return end
    }

    // MARK: Paths

    /// `C:\Users\…`, `C:/Users/…`.
    private mutating func drive(colon: Int) -> Int? {
        guard colon + 2 < text.count, text[colon - 1].isASCIILetter,
            colon < 2 || !Self.isOfWord(text[colon - 2]),
            let next = unit(colon + 1),
            next.octet == UInt8(ascii: "\\") || next.octet == UInt8(ascii: "/")
        else { return nil }
        return path(from: colon - 1)
    }

    /// `\\host\share`.
    private mutating func network(at index: Int) -> Int? {
        guard index + 3 < text.count, text[index + 1] == UInt8(ascii: "\\"),
            text[index + 2].isASCIIAlphanumeric,
            index == 0 || !Self.isOfWord(text[index - 1]) && text[index - 1] != UInt8(ascii: "\\")
        else { return nil }
        // `\\` followed by only a word is an escaped backslash.
        var end = index + 2
        while end < text.count, text[end].isASCIIAlphanumeric || "._-$".utf8.contains(text[end]) {
            end += 1
        }
        guard end < text.count, text[end] == UInt8(ascii: "\\") else { return nil }
        return path(from: index)
    }

    private static let homes = [
        "/Users/", "/home/", "/root/", "/var/folders/", "/private/", "/mnt/c/Users/", "/Volumes/",
        "~/", "%USERPROFILE%", "%APPDATA%", "/export/home/", "/media/", "/cygdrive/", "/mnt/",
        "/var/mail/", "/var/spool/mail/", "/run/user/", "/run/media/", "/usr/home/",
        "../Users/", "../home/",
    ].map { Array($0.utf8) }

    private mutating func home(at index: Int) -> Int? {
        guard
            index == 0 || text[index - 1] <= 0x20 || "\"'(=:>,".utf8.contains(text[index - 1])
                || text[index] == UInt8(ascii: ".") && text[index - 1] == UInt8(ascii: "/")
                || !isMarkup && text[index - 1] == 0x3C,
            let prefix = Self.homes.first(where: {
                text[index...].prefix($0.count).equalsIgnoringASCIICase($0)
            }),
            index + prefix.count < text.count, text[index + prefix.count] > 0x20
        else { return nil }
        return path(from: index)
    }

    /// Replaces a path: up to white space or a quote, or up to the quote that matches the one
    /// before it.
    private mutating func path(from start: Int) -> Int {
        let opener = opener(start)
        let closer: UInt8 =
            switch opener {
            case UInt8(ascii: "\""), UInt8(ascii: "'"): opener
            case UInt8(ascii: "<"): UInt8(ascii: ">")
            case UInt8(ascii: "("): UInt8(ascii: ")")
            default: 0
            }
        var end = start
        while end < text.count {
            let octet = text[end]
            if octet == closer && closer != 0 || "<>|\"".utf8.contains(octet) || octet == 0x0A
                || octet == 0x0D
            {
                break
            }
            if octet <= 0x20, closer == 0 || closer == UInt8(ascii: ")"), !continuesPath(end) {
                break
            }
            if isMarkup, octet == UInt8(ascii: "&"),
                let reference = HTMLReference.read(text, at: end),
                [0x22, 0x27, 0x3C, 0x3E].contains(reference.scalar)
            {
                break
            }
            end += 1
        }
        if closer == 0 {
            while end > start + 1, ".,;:!?)".utf8.contains(text[end - 1]) { end -= 1 }
        }
        cut(start..<end, NeutralMark.path)
        return end
    }

    /// Words of the name of a folder, as in `Documents and Settings`.
    private static let folderWords = 3

    /// Whether a single space belongs to a path: another backslash is in one of the next words, and
    /// no mark that ends a sentence or begins another path is before it.
    private func continuesPath(_ space: Int) -> Bool {
        guard text[space] == 0x20, space + 1 < text.count, text[space + 1] > 0x20 else {
            return false
        }
        var words = 1
        var index = space + 1
        while index < text.count, index - space < 64, !"<>|\",;:!?".utf8.contains(text[index]) {
            if text[index] == UInt8(ascii: "\\") { return text[index - 1] > 0x20 }
            if text[index] <= 0x20 {
                words += 1
                guard text[index] == 0x20, text[index - 1] > 0x20,
                    text[index - 1] != UInt8(ascii: "."), words <= Self.folderWords
                else { return false }
            }
            index += 1
        }
        return false
    }
}
