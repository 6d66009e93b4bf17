// Finds the transport by which a running Postfix would send mail for an address at a relay domain
// that was not rewritten.

import Foundation

/// The transport of an address, as trivial-rewrite(8) finds it.
package enum DeadEndTransport {
    /// The port on 127.0.0.1 to which mail for this address is sent; nil if it is sent anywhere
    /// else.
    /// - Parameter address: at a relay domain.
    package static func port(
        of address: String, in configuration: PostfixConfiguration
    ) throws -> UInt16? {
        let transport =
            try lookUp(address, in: configuration) ?? configuration.expanded["virtual_transport"]
            ?? ""
        return port(transport)
    }

    /// The port on 127.0.0.1 of a transport; nil for any other destination.
    static func port(_ transport: String) -> UInt16? {
        let prefix = "smtp:[127.0.0.1]:"
        return transport.hasPrefix(prefix) ? UInt16(transport.dropFirst(prefix.count)) : nil
    }

    /// Looks in transport_maps, key by key in each table (transport(5)).
    static func lookUp(_ address: String, in configuration: PostfixConfiguration) throws -> String?
    {
        let domain = address.drop { $0 != "@" }.dropFirst()
        var keys = [address, String(domain)]
        var parent = domain
        while let dot = parent.firstIndex(of: ".") {
            keys.append(String(parent[dot...]))
            parent = parent[parent.index(after: dot)...]
        }
        let maps = PostfixList.items(configuration.expanded["transport_maps"] ?? "")
        for key in keys + ["*"] {
            for map in maps {
                // postmap fails if it finds nothing, and also if it cannot read the table. The next
                // table may have an answer.
                let found =
                    (try? PostfixTool.run(
                        "postmap", ["-c", configuration.directory, "-q", key, map])) ?? ""
                let text = found.trimmingCharacters(in: .whitespacesAndNewlines)
                if !text.isEmpty { return text }
            }
        }
        return nil
    }
}

/// Postfix's queue.
package enum PostfixQueue {
    struct Entry: Decodable {
        struct Recipient: Decodable { let address: String }
        let queue_id: String
        let queue_name: String?
        /// Seconds since 1970.
        let arrival_time: Int64?
        /// Empty for the null sender; MAILER-DAEMON in some versions.
        let sender: String?
        let recipients: [Recipient]
    }

    /// The number of messages with a recipient at one of these domains (lower case). Nothing is
    /// delivered there, so they wait until they are returned. Messages of `postern doctor`, which
    /// removes them itself, do not count.
    package static func parked(at domains: [String], directory: String) throws -> Int {
        try entries(at: domains, directory: directory).count
    }

    /// Messages with a recipient at one of these domains, except those of `postern doctor`.
    static func entries(at domains: [String], directory: String) throws -> [Entry] {
        let ends = domains.map { "@\($0)" }
        func isParked(_ address: String) -> Bool {
            let address = address.lowercased()
            return ends.contains(where: address.hasSuffix) && !address.hasPrefix("postern-doctor-")
        }
        // The queue of a busy host is long, so only entries that may count are parsed as JSON.
        return try PostfixTool.run("postqueue", ["-c", directory, "-j"]).split(separator: "\n")
            .compactMap { line in
                guard ends.contains(where: line.lowercased().contains),
                    let entry = try? JSONDecoder().decode(Entry.self, from: Data(line.utf8)),
                    entry.recipients.contains(where: { isParked($0.address) })
                else { return nil }
                return entry
            }
    }

    /// Deletes the messages whose recipients are all among these; returns their number. A message
    /// without remaining recipients waits for its bounce to be written. Its sender then decides.
    /// - Parameter isOurs: called with addresses in lower case.
    package static func delete(where isOurs: (String) -> Bool, directory: String) throws -> Int {
        let list = try PostfixTool.run("postqueue", ["-c", directory, "-j"])
        let entries = list.split(separator: "\n").compactMap {
            try? JSONDecoder().decode(Entry.self, from: Data($0.utf8))
        }
        let found = entries.filter { entry in
            entry.recipients.isEmpty
                ? isOurs(entry.sender?.lowercased() ?? "")
                : entry.recipients.allSatisfy { isOurs($0.address.lowercased()) }
        }
        for entry in found {
            try PostfixTool.run("postsuper", ["-c", directory, "-d", entry.queue_id])
        }
        return found.count
    }
}
