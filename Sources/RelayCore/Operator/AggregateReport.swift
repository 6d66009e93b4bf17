// DMARC aggregate reports (RFC 9990): a receiver's list of the hosts that sent it mail in the name
// of a relay domain.

import MailAuth
import Support

/// One receiver's report on one relay domain, usually for one day.
package struct AggregateReport: Sendable, Hashable {
    /// Messages of one host with the same result.
    package struct Source: Sendable, Hashable {
        package let address: IPAddress
        /// Whether DKIM passed and was aligned; `passesSPF` is the same for SPF.
        package let passesDKIM: Bool
        package let passesSPF: Bool
        /// The receiver's action on them: `none`, `quarantine` or `reject`.
        package let disposition: String

        package init(address: IPAddress, passesDKIM: Bool, passesSPF: Bool, disposition: String) {
            self.address = address
            self.passesDKIM = passesDKIM
            self.passesSPF = passesSPF
            self.disposition = disposition
        }

        package var passes: Bool { passesDKIM || passesSPF }
    }

    /// The domain whose DMARC record asked for the report; lower case.
    package let domain: String
    /// Distinguishes it from other reports of the same author.
    package let identifier: String
    /// Seconds since 1970.
    package let beginsAt: Int64
    package let endsAt: Int64
    /// Messages that passed, and messages that did not.
    package private(set) var passed = 0
    package private(set) var failed = 0
    /// The messages of each source, for the first `maximumSources` sources.
    package private(set) var messages: [Source: Int] = [:]

    /// Maximum sources that are counted separately.
    private static let maximumSources = 50
    /// Maximum messages of a report; records beyond this sum are ignored.
    private static let maximumCount = 1_000_000_000
    /// Maximum seconds that a report may cover; a day is usual.
    private static let longest: Int64 = 8 * 86_400

    /// A report on these messages.
    package init(
        domain: String, identifier: String, beginsAt: Int64, endsAt: Int64, messages: [Source: Int]
    ) {
        self.domain = domain
        self.identifier = identifier
        self.beginsAt = beginsAt
        self.endsAt = endsAt
        self.messages = messages
        for (source, count) in messages {
            if source.passes { passed += count } else { failed += count }
        }
    }

    /// Reads the XML of RFC 9990 section 3, and of RFC 7489 appendix C, which most receivers write;
    /// nil if it is not a report.
    /// - Parameter now: seconds since 1970; a report covers the past.
    package init?(xml: [UInt8], now: Int64) {
        var (values, record): ([String: String], [String: String]) = ([:], [:])
        var records: [[String: String]] = []
        let isRead = XMLReader.read(xml) { path, text in
            switch path.first == "feedback" ? Array(path.dropFirst()) : [] {
            case ["report_metadata", "report_id"], ["policy_published", "domain"],
                ["report_metadata", "date_range", "begin"],
                ["report_metadata", "date_range", "end"]:
                values[path.last ?? ""] = text
            case ["record", "row", "source_ip"], ["record", "row", "count"],
                ["record", "row", "policy_evaluated", "disposition"],
                ["record", "row", "policy_evaluated", "dkim"],
                ["record", "row", "policy_evaluated", "spf"]:
                record[path.last ?? ""] = text
            case ["record"]:
                records.append(record)
                record = [:]
            default: break
            }
        }
        guard isRead, let domain = values["domain"]?.lowercased(),
            let identifier = values["report_id"],
            (1...256).contains(identifier.utf8.count),
            identifier.utf8.allSatisfy({ (0x20..<0x7F).contains($0) }),
            let begin = values["begin"].flatMap(Int64.init),
            let end = values["end"].flatMap(Int64.init), begin > 0, end >= begin,
            end - begin <= Self.longest,
            end <= now + 86_400
        else { return nil }
        (self.domain, self.identifier, beginsAt, endsAt) = (domain, identifier, begin, end)
        for record in records { add(record) }
    }

    /// An invalid record is ignored.
    private mutating func add(_ record: [String: String]) {
        guard let address = record["source_ip"].flatMap({ IPAddress($0) }),
            let count = record["count"].flatMap(Int.init),
            (1...Self.maximumCount).contains(count), count <= Self.maximumCount - passed - failed
        else { return }
        let disposition = record["disposition"]?.lowercased() ?? ""
        let source = Source(
            address: address, passesDKIM: record["dkim"]?.lowercased() == "pass",
            passesSPF: record["spf"]?.lowercased() == "pass",
            disposition: ["none", "quarantine", "reject"].contains(disposition)
                ? disposition : "none")
        if source.passes { passed += count } else { failed += count }
        if messages[source] != nil || messages.count < Self.maximumSources {
            messages[source, default: 0] += count
        }
    }
}

