// A resolver that answers from a dictionary: vectors, `postern explain --dns FILE`, and tests.

import InternetMessage

/// Answers from data in memory. A name that is not in the data does not exist. Names compare
/// without regard to ASCII case and to a trailing dot.
package struct ZoneResolver: DNSResolver {
    /// How a name or one of its types fails.
    package enum Failure: String, Sendable, Hashable, CaseIterable {
        case nxDomain = "NXDOMAIN"
        case noData = "NODATA"
        case servFail = "SERVFAIL"
        case timeout = "TIMEOUT"

        fileprivate var answer: DNSAnswer {
            switch self {
            case .nxDomain: .nxDomain
            case .noData: .noData
            case .servFail: .temporaryFailure("SERVFAIL")
            case .timeout: .temporaryFailure("time-out")
            }
        }
    }

    /// The data at one name.
    package struct Node: Sendable {
        /// The records by type; they take precedence over `failure` and `alias`.
        package var records: [DNSRecordType: [DNSRecord]]
        /// The target of a CNAME.
        package var alias: String?
        /// Types that fail separately.
        package var failures: [DNSRecordType: Failure]
        /// The answer to every other query for the name; nil answers that it has no such record.
        package var failure: Failure?

        package init(
            records: [DNSRecordType: [DNSRecord]] = [:], alias: String? = nil,
            failures: [DNSRecordType: Failure] = [:],
            failure: Failure? = nil
        ) {
            self.records = records
            self.alias = alias
            self.failures = failures
            self.failure = failure
        }
    }

    /// Longest chain of CNAMEs that is followed. A longer one, or a loop, is a temporary failure,
    /// as in name servers.
    package static let maximumChain = 8

    private let nodes: [String: Node]

    /// Takes the nodes by name.
    package init(_ nodes: [String: Node]) {
        self.nodes = Dictionary(
            nodes.map { (Self.key($0.key), $0.value) }, uniquingKeysWith: { first, _ in first })
    }

    package func query(_ name: String, _ type: DNSRecordType) -> DNSAnswer {
        var key = Self.key(name)
        for _ in 0...Self.maximumChain {
            guard let node = nodes[key] else { return .nxDomain }
            if let failure = node.failures[type] { return failure.answer }
            if let records = node.records[type], !records.isEmpty { return .records(records) }
            guard let alias = node.alias else { return node.failure?.answer ?? .noData }
            key = Self.key(alias)
        }
        return .temporaryFailure("CNAME chain too long")
    }

    private static func key(_ name: String) -> String {
        var bytes = name.utf8.map(\.asciiLowercased)
        if bytes.last == UInt8(ascii: ".") { bytes.removeLast() }
        return String(decoding: bytes, as: UTF8.self)
    }
}
