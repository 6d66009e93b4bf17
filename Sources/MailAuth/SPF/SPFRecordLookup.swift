// Looks up the SPF record of a domain before it is evaluated.

import InternetMessage
import Support

extension SPF {
    /// The records found at a domain (RFC 7208 sections 4.4 to 4.6).
    package enum RecordLookup: Sendable, Hashable {
        /// The one record, unchanged.
        case record(String)
        case none
        /// More than one record, which is a permerror.
        case several(Int)
        /// A record with a term that violates the grammar, which is a permerror. The term is
        /// printable.
        case syntaxError(String)
        case temporaryFailure(String)
    }

    /// The SPF record of a domain, for its administrator; nothing is evaluated.
    package static func record(at domain: String, resolver: any DNSResolver) -> RecordLookup {
        guard let name = DomainName.mailDomain(domain) else { return .none }
        switch select(at: name, resolver: resolver) {
        case .record(_, let text): return .record(String(decoding: text, as: UTF8.self))
        case .none: return .none
        case .several(let count): return .several(count)
        case .syntaxError(let term): return .syntaxError(term)
        case .temporaryFailure(let reason): return .temporaryFailure(reason)
        }
    }

    /// The same with the parsed record.
    enum Selection {
        case record(SPFRecord, text: [UInt8])
        case none
        case several(Int)
        case syntaxError(String)
        case temporaryFailure(String)
    }

    /// Queries TXT records only (section 3.1), keeps those that begin with `v=spf1`, and parses
    /// if there is exactly one.
    static func select(at domain: String, resolver: any DNSResolver) -> Selection {
        let texts: [[UInt8]]
        switch resolver.query(domain, .txt) {
        case .records(let records):
            texts = records.compactMap {
                if case .txt(let text) = $0, SPFRecord.isSPF(text) { text } else { nil }
            }
        case .noData, .nxDomain: return .none
        case .temporaryFailure(let reason): return .temporaryFailure(reason)
        }
        guard let text = texts.first else { return .none }
        guard texts.count == 1 else { return .several(texts.count) }
        switch SPFRecord.parsed[text] {
        case .success(let record): return .record(record, text: text)
        case .failure(let error): return .syntaxError(error.term)
        }
    }
}
