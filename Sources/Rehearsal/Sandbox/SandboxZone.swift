// The DNS of a sandbox: records as data, which orders change. No query leaves this process.

import MailAuth
import Support
import Synchronization

/// Answers for every name with records here; no other name exists.
final class SandboxZone: DNSResolver {
    /// The most names with records.
    static let most = 1_000
    /// The hosts that may send for a domain of the sandbox (RFC 7208): this machine.
    static let policy = "v=spf1 ip4:127.0.0.1 ip6:::1 -all"

    /// By name in lower case.
    private let nodes = Mutex<[String: ZoneResolver.Node]>([:])

    init() {
        // Webhooks of an app on this machine.
        add(.address([127, 0, 0, 1]), .a, to: "localhost")
    }

    func query(_ name: String, _ type: DNSRecordType) -> DNSAnswer {
        let key = name.asciiLowercased
        return ZoneResolver(nodes.withLock { nodes in nodes[key].map { [key: $0] } ?? [:] }).query(
            name, type)
    }

    /// Adds a record; false if there would be too many names.
    @discardableResult
    func add(_ record: DNSRecord, _ type: DNSRecordType, to name: String) -> Bool {
        change(name) { node in
            node.failure = nil
            node.records[type, default: []].removeAll { $0 == record }
            node.records[type, default: []].append(record)
        }
    }

    /// Removes the records of a type; nil: of all types.
    func remove(_ type: DNSRecordType?, of name: String) {
        nodes.withLock { nodes in
            if let type {
                nodes[name.asciiLowercased]?.records[type] = nil
            } else {
                nodes[name.asciiLowercased] = nil
            }
        }
    }

    /// Every query for the name fails in this way.
    @discardableResult
    func fail(_ failure: ZoneResolver.Failure, at name: String) -> Bool {
        change(name) { $0 = ZoneResolver.Node(failure: failure) }
    }

    /// Lets this machine send for a domain that has no records yet.
    func open(_ domain: String) {
        guard nodes.withLock({ $0[domain.asciiLowercased] == nil }) else { return }
        add(.txt(Array(Self.policy.utf8)), .txt, to: domain)
    }

    /// The state, for a reset.
    var snapshot: [String: ZoneResolver.Node] {
        get { nodes.withLock { $0 } }
        set { nodes.withLock { $0 = newValue } }
    }

    private func change(_ name: String, _ body: (inout ZoneResolver.Node) -> Void) -> Bool {
        nodes.withLock { nodes in
            let key = name.asciiLowercased
            guard nodes[key] != nil || nodes.count < Self.most else { return false }
            body(&nodes[key, default: ZoneResolver.Node()])
            return true
        }
    }
}
