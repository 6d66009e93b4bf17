// The DNS tree walk (RFC 9989 section 4.10): finds the records at and above a domain, and derives
// the results.

import InternetMessage

/// The records found by one walk, nearest first.
struct DMARCTreeWalk: Sendable {
    /// A domain and its record.
    struct Found: Sendable {
        let domain: String
        let record: DMARCRecord
    }

    /// Maximum queries of one walk (RFC 9989 section 4.10). A longer name is shortened to seven
    /// labels after the first.
    static let maximumQueries = 8

    /// The domain at which the walk started, in lower case.
    let start: String
    private(set) var found: [Found] = []
    /// The reason why the walk stopped early; `found` has the records up to then.
    private(set) var failure: String?

    /// Walks up from a domain that `DomainName.queryable` returned.
    init(from domain: String, lookup: (String) -> DMARC.RecordLookup) {
        start = domain
        var target = domain
        // A name for which the DNS can be queried has no empty labels.
        let labels = domain.utf8.reduce(1) { $1 == UInt8(ascii: ".") ? $0 + 1 : $0 }
        for step in 0..<Self.maximumQueries {
            switch lookup(target) {
            case .record(let record):
                found.append(Found(domain: target, record: record))
                if record.publicSuffix != .unknown { return }
            case .none: break
            case .temporaryFailure(let reason):
                failure = reason
                return
            }
            let dropped =
                step == 0 && labels > Self.maximumQueries ? labels - Self.maximumQueries + 1 : 1
            for _ in 0..<dropped {
                guard let dot = target.utf8.firstIndex(of: UInt8(ascii: ".")) else { return }
                target = String(target[target.utf8.index(after: dot)...])
            }
        }
    }

    /// The organizational domain (RFC 9989 section 4.10.2); nil if the walk found no record.
    var organizationalDomain: String? {
        for (index, entry) in found.enumerated() {
            switch entry.record.publicSuffix {
            case .no: return entry.domain
            case .yes where index > 0 || entry.domain != start:
                let count = entry.domain.split(separator: ".").count + 1
                return start.split(separator: ".").suffix(count).joined(separator: ".")
            case .yes, .unknown: continue
            }
        }
        return found.last?.domain
    }

    /// The record that applies to the domain (RFC 9989 section 4.10.1): its own, or that of its
    /// organizational domain or of its public suffix.
    var applicable: Found? {
        if let first = found.first, first.domain == start { return first }
        let organization = organizationalDomain
        return found.first { $0.domain == organization }
            ?? found.last { $0.record.publicSuffix == .yes }
    }
}