/// The subset of XML that reports use: elements and their text. Refuses a document type, as XML
/// entities can read files and fill memory. Skips attributes, comments and processing instructions.
enum XMLReader {
    private static let maximumDepth = 16
    /// Maximum octets that are kept of an element's text, and of its name.
    private static let maximumText = 1_024
    private static let maximumName = 128
    /// Maximum tags, comments and similar in a document, as the size alone does not limit the cost
    /// of reading it. A report has about 25 for each record.
    private static let maximumMarks = 400_000

    /// Reads a document. At the end of each element, calls back with the names of its ancestors and
    /// itself, without prefixes, and its trimmed text. Entities are not decoded, as no value that
    /// is used has any.
    /// - Returns: false if it is not well-formed, as far as this is checked. Earlier callbacks are
    ///   then invalid.
    static func read(
        _ document: [UInt8], _ element: (_ path: [String], _ text: String) -> Void
    ) -> Bool {
        var rest = document[...]
        if rest.starts(with: [0xEF, 0xBB, 0xBF]) { rest = rest.dropFirst(3) }
        var (path, texts, hasRoot): ([String], [[UInt8]], Bool) = ([], [], false)
        func take(_ octets: ArraySlice<UInt8>) {
            guard !texts.isEmpty else { return }
            texts[texts.count - 1] += octets.prefix(
                max(0, maximumText - texts[texts.count - 1].count))
        }
        var marks = 0
        while let first = rest.first {
            marks += 1
            guard marks <= maximumMarks else { return false }
            guard first == UInt8(ascii: "<") else {
                let text = rest.prefix { $0 != UInt8(ascii: "<") }
                take(text)
                rest = rest.dropFirst(text.count)
                continue
            }
            if rest.starts(with: Array("<!--".utf8)) {
                guard let after = behind("-->", in: rest) else { return false }
                rest = after
            } else if rest.starts(with: Array("<![CDATA[".utf8)) {
                guard let after = behind("]]>", in: rest) else { return false }
                take(rest[(rest.startIndex + 9)..<(after.startIndex - 3)])
                rest = after
            } else if rest.starts(with: Array("<?".utf8)) {
                guard let after = behind("?>", in: rest) else { return false }
                rest = after
            } else {
                guard let end = tagEnd(rest), rest[rest.startIndex + 1] != UInt8(ascii: "!") else {
                    return false
                }
                let tag = rest[(rest.startIndex + 1)..<end]
                rest = rest[(end + 1)...]
                if tag.first == UInt8(ascii: "/") {
                    guard let open = path.last, open == name(tag.dropFirst()) else { return false }
                    let text = texts.removeLast().drop { $0 <= 0x20 }
                    let end = (text.lastIndex { $0 > 0x20 } ?? text.startIndex - 1) + 1
                    element(path, String(decoding: text[..<end], as: UTF8.self))
                    path.removeLast()
                } else {
                    guard path.count < maximumDepth, !(path.isEmpty && hasRoot),
                        let name = name(tag)
                    else { return false }
                    hasRoot = true
                    path.append(name)
                    if tag.last == UInt8(ascii: "/") {
                        element(path, "")
                        path.removeLast()
                    } else {
                        texts.append([])
                    }
                }
            }
        }
        return hasRoot && path.isEmpty
    }

    private static func behind(_ mark: String, in text: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        let mark = Array(mark.utf8)
        var index = text.startIndex
        while index + mark.count <= text.endIndex {
            if text[index] == mark[0], text[index..<(index + mark.count)].elementsEqual(mark) {
                return text[(index + mark.count)...]
            }
            index += 1
        }
        return nil
    }

    /// The end of a tag, outside quoted values.
    private static func tagEnd(_ text: ArraySlice<UInt8>) -> Int? {
        var quote: UInt8?
        for index in text.indices.dropFirst() {
            switch (text[index], quote) {
            case (UInt8(ascii: ">"), nil): return index
            case (UInt8(ascii: "\""), nil), (UInt8(ascii: "'"), nil): quote = text[index]
            case (let octet, let open?) where octet == open: quote = nil
            default: break
            }
        }
        return nil
    }

    /// Nil for a name that is too long.
    private static func name(_ tag: ArraySlice<UInt8>) -> String? {
        let whole = tag.prefix(maximumName + 1).prefix { $0 > 0x20 && $0 != UInt8(ascii: "/") }
        guard (1...maximumName).contains(whole.count) else { return nil }
        let local = whole.lastIndex(of: UInt8(ascii: ":")).map { whole[($0 + 1)...] } ?? whole
        return String(decoding: local, as: UTF8.self)
    }
}
